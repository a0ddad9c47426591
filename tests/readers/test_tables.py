"""Tables of other engines, by the shipped maps and by maps of one's own."""

from __future__ import annotations

import json
import textwrap
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stormctl.history import COMMIT_TIMES, Capture, Facet, digest_value, kinds
from stormctl.readers import Reading, Unreadable, open_captures, reader_named
from stormctl.readers.tables import find_map, shipped_maps
from stormctl.readers.tables.maps import FIELDS, KEYS, MapError, TableMap
from stormctl.readers.tables.reader import read_table
from stormctl.readers.tables.values import UNITS
from stormctl.sweeps import SweepPlan, sweep_log

TABLES = Path(__file__).resolve().parents[2] / "fixtures" / "tables"
SHIPPED = {
    "azure-durable-task": "azure-durable-task.csv",
    "dapr-durable-task": "dapr-durable-task.json",
    "dbos": "dbos.csv",
    "inngest": "inngest.csv",
    "restate-journal": "restate-journal.json",
    "temporal": "temporal.ndjson",
}


def captures(path: Path, table_map: str | None = None) -> list[Capture]:
    reading = Reading(reader_named(f"map:{table_map}").name) if table_map else Reading()
    found = list(open_captures([path], reading))
    assert all(isinstance(one, Capture) for one in found), found
    return [one for one in found if isinstance(one, Capture)]


def told(capture: Capture) -> list[tuple[str, str | None, str | None]]:
    return [(event.type, event.correlation_id, event.name) for event in capture.log]


class TestShippedMaps:
    def test_each_has_a_table(self) -> None:
        assert shipped_maps() == tuple(SHIPPED)

    @pytest.mark.parametrize("name", SHIPPED)
    def test_each_reads_its_table_and_nothing_is_wrong_with_it(self, name: str) -> None:
        for found in captures(TABLES / SHIPPED[name], name):
            report = sweep_log(found, SweepPlan(profile="strict"))
            assert not [finding for one in report.sweeps for finding in one.fatal], found.log.events

    @pytest.mark.parametrize("name", SHIPPED)
    def test_each_is_found_by_the_columns_alone(self, name: str) -> None:
        alone, named = captures(TABLES / SHIPPED[name]), captures(TABLES / SHIPPED[name], name)
        if name != "temporal":  # such rows are a history for the reader of histories
            assert [one.log for one in alone] == [one.log for one in named]
        assert alone

    @pytest.mark.parametrize("name", SHIPPED)
    def test_each_says_what_it_is_for_and_from_where_it_has_that(self, name: str) -> None:
        found = find_map(name)
        assert (found.name, bool(found.about), bool(found.source), bool(found.signature)) == (name, True, True, True)

    def test_dbos_rows_are_whole_steps(self) -> None:
        first, second = captures(TABLES / "dbos.csv")
        assert told(first) == [
            ("step_created", "step_1", "app.charge"),
            ("step_completed", "step_1", "app.charge"),
            ("wait_created", "wait_2", None),
            ("wait_completed", "wait_2", None),
            ("step_created", "step_4", "app.ship"),
            ("step_completed", "step_4", "app.ship"),
        ]
        assert [event.created_at for event in first.log][:2] == [1_767_355_200_010, 1_767_355_200_060]
        assert told(second)[1] == ("step_failed", "step_1", "app.charge")
        assert {Facet.POSITIONS, Facet.STARTS, Facet.RUN_BOUNDS} <= first.evidence.missing
        assert first.evidence.notes == ("the table does not tell whether a run has ended",)

    def test_restate_commands_and_notifications_share_a_completion_id(self) -> None:
        (found,) = captures(TABLES / "restate-journal.json")
        assert [event.position for event in found.log] == list(range(1, 11))
        assert told(found)[1:5] == [
            ("step_created", "step_1", "charge"),
            ("step_completed", "step_1", None),
            ("wait_created", "wait_2", None),
            ("step_created", "step_4", "Mail/o-1/send"),
        ]
        assert found.log[6].type == "step_failed"
        assert found.log[3].resume_at == 1_767_355_201_030

    def test_azure_rows_are_numbered_in_hexadecimal_and_older_generations_are_left_out(self) -> None:
        (found,) = captures(TABLES / "azure-durable-task.csv")
        assert [event.position for event in found.log] == list(range(1, 17))
        assert found.evidence.notes == ("1 rows of an earlier generation of the run were left out",)
        assert [event.type for event in found.log][-2:] == ["run_failed", "azure:OrchestratorCompleted"]
        assert ("wait_completed", "wait_1", None) in told(found)

    def test_dapr_in_both_of_its_forms(self) -> None:
        (printed,) = captures(TABLES / "dapr-durable-task.json")
        assert ("step_failed", "step_2", None) in told(printed)
        assert printed.log[-1].type == "run_failed"
        (protobuf,) = captures(TABLES / "dapr-protobuf.ndjson", "dapr-durable-task")
        assert [one for one in told(protobuf) if one[1]] == [
            ("step_created", "step_0", "charge"),
            ("wait_created", "wait_1", None),
            ("step_created", "step_2", "Mail"),
            ("step_completed", "step_0", None),
            ("step_completed", "step_2", None),
            ("wait_completed", "wait_1", None),
        ]
        assert protobuf.log[-1].type == "run_completed"

    def test_inngest_ids_are_ulids_in_hexadecimal(self) -> None:
        (found,) = captures(TABLES / "inngest.csv")
        assert found.log.run_id == "01KDZ98CG00000000000000007"
        assert all(len(event.event_id or "") == 26 for event in found.log)
        assert [event.type for event in found.log][4:6] == ["step_retrying", "step_started"]


