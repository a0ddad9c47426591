"""A real database of the SDK's Postgres world, read while it is there: rows, order, moments, limits, refusals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import cbor2
import pytest

from stormctl.errors import StormctlError, UnreadableInput
from stormctl.history import COMMIT_TIMES, Capture, Facet
from stormctl.readers import Unreadable
from stormctl.readers.workflow_pg import read_database, read_database_run
from tests.readers.sdk_tables import TABLES, csv_rows, fill

pytestmark = pytest.mark.storm
RUN = "wrun_01KE0000000000000000000001"
DEVL = cbor2.CBORTag(64, b'devl[[1],{"token":2},"t"]')
STEP = cbor2.CBORTag(64, b'devl[{"args":1,"closureVars":-1,"thisVal":-1},[2],{"r":3,"b":3},0]')


@pytest.fixture
def database(postgres_dsn: str) -> Iterator[tuple[str, Any]]:
    """An empty database of the SDK's tables: its DSN and a connection."""
    import psycopg

    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        connection.execute(TABLES)
        yield postgres_dsn, connection


def row(id: str, type: str, correlation_id: str | None = None, **data: Any) -> dict[str, Any]:
    return {
        "id": f"wevt_{id}",
        "type": type,
        "run_id": RUN,
        "correlation_id": correlation_id,
        "created_at": datetime(2026, 1, 2, 12, 0, 0, 1999, tzinfo=UTC).replace(tzinfo=None),
        "payload_cbor": cbor2.dumps(data) if data else None,
        "spec_version": 3,
    }


def a_run(connection: Any, *, status: str = "running") -> None:
    fill(
        connection,
        "workflow_runs",
        [
            {
                "id": RUN,
                "deployment_id": "d",
                "status": status,
                "name": "workflow//./w/storms//hookStorm",
                "input_cbor": cbor2.dumps(DEVL),
                "spec_version": "3",
            }
        ],
    )


def test_a_run_is_read_with_its_row_its_rows_and_its_payloads(database: tuple[str, Any]) -> None:
    dsn, connection = database
    a_run(connection)
    due = datetime(2026, 1, 2, 12, 0, 5, 7000, tzinfo=UTC)
    fill(
        connection,
        "workflow_events",
        [
            row("01KE0000000000000000000001", "run_created", deploymentId="d", workflowName="w", input=DEVL),
            row("01KE0000000000000000000002", "run_started"),
            row("01KE0000000000000000000004", "step_created", "step_1", stepName="step//./w//release", input=STEP),
            row("01KE0000000000000000000003", "wait_created", "wait_2", resumeAt=due),
        ],
    )
    fill(
        connection,
        "workflow_waits",
        [{"wait_id": f"{RUN}-wait_2", "run_id": RUN, "status": "waiting", "resume_at": due}],
    )
    (found,) = read_database(dsn)
    assert isinstance(found, Capture)
    assert [event.type for event in found.log] == ["run_created", "run_started", "wait_created", "step_created"]
    assert found.log[2].resume_at == round(due.timestamp() * 1000)
    assert found.log[0].created_at == round(datetime(2026, 1, 2, 12, 0, 0, 1000, tzinfo=UTC).timestamp() * 1000)
    assert (found.log[3].short_name, found.log[3].payload and found.log[3].payload.load()) == (
        "release",
        [{"r": 0, "b": 0}],
    )
    assert found.run is not None
    assert (found.run.status, found.run.workload, found.run.input) == ("running", "capture-hook-storm", {"token": "t"})
    assert found.evidence.live
    assert found.data["rows"]["wait_2"]["status"] == "waiting"
    assert found.source.endswith(RUN)
    assert "_xmin" in found.log[0].data


def test_ids_are_ordered_byte_by_byte_whatever_the_collation(database: tuple[str, Any]) -> None:
    dsn, connection = database
    connection.execute('alter table workflow.workflow_events alter column id type varchar collate "und-x-icu"')
    fill(connection, "workflow_events", [row(id, "run_started") for id in ("b", "B", "a", "_", "A")])
    assert [event.event_id for event in read_database_run(dsn, RUN).log] == [
        "wevt_A", "wevt_B", "wevt__", "wevt_a", "wevt_b",
    ]  # fmt: skip


def test_slot_ids_are_positions_and_mixed_ids_are_not(database: tuple[str, Any]) -> None:
    dsn, connection = database
    slots = [row(f"{place:026d}", "run_started") for place in (2, 1)]
    fill(connection, "workflow_events", [{**one, "id": one["id"].replace("wevt", "evnt")} for one in slots])
    assert [event.position for event in read_database_run(dsn, RUN).log] == [1, 2]
    fill(connection, "workflow_events", [row("01KE0000000000000000000001", "run_failed")])
    assert [event.position for event in read_database_run(dsn, RUN).log] == [None, None, None]


