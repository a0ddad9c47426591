"""Trying many schedules."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace

import pytest

from stormctl.errors import UsageError
from stormctl.sim.classes import class_of
from stormctl.sim.explore import Budget, Exploration, explore
from stormctl.sim.kernel import TapeChooser, play
from stormctl.sim.models.fork import Fork
from stormctl.sim.models.leaks import Leak
from stormctl.sim.strategies.registry import STRATEGIES
from tests.sim.programs import Program

MINT, COMMIT = Fork("mint"), Fork("commit")


def test_the_hole_is_found_and_its_tape_shows_it_again() -> None:
    found = explore(MINT, "random", budget=Budget(runs=1_000), seed=3, stop_at_first=True)
    assert found.verdict == "violation"
    assert found.stopped == "first"
    assert found.first is not None
    assert found.first.run == found.runs
    assert [one.signature for one in play(MINT, TapeChooser(found.first.tape)).problems] == [found.first.signature]


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_each_strategy_finds_it_in_the_one_world_and_nothing_in_the_other(name: str) -> None:
    found = explore(MINT, name, budget=Budget(runs=1_500), seed=1)
    assert found.verdict == "violation", found
    sound = explore(COMMIT, name, budget=Budget(runs=500), seed=1)
    assert sound.verdict == "pass"
    assert 1 < sound.classes <= 12


def test_unscripted_the_hole_takes_few_schedules() -> None:
    for name in ("random", "urw", "portfolio"):
        runs = [explore(MINT, name, budget=Budget(runs=500), seed=seed, stop_at_first=True).runs for seed in range(200)]
        assert statistics.median(runs) <= 50
        assert max(runs) < 500


def same(one: Exploration, other: Exploration) -> None:
    assert replace(one, seconds=0) == replace(other, seconds=0)


@pytest.mark.parametrize("name", ["random", "urw", "pct:3", "bounded:2", "portfolio", "dpor", "swarm:pos"])
def test_the_number_of_processes_makes_no_difference(name: str) -> None:
    models = [Fork("mint", 2), Fork("commit", 2)] if name.startswith("swarm") else Fork("mint", 2)
    one = explore(models, name, budget=Budget(runs=350), seed=5)
    same(one, explore(models, name, budget=Budget(runs=350), seed=5, jobs=2))
    if one.first is not None:
        first = explore(models, name, budget=Budget(runs=350), seed=5, stop_at_first=True)
        same(first, explore(models, name, budget=Budget(runs=350), seed=5, stop_at_first=True, jobs=2))


def test_a_cluster_makes_no_difference() -> None:
    distributed = pytest.importorskip("distributed")
    one = explore(Fork("mint", 2), "urw", budget=Budget(runs=150), seed=5)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        there = explore(Fork("mint", 2), "urw", budget=Budget(runs=150), seed=5, dask=cluster.scheduler_address)
    same(one, there)


def test_another_seed_is_another_exploration() -> None:
    tapes = {
        explore(MINT, "random", budget=Budget(runs=300), seed=seed, stop_at_first=True).first.tape for seed in range(5)
    }
    assert len(tapes) > 1


def test_exhausted_says_that_all_was_tried() -> None:
    for name, runs in (("dpor", 54), ("bounded", 171)):
        found = explore(MINT, name, budget=Budget())
        assert (found.runs, found.classes, found.exhausted, found.stopped) == (runs, 54, True, "exhausted")
    assert explore(MINT, "bounded:2", budget=Budget()).proved == 2
    assert explore(MINT, "bounded", budget=Budget(runs=20)).proved == 1
    assert not explore(MINT, "random", budget=Budget(runs=20)).exhausted


def test_a_model_without_a_choice_is_vacuous() -> None:
    assert explore(Leak("alone"), "random", budget=Budget(runs=3)).verdict == "vacuous"


def test_runs_that_were_cut_prove_nothing() -> None:
    found = explore(COMMIT, "random", budget=Budget(runs=10), most_steps=3)
    assert found.cut == 10
    assert explore(Program(((("w", "x"),) * 9,) * 2), "random", budget=Budget(runs=5), most_steps=3).verdict == (
        "inconclusive"
    )


def test_seconds_end_an_exploration() -> None:
    found = explore(Fork("commit", 2), "random", budget=Budget(seconds=0.05))
    assert found.stopped == "budget"
    assert found.seconds < 5


def test_the_best_tape_of_a_violation_has_the_fewest_preemptions() -> None:
    found = explore(MINT, "urw", budget=Budget(runs=2_000), seed=1)
    (violation,) = found.violations.values()
    assert found.first is not None
    assert (found.first.preemptions, violation.preemptions) == (3, 2)
    assert violation.run == found.first.run
    assert violation.count == found.bad > 100


@pytest.mark.parametrize("text", ["rand", "random:3", "pct:x", "pct:0", "bounded:-1", "pct:99999999", "portfolio:x+y"])
def test_a_strategy_that_there_is_none_of_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        explore(MINT, text, budget=Budget(runs=1))


def test_no_limit_is_refused_where_there_would_be_no_end() -> None:
    with pytest.raises(UsageError, match="never comes to an end"):
        explore(MINT, "random", budget=Budget())
    with pytest.raises(UsageError):
        explore([], "random", budget=Budget(runs=1))
    with pytest.raises(UsageError):
        explore(MINT, "random", budget=Budget(runs=1), jobs=0)


@dataclass(frozen=True)
class Dying:
    """A model whose process ends in the middle."""

    name: str = "dying"
    digest: str = "0123456789abcdef"

    def start(self, stage: object) -> object:
        import os

        os._exit(3)


def test_a_process_that_dies_is_said() -> None:
    from stormctl.errors import StormctlError

    with pytest.raises(StormctlError, match="died"):
        explore(Dying(), "random", budget=Budget(runs=50), jobs=2)


def test_classes_of_an_exploration_are_those_of_its_runs() -> None:
    found = explore(COMMIT, "bounded", budget=Budget())
    assert found.classes == 12
    assert class_of(play(COMMIT, TapeChooser())) > 0
