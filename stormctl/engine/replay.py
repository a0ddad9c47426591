"""Our engine: a pure function of (log prefix, body and input, generation, perturbation)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from typing import Any

from stormctl.engine.children import can_fork
from stormctl.engine.context import Context, Item
from stormctl.engine.divergence import stranded
from stormctl.engine.door import CALM, Create, Draw, Outcome, Pass, Pending, Perturbation
from stormctl.engine.frontier import SHORT, SharedWalk, ascending, ends
from stormctl.engine.identity import Bodies
from stormctl.engine.marks import Mark, ahead, take_back
from stormctl.engine.prepared import HIDDEN, Prepared, prepare
from stormctl.engine.promise import FULFILLED, Promise, close_tasks
from stormctl.engine.strategies import Generation
from stormctl.engine.walk import Frontier
from stormctl.engine.workflow import Workflow
from stormctl.history import Event, EventLog, ids
from stormctl.history.kinds import (
    ATTR,
    HOOK,
    STEP,
    WAIT,
)

#: how many uncreated steps, in draw order, the runtime creates together with their start and runs inline
INLINE_STEPS = 3
#: no real pass comes near: a 25,000-event log needs about 100,000 timers
MAX_TIMERS = 2_000_000

Body = Callable[[Any, Any], Coroutine[Any, Any, Any]]


class _Replay:
    """A workflow being replayed, from its first line, against a log that may grow."""

    def __init__(
        self, body: Body, input: Any, generation: Generation, run_id: str, bodies: Bodies, perturbation: Perturbation
    ) -> None:
        self._context = context = Context(generation, run_id, bodies, ids.ulid_ms(run_id) or 0, perturbation)
        self._length = 0
        self._stalled = False
        #: the draws as the door shows them: one object per draw, however many passes show it
        self._draws: list[Draw] = []
        self._begun = self._stopped = False
        self._end_clock = 0
        # The input is read in the first turn of the promise queue; only then is the body called.
        started = Promise(context.loop)
        context.hydrate(-1, None, lambda: started.settle(FULFILLED, None))

        started.react(lambda _state, _value: context.begin(lambda: body(Workflow(context), input)))

    def extend(self, events: Sequence[Prepared], length: int) -> Pass:
        """Offer more events and run to the next suspension or ending."""
        context = self._context
        self._length = length
        context.resume()
        context.walk.append(list(events))
        began = context.loop.now
        self._stalled = not context.loop.run(MAX_TIMERS)
        return self._result(context.loop.now - began)

    # -- stopping at a frontier ----------------------------------------------------------------------------------

    def reach(self, events: Sequence[Prepared], frontier: int) -> bool:
        """Take more of the log and run until the walk is about to look at the index ``frontier``.

        False when the pass ended before that; with a frontier of -1 it always does.
        """
        walk = self._context.walk
        walk.frontier = frontier
        if self._begun:
            walk.events.extend(events)
        else:
            self._begun = True
            walk.append(list(events))
        return not self._run_on()

    def step_over_mark(self, events: Sequence[Prepared]) -> Mark | None:
        """Stopped at a frontier whose event only marks something: consume it, and stop before the next one.

        How things were before, if that came about; without a mark nothing was done. See ``marks``.
        """
        context = self._context
        walk = context.walk
        mark = ahead(context)
        if mark is None or not self._stopped:
            return None
        walk.events.extend(events)
        walk.frontier = mark.index + 1
        try:
            walk.go_on()
        except Frontier:
            return mark
        raise AssertionError(f"the event at index {mark.index} is no mark")

    def end_here(self, length: int) -> None:
        """Stopped before the index ``length``: take the log to end there, and run to the next suspension or ending."""
        walk = self._context.walk
        del walk.events[length:]
        walk.frontier = -1
        self._context.clock_read = False
        self._end_clock = self._context.clock
        self._run_on()

    def without(self, mark: Mark, since: int) -> list[Pending] | None:
        """What is pending when the log ends before a mark, the marks behind it being taken back already."""
        return list(_pending(self._context.items)) if take_back(self._context, mark, self._end_clock, since) else None

    def _run_on(self) -> bool:
        """Whether the pass ended; if not, it was stopped at the frontier."""
        context = self._context
        try:
            if self._stopped:
                self._stopped = False
                context.walk.go_on()
            self._stalled = not context.loop.run(MAX_TIMERS)
        except Frontier:
            self._stopped = True
            return False
        return True

    def found(self, prefix: int, since: int) -> Pass:
        """The pass that ended, over a prefix that is cold, with its draws from rank ``since`` on."""
        self._length = prefix
        return self._result(self._context.loop.now, since)

    def drawn(self) -> list[Draw]:
        """The draws so far. The list grows; what is in it stays."""
        known, draws = self._draws, self._context.draws
        for rank in range(len(known), len(draws)):
            known.append(Draw(rank, *draws[rank]))
        return known

    def close(self) -> None:
        """End the coroutines that still wait."""
        close_tasks(self._context.loop, self._context.tasks)

    def _result(self, duration: float, since: int = 0) -> Pass:
        context = self._context
        walk = context.walk
        main = context.main
        divergence = context.divergence
        outcome, value, error = Outcome.SUSPENDED, None, None
        if divergence is not None:
            outcome = Outcome.DIVERGED
        elif main is not None and main.state:
            if main.state == FULFILLED and walk.parked:
                index, event = walk.parked[0]
                divergence, outcome = stranded(context, event, index), Outcome.DIVERGED
            elif main.state == FULFILLED:
                outcome, value = Outcome.COMPLETED, main.value
            else:
                outcome, error = Outcome.FAILED, f"{type(main.value).__name__}: {main.value}"
        return Pass(
            prefix=self._length,
            outcome=outcome,
            draws=tuple(self.drawn()[since:]),
            pending=tuple(_pending(context.items)),
            divergence=divergence,
            value=value,
            error=error,
            parked=tuple(index for index, _ in walk.parked),
            consumed=walk.index,
            drawn_at_end=walk.drawn_at_end,
            duration_ms=duration,
            undelivered=sum(barrier.armed for barrier in context.barriers.live),
            stalled=self._stalled and outcome is Outcome.SUSPENDED,
        )


def _pending(items: dict[str, Item]) -> Iterator[Pending]:
    # While the workflow waits for a hook's registration nothing runs inline: the delivery is to come back at once.
    inline = 0 if any(item.awaited for item in items.values()) else INLINE_STEPS
    for item in items.values():
        create: Create | None = None
        if not item.created:
            if item.kind == STEP:
                create = Create.LAZY if inline > 0 else Create.EAGER
                inline -= 1
            else:
                create = {WAIT: Create.WAIT, HOOK: Create.HOOK, ATTR: Create.ATTRIBUTE}[item.kind]
        yield Pending(
            rank=item.rank,
            kind=item.kind,
            correlation_id=item.correlation_id,
            name=item.name,
            arguments=item.arguments,
            created=item.created,
            create=create,
            resume_at=item.resume_at,
            token=item.token,
            disposed=item.disposed,
            owner=item.owner,
            attempts=item.attempts,
            retry_at=item.retry_at,
            started_at=item.started_at,
            awaited=item.awaited,
        )


class ReplayEngine:
    """One workload under one generation, behind the engine door.

    ``name`` is the generation's. ``jobs`` is how many processes may work on the passes at a time; it changes nothing
    about them. Example::

        engine = ReplayEngine(body, input, NETS, workload="step-storm")
        for replay in engine.passes(log, range(1, len(log) + 1)):
            print(replay.prefix, replay.outcome)
    """

    def __init__(
        self, body: Body, input: Any, generation: Generation, *, workload: str | None = None, jobs: int = 1
    ) -> None:
        self.name = generation.name
        self.workload = workload
        self.generation = generation
        self.jobs = jobs
        self._body = body
        self._input = input
        self._last: tuple[EventLog, list[Prepared], Bodies] | None = None

    def passes(
        self,
        log: EventLog,
        prefixes: Iterable[int],
        *,
        hidden: frozenset[int] = frozenset(),
        perturbation: Perturbation | None = None,
    ) -> Iterator[Pass]:
        """One pass per prefix length, in the order asked, each that of a cold replay.

        Where the lengths ascend and are many, one replay is made for all of them and forked at the end of each prefix
        (see ``frontier``); the others are replayed one by one. The lengths are read before the first pass.
        """
        prepared, bodies = self._ready(log)
        if hidden:
            prepared = [HIDDEN if index in hidden else event for index, event in enumerate(prepared)]

        def alone(length: int) -> Pass:
            replay = self._replay(log, bodies, perturbation)
            try:
                return replay.extend(prepared[: ends(prepared, (length,))[0]], length)
            finally:
                replay.close()

        for run in ascending(list(prefixes)):
            short = bisect_left(run, SHORT) if can_fork() else len(run)
            if len(run) - short < 2:
                short = len(run)
            yield from map(alone, run[:short])
            if short < len(run):
                replay = self._replay(log, bodies, perturbation)
                try:
                    yield from SharedWalk(replay, prepared, alone, self.jobs).passes(run[short:])
                finally:
                    replay.close()

    def open(self, log: EventLog, perturbation: Perturbation | None = None) -> RetainedSession:
        """A session that has read the log; ``first`` is its pass."""
        return RetainedSession(self._replay(log, Bodies(log.base), perturbation), log)

    def _ready(self, log: EventLog) -> tuple[list[Prepared], Bodies]:
        """The log made ready, kept for the next call: a sweep asks for one prefix after another of the same log."""
        if self._last is None or self._last[0] is not log:
            self._last = (log, prepare(log), Bodies(log.base))
        return self._last[1], self._last[2]

    def _replay(self, log: EventLog, bodies: Bodies, perturbation: Perturbation | None) -> _Replay:
        return _Replay(self._body, self._input, self.generation, log.run_id, bodies, perturbation or CALM)


class RetainedSession:
    """A workflow kept alive between passes: it is offered only what the log gained."""

    def __init__(self, replay: _Replay, log: EventLog) -> None:
        self._replay = replay
        self._length = len(log)
        self.first = replay.extend(prepare(log), self._length)

    def extend(self, events: Sequence[Event]) -> Pass:
        """Offer a strict extension of the log that was read so far."""
        self._length += len(events)
        return self._replay.extend(prepare(events), self._length)

    def close(self) -> None:
        """End the workflow; the session cannot be extended afterwards."""
        self._replay.close()
