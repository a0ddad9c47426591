"""From a workflow and its actors alone: how soon the in-flight hole is found, and that nothing is where it is closed.

``STORMCTL_SEEDS`` is how many searches, ``STORMCTL_SCHEDULES`` how many schedules of the closed world (200 and 10,000
for the whole count).
"""

from __future__ import annotations

import os
from dataclasses import replace
from statistics import median

import pytest

from stormctl.sim.explore import Budget, explore
from stormctl.sim.library import bug

SEEDS = int(os.environ.get("STORMCTL_SEEDS", "12"))
SCHEDULES = int(os.environ.get("STORMCTL_SCHEDULES", "300"))
#: of 200 seeds: half found it within 39, none needed more than 400
SOON, LATE = 60, 600


def test_the_in_flight_hole_is_found_soon_by_every_seed() -> None:
    one = bug("in-flight-hole")
    model = one.system()
    found = [
        explore(model, one.strategy, budget=Budget(runs=LATE), seed=seed, stop_at_first=True).first
        for seed in range(SEEDS)
    ]
    firsts = [first.run for first in found if first is not None]
    assert len(firsts) == SEEDS
    # the whole count has the goal; a few seeds have room
    assert median(firsts) <= (50 if SEEDS >= 200 else SOON)


@pytest.mark.parametrize("strategy", ["random", "pct:3"])
def test_nothing_is_where_order_is_that_of_commits_with_a_fence_and_the_engine_that_rearms(strategy: str) -> None:
    one = replace(bug("in-flight-hole"), repaired_generation="rearm")
    found = explore(one.system(repaired=True), strategy, budget=Budget(runs=SCHEDULES // 2), seed=1)
    assert found.verdict == "pass", found.violations
    assert found.runs == SCHEDULES // 2
    assert found.classes > 10
