"""Probabilistic concurrency testing: actors have priorities, and at d - 1 places the one in front falls behind all.

Burckhardt, Kothari, Musuvathi, Nagarakatte (ASPLOS 2010): a bug of depth d is found by one schedule with a probability
of at least 1 / (n * k**(d - 1)). k counts the turns that more than one could have taken, since a change anywhere else
changes nothing there; the places are drawn from as many as the schedule had that had the most so far. One that has gone
on for long while others could falls behind too: else one that polls would starve all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stormctl.sim.kernel import Pick, Stage
from stormctl.sim.strategies.base import Numbered, Outcome, fault
from stormctl.sim.stream import Stream

#: such turns of a schedule, before there was one
FIRST_GUESS = 20
#: turns that one may take on end while another could go on
FAIR = 1_000


class PctChooser:
    """The highest priority goes on."""

    def __init__(self, stream: Stream, depth: int, longest: int) -> None:
        self._stream = stream
        self._changes = sorted(stream.below(longest) for _ in range(depth - 1))
        self._order: list[int] = []  # actors by priority, the highest last
        self._taken = 0
        self._on_end = 0
        self._before = -1

    def turn(self, stage: Stage, options: Sequence[int]) -> int:
        """The index of the highest priority."""
        order = self._order
        for actor in sorted(options):
            if actor not in order:
                order.insert(self._stream.below(len(order) + 1), actor)
        chosen = max(options, key=order.index)
        while self._changes and self._changes[0] <= self._taken:
            del self._changes[0]
            chosen = self._behind(chosen, options)
        self._on_end = self._on_end + 1 if chosen == self._before else 0
        if self._on_end >= FAIR:
            chosen, self._on_end = self._behind(chosen, options), 0
        self._before = chosen
        self._taken += 1
        return options.index(chosen)

    def pick(self, stage: Stage, actor: int, pick: Pick) -> int:
        """Mostly the ordinary option."""
        return fault(self._stream, len(pick.options))

    def _behind(self, actor: int, options: Sequence[int]) -> int:
        self._order.remove(actor)
        self._order.insert(0, actor)
        return max(options, key=self._order.index)


@dataclass(frozen=True, slots=True)
class PctTask(Numbered):
    """One schedule of PCT."""

    depth: int = 3
    longest: int = FIRST_GUESS

    def chooser(self) -> PctChooser:
        """See :class:`PctChooser`."""
        return PctChooser(self.stream(), self.depth, self.longest)


class Pct:
    """See the module."""

    def __init__(self, seed: int = 0, depth: int = 3) -> None:
        self.name = f"pct:{depth}"
        self._seed, self._depth = seed, depth
        self._number = 0
        self._longest = 0

    def ask(self, most: int) -> Sequence[PctTask]:
        """As many as are wanted."""
        first, self._number = self._number, self._number + most
        longest = self._longest or FIRST_GUESS
        return [
            PctTask(self.name, self._seed, number, 0, self._depth, longest) for number in range(first, self._number)
        ]

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """How many turns of a schedule are a choice."""
        self._longest = max([self._longest, *(len(outcome.tape) - outcome.picks for outcome in outcomes)])
