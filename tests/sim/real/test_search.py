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
from stormctl.sim.strategies.registry import SOONEST

SEEDS = int(os.environ.get("STORMCTL_SEEDS", "5"))
SCHEDULES = int(os.environ.get("STORMCTL_SCHEDULES", "200"))
#: of 200 seeds each half find it within 28 and 34, and none needs more than 400; a few seeds have room
SOON = 60


@pytest.mark.parametrize("name", ["in-flight-hole", "in-flight-slot"])
def test_the_in_flight_hole_is_found_soon_by_every_seed(name: str) -> None:
    model = bug(name).system()
    found = [bug(name).found_by(seed, model=model) for seed in range(SEEDS)]
    firsts = [first for first in found if first is not None]
    assert len(firsts) == SEEDS
    assert median(firsts) <= (50 if SEEDS >= 200 else SOON)


def test_a_scenario_is_searched_by_what_finds_it_soonest() -> None:
    assert {bug(name).strategy for name in ("in-flight-hole", "in-flight-slot")} == {SOONEST}


@pytest.mark.parametrize(("strategy", "share"), [("random", 4), (SOONEST, 1)])
def test_nothing_is_where_order_is_that_of_commits_with_a_fence_and_the_engine_that_rearms(
    strategy: str, share: int
) -> None:
    one = replace(bug("in-flight-hole"), repaired_generation="rearm")
    found = explore(one.system(repaired=True), strategy, budget=Budget(runs=SCHEDULES // share), seed=1)
    assert found.verdict == "pass", found.violations
    assert found.runs == SCHEDULES // share
    assert found.classes > 10
