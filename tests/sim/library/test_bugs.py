"""The bug library: each bug is found from its workflow and actors alone, and its repaired twin has nothing to find."""

from __future__ import annotations

import os
import pickle

import pytest

from stormctl.errors import UsageError
from stormctl.sim.explore import Budget, explore
from stormctl.sim.kernel import TapeChooser, play
from stormctl.sim.library import BUGS, Bug, bug

#: schedules of each twin, and seeds of the search for each bug
TWIN = int(os.environ.get("STORMCTL_SCHEDULES", "60"))
SEEDS = int(os.environ.get("STORMCTL_SEEDS", "1"))


def ids(one: Bug) -> str:
    return one.name


def test_there_are_at_least_twelve_that_differ_in_what_is_simulated_or_in_what_is_seen() -> None:
    assert len(BUGS) >= 12
    assert len({(one.body, one.world, one.generation, one.signature) for one in BUGS.values()}) == len(BUGS)


@pytest.mark.parametrize("one", BUGS.values(), ids=ids)
def test_each_bug_is_found_within_its_budget(one: Bug) -> None:
    model = one.system()
    for seed in range(1, SEEDS + 1):
        assert one.found_by(seed, model=model) is not None, f"seed {seed}"


@pytest.mark.parametrize("one", BUGS.values(), ids=ids)
def test_its_repaired_twin_has_nothing_to_find_and_is_not_vacuous(one: Bug) -> None:
    found = explore(one.system(repaired=True), one.strategy, budget=Budget(runs=TWIN), seed=5)
    assert found.verdict == "pass", {name: problem.text for name, problem in found.violations.items()}
    assert found.choices > 0


@pytest.mark.parametrize("one", BUGS.values(), ids=ids)
def test_a_twin_is_repaired_in_its_world_or_in_its_engine_and_not_in_both(one: Bug) -> None:
    assert (one.world != one.repaired_world) is not (one.generation != one.repaired_generation)


def test_a_bug_goes_to_another_process_by_its_name() -> None:
    model = bug("torn-hook").system()
    again = pickle.loads(pickle.dumps(model))
    assert (again.name, again.digest) == (model.name, model.digest)
    assert play(again, TapeChooser([1, 1])).turns == play(model, TapeChooser([1, 1])).turns


def test_what_is_no_bug_is_refused_with_the_likeliest_name() -> None:
    with pytest.raises(UsageError) as refused:
        bug("torn-hok")
    assert "torn-hook" in (refused.value.remedy or "")
