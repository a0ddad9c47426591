"""Our engine: a pure function of (log prefix, body and input, generation, perturbation)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from typing import Any

from stormctl.engine.context import Context, Item
from stormctl.engine.divergence import stranded
from stormctl.engine.door import CALM, Create, Draw, Outcome, Pass, Pending, Perturbation
from stormctl.engine.identity import Bodies
from stormctl.engine.prepared import HIDDEN, Prepared, prepare
from stormctl.engine.promise import FULFILLED, Promise, close_tasks
from stormctl.engine.strategies import Generation
from stormctl.engine.workflow import Workflow
from stormctl.history import Event, EventLog, ids
from stormctl.history.kinds import (
    ATTR,
    HOOK,
    RUN_STARTED,
    STEP,
    STEP_CREATED,
    STEP_RETRYING,
    STEP_STARTED,
    WAIT,
    WAIT_CREATED,
)

#: how many uncreated steps, in draw order, the runtime creates together with their start and runs inline
INLINE_STEPS = 3
#: no real pass comes near: a 25,000-event log needs about 100,000 timers
MAX_TIMERS = 2_000_000

#: events that tell the workflow nothing: they mark a step or a wait that it asked for
_MARKS = frozenset({STEP_CREATED, STEP_STARTED, STEP_RETRYING, WAIT_CREATED})

Body = Callable[[Any, Any], Coroutine[Any, Any, Any]]


class _Replay:
    """A workflow being replayed, from its first line, against a log that may grow."""

    def __init__(
        self, body: Body, input: Any, generation: Generation, run_id: str, bodies: Bodies, perturbation: Perturbation
    ) -> None:
        self._context = context = Context(generation, run_id, bodies, ids.ulid_ms(run_id) or 0, perturbation)
        self._length = 0
        self._stalled = False
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

    def close(self) -> None:
        """End the coroutines that still wait."""
        close_tasks(self._context.loop, self._context.tasks)

    def _result(self, duration: float) -> Pass:
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
            draws=tuple([Draw(rank, *drawn) for rank, drawn in enumerate(context.draws)]),
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


def _names(event: Event) -> tuple[str | None, ...]:
    """The names under which a workflow may have called the step of an event."""
    return event.name, event.short_name


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

    ``name`` is the generation's. Example::

        engine = ReplayEngine(body, input, NETS, workload="step-storm")
        for replay in engine.passes(log, range(1, len(log) + 1)):
            print(replay.prefix, replay.outcome)
    """

    def __init__(self, body: Body, input: Any, generation: Generation, *, workload: str | None = None) -> None:
        self.name = generation.name
        self.workload = workload
        self.generation = generation
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
        """One cold replay per prefix length, in the order asked."""
        prepared, bodies = self._ready(log)
        if hidden:
            prepared = [HIDDEN if index in hidden else event for index, event in enumerate(prepared)]
        for length in prefixes:
            events = prepared[:length]
            while events and events[-1] is HIDDEN:
                events.pop()
            replay = self._replay(log, bodies, perturbation)
            try:
                yield replay.extend(events, length)
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

    def binds_nothing_new(self, before: Pass, event: Event) -> bool:
        """True for an event that marks something as created, started or retried which had been asked for in time.

        In time is when the walk first met the end of the shorter log: it then consumes the event at that moment and
        meets its new end at once, and nothing of it reaches user code. An event of something drawn later would hold
        the walk up, and with it the look-out for an idle turn.
        """
        if before.outcome is not Outcome.SUSPENDED or before.consumed != before.prefix or before.parked:
            return False
        if before.drawn_at_end is None:
            return False
        prepared = Prepared(event)
        if prepared.structural or event.type == RUN_STARTED:
            return True
        return event.type in _MARKS and any(
            item.rank < before.drawn_at_end
            and item.correlation_id == event.correlation_id
            and (item.kind == WAIT or item.name in _names(event))
            for item in before.pending
        )

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
