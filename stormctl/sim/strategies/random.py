"""At every choice, any option. On models of this kind it is at least as good as what is clever, and never starves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stormctl.sim.kernel import Pick, Stage
from stormctl.sim.strategies.base import Numbered, Outcome, fault
from stormctl.sim.stream import Stream


class RandomChooser:
    """Whoever can go on is as likely as any other."""

    __slots__ = ("_stream", "turn")

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        below = stream.below

        def turn(stage: Stage, options: Sequence[int]) -> int:
            """Any option."""
            return below(len(options))

        self.turn = turn  # a closure costs half of what a method costs

    def pick(self, stage: Stage, actor: int, pick: Pick) -> int:
        """Mostly the ordinary option."""
        return fault(self._stream, len(pick.options))


@dataclass(frozen=True, slots=True)
class RandomTask(Numbered):
    """One random schedule."""

    def chooser(self) -> RandomChooser:
        """See :class:`RandomChooser`."""
        return RandomChooser(self.stream())


class Random:
    """See the module."""

    name = "random"

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._number = 0

    def ask(self, most: int) -> Sequence[RandomTask]:
        """As many as are wanted."""
        first, self._number = self._number, self._number + most
        return [RandomTask(self.name, self._seed, number) for number in range(first, self._number)]

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """Nothing is learned."""
