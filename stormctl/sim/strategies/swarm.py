"""One strategy on each of several models by turns: the worlds of a matrix, say.

Groce et al., "Swarm testing" (ISSTA 2012): many configurations a little find more than one configuration a lot. Each
model has a strategy of its own, which learns from its own schedules alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from stormctl.sim.strategies.base import Outcome, Strategy, Task
from stormctl.sim.stream import Stream

#: schedules on one model before it is the next one's turn
STRETCH = 25


class Swarm:
    """See the module. ``make`` makes the strategy for one model from its seed."""

    name = "swarm"

    def __init__(self, make: Callable[[int], Strategy], models: int, seed: int = 0) -> None:
        stream = Stream("swarm", seed)
        self._order = stream.shuffled(models)
        self._strategies = [make(stream.bits() >> 1) for _ in range(models)]
        self._left = list(self._order)
        self._next = -1
        self._at = 0

    @property
    def exhausted(self) -> bool:
        """Whether everything was tried on each of the models."""
        return not self._left and all(getattr(strategy, "exhausted", False) for strategy in self._strategies)

    def ask(self, most: int) -> Sequence[Task]:
        """Some schedules of the next model."""
        while self._left:
            self._next = (self._next + 1) % len(self._left)
            self._at = self._left[self._next]
            tasks: Sequence[Any] = self._strategies[self._at].ask(min(most, STRETCH))
            if tasks:
                return [replace(task, model=self._at) for task in tasks]
            self._left.remove(self._at)
            self._next -= 1
        return []

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """How they went."""
        self._strategies[self._at].learn(outcomes)
