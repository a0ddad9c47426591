"""Append-only: an earlier capture is the beginning of a later one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.history import Capture, EventLog, Inline
from stormctl.sweeps import Severity, SweepPlan, SweepResult, Verdict, sweep_log
from stormctl.sweeps.append_only import append_only
from stormctl.sweeps.finding import Fault
from stormctl.testing import LogBuilder

Judge = Callable[..., SweepResult]


def log(**how: bool) -> LogBuilder:
    return LogBuilder(**how).run_created().run_started().hook_created(0).hook_received(0).hook_received(0)


def two(earlier: LogBuilder | Capture, later: LogBuilder) -> Capture:
    before = earlier.capture() if isinstance(earlier, LogBuilder) else earlier
    return replace(later.capture(), earlier=before)


def kinds_of(result: SweepResult) -> list[str]:
    return [finding.key.split("/")[1] for finding in result.findings]


@pytest.mark.parametrize("positions", [True, False])
def test_a_log_that_has_grown_is_clean(judge: Judge, positions: bool) -> None:
    result = judge("append-only", two(log(positions=positions).until(3), log(positions=positions)))
    assert (result.verdict, result.findings) == (Verdict.CLEAN, ())


def test_the_same_capture_twice_is_clean(judge: Judge) -> None:
    assert judge("append-only", two(log(), log())).verdict is Verdict.CLEAN


def test_an_event_that_appears_before_one_that_was_there_is_told(judge: Judge) -> None:
    """The later capture has a hook_received between rows of the first (vercel/workflow #2228)."""
    result = judge("append-only", two(log(positions=False).without(4), log(positions=False)))
    (finding,) = result.findings
    assert finding.key.startswith("append-only/inserted/")
    assert finding.positions == (4,)
    assert finding.witness == ("4 hook_received rank 0 hook", "5 hook_received rank 0 hook")
    assert finding.severity is Severity.FATAL


@pytest.mark.parametrize(
    ("profile", "severity"),
    [("workflow@4.8", Severity.LEGAL), ("workflow@5-postgres", Severity.FATAL), ("workflow@seq", Severity.FATAL)],
)
def test_stores_that_mint_before_they_write_publish_late(judge: Judge, profile: str, severity: Severity) -> None:
    result = judge("append-only", two(log(positions=False).without(4), log(positions=False)), profile=profile)
    assert [finding.severity for finding in result.findings] == [severity]


def test_an_event_that_is_gone_is_told_with_what_it_was(judge: Judge) -> None:
    (finding,) = judge("append-only", two(log(), log().without(4))).findings
    assert finding.key.startswith("append-only/lost/")
    assert finding.witness[0].startswith("was 4 hook_received hook_")


def test_an_event_that_changed_is_told_with_what_changed(judge: Judge) -> None:
    (finding,) = judge("append-only", two(log(), log().changed(4, payload=Inline("other"), created_at=5))).findings
    assert finding.key.startswith("append-only/changed/")
    assert finding.message.endswith("is not what it was: created_at, payload")


def test_events_in_another_order_are_told(judge: Judge) -> None:
    def exchange(events: list[object]) -> None:
        events[3], events[4] = events[4], events[3]

    moved = log(positions=False).edited(exchange)
    assert kinds_of(judge("append-only", two(log(positions=False), moved))) == ["moved"]


def test_a_payload_that_was_purged_or_not_captured_is_no_change(judge: Judge) -> None:
    assert judge("append-only", two(log(), log().changed(4, payload=None))).findings == ()


def test_a_later_capture_that_was_cut_off_has_lost_nothing(judge: Judge) -> None:
    later = log().until(3).capture(truncated=True)
    result = judge("append-only", replace(later, earlier=log().capture()))
    assert result.findings == ()
    assert result.missing


def test_an_earlier_capture_of_another_run_judges_nothing(judge: Judge) -> None:
    other = LogBuilder("wrun_01KE0000000000000000000009").run_created().capture()
    assert judge("append-only", two(other, log())).verdict is Verdict.UNKNOWN


def test_it_is_left_out_with_one_capture() -> None:
    assert "append-only" not in [one.sweep for one in sweep_log(log().capture(), SweepPlan()).sweeps]


@given(st.lists(st.integers(0, 9), unique=True, max_size=8), st.lists(st.integers(0, 9), unique=True, max_size=8))
def test_it_is_silent_just_when_the_one_is_a_prefix_of_the_other(before: list[int], after: list[int]) -> None:
    events = LogBuilder(positions=False)
    for _ in range(10):
        events.event("hook_received", 0)
    captures = [
        replace(events.capture(), log=EventLog([events.events[at] for at in order], events.run_id))
        for order in (before, after)
    ]
    faults = [item for item in append_only(replace(captures[1], earlier=captures[0])) if isinstance(item, Fault)]
    assert (not faults) == (after[: len(before)] == before)
