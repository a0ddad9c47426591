"""Delivery barriers: who waits for whom before a result reaches user code.

Branch-deciding deliveries (step outcomes, ends of waits, payloads of hooks) register a barrier at the log index of
their event. A later delivery waits for the earlier ones that could decide another branch, and in most generations then
for one turn of the loop, so that the branch just woken reaches its next draw however many hops it needs.

A payload that nobody reads has an unarmed barrier: it would hold back what comes after it for ever. ``retirement`` says
how such barriers are let go (vercel/workflow #2171, #3139, #3406).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from stormctl.engine.promise import FULFILLED, Promise
from stormctl.engine.strategies import Orders, Skip, Yields
from stormctl.history.kinds import HOOK, STEP, WAIT

if TYPE_CHECKING:
    from stormctl.engine.context import Context

#: kind -> the kinds of earlier delivery that it waits for; a kind that is missing registers no barrier
DEFER_BEHIND: dict[Orders, dict[str, frozenset[str]]] = {
    Orders.NOTHING: {},
    Orders.OPPOSITE: {HOOK: frozenset({WAIT}), WAIT: frozenset({HOOK})},
    Orders.BRANCHES: {
        HOOK: frozenset({WAIT, STEP}),
        WAIT: frozenset({HOOK, STEP}),
        STEP: frozenset({WAIT, HOOK, STEP}),
    },
    Orders.HOOKS: {
        HOOK: frozenset({WAIT, HOOK, STEP}),
        WAIT: frozenset({HOOK, STEP}),
        STEP: frozenset({WAIT, HOOK, STEP}),
    },
}


class Gate:
    """What one delivery waits for: so many barriers, and then, with ``turn``, one turn of the loop."""

    __slots__ = ("left", "opened", "turn")

    def __init__(self, left: int, opened: Promise, *, turn: bool) -> None:
        self.left = left
        self.opened = opened
        self.turn = turn

    def count_down(self) -> None:
        self.left -= 1
        if not self.left:
            # one hop per element of the gathered promise, one for the frame that awaits it
            self.opened.loop.micros.append((self._gathered, None, None))

    def _gathered(self, _first: object, _second: object) -> None:
        self.opened.loop.micros.append((self._awaited, None, None))

    def _awaited(self, _first: object, _second: object) -> None:
        if self.turn:
            self.opened.loop.timer(0, self._open)
        else:
            self._open()

    def _open(self) -> None:
        self.opened.settle(FULFILLED, None)


class Barrier:
    """One delivery that is not yet with user code.

    ``armed`` means that it gets there whatever the user does next, ``read`` that its payload has been read.
    """

    __slots__ = ("armed", "index", "kind", "live", "read", "waiters")

    def __init__(self, index: int, kind: str, *, armed: bool) -> None:
        self.index = index
        self.kind = kind
        self.armed = armed
        self.read = False
        self.live = True
        self.waiters: list[Gate] = []

    def __lt__(self, other: Barrier) -> bool:
        return self.index < other.index

    def let_go(self) -> None:
        """Let everything behind it go that waits for nothing else."""
        for gate in self.waiters:
            gate.count_down()
        self.waiters.clear()


class Retiring(Protocol):
    """What lets go of barriers that nothing will deliver."""

    def registered(self, barrier: Barrier) -> None:
        """Called once for every barrier, as it is registered."""
        ...


class Barriers:
    """The registry: live barriers by log index."""

    def __init__(self, context: Context, retiring: Callable[[Context], Retiring]) -> None:
        generation = context.generation
        self._context = context
        self._behind = DEFER_BEHIND[generation.orders]
        self._skips_stuck = generation.skip is Skip.STUCK
        self._turn = generation.yields is Yields.TURN
        self._lingers = generation.lingers
        #: hooks wait for hooks only in the newest generation, and what is stuck is reckoned accordingly
        self._hooks_behind_hooks = generation.orders is Orders.HOOKS
        self.live: list[Barrier] = []
        #: delivered in this turn of the loop, where a generation counts those as earlier still
        self.lingering: list[Barrier] = []
        #: how many deliveries were made
        self.made = 0
        self._open = Promise(context.loop)
        self._open.settle(FULFILLED, None)
        self._retiring = retiring(context)

    def orders(self, kind: str) -> bool:
        """Whether deliveries of this kind register barriers."""
        return kind in self._behind

    def register(self, index: int, kind: str, *, armed: bool) -> Barrier:
        barrier = Barrier(index, kind, armed=armed)
        self._install(barrier)
        return barrier

    def reinstall(self, barrier: Barrier) -> None:
        """Register a barrier again that was retired."""
        barrier.live = True
        self._install(barrier)

    def _install(self, barrier: Barrier) -> None:
        live = self.live
        if live and live[-1].index > barrier.index:
            insort(live, barrier)  # a parked event is consumed after later ones
        else:
            live.append(barrier)
        self._retiring.registered(barrier)

    def earlier(self, index: int, kind: str) -> Promise:
        """The promise that every barrier which a delivery at ``index`` must wait for has gone."""
        if kind is not STEP:
            behind = self._behind[kind]
            found = [barrier for barrier in self.live if barrier.kind in behind and barrier.index < index]
        elif self._skips_stuck:
            found = self._resolving(index)
        else:  # a step waits for every kind, and not for a payload that only the user could deliver (#3406)
            found = [barrier for barrier in self.live if barrier.armed and barrier.index < index]
        if self.lingering:
            behind = self._behind[kind]
            found += [barrier for barrier in self.lingering if barrier.kind in behind and barrier.index < index]
        if not found:
            return self._open
        gate = Gate(len(found), Promise(self._context.loop), turn=self._turn)
        for barrier in found:
            barrier.waiters.append(gate)
        return gate.opened

    def delivered(self, barrier: Barrier) -> None:
        """Take a barrier out and let those behind it go, as its delivery is made or it is retired. Only the first call
        counts."""
        if not barrier.live:
            return
        barrier.live = False
        self.live.remove(barrier)
        barrier.let_go()
        if self._lingers:
            self._linger(Barrier(barrier.index, barrier.kind, armed=True))

    def armed_below(self, index: int) -> bool:
        """Whether an armed delivery of a lower index has still to be made."""
        for barrier in self.live:
            if barrier.index >= index:
                return False
            if barrier.armed:
                return True
        return False

    def any_resolves_on_its_own(self) -> bool:
        """Whether some live delivery will reach user code without a retirement.

        An entry does so when it is armed and every entry that it waits for does. Entries wait for lower indices only,
        so one ascending walk with the kinds found unable so far decides it. Where steps pass by whatever is stuck, a
        step always resolves on its own.
        """
        skips_stuck, hooks_behind_hooks = self._skips_stuck, self._hooks_behind_hooks
        stuck_wait = stuck_step = stuck_armed_hook = stuck_payload = False
        for barrier in self.live:
            kind = barrier.kind
            if kind is STEP:
                if skips_stuck or not (stuck_wait or stuck_step or stuck_armed_hook):
                    return True
                stuck_step = True
            elif kind is WAIT:
                if not (stuck_step or stuck_armed_hook or stuck_payload):
                    return True
                stuck_wait = True
            elif not barrier.armed:
                stuck_payload = True
            else:
                if not (stuck_wait or stuck_step or (hooks_behind_hooks and (stuck_armed_hook or stuck_payload))):
                    return True
                stuck_armed_hook = True
        return False

    def _resolving(self, index: int) -> list[Barrier]:
        """The live deliveries below an index that resolve on their own, by the rule under which a step always does."""
        found: list[Barrier] = []
        stuck_wait = stuck_hook = False
        for barrier in self.live:
            if barrier.index >= index:
                break
            if barrier.kind is WAIT:
                stuck = stuck_hook
                stuck_wait = stuck_wait or stuck
            elif barrier.kind is HOOK:
                stuck = not barrier.armed or stuck_wait
                stuck_hook = stuck_hook or stuck
            else:
                stuck = False
            if not stuck:
                found.append(barrier)
        return found

    def _linger(self, ghost: Barrier) -> None:
        self.lingering.append(ghost)

        def gone() -> None:
            self.lingering.remove(ghost)
            ghost.let_go()

        self._context.loop.timer(0, gone)
