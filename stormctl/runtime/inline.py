"""The steps that a delivery runs itself: claimed with their creation, or started by this very message before."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from stormctl.engine.door import Create, Pass, Pending
from stormctl.history import kinds
from stormctl.runtime import ops
from stormctl.runtime.flush import Flush, Reply
from stormctl.runtime.ops import Op
from stormctl.runtime.rules import Rules
from stormctl.runtime.steps import Call, StepEnd, go_on, run_step, start_of
from stormctl.runtime.view import View
from stormctl.workloads.base import Workload
from stormctl.worlds.base import Message, Refusal, Refused


def calls_of(replay: Pass, run_id: str, message_id: str) -> list[Call]:
    """The calls to run here, in draw order."""
    return [call for item in replay.pending if (call := _call(item, run_id, message_id)) is not None]


def _call(item: Pending, run_id: str, message_id: str) -> Call | None:
    if item.kind != kinds.STEP:
        return None
    lazy = item.create is Create.LAZY
    if not lazy and item.owner != message_id:
        return None
    return Call(
        run_id,
        item.correlation_id,
        item.name or "",
        tuple(item.arguments),
        attempt=item.attempts + 1,
        owner=message_id,
        lazy=lazy,
    )


def call_of(view: View, message: Message) -> Call | None:
    """The call that a step message names; None when the log shows that the step has ended.

    The message carries the arguments: its create may have been claimed and not be in the log yet.
    """
    own = [event.type for event in view.events if event.correlation_id == message.step_id]
    if any(type in kinds.STEP_TERMINAL for type in own):
        return None
    return Call(
        view.run_id,
        message.step_id or "",
        message.step_name or "",
        tuple(message.data.get("input", ())),
        attempt=own.count(kinds.STEP_STARTED) + 1,
    )


def run(calls: Sequence[Call], flush: Flush, code: Workload, rules: Rules) -> Generator[Op, Any, list[StepEnd]]:
    """Claim the lazy calls and run the bodies, all at once; what each came to, in order.

    Where claims cannot go at once (one batch, or each after the one before), the bodies begin when all claims are
    answered. A step that was claimed runs to its end whatever became of its siblings: nobody else will run it.
    """
    writer = flush.writer
    parts: list[Generator[Op, Any, StepEnd]] = []
    if flush.as_batch or flush.one_by_one:
        claims = [call for call in calls if call.lazy]
        answers = dict(zip((call.correlation_id for call in claims), (yield from _claim(claims, flush)), strict=True))
        for call in calls:
            if call.lazy:
                parts.append(go_on(call, code, rules, writer, answers[call.correlation_id]))
            else:
                parts.append(run_step(call, code, rules, writer))
    else:
        parts = [_claim_and_run(call, flush, code, rules) for call in calls]
    ends: list[StepEnd] = yield ops.Together(tuple(parts))
    return ends


def _claim_and_run(call: Call, flush: Flush, code: Workload, rules: Rules) -> Generator[Op, Any, StepEnd]:
    if not call.lazy:
        return (yield from run_step(call, code, rules, flush.writer))
    claimed = yield from flush.append(start_of(call, flush.writer))
    return (yield from go_on(call, code, rules, flush.writer, claimed))


def _claim(calls: Sequence[Call], flush: Flush) -> Generator[Op, Any, list[Reply]]:
    """The claims as one batch, else one after another up to the first refused precondition."""
    requests = [start_of(call, flush.writer) for call in calls]
    if flush.as_batch:
        return (yield from flush.append_batch(requests))
    replies: list[Reply] = []
    for request in requests:
        reply = yield from flush.append(request)
        replies.append(reply)
        if isinstance(reply, Refused) and reply.refusal is Refusal.PRECONDITION:
            break
    unsent = Refused(Refusal.PRECONDITION, "not sent: a claim before it was refused")
    return replies + [unsent] * (len(requests) - len(replies))