def test_commit_times_come_from_the_server_that_keeps_them(own_postgres: Callable[..., Any]) -> None:
    import psycopg

    server = own_postgres(settings={"track_commit_timestamp": "on", "fsync": "off"})
    before = datetime.now(UTC).timestamp()
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(TABLES)
        late = row("01KE0000000000000000000001", "run_created")
        with psycopg.connect(server.dsn) as other:
            fill(other, "workflow_events", [late])
            fill(connection, "workflow_events", [row("01KE0000000000000000000002", "run_started")])
            assert [event.type for event in read_database_run(server.dsn, RUN).log] == ["run_started"]
        found = read_database_run(server.dsn, RUN)
    times = found.data[COMMIT_TIMES]
    first, second = (times[event.event_id] for event in found.log)
    assert before * 1e6 - 1e6 < second < first
    assert Facet.COMMIT_STAMPS not in found.evidence.missing


def test_without_commit_times_they_are_declared_missing(own_postgres: Callable[..., Any]) -> None:
    import psycopg

    server = own_postgres(settings={"track_commit_timestamp": "off", "fsync": "off"})
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(TABLES)
        fill(connection, "workflow_events", [row("01KE0000000000000000000001", "run_created")])
    found = read_database_run(server.dsn, RUN)
    assert COMMIT_TIMES not in found.data
    assert Facet.COMMIT_STAMPS in found.evidence.missing


def test_a_damaged_row_hides_nothing_else(database: tuple[str, Any]) -> None:
    dsn, connection = database
    broken = {**row("01KE0000000000000000000002", "step_created", "step_1"), "payload_cbor": b"\xd8\x40\x59\xff\xff"}
    fill(connection, "workflow_events", [row("01KE0000000000000000000001", "run_created"), broken])
    capture, problem = read_database(dsn)
    assert isinstance(capture, Capture)
    assert isinstance(problem, Unreadable)
    assert (len(capture.log), capture.evidence.truncated) == (1, True)
    assert "not readable CBOR" in problem.error


def test_nothing_is_written_and_nothing_can_be(database: tuple[str, Any]) -> None:
    import psycopg

    from stormctl.readers.workflow_pg import _connected

    dsn, connection = database
    a_run(connection)
    with pytest.raises(StormctlError), _connected(dsn) as (inside, _):
        inside.execute("delete from workflow.workflow_runs")
    with _connected(dsn) as (inside, _), pytest.raises(psycopg.Error, match="read-only"):
        inside.execute("delete from workflow.workflow_runs")
    assert [one.log.run_id for one in read_database(dsn) if isinstance(one, Capture)] == [RUN]


def test_the_newest_runs_are_read_and_that_there_are_more_is_said(database: tuple[str, Any]) -> None:
    dsn, connection = database
    for number in range(5):
        fill(connection, "workflow_events", [{**row(str(number), "run_created"), "run_id": f"wrun_{number}"}])
    *captures, more = read_database(dsn, most=3)
    assert [one.log.run_id for one in captures if isinstance(one, Capture)] == ["wrun_2", "wrun_3", "wrun_4"]
    assert isinstance(more, Unreadable)
    assert "more than 3 runs" in more.error


def test_a_run_that_is_not_there_is_told(database: tuple[str, Any]) -> None:
    dsn, _ = database
    assert list(read_database(dsn)) == []
    with pytest.raises(UnreadableInput, match="holds no run wrun_x"):
        read_database_run(dsn, "wrun_x")


def test_a_database_without_the_tables_says_so(postgres_dsn: str) -> None:
    with pytest.raises(UnreadableInput, match=r"no table workflow\.workflow_events"):
        list(read_database(postgres_dsn))


def test_a_server_that_is_not_there_says_so_without_the_password() -> None:
    with pytest.raises(StormctlError) as refused:
        list(read_database("postgresql://me:secret@127.0.0.1:9/none"))
    assert "secret" not in f"{refused.value} {refused.value.remedy}"


def test_a_real_dump_comes_back_run_by_run(database: tuple[str, Any], shared_data: Path) -> None:
    dsn, connection = database
    dump = shared_data / "wdk" / "pg-v4-events.csv.gz"
    if not dump.is_file():
        pytest.skip("the dump of a real database is not beside this clone")
    rows = list(csv_rows(dump))
    with connection.transaction():
        fill(connection, "workflow_events", rows)
        fill(connection, "workflow_runs", csv_rows(dump.with_name("pg-v4-runs.csv.gz")))
    found = [one for one in read_database(dsn) if isinstance(one, Capture)]
    assert len(found) == 346
    by_run = Counter(one["run_id"] for one in rows)
    assert {one.log.run_id: len(one.log) for one in found if len(one.log)} == by_run
    for one in found:
        listed = sorted(row["id"] for row in rows if row["run_id"] == one.log.run_id)
        assert [event.event_id for event in one.log] == listed
    statuses = Counter(one.run.status for one in found if one.run is not None)
    assert {"completed", "failed", "cancelled"} <= statuses.keys()
    failed = next(one.run for one in found if one.run is not None and one.run.status == "failed")
    assert (failed.error_code, failed.error_message) == ("USER_ERROR", "b")
