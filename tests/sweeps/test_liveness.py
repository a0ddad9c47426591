"""Liveness: what is overdue, and what nothing will wake; a busy run that was looked at too early is neither."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stormctl.history import CAPTURED_AT
from stormctl.sweeps import SweepPlan, SweepResult, Verdict, sweep_log
from stormctl.testing import START_MS, LogBuilder

Judge = Callable[..., SweepResult]
S = 1000


def run() -> LogBuilder:
    return LogBuilder().run_created().run_started()


def asked(judge: Judge, built: LogBuilder, after_s: int | None) -> SweepResult:
    data = {} if after_s is None else {CAPTURED_AT: START_MS + after_s * S}
    return judge("liveness", built, data=data, live=True)


def kinds_of(result: SweepResult) -> list[str]:
    return [finding.key.split("/")[1] for finding in result.findings]


# what is open, after how many seconds it is a fault, and which
STUCK = [
    (run().wait_created(0, 5 * S), 70, 60, "overdue-wait"),
    (run().step_created(0, "a"), 70, 50, "unstarted-step"),
    (run().step_created(0, "a").step_started(0), 1000, 800, "stalled-step"),
    (run().step_created(0, "a").step_started(0).step_retrying(0), 1000, 800, "stalled-step"),
    (run().step(0, "a"), 70, 50, "no-wake-source"),
]


@pytest.mark.parametrize(
    ("built", "late", "early", "kind"), STUCK, ids=[f"{at} {case[3]}" for at, case in enumerate(STUCK)]
)
def test_what_is_overdue_is_told_and_not_before(
    judge: Judge, built: LogBuilder, late: int, early: int, kind: str
) -> None:
    result = asked(judge, built, late)
    assert kinds_of(result) == [kind]
    assert result.verdict is Verdict.VIOLATED
    assert asked(judge, built, early).findings == ()


def test_a_hook_may_wait_for_ever(judge: Judge) -> None:
    assert asked(judge, run().hook_created(0), 10**6).findings == ()


def test_a_hook_that_was_given_up_wakes_nobody(judge: Judge) -> None:
    assert kinds_of(asked(judge, run().hook_created(0).hook_disposed(0), 100)) == ["no-wake-source"]


def test_without_the_time_of_the_capture_the_last_event_is_the_clock(judge: Judge) -> None:
    """A sleep that a restart forgot, while another branch went on (vercel/workflow #510)."""
    built = run().wait_created(0, 5 * S).hook_created(1).event("hook_received", 1, created_at=START_MS + 70 * S)
    result = asked(judge, built, None)
    assert kinds_of(result) == ["overdue-wait"]
    assert result.missing == ("the time of the capture",)
    assert asked(judge, run().wait_created(0, 5 * S), None).findings == ()


@pytest.mark.parametrize("built", [run().wait_created(0).run_completed(), run().wait_created(0).run_failed()])
def test_a_run_that_has_ended_is_not_asked(built: LogBuilder) -> None:
    data = {CAPTURED_AT: START_MS + 10**9}
    assert "liveness" not in [one.sweep for one in sweep_log(built.capture(data=data), SweepPlan()).sweeps]


def test_a_log_that_was_cut_off_is_not_asked() -> None:
    capture = run().capture(truncated=True, data={CAPTURED_AT: START_MS + 10**9})
    assert "liveness" not in [one.sweep for one in sweep_log(capture, SweepPlan()).sweeps]


def test_a_run_that_was_never_started_waits_for_its_message(judge: Judge) -> None:
    assert asked(judge, LogBuilder().run_created(), 1000).findings == ()
