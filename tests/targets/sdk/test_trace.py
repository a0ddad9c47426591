"""The trace of the hosts: what it tells as an audit and as reads, and what the sweeps see with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stormctl.history import LOG_READ_AT, Capture, Event, EventLog, Evidence
from stormctl.sweeps import SweepPlan, Verdict, sweep_log
from stormctl.targets.sdk import trace as traces
from stormctl.targets.sdk.trace import RunTrace, Traces, audit_of, reads_of, work_of

RUN = "wrun_01M8PJ0FYCFDAWV9MFDZEAWV20"


def event_id(number: int) -> str:
    return f"evnt_{number:026d}"


def create(number: int, start: float, **more: Any) -> dict[str, Any]:
    return {
        "op": "events.create",
        "runId": RUN,
        "type": "step_created",
        "correlationId": f"step_{number}",
        "start": start,
        "end": start + 2,
        "result": event_id(number),
        "error": None,
        "events": None,
        "delivery": 1,
        **more,
    }


def read(start: float, last: int | None, count: int, **more: Any) -> dict[str, Any]:
    return {
        "op": "events.list",
        "runId": RUN,
        "cursor": None,
        "order": "asc",
        "start": start,
        "end": start + 1,
        "events": count,
        "last": None if last is None else event_id(last),
        "error": None,
        "delivery": 2,
        **more,
    }


def told(*calls: Mapping[str, Any]) -> RunTrace:
    return RunTrace([("server 1", call) for call in calls])


class TestAudit:
    def test_an_append_is_told_from_its_call_to_its_answer(self) -> None:
        (record,) = audit_of(told(create(3, 1000.5, snapshot=2)), {event_id(3): 1_001_000})
        assert (record.writer, record.type, record.correlation_id) == ("server 1 delivery 1", "step_created", "step_3")
        assert (record.entered, record.published, record.returned) == (1_000_500_000, 1_001_000_000, 1_002_500_000)
        assert (record.admitted, record.reason, record.position, record.snapshot) == (True, "", 3, 2)

    def test_what_the_store_refused_says_why(self) -> None:
        (record,) = audit_of(told(create(3, 1.0, result=None, error="EntityConflictError: it exists")), {})
        assert not record.admitted
        assert record.reason == "EntityConflictError: it exists"
        assert (record.event_id, record.position, record.published) == (None, None, 0)

    def test_a_time_of_publication_that_nobody_knows_stays_unknown(self) -> None:
        (record,) = audit_of(told(create(3, 1.0)), {})
        assert record.published == 0

    def test_a_call_of_a_control_route_is_the_servers_own(self) -> None:
        (record,) = audit_of(told(create(3, 1.0, delivery=None)), {})
        assert record.writer == "server 1"


class TestReads:
    def test_a_read_with_a_cursor_goes_on_and_one_without_begins_anew(self) -> None:
        first, second = reads_of(told(read(1.0, 5, 5), read(3.0, 7, 2, cursor="key:5")))
        assert (first.full, first.last_event_id, first.count) == (True, event_id(5), 5)
        assert (second.full, second.last_event_id, second.count) == (False, event_id(7), 2)

    def test_a_read_that_rides_on_an_append_counts_and_one_backwards_does_not(self) -> None:
        riding = create(6, 1.0, events=3, last=event_id(6), cursor="key:3")
        assert [one.count for one in reads_of(told(riding, read(2.0, 1, 9, order="desc")))] == [3]


def test_work_counts_what_overlapped_and_what_came_twice() -> None:
    delivery = {"op": "delivery", "runId": RUN, "delivery": 1, "start": 1.0, "end": 2.0, "error": None}
    trace = told(
        {**delivery, "beside": 1},
        {**delivery, "beside": 3},
        {**delivery, "beside": 2, "duplicate": True},
        create(1, 1.0, error="EntityConflictError: no", result=None),
        {"op": "queue", "runId": RUN, "divergences": 1, "error": None},
        read(1.0, 1, 1),
    )
    assert work_of(trace) == {
        "deliveries": 2,
        "duplicates": 1,
        "overlap": 3,
        "rejected": 1,
        "divergences": 1,
        "reads": 1,
    }


class TestFiles:
    def test_are_read_on_as_they_grow_also_in_the_middle_of_a_line(self, tmp_path: Path) -> None:
        file = tmp_path / "trace.ndjson"
        found = Traces()
        found.follow("server 1", file)
        assert found.take(RUN).calls == []  # nobody has written yet
        line = json.dumps(create(1, 1.0))
        file.write_text(line + "\n" + line[:20])
        assert len(found.take(RUN).calls) == 1
        with file.open("a") as more:
            more.write(line[20:] + "\n{torn\n" + json.dumps({"op": "hooks.get", "runId": None}) + "\n")
        assert len(found.take(RUN).calls) == 1

    def test_deliveries_of_a_server_that_was_started_again_are_others(self, tmp_path: Path) -> None:
        file = tmp_path / "trace.ndjson"
        found = Traces()
        found.follow("server 1", file)
        file.write_text(json.dumps(create(1, 1.0)) + "\n")
        found.next_life("server 1")
        with file.open("a") as more:
            more.write(json.dumps(create(2, 9.0)) + "\n")
        writers = [record.writer for record in audit_of(found.take(RUN), {})]
        assert writers == ["server 1 delivery 1", "server 1 (life 2) delivery 1"]

    def test_a_run_with_too_many_calls_says_how_many_were_left_out(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(traces, "MOST_CALLS", 3)
        file = tmp_path / "trace.ndjson"
        file.write_text("".join(json.dumps(create(number, 1.0)) + "\n" for number in range(5)))
        found = Traces()
        found.follow("server 1", file)
        kept = found.take(RUN)
        assert (len(kept.calls), kept.left_out) == (3, 2)


# -- what the sweeps see ----------------------------------------------------------------------------------------------


def capture(*calls: Mapping[str, Any], held: int = 4, committed: Mapping[int, int] | None = None) -> Capture:
    """A log of ``held`` events that were readable at 10, 20, ... ms, with this trace."""
    events = [
        Event("step_created", RUN, event_id(number), f"step_{number}", number, number * 10)
        for number in range(1, held + 1)
    ]
    times = {event_id(number): number * 10_000 for number in range(1, held + 1)}
    times.update({event_id(number): us for number, us in (committed or {}).items()})
    trace = told(*calls)
    return Capture(
        "x",
        EventLog(events, RUN),
        Evidence("x"),
        audit=audit_of(trace, times),
        reads=reads_of(trace),
        data={LOG_READ_AT: 1_000_000_000},
    )


def verdict(of: Capture, sweep: str) -> Verdict:
    (found,) = [one.verdict for one in sweep_log(of, SweepPlan()).sweeps if one.sweep == sweep]
    return found


WRITTEN = [create(number, number * 10 - 1.0) for number in range(1, 5)]


class TestWhatIsSeen:
    def test_a_delivery_whose_cursor_passed_an_event_that_came_later(self) -> None:
        reads = [read(41.0, 4, 3), read(200.0, None, 0, cursor="key:4")]
        skipped = capture(*WRITTEN, *reads, committed={2: 100_000})  # event 2 became readable at 100 ms, behind 4
        assert verdict(skipped, "cursor-skip") is Verdict.VIOLATED

    def test_and_not_one_that_read_the_whole_log_again(self) -> None:
        reads = [read(41.0, 4, 3), read(200.0, 4, 4)]
        assert verdict(capture(*WRITTEN, *reads, committed={2: 100_000}), "cursor-skip") is Verdict.CLEAN

    def test_an_event_that_was_acknowledged_and_is_gone(self) -> None:
        lost = create(5, 60.0)
        assert verdict(capture(*WRITTEN, lost, read(1.0, 4, 4)), "acknowledged") is Verdict.VIOLATED

    def test_and_not_one_that_was_refused_or_never_answered(self) -> None:
        refused = create(5, 60.0, result=None, error="EntityConflictError: no")
        assert verdict(capture(*WRITTEN, refused, read(1.0, 4, 4)), "acknowledged") is Verdict.CLEAN

    def test_an_acknowledgement_after_the_log_was_read_is_not_held_against_it(self) -> None:
        late = capture(*WRITTEN, create(5, 2000.0), read(1.0, 4, 4))
        assert verdict(late, "acknowledged") is Verdict.CLEAN
        assert verdict(replace(late, data={LOG_READ_AT: 10**13}), "acknowledged") is Verdict.VIOLATED
