"""What a capture holds twice is the capture's fault: each event is judged once, and the log is not clean."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.history import Capture, EventLog
from stormctl.sweeps import SweepPlan, Verdict, sweep_log
from stormctl.sweeps.captured_twice import taken_once
from stormctl.testing import LogBuilder


def log(**how: bool) -> LogBuilder:
    return LogBuilder(**how).run_created().run_started().step(0, "a").hook_created(1, "t").run_completed()


def overlapping(built: LogBuilder, first: int, last: int) -> Capture:
    """Two pages of which the second begins again before the end of the first (vercel/workflow #2179)."""
    return built.edited(lambda events: events.__setitem__(slice(last, last), events[first:last])).capture()


@pytest.mark.parametrize("how", [{}, {"slots": True}, {"positions": False}])
def test_pages_that_overlap_are_no_fault_of_the_store(how: dict[str, bool]) -> None:
    capture = overlapping(log(**how), 2, 5)
    report = sweep_log(capture, SweepPlan())
    assert report.findings == ()
    assert report.verdict is Verdict.UNKNOWN
    assert any("was captured twice" in reason for reason in report.reasons)
    assert report.events == len(capture.log)


def test_two_events_under_one_id_that_differ_are_the_stores() -> None:
    built = log(slots=True)
    twin = replace(built.events[3], created_at=1)
    report = sweep_log(built.edited(lambda events: events.insert(4, twin)).capture(), SweepPlan())
    assert report.verdict is Verdict.VIOLATED
    assert {"dense", "id-order"} <= set(report.fatal_by_sweep())


@given(st.lists(st.integers(0, 6), max_size=20))
def test_each_event_stays_at_its_first_place(order: list[int]) -> None:
    built = log()
    capture = replace(built.capture(), log=EventLog([built.events[at] for at in order], built.run_id))
    assert [built.events.index(event) for event in taken_once(capture).log] == list(dict.fromkeys(order))


def test_events_that_cannot_be_told_apart_stay() -> None:
    bare = [replace(event, event_id=None, position=None) for event in log().events]
    capture = replace(log().capture(), log=EventLog([*bare, *bare]))
    assert taken_once(capture) is capture
