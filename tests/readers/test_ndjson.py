"""A capture written as a stormctl log comes back as it was."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.errors import StoreFailure
from stormctl.history import Capture, Event, EventLog, Evidence, Facet, Inline, RunRow, Sealed
from stormctl.readers import open_captures, write_capture
from stormctl.readers.fields import iso_of, ms_of
from stormctl.readers.rows import event_of_row, row_of_event
from stormctl.testing import START_MS, LogBuilder, run_serially
from stormctl.workloads.registry import WORKLOADS


def read(path: Path) -> Capture:
    (capture,) = open_captures([path])
    assert isinstance(capture, Capture), capture
    return capture


@pytest.fixture
def storm() -> LogBuilder:
    step_storm = WORKLOADS["step-storm"]
    return run_serially(step_storm, step_storm.input_type(token="t", rounds=1, width=2))


def test_a_whole_run_survives_writing_and_reading(tmp_path: Path, storm: LogBuilder) -> None:
    capture = storm.capture(audit=storm.published(), data={"condition": "main"})
    found = read(write_capture(capture, tmp_path))
    assert found.log == capture.log
    assert found.run == capture.run
    assert found.audit == capture.audit
    assert found.data == {"condition": "main"}
    assert found.evidence == replace(capture.evidence, origin="built")


def test_payloads_are_left_out_unless_they_are_asked_for(tmp_path: Path) -> None:
    capture = LogBuilder().step_created(0, "pay", "card 4111").capture()
    sealed = write_capture(capture, tmp_path / "sealed")
    whole = write_capture(capture, tmp_path / "whole", with_payloads=True)
    assert "4111" not in sealed.read_text()
    assert isinstance(read(sealed).log[0].payload, Sealed)
    assert read(whole).log[0].payload.load() == ["card 4111"]  # type: ignore[union-attr]
    assert read(sealed).log == read(whole).log == capture.log, "the digest stands for the payload"


def test_hook_tokens_are_kept_for_replays_need_them(tmp_path: Path) -> None:
    log = write_capture(LogBuilder().hook_created(0, "secret").capture(), tmp_path)
    assert read(log).log[0].token == "secret"


def test_pandas_reads_a_log_in_one_line(tmp_path: Path, storm: LogBuilder) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_json(write_capture(storm.capture(), tmp_path), lines=True)
    assert list(frame.position) == list(range(1, len(storm.events) + 1))
    assert frame.created_at.iloc[0] == pandas.Timestamp(START_MS + 10, unit="ms", tz="UTC")
    assert (frame.type == "step_created").sum() == sum(event.type == "step_created" for event in storm.events)


def test_a_row_begins_with_position_and_type_and_shows_times_in_iso(tmp_path: Path) -> None:
    log = write_capture(LogBuilder().wait_created(3).capture(), tmp_path)
    row = json.loads(log.read_text())
    assert list(row)[:2] == ["position", "type"]
    assert row["created_at"] == "2026-01-02T12:00:00.010Z"
    assert row["resume_at"] == "2026-01-02T12:00:01.010Z"


def test_a_log_without_its_meta_file_is_judged_by_its_rows(tmp_path: Path) -> None:
    log = write_capture(LogBuilder(positions=False).step(0, "a").capture(), tmp_path)
    log.with_name(log.name.replace(".ndjson", ".meta.json")).unlink()
    found = read(log)
    assert found.log.run_id == log.name.removesuffix(".ndjson")
    assert found.run is None
    assert {Facet.POSITIONS, Facet.RUN_BOUNDS, Facet.RESULT, Facet.AUDIT} <= found.evidence.missing
    assert Facet.TIMES not in found.evidence.missing


def test_declared_evidence_comes_back(tmp_path: Path) -> None:
    evidence = Evidence("a tool", frozenset({Facet.TIMES}), (1, 2), live=True, notes=("half",))
    capture = Capture("x", LogBuilder().run_created().log(), evidence, RunRow("running"))
    found = read(write_capture(capture, tmp_path)).evidence
    assert (found.origin, found.omitted, found.live, found.notes) == ("a tool", (1, 2), True, ("half",))
    assert Facet.TIMES in found.missing


def test_fewer_rows_than_the_meta_file_counts_make_a_truncated_log(tmp_path: Path) -> None:
    log = write_capture(LogBuilder().run_created().run_started().step(0, "a").capture(), tmp_path)
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:3]))
    found = read(log).evidence
    assert found.truncated
    assert "3 of the 5 events" in found.notes[0]


def test_an_audit_that_is_promised_and_not_there_is_noted(tmp_path: Path) -> None:
    builder = LogBuilder().run_created()
    log = write_capture(builder.capture(audit=builder.published()), tmp_path)
    (tmp_path / "audit" / log.name).unlink()
    found = read(log)
    assert found.audit is None
    assert Facet.AUDIT in found.evidence.missing
    assert found.evidence.notes == ("its audit file is not beside it",)


def test_a_disk_that_refuses_leaves_no_half_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(json, "dump", refuse)
    with pytest.raises(StoreFailure, match="No space left on device") as failure:
        write_capture(LogBuilder().run_created().capture(), tmp_path)
    assert failure.value.remedy
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_run_id_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    log = write_capture(LogBuilder("../../escape").run_created().capture(), tmp_path / "storm")
    assert log.parent == tmp_path / "storm" / "logs"
    assert read(log).log.run_id == "../../escape"


TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
MS = st.integers(0, 2**48 - 1)
EVENTS = st.builds(
    Event,
    type=TEXT.filter(bool),
    event_id=st.none() | TEXT,
    correlation_id=st.none() | TEXT,
    position=st.none() | st.integers(0, 2**62),
    created_at=st.none() | MS,
    name=st.none() | TEXT,
    token=st.none() | TEXT,
    resume_at=st.none() | MS,
    spec=st.none() | st.integers(0, 9),
    payload=st.none() | JSON.map(Inline),
    data=st.dictionaries(TEXT, JSON, max_size=3),
)


class TestRows:
    @given(EVENTS, st.booleans())
    def test_an_event_survives_its_row(self, event: Event, with_payloads: bool) -> None:
        row = json.loads(json.dumps(row_of_event(event, with_payloads=with_payloads)))
        assert event_of_row(row, event.run_id, "row 1") == event

    @given(MS)
    def test_a_time_survives_its_text(self, ms: int) -> None:
        assert ms_of(iso_of(ms), "row 1", "created_at") == ms

    def test_columns_of_a_newer_writer_are_kept(self) -> None:
        event = event_of_row({"position": 1, "type": "noop", "shard": 7, "data": {"a": 1}}, "r", "row 1")
        assert event.data == {"a": 1, "shard": 7}

    def test_an_empty_log_is_a_log(self, tmp_path: Path) -> None:
        capture = Capture("x", EventLog([], "wrun_none"), Evidence("x"))
        log = write_capture(capture, tmp_path)
        assert log.read_bytes() == b""
