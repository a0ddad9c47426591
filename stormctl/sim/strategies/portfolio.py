"""Several strategies by turns; one that brings little that is new is dropped.

One is dropped when its last ``WINDOW`` schedules brought less than ``LEAST`` new classes. When all are dropped, the
classes that can be had are had, as far as sampling can tell.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from stormctl.sim.strategies.base import Outcome, Strategy, Task

WINDOW = 500
LEAST = 0.02
#: schedules of one strategy before it is the next one's turn
STRETCH = 25


@dataclass(slots=True)
class Member:
    """A strategy of the portfolio: whether each of its last schedules was the first of its class."""

    strategy: Strategy
    last: deque[bool] = field(default_factory=lambda: deque(maxlen=WINDOW))
    runs: int = 0
    fresh: int = 0
    dropped: bool = False
    finished: bool = False

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """Count, and drop it when it is time."""
        self.strategy.learn(outcomes)
        for outcome in outcomes:
            self.last.append(outcome.fresh)
            self.runs += 1
            self.fresh += outcome.fresh
        if len(self.last) == WINDOW and sum(self.last) < LEAST * WINDOW:
            self.dropped = True


class Portfolio:
    """See the module."""

    name = "portfolio"

    def __init__(self, strategies: Sequence[Strategy]) -> None:
        self.members = [Member(strategy) for strategy in strategies]
        self._next = 0
        self._asked: Member | None = None

    @property
    def exhausted(self) -> bool:
        """Whether one of them has tried all there is."""
        return any(member.finished and getattr(member.strategy, "exhausted", False) for member in self.members)

    def ask(self, most: int) -> Sequence[Task]:
        """Some schedules of the next strategy that is left."""
        while not self.exhausted and (left := [member for member in self.members if not self._is_out(member)]):
            self._next += 1
            self._asked = member = left[self._next % len(left)]
            tasks = member.strategy.ask(min(most, STRETCH))
            if tasks:
                return tasks
            member.finished = True
        return []

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """How they went."""
        if self._asked is not None:
            self._asked.learn(outcomes)

    @staticmethod
    def _is_out(member: Member) -> bool:
        return member.dropped or member.finished
