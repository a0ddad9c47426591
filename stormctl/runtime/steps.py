"""Running one step: claim it, run its body, record the outcome."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from stormctl.history import kinds
from stormctl.runtime import ops
from stormctl.runtime.ops import Op
from stormctl.runtime.rules import Rules
from stormctl.workloads import base as acts
from stormctl.workloads.base import Workload
from stormctl.worlds.base import NO_PAYLOAD, Appended, AppendRequest, Message, Refusal, Refused


class StepEnd(StrEnum):
    """What became of an attempt to run a step."""

    DONE = "done"
    LOST = "lost"  # somebody else runs it, or it has ended
    RETRY = "retry"
    STALE = "stale"  # the claim was refused: the writer's view is behind
    UNKNOWN = "unknown"  # the store knows no such step


_REFUSED = {Refusal.PRECONDITION: StepEnd.STALE, Refusal.NOT_FOUND: StepEnd.UNKNOWN}


@dataclass(frozen=True, slots=True)
class Call:
    """A step to run. ``lazy`` creates it with its start; ``attempt`` counts from 1."""

    run_id: str
    correlation_id: str
    name: str
    arguments: tuple[Any, ...]
    attempt: int
    owner: str | None = None
    lazy: bool = False


def run_step(call: Call, code: Workload, rules: Rules, writer: str) -> Generator[Op, Any, StepEnd]:
    """Start the step, run its body, and record its outcome."""
    started = yield ops.Append(start_of(call, writer))
    return (yield from go_on(call, code, rules, writer, started))


def start_of(call: Call, writer: str) -> AppendRequest:
    """The write that starts a step.

    A lazy start is the exactly-once claim on the step: whoever loses it does nothing.
    """
    data: dict[str, Any] = {"attempt": call.attempt}
    if call.owner is not None:
        data["ownerMessageId"] = call.owner
    return AppendRequest(
        run_id=call.run_id,
        type=kinds.STEP_STARTED,
        writer=writer,
        correlation_id=call.correlation_id,
        name=call.name,
        data=data,
        lazy=call.lazy,
        payload=list(call.arguments) if call.lazy else NO_PAYLOAD,
    )


def go_on(
    call: Call, code: Workload, rules: Rules, writer: str, started: Appended | Refused
) -> Generator[Op, Any, StepEnd]:
    """What follows the answer to a start: the step's body and its outcome, or nothing."""
    if isinstance(started, Refused):
        if started.refusal is Refusal.TOO_EARLY:
            yield _again(call, started.retry_after_ms or rules.step_retry_ms)
            return StepEnd.RETRY
        return _REFUSED.get(started.refusal, StepEnd.LOST)
    try:
        result = yield from _body(call, code, writer)
    except Exception as error:  # whatever a step body raises is the step's outcome
        return (yield from _failed(call, rules, writer, error))
    yield ops.Append(_outcome(call, writer, kinds.STEP_COMPLETED, result))
    return StepEnd.DONE


def _body(call: Call, code: Workload, writer: str) -> Generator[Op, Any, Any]:
    """Drive the step's body, turning its acts into requests."""
    body = code.steps[call.name](*call.arguments)
    reply: Any = None
    while True:
        try:
            act = body.send(reply)
        except StopIteration as returned:
            return returned.value
        reply = None
        match act:
            case acts.Sleep(ms):
                yield ops.Sleep(ms, "step body")
            case acts.Now():
                reply = yield ops.Now()
            case acts.StepAttempt():
                reply = call.attempt
            case acts.KillWorker(reason):
                yield ops.Kill(reason)
            case acts.SetAttributes(changes):
                yield ops.Append(
                    AppendRequest(
                        run_id=call.run_id,
                        type=kinds.ATTR_SET,
                        writer=writer,
                        data={
                            "changes": [{"key": key, "value": value} for key, value in changes.items()],
                            "writer": {"type": "step", "stepId": call.correlation_id, "attempt": call.attempt},
                        },
                    )
                )
            case _:
                raise TypeError(f"a step body cannot {type(act).__name__}")


def _failed(call: Call, rules: Rules, writer: str, error: Exception) -> Generator[Op, Any, StepEnd]:
    message = f"{type(error).__name__}: {error}"
    if call.attempt >= rules.step_attempts:
        yield ops.Append(_outcome(call, writer, kinds.STEP_FAILED, message))
        return StepEnd.DONE
    retry_at = (yield ops.Now()) + round(rules.step_retry_ms)
    yield ops.Append(_outcome(call, writer, kinds.STEP_RETRYING, message, {"retryAfter": retry_at}))
    yield _again(call, rules.step_retry_ms)
    return StepEnd.RETRY


def _again(call: Call, delay_ms: float) -> ops.Enqueue:
    """The message that tries the step again: one per attempt, so that the first one's key does not swallow it."""
    message = message_for(call.run_id, call.correlation_id, call.name, call.arguments)
    return ops.Enqueue(message, delay_ms, key=f"{call.correlation_id}:{call.attempt + 1}")


def message_for(run_id: str, step_id: str, name: str | None, arguments: Sequence[Any]) -> Message:
    """The queue message that runs a step in the background. It carries the step's input, as upstream's does."""
    return Message(run_id, step_id=step_id, step_name=name, data={"input": list(arguments)})


def _outcome(call: Call, writer: str, type: str, payload: Any, data: dict[str, Any] | None = None) -> AppendRequest:
    return AppendRequest(
        run_id=call.run_id,
        type=type,
        writer=writer,
        correlation_id=call.correlation_id,
        name=call.name,
        payload=payload,
        data=data or {},
    )
