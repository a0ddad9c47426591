"""What a store acknowledged must be in the log."""

from __future__ import annotations

from dataclasses import replace

from stormctl.history import LOG_READ_AT, Capture, EventLog
from stormctl.sweeps import SweepPlan, sweep_log
from stormctl.sweeps.finding import SweepResult
from stormctl.testing import LogBuilder

LATER = 10**12


def captured(*, lose: int | None = None, read_at: int | None = LATER) -> Capture:
    """A log of five events, each acknowledged; one of them may be missing from it."""
    builder = LogBuilder(slots=True).run_created().run_started()
    for rank in range(3):
        builder.step_created(rank, "work")
    capture = builder.capture(audit=builder.published(), data={} if read_at is None else {LOG_READ_AT: read_at})
    events = [event for place, event in enumerate(capture.log) if place != lose]
    return replace(capture, log=EventLog(tuple(events), capture.log.run_id), reads=())


def judged(capture: Capture) -> SweepResult:
    (found,) = (one for one in sweep_log(capture, SweepPlan()).sweeps if one.sweep == "acknowledged")
    return found


def test_an_event_that_its_writer_was_told_of_and_that_is_gone_is_fatal() -> None:
    result = judged(captured(lose=3))
    assert str(result.verdict) == "violated"
    assert result.findings[0].message.startswith("1 events were acknowledged and are not in the log")


def test_a_log_that_holds_all_of_them_is_clean() -> None:
    assert str(judged(captured()).verdict) == "clean"


def test_an_answer_from_after_the_reading_is_not_held_against_the_log() -> None:
    assert str(judged(captured(lose=4, read_at=4_500_000)).verdict) == "clean"


def test_a_refused_append_is_no_promise() -> None:
    capture = captured(lose=3)
    audit = [replace(record, admitted=False) if record.position == 4 else record for record in capture.audit or ()]
    assert str(judged(replace(capture, audit=tuple(audit))).verdict) == "clean"


def test_without_the_time_of_the_reading_nothing_is_judged() -> None:
    assert str(judged(captured(read_at=None)).verdict) == "unknown"
