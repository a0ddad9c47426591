"""One run as it happened: the order of commits, what was overtaken, and what each read missed."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from stormctl.history import AuditRecord, Capture, Event, EventLog, Evidence, ReadRecord
from stormctl.readers.ndjson import NdjsonReader
from stormctl.report.timeline import timeline
from stormctl.report.timeline_picture import COLUMNS, MOST_LANES, lanes, timeline_figure, window

RUN = "wrun_made-up"
MS = 1_000_000


def capture_of(
    published: list[int | None], types: list[str] | None = None, writers: list[str] | None = None,
    reads: tuple[ReadRecord, ...] | None = None,
) -> Capture:  # fmt: skip
    """A log whose event ``i`` has the id ``e<i>`` and was published at that millisecond."""
    types = types or ["step_created"] * len(published)
    writers = writers or ["one"] * len(published)
    log = EventLog([Event(type=kind, run_id=RUN, event_id=f"e{i}") for i, kind in enumerate(types)], RUN)
    audit = tuple(
        AuditRecord(RUN, writers[i], types[i], None, True, "", None, f"e{i}", None, at * MS, at * MS, at * MS, at * MS)
        for i, at in enumerate(published)
        if at is not None
    )
    return Capture("made-up", log, Evidence("made-up"), audit=audit, reads=reads)


def read(reader: str, at: int, last: int, count: int, *, full: bool = True) -> ReadRecord:
    return ReadRecord(reader, full, f"e{last}", count, at * MS, at * MS + 1)


class TestMarks:
    def test_are_in_the_order_of_commits_and_numbered_as_the_log_is(self) -> None:
        found = timeline(capture_of([10, 40, 20, 30]))
        assert [mark.place for mark in found.marks] == [1, 3, 4, 2]
        assert [mark.backwards for mark in found.marks] == [False, False, False, True]
        assert [mark.at_ms for mark in found.marks] == [0, 10, 20, 30]

    def test_a_sound_log_has_none_that_count_backwards(self) -> None:
        assert timeline(capture_of([1, 2, 3])).backwards == 0

    def test_events_without_a_commit_time_are_left_out_and_counted(self) -> None:
        found = timeline(capture_of([1, None, 3]))
        assert [mark.place for mark in found.marks] == [1, 3]
        assert found.unknown == 1

    def test_without_an_audit_the_log_is_told_in_its_own_order_and_nothing_is_said_of_overtaking(
        self, root: Path
    ) -> None:
        path = root / "fixtures/storms/logs/step-storm-flips.ndjson"
        found = timeline(next(NdjsonReader().read(path)))
        assert not found.exact
        assert found.backwards == 0
        assert {mark.writer for mark in found.marks} == {"outside", "workflow", "steps"}
        assert "without commit times" in timeline_figure(found).get_suptitle()

    @given(st.lists(st.integers(1, 50), max_size=30))
    def test_overtaken_is_what_something_later_in_the_log_was_committed_before(self, published: list[int]) -> None:
        found = timeline(capture_of(list(published)))
        late = {i + 1 for i, at in enumerate(published) if any(later < at for later in published[i + 1 :])}
        assert {mark.place for mark in found.marks if mark.backwards} == late


class TestPasses:
    def test_a_read_that_an_event_was_published_behind_has_a_hole(self) -> None:
        reads = (read("two", 25, last=2, count=2),)
        found = timeline(capture_of([10, 40, 20, 50], writers=["one", "one", "one", "two"], reads=reads))
        (one,) = found.passes
        assert (one.read_to, one.missed) == (3, (2,))
        assert (one.first, one.last) == (1.5, 3)  # after two commits; its own append is the fourth

    def test_the_hole_stays_behind_a_cursor_and_a_full_read_fills_it(self) -> None:
        behind = read("two", 45, last=3, count=1, full=False)
        full = read("two", 60, last=3, count=4)
        found = timeline(capture_of([10, 40, 20, 42], reads=(read("two", 25, last=2, count=2), behind, full)))
        assert [one.missed for one in found.passes] == [(2,), (2,), ()]
        assert found.blind == 2

    def test_the_pages_of_one_read_are_one_pass(self) -> None:
        pages = (
            ReadRecord("two", True, "e1", 2, 50 * MS, 51 * MS),
            ReadRecord("two", False, "e3", 2, 51 * MS + 5, 52 * MS),
        )
        (one,) = timeline(capture_of([1, 2, 3, 4], reads=pages)).passes
        assert (one.read_to, one.missed) == (4, ())

    @given(
        st.lists(st.integers(1, 60), min_size=1, max_size=25, unique=True),
        st.lists(st.tuples(st.integers(1, 80), st.booleans()), min_size=1, max_size=5, unique_by=lambda pair: pair[0]),
    )
    def test_what_a_reader_lacks_is_what_its_reads_did_not_return(
        self, published: list[int], asked: list[tuple[int, bool]]
    ) -> None:
        """A reader of a store that orders by id: full reads return all that is published, others what lies behind."""
        view: set[int] = set()
        cursor = 0
        reads, wanted = [], []
        for at, full in sorted(asked):
            start = 0 if full else cursor
            got = [i for i, time in enumerate(published) if i >= start and time < at]
            if full:
                view = set()
            if not got:
                continue
            view |= set(got)
            cursor = got[-1] + 1
            # a millisecond apart and more: no read is taken for the page of another
            reads.append(read("two", 10 * at, last=got[-1], count=len(got), full=full))
            wanted.append(tuple(i + 1 for i in range(cursor) if i not in view))
        found = timeline(capture_of([10 * time for time in published], reads=tuple(reads)))
        assert [one.missed for one in found.passes] == wanted


class TestFocus:
    def test_is_the_first_decision_of_a_pass_with_a_hole(self) -> None:
        types = ["run_created", "wait_created", "hook_received", "step_created"]
        reads = (read("two", 25, last=2, count=2),)
        found = timeline(capture_of([10, 40, 20, 50], types, ["driver", "one", "driver", "two"], reads))
        assert found.marks[found.focus()].place == 4

    def test_is_the_first_overtaking_where_no_reads_are_known_and_else_the_end(self) -> None:
        assert timeline(capture_of([10, 40, 20, 30])).focus() == 3
        assert timeline(capture_of([1, 2, 3])).focus() == 2
        assert timeline(capture_of([])).focus() == 0


class TestPicture:
    def test_names_writers_as_lanes_and_draws_the_hole_with_its_number(self) -> None:
        reads = (read("two", 25, last=2, count=2),)
        found = timeline(
            capture_of(
                [10, 40, 20, 50],
                ["run_created", "step_created", "hook_received", "step_created"],
                ["driver", "one", "driver", "two"],
                reads,
            )
        )
        made = timeline_figure(found)
        assert made.get_suptitle().splitlines() == [f"Run {RUN}", "4 events, 1 overtaken, 1 of 1 reads with holes"]
        detail = made.axes[1]
        assert [label.get_text() for label in detail.get_yticklabels()] == ["driver", "delivery 1", "delivery 2"]
        numbers = [text.get_text() for text in detail.texts]
        assert numbers.count("2") == 2  # the event itself, and the hole that it left in the other's read
        assert sorted(numbers) == ["1", "2", "2", "3", "4"]

    def test_of_a_long_run_with_many_writers_stays_within_its_columns_and_lanes(self) -> None:
        size = 200
        reads = tuple(read(f"w{i}", 10 * i + 5, last=i, count=i + 1) for i in range(1, size))
        found = timeline(capture_of([10 * i for i in range(size)], writers=[f"w{i}" for i in range(size)], reads=reads))
        shown = window(found, 100)
        assert len(shown) == COLUMNS
        rows, left_out = lanes(found, shown)
        assert len(rows) <= MOST_LANES
        assert left_out > 0
        assert timeline_figure(found).axes[1].texts[-1].get_text().endswith("are left out")

    def test_looks_where_it_is_told_to(self) -> None:
        found = timeline(capture_of([10 * i for i in range(100)]))
        made = timeline_figure(found, around=3)
        assert made.axes[1].get_xlim()[0] < 0

    def test_of_an_empty_log_is_still_drawn(self) -> None:
        assert timeline_figure(timeline(capture_of([]))).axes
