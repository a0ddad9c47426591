"""Commit order by the times of a server that keeps them, where no audit of ours is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stormctl.history import COMMIT_CLOCK, COMMIT_TIMES, Capture, Facet
from stormctl.readers import open_captures
from stormctl.sweeps import SweepPlan, SweepResult, Verdict, sweep_log
from stormctl.testing import LogBuilder

Judge = Callable[..., SweepResult]


def stamped(*microseconds: int, clock: str = "server", **more: Any) -> Capture:
    """A log of four events without positions, and when each was committed."""
    built = LogBuilder(positions=False).run_created().run_started().hook_created(0).hook_received(0)
    capture = built.capture(**more)
    times = {event.event_id: time for event, time in zip(capture.log, microseconds, strict=False)}
    return replace(capture, data={COMMIT_CLOCK: clock, COMMIT_TIMES: times})


def test_events_that_were_committed_in_the_order_of_the_log_are_clean(judge: Judge) -> None:
    assert judge("commit-order", stamped(1000, 1000, 2000, 3000)).verdict is Verdict.CLEAN


def test_one_that_came_late_is_found_and_by_how_much(judge: Judge) -> None:
    result = judge("commit-order", stamped(1000, 9000, 2000, 3000))
    (finding,) = result.findings
    assert finding.message == "1 of 4 events were published after one that follows them, by up to 7.0 ms"
    assert finding.positions == (2,)


def test_an_event_without_a_time_is_noted(judge: Judge) -> None:
    result = judge("commit-order", stamped(1000, 2000))
    assert (result.verdict, result.missing) == (Verdict.CLEAN, ("commit times of 2 events",))


def test_the_times_of_files_are_no_commit_times(judge: Judge) -> None:
    report = sweep_log(stamped(1000, 9000, 2000, 3000, clock="ctime"), SweepPlan())
    (result,) = (one for one in report.sweeps if one.sweep == "commit-order")
    assert (result.verdict, result.missing) == (Verdict.UNKNOWN, ("commit times",))


def test_an_audit_goes_before() -> None:
    built = LogBuilder().run_created().run_started().hook_created(0).hook_received(0)
    audited = built.capture(audit=built.published(1, 2, 3, 4))
    times = {event.event_id: 1000 - place for place, event in enumerate(audited.log)}
    both = replace(audited, data={COMMIT_CLOCK: "server", COMMIT_TIMES: times})
    (result,) = (one for one in sweep_log(both, SweepPlan()).sweeps if one.sweep == "commit-order")
    assert result.verdict is Verdict.CLEAN


@pytest.mark.parametrize("outcome", ["completed", "corrupted"])
def test_the_real_postgres_publishes_late_whatever_becomes_of_the_run(
    judge: Judge, shared_data: Path, outcome: str
) -> None:
    path = shared_data / "sdk" / f"pg-5.0.0-beta.35-2proc-stepStorm-{outcome}.json"
    if not path.is_file():
        pytest.skip("the captures of the real SDK are not beside this clone")
    (capture,) = open_captures([path])
    assert isinstance(capture, Capture)
    assert Facet.COMMIT_STAMPS not in capture.evidence.missing
    assert judge("commit-order", capture).verdict is Verdict.VIOLATED
    assert judge("commit-order", capture, profile="workflow@4.8").verdict is Verdict.CLEAN
