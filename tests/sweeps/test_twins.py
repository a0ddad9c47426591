"""Twins: one pair may be the body's own doing, a batch at one distance is two replays."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stormctl.history import Facet
from stormctl.sweeps import Severity, SweepPlan, SweepResult, sweep_log
from stormctl.testing import LogBuilder

Judge = Callable[..., SweepResult]


def kinds_of(result: SweepResult) -> list[str]:
    return [finding.key.split("/")[1] for finding in result.findings]


def batch(*steps: tuple[int, str, object], started: bool = True) -> LogBuilder:
    built = LogBuilder().run_created().run_started()
    for rank, name, argument in steps:
        built.step_created(rank, name, argument)
    for rank, _, _ in steps:
        if started:
            built.step_started(rank)
    return built


DOUBLED = ((0, "settle", 1), (1, "finalize", 1), (4, "settle", 1), (5, "finalize", 1))


def test_steps_that_are_doubled_at_one_distance_are_two_replays(judge: Judge) -> None:
    (finding,) = judge("twins", batch(*DOUBLED)).findings
    assert finding.key == "twins/skewed-batch/4"
    assert finding.message == "2 steps were each created and executed twice with one input, 4 draws apart"
    assert finding.severity is Severity.FATAL
    assert finding.positions == (3, 5, 4, 6)


@pytest.mark.parametrize(
    "steps",
    [
        ((0, "settle", 1), (1, "finalize", 1), (4, "settle", 2), (5, "finalize", 2)),
        ((0, "settle", 1), (1, "settle", 2), (2, "settle", 3)),
    ],
    ids=["other inputs", "all different"],
)
def test_steps_with_inputs_of_their_own_are_no_twins(judge: Judge, steps: tuple[tuple[int, str, object], ...]) -> None:
    assert judge("twins", batch(*steps)).findings == ()


def test_a_single_pair_is_told_and_allowed(judge: Judge) -> None:
    (finding,) = judge("twins", batch((0, "poll", 1), (3, "poll", 1))).findings
    assert (finding.key.split("/")[1], finding.severity) == ("same-step", Severity.LEGAL)


def test_pairs_at_different_distances_are_told_one_by_one(judge: Judge) -> None:
    result = judge("twins", batch((0, "a", 1), (1, "b", 1), (4, "a", 1), (9, "b", 1)))
    assert kinds_of(result) == ["same-step", "same-step"]


def test_one_step_asked_for_many_times_is_the_body_and_not_two_replays(judge: Judge) -> None:
    assert set(kinds_of(judge("twins", batch(*((rank, "poll", 1) for rank in range(6)))))) == {"same-step"}


def test_a_loop_that_asks_again_after_the_answer_is_nothing(judge: Judge) -> None:
    built = LogBuilder().run_created()
    for rank in range(4):
        built.step(rank, "poll", 1)
    assert judge("twins", built).findings == ()


def test_a_twin_that_never_ran_did_nothing(judge: Judge) -> None:
    assert judge("twins", batch(*DOUBLED, started=False)).findings == ()


def test_it_is_left_out_where_inputs_were_not_captured() -> None:
    report = sweep_log(batch(*DOUBLED).capture(missing=[Facet.INPUTS]), SweepPlan())
    assert "twins" not in [one.sweep for one in report.sweeps]
