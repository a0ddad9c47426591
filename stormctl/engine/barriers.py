"""Delivery barriers: who waits for whom before a result reaches user code, and how a wait is let go.

Branch-deciding deliveries (step outcomes, wait completions, hook payloads) register a barrier at the log index of their
event. A later delivery waits for the earlier ones that could decide another branch, and then for one turn of the loop,
so that the branch just woken reaches its next draw however many hops it needs.

A payload that nobody reads has an unarmed barrier: it would hold back what comes after it for ever. Retirement is the
strategy that lets such barriers go; it is what the generations differ by (vercel/workflow #3139, #3198, #3406, #3554).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from stormctl.engine.promise import FULFILLED, Promise
from stormctl.history.kinds import HOOK, STEP, WAIT

if TYPE_CHECKING:
    from stormctl.engine.context import Context

#: kind -> the kinds of earlier delivery that it waits for
DEFER_BEHIND = {
    HOOK: frozenset({WAIT, STEP}),
    WAIT: frozenset({HOOK, STEP}),
    STEP: frozenset({WAIT, HOOK, STEP}),
}


class Gate:
    """What one delivery waits for: so many barriers, then one turn of the loop."""

    __slots__ = ("left", "opened")

    def __init__(self, left: int, opened: Promise) -> None:
        self.left = left
        self.opened = opened

    def count_down(self) -> None:
        self.left -= 1
        if not self.left:
            # one hop per element of the gathered promise, one for the frame that awaits it
            self.opened.loop.micros.append((self._gathered, None, None))

    def _gathered(self, _first: object, _second: object) -> None:
        self.opened.loop.micros.append((self._turn, None, None))

    def _turn(self, _first: object, _second: object) -> None:
        self.opened.loop.timer(0, self._open)

    def _open(self) -> None:
        self.opened.settle(FULFILLED, None)


class Barrier:
    """One delivery that is not yet with user code. ``armed`` means that it gets there whatever the user does next."""

    __slots__ = ("armed", "index", "kind", "live", "waiters")

    def __init__(self, index: int, kind: str, *, armed: bool) -> None:
        self.index = index
        self.kind = kind
        self.armed = armed
        self.live = True
        self.waiters: list[Gate] = []

    def __lt__(self, other: Barrier) -> bool:
        return self.index < other.index


class Retirement(Protocol):
    """The strategy that lets go of barriers which nothing will deliver."""

    def __init__(self, context: Context) -> None: ...

    def registered(self, barrier: Barrier) -> None:
        """Called once for every barrier, as it is registered."""
        ...


class Barriers:
    """The registry: live barriers by log index."""

    def __init__(self, context: Context, retirement: type[Retirement]) -> None:
        self._context = context
        self.live: list[Barrier] = []
        self._open = Promise(context.loop)
        self._open.settle(FULFILLED, None)
        self._retirement = retirement(context)

    def register(self, index: int, kind: str, *, armed: bool) -> Barrier:
        barrier = Barrier(index, kind, armed=armed)
        live = self.live
        if live and live[-1].index > index:
            insort(live, barrier)  # a parked event is consumed after later ones
        else:
            live.append(barrier)
        self._retirement.registered(barrier)
        return barrier

    def earlier(self, index: int, kind: str) -> Promise:
        """The promise that every barrier which a delivery at ``index`` must wait for has gone.

        A step does not wait for a payload that nobody has claimed: only the user could deliver that one (#3406).
        """
        if kind == STEP:  # behind every kind
            found = [barrier for barrier in self.live if barrier.armed and barrier.index < index]
        else:
            behind = DEFER_BEHIND[kind]
            found = [barrier for barrier in self.live if barrier.kind in behind and barrier.index < index]
        if not found:
            return self._open
        gate = Gate(len(found), Promise(self._context.loop))
        for barrier in found:
            barrier.waiters.append(gate)
        return gate.opened

    def delivered(self, barrier: Barrier) -> None:
        """Take a barrier out and let those behind it go. Only the first call counts."""
        if not barrier.live:
            return
        barrier.live = False
        self.live.remove(barrier)
        for gate in barrier.waiters:
            gate.count_down()
        barrier.waiters.clear()

    def any_resolves_on_its_own(self) -> bool:
        """Whether some live delivery will reach user code without a retirement.

        An entry does so when it is armed and every entry that it waits for does. Entries wait for lower indices only,
        so one ascending walk with the kinds found unable so far decides it.
        """
        stuck_wait = stuck_step = stuck_armed_hook = stuck_payload = False
        for barrier in self.live:
            kind = barrier.kind
            if kind is STEP:
                if not (stuck_wait or stuck_step or stuck_armed_hook):
                    return True
                stuck_step = True
            elif kind is WAIT:
                if not (stuck_step or stuck_armed_hook or stuck_payload):
                    return True
                stuck_wait = True
            elif not barrier.armed:
                stuck_payload = True
            else:
                if not (stuck_wait or stuck_step):
                    return True
                stuck_armed_hook = True
        return False


def when_idle(context: Context, action: Callable[[], None], still: Callable[[], bool]) -> None:
    """Run the action at the first turn of the loop that finds the pass idle, unless ``still()`` has become false.

    A poll is a turn of the loop; a poll that fails waits for the payloads being read before the next one. The first
    turn must not become a microtask: the branches just woken have not drawn yet.
    """
    timer, idle = context.loop.timer, context.idle

    def poll() -> None:
        if not still():
            return
        if idle():
            action()
        else:
            context.queue.react(again)

    def again(_state: int, _value: object) -> None:
        timer(0, poll)

    timer(0, poll)


class Nets:
    """Every barrier has its own net, which retires it at the first idle turn that the net sees (#2171 to #3406)."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def registered(self, barrier: Barrier) -> None:
        context = self._context
        when_idle(context, lambda: context.barriers.delivered(barrier), lambda: barrier.live)


class Dispenser:
    """One dispenser per pass retires the lowest barrier, and goes on while nothing is on its way (#3554)."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._armed = False

    def registered(self, barrier: Barrier) -> None:
        if not self._armed:
            self._armed = True
            self._context.loop.timer(0, self._sweep)

    def _sweep(self) -> None:
        context = self._context
        barriers = context.barriers
        # The lowest entry is an unclaimed payload whenever nothing resolves on its own. The sweep stops by itself once
        # a retirement has woken somebody, because the predicate is computed from the registry that it shrinks.
        while barriers.live and not context.reading and not barriers.any_resolves_on_its_own():
            barriers.delivered(barriers.live[0])
        if barriers.live:
            context.queue.react(self._again)
        else:
            self._armed = False

    def _again(self, _state: int, _value: object) -> None:
        self._context.loop.timer(0, self._sweep)
