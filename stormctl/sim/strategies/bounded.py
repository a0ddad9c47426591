"""Every schedule, those with the fewest preemptions and faults first.

Most bugs need one or two (Thomson, Donaldson, Betts: SCTBench). Each schedule is played once: its tape up to the last
choice that is not 0 names it. All schedules of one number come before the first of the next, so that what was done says
what is proved.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from stormctl.sim.kernel import Run, TapeChooser
from stormctl.sim.strategies.base import Outcome

#: schedules that wait for their turn; beyond that some are forgotten, and nothing is proved any more
MOST_HELD = 2_000_000


class BranchingChooser(TapeChooser):
    """A tape, and the choices that it met behind its end."""

    def report(self, run: Run | None) -> tuple[Sequence[int], Sequence[bool]] | None:
        """How wide each choice was, and whether another was a preemption or a fault."""
        return None if run is None else (run.widths, run.costs)


@dataclass(frozen=True, slots=True)
class TapeTask:
    """One schedule by its tape."""

    strategy: str
    tape: tuple[int, ...]
    model: int = 0

    def chooser(self) -> BranchingChooser:
        """See :class:`BranchingChooser`."""
        return BranchingChooser(self.tape)


class Bounded:
    """See the module. ``most`` is the highest number of preemptions and faults that is tried; None for all.

    ``proved`` is the number up to which every schedule was played: -1 before all with none were.
    """

    def __init__(self, most: int | None = None) -> None:
        self.name = "bounded" if most is None else f"bounded:{most}"
        self._most = most
        self._held: dict[int, deque[tuple[int, ...]]] = {0: deque([()])}
        self._count = 1
        self._asked: list[tuple[int, ...]] = []
        self.at = 0
        self.exhausted = False
        self._forgot: int | None = None  # the least number of which a schedule was forgotten

    @property
    def proved(self) -> int:
        """See the class."""
        return self.at - 1 if self._forgot is None else min(self.at, self._forgot) - 1

    def ask(self, most: int) -> Sequence[TapeTask]:
        """The next schedules of the present number."""
        while not self._held.get(self.at):
            self._held.pop(self.at, None)
            if not self._held:
                if not self.exhausted:
                    self.at = self.at + 1 if self._most is None else self._most + 1
                self.exhausted = True
                self._asked = []
                return []
            self.at += 1
        held = self._held[self.at]
        self._asked = [held.popleft() for _ in range(min(most, len(held)))]
        self._count -= len(self._asked)
        return [TapeTask(self.name, tape) for tape in self._asked]

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """What else could have been chosen behind the end of each tape."""
        for outcome, asked in zip(outcomes, self._asked, strict=False):
            if outcome.report is None:
                continue
            widths, costs = outcome.report
            tape = outcome.tape
            for at in range(len(asked), len(tape)):
                number = self.at + costs[at]
                if self._most is not None and number > self._most:
                    continue
                if self._count + widths[at] > MOST_HELD:
                    self._forgot = number if self._forgot is None else min(number, self._forgot)
                    continue
                held = self._held.setdefault(number, deque())
                for other in range(1, widths[at]):
                    held.append((*tape[:at], other))
                self._count += widths[at] - 1
        for asked in reversed(self._asked[len(outcomes) :]):
            self._held.setdefault(self.at, deque()).appendleft(asked)
            self._count += 1
        self._asked = []
