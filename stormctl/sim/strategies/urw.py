"""A random walk that is uniform over schedules rather than over choices: an actor is as likely as it has turns left.

How many turns an actor takes is what it took on the average of the rounds before ("Selectively Uniform Concurrency
Testing", ASPLOS 2025, without its selection). The first round has no estimate and is plainly random.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stormctl.sim.kernel import Pick, Stage
from stormctl.sim.strategies.base import Numbered, Outcome, fault
from stormctl.sim.stream import Stream

#: what an actor weighs that has had all its turns by the estimate, and goes on
_LEAST = 0.5


class WalkChooser:
    """Weighs those who can go on by the turns that they have left."""

    sees_every_turn = True

    def __init__(self, stream: Stream, expected: Sequence[tuple[str, float]]) -> None:
        self._stream = stream
        self._expected = dict(expected)
        self._taken: dict[int, int] = {}

    def turn(self, stage: Stage, options: Sequence[int]) -> int:
        """An option, by its weight."""
        taken = self._taken
        index = 0
        if len(options) > 1:
            expected, names = self._expected, stage.run.names
            weights = [
                max(expected.get(names[actor], 1.0) - taken.get(actor, 0), _LEAST) if expected else 1.0
                for actor in options
            ]
            index = self._stream.weighted(weights)
        actor = options[index]
        taken[actor] = taken.get(actor, 0) + 1
        return index

    def pick(self, stage: Stage, actor: int, pick: Pick) -> int:
        """Mostly the ordinary option."""
        return fault(self._stream, len(pick.options))


@dataclass(frozen=True, slots=True)
class WalkTask(Numbered):
    """One walk, with what the actors of each name took on the average."""

    expected: tuple[tuple[str, float], ...] = ()

    def chooser(self) -> WalkChooser:
        """See :class:`WalkChooser`."""
        return WalkChooser(self.stream(), self.expected)


class Urw:
    """See the module."""

    name = "urw"

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._number = 0
        self._turns: dict[str, int] = {}
        self._runs: dict[str, int] = {}

    def ask(self, most: int) -> Sequence[WalkTask]:
        """As many as are wanted."""
        first, self._number = self._number, self._number + most
        expected = tuple((name, turns / self._runs[name]) for name, turns in self._turns.items())
        return [WalkTask(self.name, self._seed, number, 0, expected) for number in range(first, self._number)]

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """How many turns the actors took."""
        for outcome in outcomes:
            for name, turns in outcome.actors:
                self._turns[name] = self._turns.get(name, 0) + turns
                self._runs[name] = self._runs.get(name, 0) + 1
