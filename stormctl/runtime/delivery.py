"""The life of one delivery: one queue message, one invocation of a run.

Read the log, complete the waits that are due, replay, write what the suspension asks for, run the inline steps, and
again, until there is nothing to do but wait. Several deliveries of one run overlap; nothing here prevents it, because
nothing upstream does.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from stormctl.engine.door import Create, Divergence, Outcome, Pass
from stormctl.engine.engines import engine_for
from stormctl.history import kinds
from stormctl.runtime import ops, suspension
from stormctl.runtime.ops import Op
from stormctl.runtime.rules import Rules
from stormctl.runtime.steps import Call, StepEnd, run_step
from stormctl.runtime.view import View
from stormctl.workloads.base import Workload
from stormctl.worlds.base import NO_PAYLOAD, AppendRequest, Claimed, Message, Refusal, Refused


class Ending(StrEnum):
    """Why a delivery came to its end."""

    PARKED = "parked"  # everything was written; other messages will bring the run on
    ENDED = "ended"  # the run had ended, or somebody else ended it
    COMPLETED = "completed"
    FAILED = "failed"
    RECOVERING = "recovering"  # diverged; a recovery replay is on its way
    REINVOKED = "reinvoked"  # its view was behind too often; a fresh delivery is on its way


@dataclass(frozen=True, slots=True)
class Delivery:
    """How a delivery went."""

    ending: Ending
    passes: int = 0
    restarts: int = 0


def deliver(claimed: Claimed, code: Workload, rules: Rules) -> Generator[Op, Any, Delivery]:
    """Deliver one message: run its step first if it names one, then bring the run on as far as it goes."""
    writer = yield ops.Draw("writer")
    run = _Invocation(claimed, code, rules, writer)
    if claimed.message.step_id is not None:
        return (yield from run.step_message())
    return (yield from run.flow_message())


class _Invocation:
    """The state of one delivery between its requests."""

    def __init__(self, claimed: Claimed, code: Workload, rules: Rules, writer: str) -> None:
        self.message = claimed.message
        self.message_id = claimed.message_id
        self.run_id = claimed.message.run_id
        self.code = code
        self.rules = rules
        self.writer = writer
        self.passes = 0
        self.restarts = 0

    # -- the two kinds of message --------------------------------------------------------------------------------

    def step_message(self) -> Generator[Op, Any, Delivery]:
        """Run a background step; bring the run on only if no other step is open (otherwise the last one will)."""
        view = View.of(self.run_id, (yield ops.Load(self.run_id)))
        call = _call_of(view, self.message)
        if view.ended:
            return self._end(Ending.ENDED)
        if call is None:
            return self._end(Ending.PARKED)
        end = yield from run_step(call, self.code, self.rules, self.writer, None)
        if end is StepEnd.UNKNOWN:
            return (yield from self._look_again())
        if end is not StepEnd.DONE:
            return self._end(Ending.PARKED)
        view = View.of(self.run_id, (yield ops.Load(self.run_id)))
        if view.ended:
            return self._end(Ending.ENDED)
        if view.unfinished_steps():
            return self._end(Ending.PARKED)
        return (yield from self.bring_on(view))

    def _look_again(self) -> Generator[Op, Any, Delivery]:
        """The store does not know the step: the writer that claimed its create may not have got that far yet."""
        looks = int(self.message.data.get("looks", 0)) + 1
        if looks <= self.rules.looks:
            message = replace(self.message, data={**self.message.data, "looks": looks})
            yield ops.Enqueue(message, self.rules.look_again_ms)
        return self._end(Ending.PARKED)

    def flow_message(self) -> Generator[Op, Any, Delivery]:
        """Start the run if nobody has, read its log, and bring it on."""
        started = yield ops.Append(self._request(kinds.RUN_STARTED))
        if isinstance(started, Refused) and started.refusal is not Refusal.CONFLICT:
            return self._end(Ending.ENDED)
        return (yield from self.bring_on(View.of(self.run_id, (yield ops.Load(self.run_id)))))

    # -- the loop ------------------------------------------------------------------------------------------------

    def bring_on(self, view: View) -> Generator[Op, Any, Delivery]:
        """Replay and write, again and again, until the run waits for something that another message will bring."""
        for _ in range(self.rules.max_loops):
            if view.ended:
                return self._end(Ending.ENDED)
            if len(view.events) > self.rules.max_events:
                return (yield from self._fail("MAX_EVENTS_EXCEEDED", f"the log holds {len(view.events)} events"))
            after_waits = yield from self._complete_elapsed_waits(view)
            problem = None if after_waits is None else after_waits.contract_problem()
            if problem is not None:
                return (yield from self._fail("WORLD_CONTRACT_ERROR", f"the log is not dense: {problem}"))
            reached = None if after_waits is None else (yield from self._replay_and_write(after_waits))
            if isinstance(reached, Delivery):
                return reached
            if reached is None:
                again = yield from self._restart()
                if isinstance(again, Delivery):
                    return again
                view = again
            else:
                view = reached.plus((yield ops.Load(self.run_id, reached.cursor)))
        return (yield from self._fail("RUNTIME_ERROR", f"one delivery went round {self.rules.max_loops} times"))

    def _complete_elapsed_waits(self, view: View) -> Generator[Op, Any, View | None]:
        """Record that due waits have ended, and read the log until it shows them. None when the view was refused."""
        due = view.elapsed_waits((yield ops.Now()))
        if not due:
            return view
        snapshot = view.snapshot(self.writer)
        for wait in due:
            reply = yield ops.Append(
                self._request(
                    kinds.WAIT_COMPLETED,
                    correlation_id=wait.correlation_id,
                    resume_at=wait.resume_at,
                    snapshot=snapshot,
                )
            )
            if isinstance(reply, Refused) and reply.refusal is Refusal.PRECONDITION:
                return None
        view = view.plus((yield ops.Load(self.run_id, view.cursor)))
        if {wait.correlation_id for wait in due} <= view.completed_waits():
            return view
        return View.of(self.run_id, (yield ops.Load(self.run_id)))

    def _replay_and_write(self, view: View) -> Generator[Op, Any, View | Delivery | None]:
        """One pass and what it asks for. The view to go on from, the end of the delivery, or None (view refused)."""
        replay = yield from self._replay(view)
        if replay.divergence is not None:
            return (yield from self._recover(replay.divergence))
        if replay.outcome is Outcome.COMPLETED:
            return (yield from self._finish(replay, view))
        if replay.outcome is Outcome.FAILED:
            return (yield from self._fail("USER_ERROR", replay.error or "the workflow failed"))
        snapshot = view.snapshot(self.writer)
        written = yield from suspension.write(replay, self.run_id, self.writer, snapshot)
        if written.stale:
            return None
        if written.conflict or written.attributes:
            return view
        yield from suspension.dispatch(replay, self.run_id, self.message_id, self.rules)
        calls = [call for item in replay.pending if (call := self._inline(item)) is not None]
        if not calls:
            return self._end(Ending.PARKED)
        ends = yield ops.Together(tuple(run_step(call, self.code, self.rules, self.writer, snapshot) for call in calls))
        if StepEnd.STALE in ends:
            return None
        if StepEnd.DONE in ends:
            return view
        # Other deliveries run all of these steps, and will go on when they have; this one would only spin. Should they
        # die, the backstop brings the run on.
        yield ops.Enqueue(Message(self.run_id), self.rules.lease_ms, key=f"backstop:{calls[0].correlation_id}")
        return self._end(Ending.PARKED)

    def _replay(self, view: View) -> Generator[Op, Any, Pass]:
        """Replay the view, and let the time pass that it takes: what lands meanwhile, this delivery does not know."""
        perturbation = yield ops.Draw("perturbation")
        log = view.log
        input = self.code.parse_input(_input_of(view))
        engine = engine_for(self.rules.generation.name, self.code, input)
        replay = next(engine.passes(log, (len(log),), perturbation=perturbation))
        self.passes += 1
        yield ops.Note("pass", {"events": len(log), "outcome": str(replay.outcome)})
        if replay.duration_ms:
            yield ops.Sleep(replay.duration_ms * self.rules.pass_scale, "pass")
        return replay

    def _inline(self, item: Any) -> Call | None:
        """The call to run here: a step to be created with its start, or one that this very message had started."""
        if item.kind != kinds.STEP:
            return None
        lazy = item.create is Create.LAZY
        if not lazy and item.owner != self.message_id:
            return None
        return Call(
            self.run_id,
            item.correlation_id,
            item.name,
            tuple(item.arguments),
            attempt=item.attempts + 1,
            owner=self.message_id,
            lazy=lazy,
        )

    # -- endings -------------------------------------------------------------------------------------------------

    def _finish(self, replay: Pass, view: View) -> Generator[Op, Any, Delivery | None]:
        """The workflow has returned: write what it left pending (creates only), then the end of the run."""
        snapshot = view.snapshot(self.writer)
        written = yield from suspension.write(replay, self.run_id, self.writer, snapshot, lazy_too=True)
        if written.stale:
            return None
        reply = yield ops.Append(self._request(kinds.RUN_COMPLETED, payload=replay.value, snapshot=snapshot))
        if isinstance(reply, Refused):
            return None if reply.refusal is Refusal.PRECONDITION else self._end(Ending.ENDED)
        return self._end(Ending.COMPLETED)

    def _fail(self, code: str, message: str) -> Generator[Op, Any, Delivery]:
        yield ops.Append(self._request(kinds.RUN_FAILED, payload=message, data={"errorCode": code}))
        return self._end(Ending.FAILED)

    def _recover(self, divergence: Divergence) -> Generator[Op, Any, Delivery]:
        """A divergence is tried again by a fresh delivery; after so many recovery replays the log is corrupted."""
        count = self.message.divergences + 1
        at = divergence.event_id or f"position {divergence.position or divergence.index + 1}"
        yield ops.Note("divergence", {"count": count, "at": at, "text": divergence.text})
        if count <= self.rules.recovery_replays:
            yield ops.Enqueue(Message(self.run_id, divergences=count, divergent_event=at))
            return self._end(Ending.RECOVERING)
        return (
            yield from self._fail(
                "CORRUPTED_EVENT_LOG",
                f"replay diverged {count} times after {count - 1} recovery replays; the last divergence was at {at}: "
                f"{divergence.text}",
            )
        )

    def _restart(self) -> Generator[Op, Any, View | Delivery]:
        """The store refused a write because the view was behind: read everything again, never post the same again."""
        if self.restarts < self.rules.restarts:
            self.restarts += 1
            yield ops.Note("restart", {"restarts": self.restarts})
            return View.of(self.run_id, (yield ops.Load(self.run_id)))
        if self.message.reinvocations >= self.rules.reinvocations:
            return (
                yield from self._fail(
                    "RUNTIME_ERROR",
                    f"the store refused the run's writes over {self.rules.reinvocations} re-invocations",
                )
            )
        yield ops.Note("reinvocation", {"reinvocations": self.message.reinvocations + 1})
        message = Message(self.run_id, reinvocations=self.message.reinvocations + 1)
        yield ops.Enqueue(message, self.rules.reinvoke_delay_ms)
        return self._end(Ending.REINVOKED)

    def _end(self, ending: Ending) -> Delivery:
        return Delivery(ending, self.passes, self.restarts)

    def _request(self, type: str, *, payload: Any = NO_PAYLOAD, **fields: Any) -> AppendRequest:
        return AppendRequest(run_id=self.run_id, type=type, writer=self.writer, payload=payload, **fields)


def _input_of(view: View) -> dict[str, Any]:
    """The input that the run was created with."""
    for event in view.events:
        if event.type == kinds.RUN_CREATED and event.payload is not None:
            given = event.payload.load()
            return given if isinstance(given, dict) else {}
    return {}


def _call_of(view: View, message: Message) -> Call | None:
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
