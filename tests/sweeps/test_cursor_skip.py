"""Events that a delivery never saw, counted from what it read and from when each event became readable."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from stormctl.history import Capture, ReadRecord
from stormctl.readers import open_captures, write_capture
from stormctl.sweeps import SweepPlan, sweep_log
from stormctl.testing import LogBuilder


def capture_of(published: list[int], reads: list[ReadRecord]) -> Capture:
    """A log of so many events, published at these times, with these reads."""
    builder = LogBuilder(slots=True).run_created().run_started()
    for rank in range(len(published) - 2):
        builder.step_created(rank, "work")
    audit = [replace(record, published=when) for record, when in zip(builder.published(), published, strict=True)]
    return replace(builder.capture(audit=audit), reads=tuple(reads))


def read(reader: str, began: int, last: str | None, count: int, *, full: bool) -> ReadRecord:
    return ReadRecord(reader, full, last, count, began, began + 1)


def result_of(capture: Capture):  # type: ignore[no-untyped-def]
    report = sweep_log(capture, SweepPlan())
    return next((one for one in report.sweeps if one.sweep == "cursor-skip"), None)


def ids_of(count: int) -> list[str]:
    return [event.event_id or "" for event in capture_of([1] * count, []).log]


FIVE = ids_of(5)
LATE = [10, 20, 50, 30, 40]  # the third event becomes readable last


def test_a_reader_whose_cursor_passed_an_event_before_it_was_published_missed_it() -> None:
    reads = [read("d1", 45, FIVE[4], 4, full=True), read("d1", 60, None, 0, full=False)]
    result = result_of(capture_of(LATE, reads))
    (finding,) = result.findings
    assert str(result.verdict) == "violated"
    assert "1 of 1 deliveries went on without 1 events" in finding.message


def test_one_that_reads_the_whole_log_again_did_not() -> None:
    reads = [read("d1", 45, FIVE[4], 4, full=True), read("d1", 60, FIVE[4], 5, full=True)]
    assert result_of(capture_of(LATE, reads)).findings == ()


def test_nor_one_that_never_looked_after_the_event_was_there() -> None:
    reads = [read("d1", 45, FIVE[4], 4, full=True), read("d1", 47, None, 0, full=False)]
    assert result_of(capture_of(LATE, reads)).findings == ()


def test_a_log_that_was_published_in_order_has_no_skips() -> None:
    reads = [read("d1", 25, FIVE[1], 2, full=True), read("d1", 60, FIVE[4], 3, full=False)]
    result = result_of(capture_of([10, 20, 30, 40, 50], reads))
    assert (str(result.verdict), result.findings) == ("clean", ())


def test_each_delivery_counts_for_itself() -> None:
    reads = [
        read("d1", 45, FIVE[4], 4, full=True), read("d1", 60, None, 0, full=False),
        read("d2", 46, FIVE[4], 4, full=True), read("d2", 61, None, 0, full=False),
        read("d3", 70, FIVE[4], 5, full=True),
    ]  # fmt: skip
    (finding,) = result_of(capture_of(LATE, reads)).findings
    assert "2 of 3 deliveries" in finding.message
    assert "(2 misses)" in finding.message


def test_without_reads_the_sweep_has_no_place_in_the_report() -> None:
    assert result_of(replace(capture_of(LATE, []), reads=None)) is None


def test_reads_are_kept_beside_the_audit_and_read_again(tmp_path: Path) -> None:
    reads = [read("d1", 45, FIVE[4], 4, full=True), read("d1", 60, None, 0, full=False)]
    capture = capture_of(LATE, reads)
    (again,) = open_captures([write_capture(capture, tmp_path)])
    assert (again.reads, again.audit) == (capture.reads, capture.audit)
