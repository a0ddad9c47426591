"""The walk over the log: each event is offered to whoever may consume it, in log order.

One walk consumes many consecutive events in one go. It stops at an event that nobody has asked for yet, and starts
again at the tick after somebody subscribes. If nobody does within a grace period that begins once nothing is being read
and the pass is idle, the event is set aside (parked) or the replay has diverged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stormctl.engine import divergence
from stormctl.engine.door import AttributeHandling
from stormctl.engine.prepared import Prepared
from stormctl.engine.retirement import when_idle
from stormctl.engine.strategies import Clock
from stormctl.history import kinds

if TYPE_CHECKING:
    from stormctl.engine.context import Context

#: how long an event may stay unconsumed (WORKFLOW_DEFERRED_CHECK_DELAY_MS upstream)
GRACE_MS = 100


class Frontier(BaseException):
    """Raised out of the loop where the walk is about to look at the event that it was to stop before."""


class Walk:
    """The cursor over the events of one replay."""

    __slots__ = (
        "_check",
        "_checking",
        "_clock",
        "_context",
        "_handling",
        "_seen",
        "_ticking",
        "consumed_waits",
        "drawn_at_end",
        "events",
        "frontier",
        "index",
        "parked",
    )

    def __init__(self, context: Context) -> None:
        self._context = context
        self._clock = context.generation.clock is Clock.CONSUMED
        handling = context.perturbation.attributes
        self._handling = None if handling is AttributeHandling.CLAIMED else handling
        self.events: list[Prepared] = []
        self.index = 0
        #: the index that the walk is not to look at before somebody calls :meth:`go_on`; -1 for none
        self.frontier = -1
        #: (index, event) set aside, oldest first
        self.parked: list[tuple[int, Prepared]] = []
        self.consumed_waits: set[str] = set()
        #: how many ids had been drawn when the walk first met the end of what it was given
        self.drawn_at_end: int | None = None
        self._seen: set[tuple[str, str]] = set()
        self._check = 0
        self._checking = False
        self._ticking = False

    def append(self, events: list[Prepared]) -> None:
        """Give the walk more of the log, and offer it at the next tick."""
        self.events.extend(events)
        self.drawn_at_end = None
        self._tick()

    def subscribed(self) -> None:
        """Somebody new may want the event at the cursor: call off the deferred check and offer the log again."""
        self._check += 1
        self._checking = False
        self._tick()

    def _tick(self) -> None:
        # Several subscriptions of one turn each queue a tick; the first walks as far as it can and the rest find
        # nothing changed, so one is enough.
        if not self._ticking:
            self._ticking = True
            self._context.loop.ticks.append(self._consume)

    def _consume(self) -> None:
        self._ticking = False
        self.go_on()

    def go_on(self) -> None:
        """Walk until nobody wants the next event. Raises Frontier there: called again, it walks on from that place."""
        events = self.events
        while True:
            if self.index == self.frontier:
                raise Frontier
            if self.parked:
                self._drain_parked()
            index = self.index
            if index >= len(events):
                self._end()
                return
            event = events[index]
            if self._offer(event, index):
                self.index += 1
                continue
            if event.inert_key in self._seen:
                self.index += 1  # a repeat of a class already consumed for this entity: inert, and no time passes
                continue
            if not self._checking:
                self._schedule_check(index)
            return

    def _offer(self, event: Prepared, index: int) -> bool:
        context = self._context
        if event.by_step and self._handling is not None:
            return self._handling is AttributeHandling.DROPPED
        if not event.structural:
            consumer = context.consumers.get(event.correlation_id)
            if consumer is None or not consumer.offer(event, index):
                return False
            if event.inert_key is not None:
                self._seen.add(event.inert_key)
        if self._clock and event.time > context.clock:
            context.clock = event.time
        return True

    def _drain_parked(self) -> None:
        parked = self.parked
        at = 0
        while at < len(parked):
            index, event = parked[at]
            if self._offer(event, index):
                del parked[at]
                at = 0
            else:
                at += 1

    def _end(self) -> None:
        context = self._context
        if self.drawn_at_end is None:
            self.drawn_at_end = len(context.draws)
        if any(consumer.suspends for consumer in context.consumers.values()):
            context.suspend_when_idle()
        if self.parked and self.events and self.events[-1].event.is_terminal and not self._checking:
            self._schedule_check(self.parked[0][0])

    # -- the deferred check --------------------------------------------------------------------------------------

    def _schedule_check(self, index: int) -> None:
        """Two looks at the promise queue with a turn between them, then the first idle turn, then the grace period."""
        self._checking = True
        self._check += 1
        version = self._check
        context = self._context
        loop = context.loop

        def current() -> bool:
            return version == self._check

        def after_queue(_state: int, _value: object) -> None:
            if current():
                loop.timer(0, after_turn)

        def after_turn() -> None:
            if current():
                context.queue.react(read_again)

        def read_again(_state: int, _value: object) -> None:
            if current():
                when_idle(context, lambda: loop.timer(GRACE_MS, fire), current)

        def fire() -> None:
            if current():
                self._checking = False
                self._unconsumed(index)

        context.queue.react(after_queue)

    def _unconsumed(self, index: int) -> None:
        event = self.events[index]
        if index < self.index:  # a parked event under a terminal one
            self._context.diverge(divergence.stranded(self._context, event, index))
            return
        if event.by_step:  # nobody will ever ask for it, so it cannot strand
            self.index += 1
            self._tick()
            return
        resolved = event.type == kinds.WAIT_COMPLETED and event.correlation_id in self.consumed_waits
        if event.parkable and not resolved:
            self.parked.append((index, event))
            self.index += 1
            self._tick()
            return
        self._context.diverge(divergence.unconsumed(self._context, event, index))
