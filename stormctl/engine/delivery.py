"""The way of one branch-deciding result from its event in the log to user code.

Every result goes the same way: its barrier is registered and what it waits for is asked as its event is consumed; its
payload is read in its turn of the promise queue (the end of a wait has none, and waits for its turn only); then the
earlier deliveries are waited for; then it is made. A payload that nobody waits for stops after reading, until a read
claims it. Where generations differ on the way is in their record (``strategies``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stormctl.engine.barriers import Barrier
from stormctl.engine.promise import REJECTED, Promise

if TYPE_CHECKING:
    from stormctl.engine.context import Context
    from stormctl.engine.prepared import Prepared


class Delivery:
    """One result on its way."""

    __slots__ = ("_barrier", "_context", "_event", "_gate", "_hand", "_index", "_kind")

    def __init__(self, context: Context, event: Prepared, index: int, kind: str, *, armed: bool = True) -> None:
        self._context = context
        self._event = event
        self._index = index
        self._kind = kind
        self._hand: Callable[[], None] | None = None
        self._gate: Promise | None = None
        self._barrier: Barrier | None = None
        barriers = context.barriers
        if barriers.orders(kind):
            if armed and context.captures_early:
                self._gate = barriers.earlier(index, kind)
            self._barrier = barriers.register(index, kind, armed=armed)

    # -- the three ways in ---------------------------------------------------------------------------------------------

    def after_reading(self, hand: Callable[[], None]) -> None:
        """Read the payload in its turn, then make the delivery."""
        self._hand = hand
        self._context.reading += 1
        self._context.hydrate(self._index, self._event, self._read)

    def after_its_turn(self, hand: Callable[[], None]) -> None:
        """There is nothing to read: wait for the turn of the promise queue, then make the delivery."""
        self._hand = hand
        self._context.queue.react(self._turn)

    def claimed(self, read: Promise, hand: Callable[[], None]) -> None:
        """A read claims the payload, which may be read already: what to wait for is asked when it has been."""
        self._hand = hand
        barrier = self._barrier
        if barrier is not None:
            barrier.armed = True
            if not barrier.live and self._context.rearms:
                self._context.barriers.reinstall(barrier)
        read.react(self._go)

    def note_read(self) -> None:
        """The payload has been read."""
        if self._barrier is not None:
            self._barrier.read = True

    # -- the way -------------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        self._context.reading -= 1
        if self._barrier is None:
            self._make()  # still in its turn of the queue: nothing else orders it
        else:
            self._barrier.read = True
            self._wait()

    def _turn(self, state: int, value: object) -> None:
        if state != REJECTED:
            self._go(state, value)

    def _go(self, _state: int, _value: object) -> None:
        if self._barrier is None:
            self._make()
        else:
            self._wait()

    def _wait(self) -> None:
        gate = self._gate
        if gate is None:
            gate = self._context.barriers.earlier(self._index, self._kind)
        gate.react(self._through)

    def _through(self, _state: int, _value: object) -> None:
        if self._context.until_quiet:
            self._look_for_quiet()
        else:
            self._make()

    def _look_for_quiet(self) -> None:
        """Wait for a turn of the loop that drew nothing, with nothing being read and nothing armed before this (#3700).

        A promise queue that was rejected is no reason to wait for ever.
        """
        context = self._context
        drawn = len(context.draws)

        def look() -> None:
            if len(context.draws) == drawn and not context.reading and not context.barriers.armed_below(self._index):
                self._make()
            else:
                self._look_for_quiet()

        context.queue.react(lambda _state, _value: context.loop.timer(0, look))

    def _make(self) -> None:
        context = self._context
        barriers = context.barriers
        barriers.made += 1
        if self._barrier is not None:
            barriers.delivered(self._barrier)
        if context.clock_by_delivery and self._event.time > context.clock:
            context.clock = self._event.time
        assert self._hand is not None
        self._hand()
