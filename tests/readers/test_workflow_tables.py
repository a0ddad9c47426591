"""Dumps of a Postgres world, as CSV and as pg_dump writes them: the store's order, its rows, its moments."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from stormctl.history import COMMIT_TIMES, Capture, Facet
from stormctl.readers import Unreadable, open_captures, reader_for
from tests.readers.samples import CSV_EVENTS, CSV_RUNS, DUMP, OTHER, RUN

EVENTS_HEAD = CSV_EVENTS.partition("\n")[0]


def captures(path: Path, content: str | None = None) -> list[Capture]:
    if content is not None:
        path.write_text(content)
    found = list(open_captures([path]))
    assert all(isinstance(one, Capture) for one in found), found
    return [one for one in found if isinstance(one, Capture)]


class TestCsv:
    def test_rows_of_many_runs_come_back_run_by_run_in_the_order_of_their_ids(self, tmp_path: Path) -> None:
        mine, other = captures(tmp_path / "a.csv", CSV_EVENTS)
        assert (mine.log.run_id, other.log.run_id) == (RUN, OTHER)
        assert [event.type for event in mine.log] == ["run_created", "hook_created", "run_completed"]
        assert mine.log[1].token == "t"
        assert mine.log[2].payload is not None
        assert mine.log[2].payload.load() == 1
        assert mine.log[0].created_at == 1_767_355_200_001
        assert {Facet.COMMIT_STAMPS, Facet.POSITIONS} <= mine.evidence.missing

    def test_ids_are_compared_byte_by_byte(self, tmp_path: Path) -> None:
        rows = "".join(f"{id},run_started,,2026-01-02 12:00:00,{RUN},,,3\n" for id in ("b", "B", "a", "_", "A"))
        (found,) = captures(tmp_path / "a.csv", f"{EVENTS_HEAD}\n{rows}")
        assert [event.event_id for event in found.log] == ["A", "B", "_", "a", "b"]

    def test_slots_are_positions(self, tmp_path: Path) -> None:
        rows = "".join(f"evnt_{place:026d},run_started,,2026-01-02 12:00:00,{RUN},,,7\n" for place in (2, 10, 1))
        (found,) = captures(tmp_path / "a.csv", f"{EVENTS_HEAD}\n{rows}")
        assert [event.position for event in found.log] == [1, 2, 10]

    def test_a_seq_goes_before_the_id(self, tmp_path: Path) -> None:
        rows = "".join(
            f"wevt_{id},run_started,,2026-01-02 12:00:00,{RUN},,,5,{seq}\n"
            for id, seq in zip("abc", "312", strict=True)
        )
        (found,) = captures(tmp_path / "a.csv", f"{EVENTS_HEAD},seq\n{rows}")
        assert [event.event_id for event in found.log] == ["wevt_b", "wevt_c", "wevt_a"]

    def test_what_the_server_knows_of_commits_is_kept(self, tmp_path: Path) -> None:
        head = f"{EVENTS_HEAD},xmin,ctid,committed_at"
        row = f'wevt_a,run_started,,2026-01-02 12:00:00,{RUN},,,3,741,"(0,1)",2026-01-02 12:00:00.000001+00'
        (found,) = captures(tmp_path / "a.csv", f"{head}\n{row}\n")
        assert found.data[COMMIT_TIMES] == {"wevt_a": 1_767_355_200_000_001}
        assert Facet.COMMIT_STAMPS not in found.evidence.missing
        assert (found.log[0].data["_xmin"], found.log[0].data["_ctid"]) == ("741", "(0,1)")

    def test_the_runs_beside_the_events_belong_to_them(self, tmp_path: Path) -> None:
        (tmp_path / "pg-events.csv.gz").write_bytes(gzip.compress(CSV_EVENTS.encode()))
        (tmp_path / "pg-runs.csv.gz").write_bytes(gzip.compress(CSV_RUNS.encode()))
        mine, other = captures(tmp_path)
        assert (mine.run and mine.run.status, Facet.ROWS in mine.evidence.missing) == ("completed", False)
        assert Facet.ROWS in other.evidence.missing

    def test_runs_alone_are_captures_without_events(self, tmp_path: Path) -> None:
        (found,) = captures(tmp_path / "runs.csv", CSV_RUNS)
        assert (len(found.log), found.evidence.truncated) == (0, True)
        assert found.run is not None
        assert found.run.status == "completed"

    @pytest.mark.parametrize("delimiter", [";", "\t", "|"])
    def test_other_delimiters(self, tmp_path: Path, delimiter: str) -> None:
        content = "\n".join(line.replace(",", delimiter) for line in CSV_EVENTS.splitlines()[:4])
        assert len(captures(tmp_path / "a.csv", content)) == 2

    def test_a_broken_row_leaves_the_others(self, tmp_path: Path) -> None:
        bad = f"wevt_9,run_started,,yesterday,{RUN},,,3\nshort,row\nwevt_8,run_started,,2026-01-02 12:00:00,,,,3\n"
        path = tmp_path / "a.csv"
        path.write_text(CSV_EVENTS + bad)
        found = list(open_captures([path]))
        told = [one.error for one in found if isinstance(one, Unreadable)]
        assert told == [
            "line 7 of a.csv has 2 cells for 8 columns",
            "line 8 of a.csv names no run in 'run_id'",
            "event 'wevt_9' has no time in 'yesterday'",
        ]
        assert [one.evidence.truncated for one in found if isinstance(one, Capture)] == [True, False]


class TestDump:
    def test_the_rows_between_copy_and_its_end_are_read(self, tmp_path: Path) -> None:
        (tmp_path / "a.sql").write_text(DUMP)
        assert reader_for(tmp_path / "a.sql").name == "workflow-dump"
        (found,) = captures(tmp_path / "a.sql")
        assert [event.type for event in found.log] == ["run_created", "run_started"]
        assert found.data["workflow"] == "w\tx"

    def test_one_that_is_cut_off_says_so(self, tmp_path: Path) -> None:
        path = tmp_path / "a.sql"
        path.write_text(DUMP[: DUMP.index("\\.")])
        found = list(open_captures([path]))
        assert any(isinstance(one, Unreadable) and "cut off inside a table" in one.error for one in found)

    def test_a_dump_of_something_else_says_so(self, tmp_path: Path) -> None:
        path = tmp_path / "a.sql"
        path.write_text("-- PostgreSQL database dump\nCOPY public.a (id) FROM stdin;\n1\n\\.\n")
        (found,) = open_captures([path])
        assert isinstance(found, Unreadable)
        assert "holds no rows of workflow_events" in found.error
