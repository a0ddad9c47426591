"""What each strategy is known for."""

from __future__ import annotations

from collections import Counter

import pytest

from stormctl.sim.explore import Budget, explore
from stormctl.sim.kernel import TapeChooser, play
from stormctl.sim.models.fork import Fork
from stormctl.sim.strategies.base import Outcome, Strategy
from stormctl.sim.strategies.bounded import Bounded
from stormctl.sim.strategies.pct import FAIR, Pct
from stormctl.sim.strategies.portfolio import WINDOW, Portfolio
from stormctl.sim.strategies.random import Random, RandomChooser
from stormctl.sim.strategies.scripted import Scripted
from stormctl.sim.stream import Stream
from stormctl.sim.tape import ScriptMismatch
from tests.sim.programs import Program, every_run
from tests.sim.toys import Writers

HOLE = "H: mint; O1: end; H: commit"


def tapes(strategy: Strategy, model: object, runs: int) -> list[tuple[int, ...]]:
    """The schedules of a strategy, which learns from each round of 50."""
    from stormctl.sim.pool import perform

    found: list[tuple[int, ...]] = []
    while len(found) < runs and (tasks := strategy.ask(50)):
        outcomes = [perform([model], task) for task in tasks]  # type: ignore[list-item]
        strategy.learn(outcomes)
        found += [outcome.tape for outcome in outcomes]
    return found


def test_a_script_is_one_schedule() -> None:
    found = explore(Fork("mint"), Scripted([HOLE]), budget=Budget(runs=10))
    assert (found.runs, found.first and found.first.tape[:2]) == (1, (1, 1))


def test_a_partial_script_leaves_the_rest_to_chance() -> None:
    found = explore(Fork("mint"), Scripted(["H: mint"], times=60, seed=2), budget=Budget(runs=100))
    assert found.runs == 60
    assert found.stopped == "done"
    assert found.classes > 2
    assert found.bad


def test_a_script_that_does_not_fit_is_said() -> None:
    with pytest.raises(ScriptMismatch):
        explore(Fork("mint"), Scripted(["O7: end"]), budget=Budget(runs=1))


def test_the_walk_by_remaining_work_is_nearly_uniform_over_schedules() -> None:
    model = Program(((("w", "x"),) * 4, (("w", "x"),)))  # 5 schedules; a plain random walk ends half of them at once
    from stormctl.sim.strategies.urw import Urw

    walked = Counter(tapes(Urw(1), model, 2_000)[200:])
    plain = Counter(tapes(Random(1), model, 2_000)[200:])
    assert len(walked) == 5
    assert max(walked.values()) / min(walked.values()) < 1.5
    assert max(plain.values()) / min(plain.values()) > 4


def test_bounded_plays_each_schedule_once_and_the_cheap_ones_first() -> None:
    model = Writers((1, 2), lossy=True)
    costs = []
    played = tapes(Bounded(), model, 10**6)
    for tape in played:
        run = play(model, TapeChooser(tape))
        costs.append(run.preemptions + run.faults)
    assert sorted(played) == sorted(tuple(run.tape) for run in every_run(model))
    assert costs == sorted(costs)


def test_bounded_counts_35_schedules_up_to_two_preemptions() -> None:
    strategy = Bounded(2)
    assert len(tapes(strategy, Fork("mint"), 1_000)) == 35
    assert (strategy.proved, strategy.exhausted) == (2, True)


def test_bounded_says_less_where_it_had_to_forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stormctl.sim.strategies.bounded.MOST_HELD", 30)
    strategy = Bounded()
    assert len(tapes(strategy, Fork("mint"), 1_000)) < 171
    assert strategy.proved < 3


def test_pct_changes_the_one_in_front_d_minus_1_times_at_most() -> None:
    model = Program(((("w", "x"),) * 10, (("w", "x"),) * 10))
    for tape in tapes(Pct(1, 3), model, 200):
        assert play(model, TapeChooser(tape)).preemptions <= 2


class Polling:
    """One that polls until another has written, and takes its turn first."""

    name, digest = "polling", "0123456789abcdef"

    def start(self, stage: object) -> object:
        from tests.sim.programs import Memory

        memory = Memory()
        stage.spawn("P", self._poll(memory))  # type: ignore[attr-defined]
        stage.spawn("W", self._write(memory))  # type: ignore[attr-defined]
        return memory

    def _poll(self, memory: object):  # type: ignore[no-untyped-def]
        from stormctl.sim.kernel import Label

        while not memory.written:  # type: ignore[attr-defined]
            yield Label("read", "x")

    def _write(self, memory: object):  # type: ignore[no-untyped-def]
        from stormctl.sim.kernel import Label

        yield Label("publish", "x", True)
        memory.written["x"] = ["W"]  # type: ignore[attr-defined]


def test_pct_starves_nobody() -> None:
    found = explore(Polling(), "pct:1", budget=Budget(runs=20), most_steps=FAIR * 3)  # type: ignore[arg-type]
    assert found.cut == 0


def outcome(fresh: bool) -> Outcome:
    return Outcome("x", 0, (), 1, fresh=fresh)


def test_a_portfolio_drops_what_brings_nothing_new_and_only_that() -> None:
    portfolio = Portfolio([Random(1), Random(2)])
    for _ in range(WINDOW * 3 // 25):
        tasks = portfolio.ask(25)
        member = portfolio._asked
        portfolio.learn([outcome(member is portfolio.members[0])] * len(tasks))
    assert [member.dropped for member in portfolio.members] == [False, True]
    assert portfolio.members[1].runs == WINDOW


def test_a_portfolio_that_dropped_all_is_saturated() -> None:
    found = explore(Fork("commit"), "portfolio:random+pos", budget=Budget(runs=100_000), seed=1)
    assert found.stopped == "saturated"
    assert found.runs < 3_000


def test_half_of_a_portfolios_first_thousand_runs_on_two_deliveries_are_new() -> None:
    found = explore(Fork("mint", 2), "portfolio", budget=Budget(runs=1_000), seed=1)
    assert found.classes >= 500


def test_a_swarm_plays_all_models_alike() -> None:
    found = explore([Fork("mint"), Fork("commit"), Fork("mint", 2)], "swarm:random", budget=Budget(runs=300), seed=1)
    assert found.models == ["fork-mint", "fork-commit", "fork-mint-2-orchestrators"]
    assert {violation.model for violation in found.violations.values()} <= {0, 2}
    assert found.bad


def test_a_swarm_of_an_exhaustive_strategy_exhausts_all() -> None:
    found = explore([Fork("mint"), Fork("commit")], "swarm:dpor", budget=Budget())
    assert (found.runs, found.classes, found.exhausted) == (66, 66, True)


def test_streams_are_their_own_and_the_same_everywhere() -> None:
    assert Stream("a", 1).bits() == Stream("a", 1).bits() != Stream("a", 2).bits()
    assert Stream("random", 1, 2).bits() == 12357093803528869475
    stream = Stream("even", 1)
    counts = Counter(stream.below(3) for _ in range(3_000))
    assert sorted(counts) == [0, 1, 2]
    assert min(counts.values()) > 900
    assert sorted(stream.shuffled(9)) == list(range(9))
    assert Counter(stream.weighted([0.0, 1.0, 3.0]) for _ in range(400))[0] == 0
    assert RandomChooser(Stream("x")).turn(None, [4]) == 0  # type: ignore[arg-type]
