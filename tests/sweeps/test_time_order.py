"""Time order: how often and how far creation times fall, and ids minted at another time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stormctl.history import Capture, Facet
from stormctl.readers import open_captures
from stormctl.sweeps import Severity, SweepPlan, SweepResult, Verdict, sweep_log
from stormctl.testing import START_MS, LogBuilder

Judge = Callable[..., SweepResult]


def log() -> LogBuilder:
    return LogBuilder().run_created().run_started().hook_created(0).hook_received(0).hook_received(0)


def test_times_that_rise_are_clean(judge: Judge) -> None:
    result = judge("time-order", log())
    assert (result.verdict, result.findings) == (Verdict.CLEAN, ())


def test_equal_times_are_no_inversion(judge: Judge) -> None:
    assert judge("time-order", log().changed(4, created_at=START_MS + 50)).findings == ()


def test_events_created_before_the_one_that_precedes_them_are_counted_and_measured(judge: Judge) -> None:
    (finding,) = judge(
        "time-order", log().changed(3, created_at=START_MS + 45).changed(5, created_at=START_MS)
    ).findings
    assert finding.message == (
        "2 of 5 events were created before the event that precedes them; the farthest lies 45 ms behind"
    )
    assert finding.positions == (4, 5)
    assert finding.witness == ("3 hook_created rank 0 hook", "5 hook_received rank 0 hook")
    assert finding.severity is Severity.LEGAL


@pytest.mark.parametrize(
    ("profile", "severity"),
    [
        ("workflow@4.8-local", Severity.FATAL),
        ("workflow@4.8-postgres", Severity.LEGAL),
        ("workflow@5-local", Severity.LEGAL),
    ],
)
def test_only_a_store_that_orders_by_time_must_keep_it(judge: Judge, profile: str, severity: Severity) -> None:
    (finding,) = judge("time-order", log().changed(5, created_at=START_MS), profile=profile).findings
    assert finding.severity is severity


def test_an_id_minted_long_before_or_after_its_event_is_told(judge: Judge) -> None:
    late = log().changed(5, created_at=START_MS + 5_050)
    (finding,) = judge("time-order", late).findings
    assert finding.message.endswith("when their ids were minted: up to 5000 ms after")
    assert judge("time-order", log().changed(5, created_at=START_MS + 900)).findings == ()


def test_a_slot_id_holds_no_time(judge: Judge) -> None:
    built = LogBuilder(slots=True).run_created().run_started()
    assert judge("time-order", built).findings == ()


def test_it_is_left_out_without_times(judge: Judge) -> None:
    report = sweep_log(log().capture(missing=[Facet.TIMES]), SweepPlan())
    assert "time-order" not in [result.sweep for result in report.sweeps]


def test_the_real_postgres_has_the_inversions_that_were_counted(shared_data: Path) -> None:
    path = shared_data / "wdk" / "pg-v4-events.csv.gz"
    if not path.is_file():
        pytest.skip("the captures of the real worlds are not beside this clone")
    counts = []
    for capture in open_captures([path]):
        assert isinstance(capture, Capture)
        if len(capture.log) == 363:
            results = {result.sweep: result for result in sweep_log(capture, SweepPlan(profile="auto")).sweeps}
            behind = [one for one in results["time-order"].findings if "/created-behind/" in one.key]
            counts.append(len(behind[0].positions))
            assert results["commit-order"].verdict is Verdict.UNKNOWN
    assert counts == [97, 102]
