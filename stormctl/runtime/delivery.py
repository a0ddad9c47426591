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

from stormctl.engine.door import Outcome, Pass
from stormctl.history import kinds
from stormctl.runtime import conflict, inline, notes, ops, suspension
from stormctl.runtime.conflict import Clash, Over
from stormctl.runtime.density import Broken, contract_problem, gate
from stormctl.runtime.flush import Flush
from stormctl.runtime.ops import Op
from stormctl.runtime.precondition import Site, Stale
from stormctl.runtime.restart import Restarts, invoked_again
from stormctl.runtime.rules import Rules
from stormctl.runtime.steps import StepEnd, run_step
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


@dataclass(frozen=True, slots=True)
class _Behind:
    """Writes were refused because the view they were derived from was behind."""

    view: View
    stale: Stale


#: what going round once comes to: the view to go on from, or why it does not go on like that
_Reached = View | Delivery | Broken | _Behind


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
        self.restarts = Restarts(rules)

    # -- the two kinds of message --------------------------------------------------------------------------------

    def step_message(self) -> Generator[Op, Any, Delivery]:
        """Run a background step; bring the run on only if no other step is open (otherwise the last one will)."""
        view = View.of(self.run_id, (yield ops.Load(self.run_id)))
        call = inline.call_of(view, self.message)
        if view.ended:
            return self._end(Ending.ENDED)
        if call is None:
            return self._end(Ending.PARKED)
        end = yield from run_step(call, self.code, self.rules, self.writer)
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
            reached = yield from self._once(view)
            if isinstance(reached, Delivery):
                return reached
            if isinstance(reached, Broken):
                return (yield from self._fail(reached.code, reached.message))
            if isinstance(reached, _Behind):
                newer = yield from self.restarts.view_after(reached.view, reached.stale)
                if newer is None:
                    return (yield from self._give_up())
                view = newer
            else:
                view = reached.plus((yield ops.Load(self.run_id, reached.cursor)))
        return (yield from self._fail("RUNTIME_ERROR", f"one delivery went round {self.rules.max_loops} times"))

    def _once(self, view: View) -> Generator[Op, Any, _Reached]:
        """Once round: the waits that are due, one pass, and what it asks for."""
        if (broken := contract_problem(view)) is not None:
            return broken
        after_waits = yield from self._complete_elapsed_waits(view)
        if isinstance(after_waits, _Behind):
            return after_waits
        dense = yield from gate(after_waits, self.rules)
        if isinstance(dense, Broken):
            return dense
        if dense.ended:
            return self._end(Ending.ENDED)
        return (yield from self._replay_and_write(dense))

    def _complete_elapsed_waits(self, view: View) -> Generator[Op, Any, View | _Behind]:
        """Record that due waits have ended, and read the log until it shows them."""
        due = view.elapsed_waits((yield ops.Now()))
        if not due:
            return view
        flush = Flush(view, self.writer, self.rules)
        for wait in due:
            yield from flush.append(
                self._request(kinds.WAIT_COMPLETED, correlation_id=wait.correlation_id, resume_at=wait.resume_at)
            )
            if (stale := flush.stale(Site.REPLAY_WRITE)) is not None:
                return _Behind(view, stale)
        view = flush.seen()
        view = view.plus((yield ops.Load(self.run_id, view.cursor)))
        if {wait.correlation_id for wait in due} <= view.completed_waits():
            return view
        return View.of(self.run_id, (yield ops.Load(self.run_id)))

    def _replay_and_write(self, view: View) -> Generator[Op, Any, _Reached]:
        """One pass and what it asks for."""
        replay = yield from self._replay(view)
        if replay.divergence is not None:
            at = replay.divergence.event_id or f"position {replay.divergence.position or replay.divergence.index + 1}"
            return (yield from self._recover(at, replay.divergence.text))
        if replay.outcome is Outcome.FAILED:
            return (yield from self._fail("USER_ERROR", replay.error or "the workflow failed"))
        finished = replay.outcome is Outcome.COMPLETED
        flush = Flush(view, self.writer, self.rules)
        at_once = yield from suspension.write(replay, flush, lazy_too=finished)
        stopped = yield from self._stopped(view, flush, Site.SUSPENSION_CREATE)
        if stopped is not None:
            return stopped
        if finished:
            return (yield from self._finish(replay, view, flush))
        if at_once:
            return flush.seen()
        yield from suspension.dispatch(replay, self.run_id, self.message_id, self.rules)
        calls = inline.calls_of(replay, self.run_id, self.message_id)
        if not calls:
            return self._end(Ending.PARKED)
        ends = yield from inline.run(calls, flush, self.code, self.rules)
        stopped = yield from self._stopped(view, flush, Site.INLINE_CLAIM)
        if stopped is not None:
            return stopped
        if StepEnd.DONE in ends:
            return flush.seen()
        # Other deliveries run all of these steps, and will go on when they have; this one would only spin. Should they
        # die, the backstop brings the run on.
        yield ops.Enqueue(Message(self.run_id), self.rules.lease_ms, key=f"backstop:{calls[0].correlation_id}")
        return self._end(Ending.PARKED)

    def _stopped(self, view: View, flush: Flush, site: Site) -> Generator[Op, Any, Delivery | _Behind | None]:
        """Why a delivery cannot go on after writes that were refused, or None. A refused precondition comes first."""
        if (stale := flush.stale(site)) is not None:
            return _Behind(view, stale)
        existed, flush.existed = flush.existed, []
        match (yield from conflict.look(existed, self.run_id, self.rules.on_conflict)):
            case Over():
                return self._end(Ending.ENDED)
            case Clash(at, text):
                return (yield from self._recover(at, text))
        return None

    def _replay(self, view: View) -> Generator[Op, Any, Pass]:
        """Replay the view, and let the time pass that it takes: what lands meanwhile, this delivery does not know."""
        perturbation = yield ops.Draw("perturbation")
        log = view.log
        input = self.code.parse_input(_input_of(view))
        engine = self.rules.engines(self.rules.generation.name, self.code, input)
        replay = next(engine.passes(log, (len(log),), perturbation=perturbation))
        self.passes += 1
        yield notes.passed(len(log), str(replay.outcome))
        if replay.duration_ms:
            yield ops.Sleep(replay.duration_ms * self.rules.pass_scale, "pass")
        return replay

    # -- endings -------------------------------------------------------------------------------------------------

    def _finish(self, replay: Pass, view: View, flush: Flush) -> Generator[Op, Any, Delivery | _Behind]:
        """The workflow has returned and what it left pending is written (creates only): write the end of the run."""
        reply = yield from flush.append(self._request(kinds.RUN_COMPLETED, payload=replay.value))
        if (stale := flush.stale(Site.REPLAY_WRITE)) is not None:
            return _Behind(view, stale)
        return self._end(Ending.ENDED if isinstance(reply, Refused) else Ending.COMPLETED)

    def _fail(self, code: str, message: str) -> Generator[Op, Any, Delivery]:
        yield ops.Append(self._request(kinds.RUN_FAILED, payload=message, data={"errorCode": code}))
        return self._end(Ending.FAILED)

    def _recover(self, at: str, text: str) -> Generator[Op, Any, Delivery]:
        """A divergence is tried again by a fresh delivery; after so many recovery replays the log is corrupted."""
        count = self.message.divergences + 1
        yield notes.divergence(count, at, text)
        if count <= self.rules.recovery_replays:
            reinvocations = self.message.reinvocations
            yield ops.Enqueue(Message(self.run_id, divergences=count, divergent_event=at, reinvocations=reinvocations))
            return self._end(Ending.RECOVERING)
        return (
            yield from self._fail(
                "CORRUPTED_EVENT_LOG",
                f"replay diverged {count} times after {count - 1} recovery replays; the last divergence was at {at}: "
                f"{text}",
            )
        )

    def _give_up(self) -> Generator[Op, Any, Delivery]:
        """The store refused the delivery's writes too often, or a restart cannot help: another delivery, later."""
        why = self.restarts.why
        if (yield from invoked_again(self.message, self.rules, why)):
            return self._end(Ending.REINVOKED)
        return (
            yield from self._fail(
                "RUNTIME_ERROR",
                f"the store refused the run's writes over {self.rules.reinvocations} re-invocations; "
                f"what ended the last delivery: {why}",
            )
        )

    def _end(self, ending: Ending) -> Delivery:
        return Delivery(ending, self.passes, self.restarts.made)

    def _request(self, type: str, *, payload: Any = NO_PAYLOAD, **fields: Any) -> AppendRequest:
        return AppendRequest(run_id=self.run_id, type=type, writer=self.writer, payload=payload, **fields)


def _input_of(view: View) -> dict[str, Any]:
    """The input that the run was created with."""
    for event in view.events:
        if event.type == kinds.RUN_CREATED and event.payload is not None:
            given = event.payload.load()
            return given if isinstance(given, dict) else {}
    return {}
