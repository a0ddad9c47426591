"""Ranks: one sequence, and a depth bound where a rule of rising ranks would cry wolf."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.history import Capture, Facet, ids
from stormctl.readers import open_captures
from stormctl.sweeps import Severity, SweepPlan, SweepResult, Verdict, sweep_log
from stormctl.sweeps.ranks import LEAST_BOUND
from stormctl.testing import LogBuilder

Judge = Callable[..., SweepResult]


def kinds_of(result: SweepResult) -> list[str]:
    return [finding.key.split("/")[1] for finding in result.findings]


def batch(*ranks: int) -> LogBuilder:
    built = LogBuilder().run_created().run_started()
    for rank in ranks:
        built.step_created(rank, "a")
    return built


def test_ranks_that_go_back_within_a_batch_are_clean(judge: Judge) -> None:
    result = judge("ranks", batch(5, 3, 4, 0, 2, 1))
    assert (result.verdict, result.findings) == (Verdict.CLEAN, ())


def test_the_bound_itself_is_no_fault_and_one_more_is(judge: Judge) -> None:
    whole = list(range(LEAST_BOUND + 2))
    within = batch(*whole[1:-1], 0, whole[-1])
    assert kinds_of(judge("ranks", within)) == []
    (finding,) = judge("ranks", _one_at_a_time([*range(1, 60), 0])).findings
    assert finding.key.startswith("ranks/too-deep/")
    assert "more than 16 draws below the highest so far, the deepest by 59" in finding.message


def _one_at_a_time(ranks: list[int]) -> LogBuilder:
    built = LogBuilder().run_created().run_started()
    for rank in ranks:
        built.step(rank, "a")
    return built


def test_a_wide_run_may_go_back_further(judge: Judge) -> None:
    """The same depth of 59, where so many steps were open at once."""
    assert kinds_of(judge("ranks", batch(*range(1, 60), 0))) == []


def test_draws_that_are_not_in_the_log_are_told_and_allowed(judge: Judge) -> None:
    (finding,) = judge("ranks", batch(0, 1, 4)).findings
    assert finding.message == "2 draws between the first and the last are not in the log"
    assert finding.severity is Severity.LEGAL


@pytest.mark.parametrize("far", [1 << 80, 1 << 30], ids=["another time part", "too far to be a draw"])
def test_an_id_of_another_sequence_is_a_fault(judge: Judge, far: int) -> None:
    built = batch(0, 1)
    body = ids.body_of(ids.ordinal((built.events[-1].correlation_id or "").partition("_")[2]) + far)
    result = judge("ranks", built.event("wait_created", correlation_id=f"wait_{body}"))
    assert kinds_of(result) == ["time-part"]
    assert result.verdict is Verdict.VIOLATED


def test_ids_that_are_counted_per_kind_or_made_up_have_no_ranks(judge: Judge) -> None:
    built = LogBuilder().run_created().event("step_created", correlation_id=f"step_{90:026d}")
    built.event("step_created", correlation_id=f"step_{1:026d}").event("step_created", correlation_id="stepd_7")
    assert judge("ranks", built).findings == ()


def test_without_ids_it_is_unknown(judge: Judge) -> None:
    assert judge("ranks", batch(0), missing=[Facet.CORRELATION_IDS]).verdict is Verdict.UNKNOWN


@given(st.permutations(range(LEAST_BOUND + 1)))
def test_any_order_of_a_small_batch_is_sound(order: list[int]) -> None:
    (result,) = (one for one in sweep_log(batch(*order).capture(), SweepPlan()).sweeps if one.sweep == "ranks")
    assert result.findings == ()


def test_no_capture_of_the_real_sdk_comes_near_the_bound(shared_data: Path) -> None:
    files = sorted((shared_data / "sdk").rglob("*.json"))
    if not files:
        pytest.skip("the captures of the real SDK are not beside this clone")
    for capture in open_captures(files):
        assert isinstance(capture, Capture)
        (result,) = (one for one in sweep_log(capture, SweepPlan()).sweeps if one.sweep == "ranks")
        assert result.fatal == (), capture.source
