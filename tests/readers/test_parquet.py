"""Our own logs as Parquet, both ways."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.errors import StoreFailure
from stormctl.history import Capture, Event, EventLog, Evidence, Inline, RunRow
from stormctl.readers import Reading, Unreadable, open_captures
from stormctl.readers.ndjson import write_capture
from stormctl.readers.parquet import SCHEMA, write_parquet
from stormctl.testing import LogBuilder

ROOT = Path(__file__).resolve().parents[2]


def read(path: Path) -> list[Capture]:
    found = list(open_captures([path]))
    assert all(isinstance(one, Capture) for one in found), found
    return [one for one in found if isinstance(one, Capture)]


def a_run(number: int) -> Capture:
    run_id = f"wrun_01KE000000000000000000000{number}"
    built = LogBuilder(run_id).run_created("step-storm", rounds=1).run_started().hook_created(1, "door")
    return built.hook_received(1, {"a": [1, None, "ü"]}).step(2, "charge", 30).run_completed({"ok": True}).capture()


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    captures = [a_run(1), a_run(2)]
    assert write_parquet(captures, tmp_path / "runs.parquet", with_payloads=True) == 2
    back = read(tmp_path / "runs.parquet")
    assert [one.log for one in back] == [one.log for one in captures]
    assert [one.run for one in back] == [one.run for one in captures]
    assert back[0].log[3].payload is not None
    assert back[0].log[3].payload.load() == {"a": [1, None, "ü"]}


def test_it_says_what_the_ndjson_log_says(tmp_path: Path) -> None:
    """Every small log of the repository, by both ways."""
    logs = [one for one in open_captures([ROOT / "fixtures" / "logs"]) if isinstance(one, Capture)]
    for number, capture in enumerate(logs):
        plain = replace(capture, audit=None, reads=None)
        write_parquet([plain], tmp_path / f"{number}.parquet")
        (by_parquet,) = read(tmp_path / f"{number}.parquet")
        (by_lines,) = read(write_capture(plain, tmp_path / str(number)))
        assert by_parquet.log == by_lines.log
        assert (by_parquet.evidence, by_parquet.run, by_parquet.data) == (
            by_lines.evidence,
            by_lines.run,
            by_lines.data,
        )


def test_an_audit_that_is_not_kept_is_told_of(tmp_path: Path) -> None:
    built = LogBuilder().run_created()
    write_parquet([built.capture(audit=built.published())], tmp_path / "a.parquet")
    (found,) = read(tmp_path / "a.parquet")
    assert found.audit is None
    assert "its append audit was not written to Parquet" in found.evidence.notes


def test_payloads_stay_out_unless_they_are_asked_for(tmp_path: Path) -> None:
    write_parquet([a_run(1)], tmp_path / "a.parquet")
    (found,) = read(tmp_path / "a.parquet")
    assert found.log[3].payload == a_run(1).log[3].payload
    assert b"charge" in (tmp_path / "a.parquet").read_bytes()
    with pytest.raises(Exception, match="was not captured"):
        found.log[3].payload.load()  # type: ignore[union-attr]


def test_pandas_reads_it_in_one_line(tmp_path: Path) -> None:
    import pandas as pd

    write_parquet([a_run(1), a_run(2)], tmp_path / "a.parquet")
    frame = pd.read_parquet(tmp_path / "a.parquet")
    assert frame.groupby("run_id", observed=True).position.max().tolist() == [8, 8]
    assert str(frame.created_at.dtype) == "datetime64[ms, UTC]"


def test_more_events_than_a_row_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stormctl.readers.parquet.GROUP_ROWS", 5)
    captures = [a_run(number) for number in range(1, 5)]
    write_parquet(captures, tmp_path / "a.parquet")
    assert [one.log.run_id for one in read(tmp_path / "a.parquet")] == [one.log.run_id for one in captures]


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
EVENTS = st.builds(
    Event,
    type=TEXT.filter(bool),
    event_id=st.none() | TEXT,
    correlation_id=st.none() | TEXT,
    position=st.none() | st.integers(0, 2**62),
    created_at=st.none() | st.integers(-(2**62), 2**62),
    name=st.none() | TEXT,
    token=st.none() | TEXT,
    resume_at=st.none() | st.integers(-(2**62), 2**62),
    spec=st.none() | st.integers(0, 2**31),
    payload=st.none() | st.builds(Inline, st.none() | st.integers() | TEXT | st.lists(TEXT)),
    data=st.dictionaries(TEXT, st.none() | st.integers(-(2**53), 2**53) | TEXT, max_size=3),
)


def of_run(run_id: str, events: list[Event]) -> Capture:
    return Capture("here", EventLog([replace(event, run_id=run_id) for event in events], run_id), Evidence("x"))


@given(st.lists(st.lists(EVENTS, min_size=1, max_size=5), min_size=1, max_size=3), st.booleans())
def test_any_log_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, runs: list[list[Event]], payloads: bool
) -> None:
    path = tmp_path_factory.mktemp("any") / "a.parquet"
    captures = [
        Capture(
            "here", EventLog([replace(event, run_id=f"r{number}") for event in events], f"r{number}"), Evidence("x")
        )
        for number, events in enumerate(runs)
    ]
    write_parquet(captures, path, with_payloads=payloads)
    assert [one.log for one in read(path)] == [one.log for one in captures]


class TestWhatIsRefused:
    def test_a_run_that_is_written_twice_leaves_nothing_behind(self, tmp_path: Path) -> None:
        with pytest.raises(StoreFailure, match="was given twice"):
            write_parquet([a_run(1), a_run(1)], tmp_path / "a.parquet")
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_that_is_not_there_to_be_written_to(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(StoreFailure):
            write_parquet([a_run(1)], tmp_path / "file" / "a.parquet")

    def rewritten(self, path: Path, *, schema: str = SCHEMA, order: list[int] | None = None, runs: str = "{}") -> Path:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pq.read_table(path)
        table = table.take(pa.array(order)) if order is not None else table
        metadata = {b"stormctl.schema": schema.encode(), b"stormctl.runs": runs.encode()}
        pq.write_table(table.replace_schema_metadata(metadata), path)
        return path

    @pytest.mark.parametrize(
        ("how", "said"),
        [
            ({"schema": "stormctl.parquet/2"}, "reads up to stormctl.parquet/1"),
            ({"schema": "other/1"}, "not stormctl.parquet/1"),
            ({"order": [0, 8, 1]}, "which ended before it"),
        ],
    )
    def test_files_of_others_and_runs_that_are_mixed(self, tmp_path: Path, how: dict[str, object], said: str) -> None:
        write_parquet([a_run(1), a_run(2)], tmp_path / "a.parquet")
        found = list(open_captures([self.rewritten(tmp_path / "a.parquet", **how)]))  # type: ignore[arg-type]
        assert any(isinstance(one, Unreadable) and said in one.error for one in found), found

    def test_a_run_that_lost_events_is_truncated(self, tmp_path: Path) -> None:
        write_parquet([a_run(1)], tmp_path / "a.parquet")
        import pyarrow.parquet as pq

        runs = pq.ParquetFile(tmp_path / "a.parquet").metadata.metadata[b"stormctl.runs"].decode()
        assert json.loads(runs)[a_run(1).log.run_id]["events"] == 8
        (found,) = read(self.rewritten(tmp_path / "a.parquet", order=[0, 1, 2], runs=runs))
        assert found.evidence.truncated

    def test_a_run_whose_row_is_gone_is_judged_by_its_events(self, tmp_path: Path) -> None:
        write_parquet([a_run(1)], tmp_path / "a.parquet")
        (found,) = read(self.rewritten(tmp_path / "a.parquet"))
        assert found.run is None
        assert found.run != RunRow("completed")

    @pytest.mark.parametrize("content", [b"PAR1", b"PAR1" + b"\0" * 100, b"PAR1" + b"\xff" * 64 + b"PAR1"])
    def test_what_only_begins_like_one(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "a.parquet").write_bytes(content)
        for reading in (Reading(), Reading("stormctl-parquet"), Reading("map:dbos")):
            (found,) = open_captures([tmp_path / "a.parquet"], reading)
            assert isinstance(found, Unreadable)
