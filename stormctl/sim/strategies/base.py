"""What a strategy is: something that says which schedules to try next, and learns from how they went.

It asks for schedules in rounds. What it learns from a round changes the next one only, so that a round may be played in
any order and by any number of processes, and the outcome is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from stormctl.sim.kernel import Chooser, Run
from stormctl.sim.stream import Stream

#: an option other than the ordinary one is taken by one pick in so many, where a strategy is random
FAULTS_ONE_IN = 4


class Abandoned(Exception):
    """Raised by a chooser that sees that the rest of a schedule brings nothing new."""


class Task(Protocol):
    """One schedule to try; it goes to another process whole. ``model`` is an index where there are several."""

    @property
    def strategy(self) -> str: ...

    @property
    def model(self) -> int: ...

    def chooser(self) -> Chooser:
        """Who chooses. With a method ``report(run)`` it says what the strategy wants to learn (None: abandoned)."""
        ...


@dataclass(slots=True)
class Outcome:
    """How a schedule went, without the run itself.

    ``trace`` is its class (0 for one that was abandoned), ``found`` the signatures, oracles and texts of what is wrong,
    ``actors`` how many turns the actors of each name took, ``picks`` how many of the choices were no turns, ``fresh``
    whether it was the first of its class.
    """

    strategy: str
    model: int
    tape: tuple[int, ...]
    trace: int
    found: tuple[tuple[str, str, str], ...] = ()
    steps: int = 0
    preemptions: int = 0
    faults: int = 0
    choices: int = 0
    picks: int = 0
    cut: bool = False
    abandoned: bool = False
    fresh: bool = False
    actors: tuple[tuple[str, int], ...] = ()
    report: Any = None


class Strategy(Protocol):
    """A way to choose schedules."""

    @property
    def name(self) -> str: ...

    def ask(self, most: int) -> Sequence[Task]:
        """The schedules of the next round, ``most`` at most. None: there is nothing left to try."""
        ...

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """How the schedules of the last round went, in their order; the last ones may be missing."""
        ...


@dataclass(frozen=True, slots=True)
class Numbered:
    """The task of a strategy that needs the number of a schedule alone, beside its seed."""

    strategy: str
    seed: int
    number: int
    model: int = 0

    def stream(self) -> Stream:
        """The numbers of this schedule."""
        return Stream(self.strategy, self.seed, self.number)


def fault(stream: Stream, width: int) -> int:
    """An option of a pick: mostly the ordinary one."""
    return 0 if stream.below(FAULTS_ONE_IN) else stream.below(width)


def reported(chooser: Chooser, run: Run | None) -> Any:
    """What the chooser has for its strategy."""
    report = getattr(chooser, "report", None)
    return None if report is None else report(run)
