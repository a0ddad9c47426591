"""How soon a search finds the bugs of the library: over many seeds, in schedules and in seconds."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stormctl.errors import UsageError
from stormctl.sim.explore import Budget, Exploration, explore
from stormctl.sim.library.bugs import BUGS, Bug, bug
from stormctl.stats import Percentiles, percentiles

#: schedules of the repaired twin that are played for each seed
TWIN_SCHEDULES = 20


@dataclass(frozen=True, slots=True)
class Hunt:
    """A bug that was looked for with several seeds: the schedules and the seconds that it took, the seeds that missed
    it, and what was found in its twin, in which there is nothing to find."""

    bug: Bug
    schedules: Percentiles
    seconds: Percentiles
    seeds: int
    missed: int
    twin: Exploration

    @property
    def good(self) -> bool:
        """Whether every seed found the bug, and none anything in the twin."""
        return not self.missed and self.twin.verdict == "pass"


def hunts(names: Sequence[str] = (), *, seeds: int = 20, seed: int = 0) -> Iterator[Hunt]:
    """Look for each bug, or for those that are named, with so many seeds from ``seed`` on.

    Each search begins with a model that has played nothing, so the seconds are those of a search by itself. UsageError
    for a name that is none.
    """
    if seeds < 1:
        raise UsageError("a bug is looked for with one seed at least", remedy="Give --seeds 1 or more.")
    for one in [bug(name) for name in names] or list(BUGS.values()):
        runs: list[float] = []
        seconds: list[float] = []
        for number in range(seed, seed + seeds):
            began = time.perf_counter()
            found = one.found_by(number)
            if found is not None:
                runs.append(found)
                seconds.append(time.perf_counter() - began)
        twin = explore(one.system(repaired=True), one.strategy, budget=Budget(runs=TWIN_SCHEDULES * seeds), seed=seed)
        yield Hunt(one, percentiles(runs), percentiles(seconds), seeds, seeds - len(runs), twin)