OWN: dict[str, Any] = {
    "schema": "stormctl.map/1",
    "name": "own",
    "columns": {
        "run": "order", "position": "seq", "type": "event", "entity": "task", "name": "what (optional)", "time": "at",
    },
    "types": {"Placed": "run_created", "Queued": "step_created", "Taken": "step_started", "Done": "step_completed",
              "Closed": "run_completed", "Audit": "other"},
}  # fmt: skip
ROWS = [
    {"order": "a", "seq": 1, "event": "Placed", "at": "2026-01-02T12:00:00Z"},
    {"order": "b", "seq": 1, "event": "Placed", "at": "2026-01-02T12:00:00Z"},
    {"order": "a", "seq": 3, "event": "Taken", "task": "t1", "at": "2026-01-02T12:00:00.020Z"},
    {"order": "a", "seq": 2, "event": "Queued", "task": "t1", "what": "ship", "at": "2026-01-02T12:00:00.010Z"},
    {"order": "a", "seq": 4, "event": "Audit", "at": "2026-01-02T12:00:00.030Z"},
    {"order": "a", "seq": 5, "event": "Done", "task": "t1", "at": "2026-01-02T12:00:00.040Z"},
    {"order": "a", "seq": 6, "event": "Closed", "at": "2026-01-02T12:00:00.050Z"},
]
NAMES = ["order", "seq", "event", "task", "what", "at"]


def own_map(folder: Path, **changes: Any) -> Path:
    import yaml

    path = folder / "own.yaml"
    path.write_text(yaml.safe_dump({**OWN, **changes}))
    return path


def as_csv(rows: list[dict[str, Any]], delimiter: str = ",") -> str:
    lines = [delimiter.join(NAMES), *(delimiter.join(str(row.get(name, "")) for name in NAMES) for row in rows)]
    return "\n".join(lines) + "\n"


