"""The store read from outside: rows, pending waits and captures, from files that are being written and from SQL."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cbor2
import pytest

from stormctl.errors import StoreFailure, UnreadableInput
from stormctl.targets.outside import LocalStore, Outside, PostgresStore
from stormctl.times import iso
from tests.readers.sdk_tables import TABLES

RUN = "wrun_01M8PJ0FYCFDAWV9MFDZEAWV20"
WAIT, OTHER = "wait_01M8PJ0FZ42CHC965XBY0KV92N", "wait_01M8PJ0FZ42CHC965XBY0KV92P"


class Writer:
    """Writes a run's events and row, as a world does; ``store`` reads them."""

    store: Outside

    def event(self, number: int, type: str, entity: str, data: dict[str, Any]) -> None: ...

    def row(self, status: str) -> None: ...


class OnFiles(Writer):
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("events", "runs"):
            (folder / name).mkdir(parents=True)
        self.store = LocalStore(folder)

    def event(self, number: int, type: str, entity: str, data: dict[str, Any]) -> None:
        name = f"evnt_01M8PJ0G0H0000000000{number:06d}"
        body = {"eventType": type, "runId": RUN, "eventId": name, "createdAt": iso(number), "correlationId": entity}
        (self.folder / "events" / f"{RUN}-{name}.json").write_text(json.dumps({**body, "eventData": data}))

    def row(self, status: str) -> None:
        row = {"runId": RUN, "status": status, "workflowName": "workflow//./a//b", "createdAt": iso(1)}
        (self.folder / "runs" / f"{RUN}.json").write_text(json.dumps(row))


class InTables(Writer):
    def __init__(self, dsn: str) -> None:
        import psycopg

        self.connection = psycopg.connect(dsn, autocommit=True)
        self.connection.execute(TABLES)
        self.store = PostgresStore(dsn)

    def event(self, number: int, type: str, entity: str, data: dict[str, Any]) -> None:
        self.connection.execute(
            "insert into workflow.workflow_events (id, type, correlation_id, run_id, payload_cbor, spec_version)"
            " values (%s, %s, %s, %s, %s, 3)",
            [f"wevt_01M8PJ0G0H0000000000{number:06d}", type, entity, RUN, cbor2.dumps(data)],
        )

    def row(self, status: str) -> None:
        self.connection.execute(
            "insert into workflow.workflow_runs (id, status, name, deployment_id) values (%s, %s, 'w', 'd')"
            " on conflict (id) do update set status = excluded.status",
            [RUN, status],
        )


@pytest.fixture(params=["local", pytest.param("postgres", marks=pytest.mark.storm)])
def writer(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Writer]:
    made: Writer
    made = OnFiles(tmp_path) if request.param == "local" else InTables(request.getfixturevalue("postgres_dsn"))
    yield made
    made.store.close()
    if isinstance(made, InTables):
        made.connection.close()


def test_a_run_that_is_not_there_yet_has_no_row_and_no_wait(writer: Writer) -> None:
    assert writer.store.row(RUN) is None
    assert writer.store.last_wait(RUN) is None
    with pytest.raises(UnreadableInput):
        writer.store.capture(RUN)


def test_a_row_is_told_as_it_changes(writer: Writer) -> None:
    for status in ("pending", "running", "completed"):
        writer.row(status)
        found = writer.store.row(RUN)
        assert found is not None
        assert found.status == status


def test_a_failed_run_has_its_code_from_the_event_that_ended_it(writer: Writer) -> None:
    writer.event(1, "run_created", RUN, {"workflowName": "w"})
    error = {"message": "it diverged", "code": "CORRUPTED_EVENT_LOG"}
    writer.event(2, "run_failed", RUN, {"error": error, "errorCode": "CORRUPTED_EVENT_LOG"})
    writer.row("failed")
    found = writer.store.row(RUN)
    assert found is not None
    assert (found.status, found.error_code, found.error_message) == ("failed", "CORRUPTED_EVENT_LOG", "it diverged")


def test_the_last_pending_wait_is_the_one_that_ends_last(writer: Writer) -> None:
    writer.event(1, "wait_created", WAIT, {"resumeAt": iso(5_000)})
    assert writer.store.last_wait(RUN) == 5_000
    writer.event(2, "wait_created", OTHER, {"resumeAt": iso(7_000)})
    assert writer.store.last_wait(RUN) == 7_000
    writer.event(3, "wait_completed", OTHER, {"resumeAt": iso(7_000)})
    assert writer.store.last_wait(RUN) == 5_000
    writer.event(4, "wait_completed", WAIT, {"resumeAt": iso(5_000)})
    assert writer.store.last_wait(RUN) is None


def test_a_file_that_is_half_written_is_read_when_it_is_whole(tmp_path: Path) -> None:
    writer = OnFiles(tmp_path)
    writer.event(1, "wait_created", WAIT, {"resumeAt": iso(5_000)})
    (file,) = (tmp_path / "events").iterdir()
    whole = file.read_text()
    file.write_text(whole[:40])
    assert writer.store.last_wait(RUN) is None
    file.write_text(whole)
    assert writer.store.last_wait(RUN) == 5_000


def test_events_of_other_runs_and_temporary_files_are_not_its_own(tmp_path: Path) -> None:
    writer = OnFiles(tmp_path)
    writer.event(1, "wait_created", WAIT, {"resumeAt": iso(5_000)})
    (file,) = (tmp_path / "events").iterdir()
    file.rename(file.with_name(file.name.replace(RUN, "wrun_01M8PJ0FYCFDAWV9MFDZEAWV21")))
    (tmp_path / "events" / f"{RUN}-evnt_1.json.tmp.7").write_text("{}")
    assert writer.store.last_wait(RUN) is None


@pytest.mark.storm
def test_a_database_that_is_gone_is_a_failing_store(postgres_server: Any, postgres_dsn: str) -> None:
    store = PostgresStore(postgres_dsn.replace("dbname=test_", "dbname=gone_"))
    with pytest.raises(StoreFailure, match="cannot be read"):
        store.row(RUN)
