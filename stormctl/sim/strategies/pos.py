"""Partial-order sampling: each operation has a random priority, and gets another when a rival went before it.

Yuan, Yang, Gu: "Partial Order Aware Concurrency Sampling" (CAV 2018). It spreads over classes of schedules rather than
over schedules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stormctl.sim.classes import dependent
from stormctl.sim.kernel import Pick, Stage
from stormctl.sim.strategies.base import Numbered, Outcome, fault
from stormctl.sim.stream import Stream


class PriorityChooser:
    """The operation with the highest priority goes next."""

    sees_every_turn = True

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._priorities: dict[int, int] = {}

    def turn(self, stage: Stage, options: Sequence[int]) -> int:
        """The index of the highest priority."""
        priorities = self._priorities
        index, highest = 0, -1
        for at, actor in enumerate(options):
            priority = priorities.get(actor)
            if priority is None:
                priority = priorities[actor] = self._stream.bits()
            if priority > highest:
                index, highest = at, priority
        chosen = options[index]
        del priorities[chosen]
        if len(options) > 1:
            label = stage.label(chosen)
            for actor in options:
                if actor != chosen and dependent(label, stage.label(actor)):
                    del priorities[actor]
        return index

    def pick(self, stage: Stage, actor: int, pick: Pick) -> int:
        """Mostly the ordinary option."""
        return fault(self._stream, len(pick.options))


@dataclass(frozen=True, slots=True)
class PriorityTask(Numbered):
    """One sample."""

    def chooser(self) -> PriorityChooser:
        """See :class:`PriorityChooser`."""
        return PriorityChooser(self.stream())


class Pos:
    """See the module."""

    name = "pos"

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._number = 0

    def ask(self, most: int) -> Sequence[PriorityTask]:
        """As many as are wanted."""
        first, self._number = self._number, self._number + most
        return [PriorityTask(self.name, self._seed, number) for number in range(first, self._number)]

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """Nothing is learned."""
