"""One schedule of each class, by :mod:`stormctl.sim.dpor`; exhaustive, and for small models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stormctl.sim.dpor import PlaceChooser, Search
from stormctl.sim.strategies.base import Outcome


@dataclass(frozen=True, slots=True)
class PlaceTask:
    """The one schedule that comes next."""

    strategy: str
    by: PlaceChooser
    model: int = 0

    def chooser(self) -> PlaceChooser:
        """See :class:`~stormctl.sim.dpor.PlaceChooser`."""
        return self.by


class Dpor:
    """See the module. Each schedule hangs on the one before, so that it uses one process."""

    name = "dpor"

    def __init__(self) -> None:
        self._search = Search()
        self.exhausted = False

    def ask(self, most: int) -> Sequence[PlaceTask]:
        """One schedule, or none."""
        chooser = self._search.chooser()
        self.exhausted = chooser is None
        return [] if chooser is None else [PlaceTask(self.name, chooser)]

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """The races of the schedule."""
        for outcome in outcomes:
            self._search.learn(outcome.report)