def tables(folder: Path) -> Iterator[Path]:
    """The same rows in every form."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    forms = {
        "a.csv": as_csv(ROWS),
        "semicolons.csv": as_csv(ROWS, ";").replace("\n", "\r\n"),
        "mark.csv": "\ufeff" + as_csv(ROWS),
        "a.tsv": as_csv(ROWS, "\t"),
        "a.ndjson": "".join(json.dumps(row) + "\n" for row in ROWS),
        "a.json": json.dumps(ROWS),
        "rows.json": json.dumps({"rows": ROWS}, indent=2),
    }
    for name, text in forms.items():
        (folder / name).write_bytes(text.encode())
        yield folder / name
    pq.write_table(
        pa.Table.from_pylist([{name: row.get(name) for name in NAMES} for row in ROWS]), folder / "a.parquet"
    )
    yield folder / "a.parquet"


class TestAMapOfOnesOwn:
    def test_reads_the_same_from_every_form(self, tmp_path: Path) -> None:
        table_map = str(own_map(tmp_path))
        for path in tables(tmp_path):
            first, second = captures(path, table_map)
            assert told(first) == [
                ("run_created", None, None),
                ("step_created", "step_t1", "ship"),
                ("step_started", "step_t1", None),
                ("own:Audit", None, None),
                ("step_completed", "step_t1", None),
                ("run_completed", None, None),
            ], path
            assert [event.position for event in first.log] == [1, 2, 3, 4, 5, 6]
            assert (first.evidence.live, second.evidence.live) == (False, True)

    @pytest.mark.parametrize(("base", "numbers"), [(0, [0, 1, 2]), ("auto", [0, 1, 2]), ("auto", [1, 2, 3])])
    def test_counts_positions_from_one(self, tmp_path: Path, base: Any, numbers: list[int]) -> None:
        rows = [{"seq": number, "event": "Audit", "order": "a", "at": 0, "task": ""} for number in numbers]
        (tmp_path / "a.csv").write_text(as_csv(rows))
        (found,) = captures(tmp_path / "a.csv", str(own_map(tmp_path, base=base)))
        assert [event.position for event in found.log] == [1, 2, 3]

    @pytest.mark.parametrize(
        ("unit", "value"),
        [
            ("s", "1767355200.25"),
            ("ms", 1_767_355_200_250),
            ("us", 1_767_355_200_250_999),
            ("ns", 1_767_355_200_250_999_999),
            ("ms", "2026-01-02 12:00:00.25"),
            ("ms", "2026-01-02 13:00:00.250999+01"),
            ("ms", "2026-01-02T12:00:00.25Z"),
        ],
    )
    def test_understands_times(self, tmp_path: Path, unit: str, value: Any) -> None:
        (tmp_path / "a.ndjson").write_text(json.dumps({**ROWS[3], "at": value}))
        (found,) = captures(tmp_path / "a.ndjson", str(own_map(tmp_path, unit=unit)))
        assert found.log[0].created_at == 1_767_355_200_250

    def test_takes_commit_times_and_serials(self, tmp_path: Path) -> None:
        columns = {**OWN["columns"], "id": "id", "committed": "done", "serial": "row"}
        row = {**ROWS[3], "id": "e1", "done": "2026-01-02T12:00:01Z", "row": 41}
        (tmp_path / "a.ndjson").write_text(json.dumps(row))
        (found,) = captures(tmp_path / "a.ndjson", str(own_map(tmp_path, columns=columns)))
        assert found.data[COMMIT_TIMES] == {"e1": 1_767_355_201_000_000}
        assert found.log[0].data == {"serial": 41}
        assert Facet.COMMIT_STAMPS not in found.evidence.missing

    def test_keeps_digests_and_no_payloads(self, tmp_path: Path) -> None:
        columns = {**OWN["columns"], "payload": "what"}
        (tmp_path / "a.ndjson").write_text(json.dumps({**ROWS[3], "what": '{"card": "4111"}'}))
        (found,) = captures(tmp_path / "a.ndjson", str(own_map(tmp_path, columns=columns)))
        payload = found.log[0].payload
        assert payload is not None
        assert "4111" not in repr(payload)
        assert payload.digest == digest_value({"card": "4111"})


def test_the_page_about_maps_names_everything_that_a_map_can_say(root: Path) -> None:
    import yaml

    page = (root / "docs" / "maps.md").read_text()
    for key in (*FIELDS, *KEYS, *UNITS, *shipped_maps()):
        assert f"`{key}`" in page or f"    {key}:" in page, key
    for event_type in kinds.ALL_TYPES:
        assert f"`{event_type}`" in page
    example = page.partition("    schema: ")[2].partition("\n\n")[0]
    assert TableMap.parse(yaml.safe_load(textwrap.dedent(f"    schema: {example}")), "the page").name == "ledger"


class TestWhatDoesNotFit:
    def refused(self, folder: Path, content: str, table_map: Path) -> Unreadable:
        (folder / "a.ndjson").write_text(content)
        (found,) = open_captures([folder / "a.ndjson"], Reading(f"map:{table_map}"))
        assert isinstance(found, Unreadable)
        assert "\n" not in found.text
        return found

    def test_a_word_that_is_not_mapped_is_answered_with_the_likeliest(self, tmp_path: Path) -> None:
        found = self.refused(tmp_path, json.dumps({**ROWS[3], "event": "Qeued"}), own_map(tmp_path))
        assert found.error == "row 1 of a.ndjson has the type 'Qeued', which the map own does not name"
        assert found.remedy == "Did you mean 'Queued'?"

    def test_a_word_unlike_any_is_answered_with_all(self, tmp_path: Path) -> None:
        found = self.refused(tmp_path, json.dumps({**ROWS[3], "event": "zzz"}), own_map(tmp_path))
        assert "Map it under types, or as 'other'" in found.remedy
        assert "Closed" in found.remedy

    def test_a_column_that_is_not_there(self, tmp_path: Path) -> None:
        columns = {**OWN["columns"], "entity": "tsk"}
        found = self.refused(
            tmp_path, "".join(json.dumps(row) + "\n" for row in ROWS), own_map(tmp_path, columns=columns)
        )
        assert found.error == "a.ndjson has no column 'tsk', which the map own names for entity"
        assert found.remedy.startswith("Did you mean 'task'?")

    def test_a_column_that_only_one_word_needs(self, tmp_path: Path) -> None:
        types = {**OWN["types"], "Taken": {"is": "step_started", "entity": "worker"}}
        (tmp_path / "a.csv").write_text(as_csv(ROWS))
        (found, *_) = open_captures([tmp_path / "a.csv"], Reading(f"map:{own_map(tmp_path, types=types)}"))
        assert isinstance(found, Unreadable)
        assert "no column 'worker'" in found.error
        (tmp_path / "a.csv").write_text(as_csv(ROWS[:2]))  # nothing of that word is in it
        assert len(captures(tmp_path / "a.csv", str(own_map(tmp_path, types=types)))) == 2

    @pytest.mark.parametrize(
        ("row", "said"),
        [
            ({"seq": "three"}, "has 'three' in 'position', which takes a whole number"),
            ({"seq": -1}, "has a position below 0"),
            ({"seq": 10**30}, "which takes a whole number"),
            ({"at": "soon"}, "has no time in 'time'"),
            ({"at": 10**40}, "has no time in 'time'"),
            ({"event": {"a": 1}}, "in 'type', which takes text"),
            ({"order": "x" * 5000}, "longer than 4096 characters"),
            ({"event": None}, "has no type"),
        ],
    )
    def test_a_cell_that_holds_something_else(self, tmp_path: Path, row: dict[str, Any], said: str) -> None:
        found = self.refused(tmp_path, json.dumps({**ROWS[3], **row}), own_map(tmp_path))
        assert said in found.error

    def test_a_table_without_a_map_says_so(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text(as_csv(ROWS))
        (found,) = open_captures([tmp_path / "a.csv"], Reading("table"))
        assert isinstance(found, Unreadable)
        assert "--map" in found.remedy
        assert "restate-journal" in found.remedy


class TestMapsThatMeanNothing:
    @pytest.mark.parametrize(
        ("changes", "said", "remedy"),
        [
            ({"colums": {}}, "has no use for the key 'colums'", "Did you mean 'columns'?"),
            ({"columns": {"positon": "seq"}}, "has no use for the column 'positon'", "Did you mean 'position'?"),
            ({"types": {"A": "step_create"}}, "maps 'A' to 'step_create', which is no event type", "'step_created'?"),
            ({"types": {}}, "maps no type words", "Name them under types"),
            ({"types": {"A": {"is": "other", "entitty": "x"}}}, "has no use for the key 'entitty'", "'entity'?"),
            ({"types": {"A": ["step_created", "step_completed"]}}, "into several events", "Say dense: no."),
            ({"unit": "sec"}, "has 'sec' in 'unit'", "Known are ms, ns, s, us."),
            ({"order": "tim"}, "has 'tim' in 'order'", "Did you mean 'time'?"),
            ({"base": 2}, "counts positions from 2", "auto"),
            ({"schema": "stormctl.map/9"}, "has the schema 'stormctl.map/9'", "stormctl.map/1"),
            ({"columns": {"type": "event"}, "dense": True}, "names no column for position", "dense: no"),
            ({"columns": {"type": []}}, "names no column for 'type'", "try in turn"),
            ({"columns": {"type": "a..b"}}, "is no column", "docs/maps.md"),
            ({"columns": "event"}, "holds no keys in columns", "docs/maps.md"),
            ({"starts": "never"}, "has 'never' in 'starts'", "yes or no"),
            ({"skip": {"seq": {"a": 1}}}, "something else than names", "Quote"),
        ],
    )
    def test_are_refused_in_a_sentence(self, changes: dict[str, Any], said: str, remedy: str) -> None:
        with pytest.raises(MapError) as caught:
            TableMap.parse({**OWN, **changes}, "own.yaml")
        assert said in str(caught.value)
        assert remedy in caught.value.remedy

    def test_a_name_that_there_is_not(self) -> None:
        with pytest.raises(MapError) as caught:
            find_map("restate")
        assert str(caught.value) == "there is no map 'restate'"
        assert "'restate-journal'" in caught.value.remedy

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (b"a: [", "is not YAML"),
            (b"a: !!python/object/apply:os.system [ls]", "is not YAML"),
            (b"a: &x [1]\nb: [*x, *x]", "refers to other parts of itself"),
            (b"[1, 2]", "holds no keys in the map"),
            (b"", "holds no keys in the map"),
            (b"\xff\xfe\x00", "is not YAML"),
            (b"[" * 200_000, "nested too deeply"),
            (b"- " * 100_000, "nested too deeply"),
            (b"a" * 300_000, "larger than a map"),
        ],
    )
    def test_a_file_that_is_none(self, tmp_path: Path, content: bytes, said: str) -> None:
        (tmp_path / "m.yaml").write_bytes(content)
        with pytest.raises(MapError) as caught:
            find_map(str(tmp_path / "m.yaml"))
        assert said in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_table_of_many_mixed_runs_takes_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stormctl.readers.by_run.IN_MEMORY_BYTES", 1 << 18)
    monkeypatch.setattr(
        "stormctl.readers.by_run.ByRun.__init__.__kwdefaults__", {"in_memory": 1 << 18, "max_events": 200_000}
    )
    runs, events = 150, 20
    path = tmp_path / "mixed.csv"
    with path.open("w") as file:
        file.write(",".join(NAMES) + "\n")
        for seq in range(1, events + 1):
            for run in range(runs):
                file.write(f"run-{run},{seq},{'Placed' if seq == 1 else 'Queued'},t{seq},{'n' * 100},{seq}\n")
    table_map = find_map(str(own_map(tmp_path)))
    tracemalloc.start()
    try:
        found = 0
        for capture in read_table(path, table_map):
            assert len(capture.log) == events
            found += 1
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found == runs
    assert path.stat().st_size > 350_000
    assert peak < 2_500_000
