"""How barriers are let go that nothing will deliver, and how a look-out for an idle turn goes.

These strategies are what most generations differ by (vercel/workflow #2171, #3198, #3196, #3554). All of them count
turns of the loop, so their timers and hops are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stormctl.engine.promise import REJECTED
from stormctl.engine.strategies import Abandons, Patience, Rejected, Retires

if TYPE_CHECKING:
    from stormctl.engine.barriers import Barrier, Retiring
    from stormctl.engine.context import Context

#: how many turns of the loop an unread payload may hold others back (#3196)
DEADLINE_TURNS = 32
#: how many looks without an idle turn, or since the latest delivery, count as one (#3196)
MOST_LOOKS = 16
#: how long a dispenser stays away from a rejected promise queue (#3554)
BACK_OFF_MS = 50


def when_idle(context: Context, action: Callable[[], None], still: Callable[[], bool]) -> None:
    """Run the action at the first turn of the loop that finds the pass idle, unless ``still()`` has become false.

    A look is a turn of the loop; after one that fails the payloads being read are waited for before the next. The first
    turn must not become a microtask: the branches just woken have not drawn yet.
    """
    idle = context.idle
    if context.generation.patience is not Patience.ENDLESS:
        idle = _impatient(context)

    def look() -> None:
        if not still():
            return
        if idle():
            action()
        else:
            context.queue.react(again)

    again = _again(context, look)
    context.loop.timer(0, look)


def _again(context: Context, look: Callable[[], None]) -> Callable[[int, object], None]:
    """What a look does that has to come again after the promise queue: one turn later.

    After a queue that was rejected nobody comes back, unless the generation backs off. Upstream states the back-off of
    the dispenser only; a look-out for an idle turn that died there would leave the pass hanging all the same, so ours
    backs off too.
    """
    timer, backs_off = context.loop.timer, context.generation.rejected is Rejected.BACKS_OFF

    def again(state: int, _value: object) -> None:
        if state != REJECTED:
            timer(0, look)
        elif backs_off:
            timer(BACK_OFF_MS, look)

    return again


def _impatient(context: Context) -> Callable[[], bool]:
    """Idleness that does not wait for ever: for so many looks, or so many since the latest delivery."""
    barriers, by_progress = context.barriers, context.generation.patience is Patience.PROGRESS
    looks, made = 0, barriers.made

    def idle() -> bool:
        nonlocal looks, made
        if context.idle():
            return True
        if by_progress and barriers.made != made:
            looks, made = 0, barriers.made
        looks += 1
        return looks >= MOST_LOOKS

    return idle


class Nothing:
    """No barrier is ever retired."""

    def __init__(self, context: Context) -> None: ...

    def registered(self, barrier: Barrier) -> None:
        """Nothing is done."""


class Nets:
    """Every barrier has its own net, which retires it at the first idle turn that the net sees (#2171 to #3406)."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def registered(self, barrier: Barrier) -> None:
        """Hang up the net."""
        context = self._context
        when_idle(context, lambda: context.barriers.delivered(barrier), lambda: barrier.live)


class Unarmed:
    """Unread payloads are retired at the first turn that reads nothing, or at a deadline (#3196).

    In its last form the turns begin to count when the payload could have been read, and an armed barrier is never
    retired. In its first form the deadline held for every barrier from its registration on.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._any = context.generation.abandons is Abandons.ANY

    def registered(self, barrier: Barrier) -> None:
        """Begin to count."""
        context, deadline_for_any = self._context, self._any
        if barrier.armed and not deadline_for_any:
            return
        timer, turns = context.loop.timer, 0

        def look() -> None:
            nonlocal turns
            if not barrier.live or (barrier.armed and not deadline_for_any):
                return
            if barrier.read or deadline_for_any:
                turns += 1
                if turns >= DEADLINE_TURNS or not (barrier.armed or context.reading):
                    context.barriers.delivered(barrier)
                    return
            timer(0, look)

        timer(0, look)


class Dispenser:
    """One dispenser per pass retires the lowest barrier whenever nothing resolves on its own (#3554).

    The lowest barrier is then an unread payload. A sweep goes on until a retirement has woken somebody, and stops by
    itself, because what resolves on its own is reckoned from the registry that it shrinks. Its first form retired one
    barrier per turn of the loop.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._armed = False
        self._one_by_one = context.generation.retires is Retires.STEPWISE
        self._again = _again(context, self._sweep)

    def registered(self, barrier: Barrier) -> None:
        """Wake the dispenser."""
        if not self._armed:
            self._armed = True
            self._context.loop.timer(0, self._sweep)

    def _sweep(self) -> None:
        context = self._context
        barriers = context.barriers
        retired = False
        while barriers.live and not context.reading and not barriers.any_resolves_on_its_own():
            barriers.delivered(barriers.live[0])
            retired = True
            if self._one_by_one:
                break
        if not barriers.live:
            self._armed = False
        elif retired and self._one_by_one:
            context.loop.timer(0, self._sweep)
        else:
            context.queue.react(self._again)


RETIRING: dict[Retires, Callable[[Context], Retiring]] = {
    Retires.NOTHING: Nothing,
    Retires.NETS: Nets,
    Retires.UNARMED: Unarmed,
    Retires.STEPWISE: Dispenser,
    Retires.SWEEP: Dispenser,
}
