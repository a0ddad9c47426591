"""Captures from a live PostgreSQL database: read-only, each run in a transaction of its own, whatever else fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import cbor2
import pytest

from stormctl.errors import UnreadableInput, UsageError
from stormctl.history import Capture
from stormctl.readers import open_captures, workflow_pg
from stormctl.readers.live import (
    Asked,
    DatabaseSource,
    SourceLost,
    Step,
    Taken,
    capture_runs,
    opened,
)
from stormctl.worlds import Appended
from tests.readers.sdk_tables import TABLES, fill
from tests.worlds.making import HOOK, RUN, make_run, want
from tests.worlds.postgres.making import prepared, run, world_of

pytestmark = pytest.mark.storm
HOSTILE = ["../../etc/passwd", "a/b", "\x1b[2Jx", "x" * 300, ".."]


@pytest.fixture
def database(postgres_dsn: str) -> Iterator[tuple[str, Any]]:
    """An empty database of the SDK's tables: its DSN and a connection."""
    import psycopg

    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        connection.execute(TABLES)
        yield postgres_dsn, connection


def row(run_id: str, number: int, type: str = "run_started", **data: Any) -> dict[str, Any]:
    return {
        "id": f"wevt_{abs(hash(run_id)) % 10**12}-{number:06d}",
        "type": type,
        "run_id": run_id,
        "created_at": datetime(2026, 1, 2, 12, tzinfo=UTC).replace(tzinfo=None) + timedelta(seconds=number),
        "payload_cbor": cbor2.dumps(data) if data else None,
        "spec_version": 3,
    }


def runs(connection: Any, *names: str) -> None:
    for name in names:
        fill(connection, "workflow_events", [row(name, 1, "run_created", workflowName="w"), row(name, 2)])


def into(out: Path, dsn: str, **how: Any) -> list[Step]:
    with DatabaseSource(dsn) as source, opened(out, Asked(source.shown)) as folder:
        return [one for one in capture_runs(source, folder, **how) if isinstance(one, Step)]


def logs(out: Path) -> dict[str, int]:
    return {one.log.run_id: len(one.log) for one in open_captures([out]) if isinstance(one, Capture)}


def test_every_run_is_captured_whatever_it_is_called(database: tuple[str, Any], tmp_path: Path) -> None:
    dsn, connection = database
    runs(connection, "wrun_1", "wrun_2", *HOSTILE)
    into(tmp_path / "out", dsn)
    assert logs(tmp_path / "out") == dict.fromkeys(["wrun_1", "wrun_2", *HOSTILE], 2)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_runs_that_are_named_or_have_changed(database: tuple[str, Any], tmp_path: Path) -> None:
    dsn, connection = database
    runs(connection, "wrun_1", "wrun_2")
    fill(connection, "workflow_events", [row("wrun_2", 900)])
    (missing,) = into(tmp_path / "named", dsn, runs=["wrun_9"])
    assert "holds no run wrun_9" in missing.broken[0].error
    after = datetime(2026, 1, 2, 12, 5, tzinfo=UTC).timestamp() * 1000
    with DatabaseSource(dsn) as source:
        assert source.runs(round(after)) == ["wrun_2"]
        assert source.runs() == ["wrun_1", "wrun_2"]


def test_a_run_whose_row_was_updated_has_changed(database: tuple[str, Any]) -> None:
    dsn, connection = database
    runs(connection, "wrun_1", "wrun_2")
    late = datetime(2026, 1, 3, tzinfo=UTC)
    about = {"id": "wrun_1", "deployment_id": "d", "status": "failed", "name": "w", "created_at": late - timedelta(9)}
    fill(connection, "workflow_runs", [{**about, "updated_at": late}])
    with DatabaseSource(dsn) as source:
        assert source.runs(round((late - timedelta(hours=1)).timestamp() * 1000)) == ["wrun_1"]


def test_a_damaged_run_hides_no_other(database: tuple[str, Any], tmp_path: Path) -> None:
    dsn, connection = database
    runs(connection, "wrun_1", "wrun_2")
    fill(connection, "workflow_events", [{**row("wrun_1", 3), "payload_cbor": b"\xd8\x40\x59\xff\xff"}])
    first, second = into(tmp_path / "out", dsn)
    assert ("CBOR" in first.broken[0].error, second.broken) == (True, ())
    captured = {one.log.run_id: one for one in open_captures([tmp_path / "out"]) if isinstance(one, Capture)}
    assert captured["wrun_1"].evidence.truncated
    assert not captured["wrun_2"].evidence.truncated


def test_a_run_that_takes_too_long_hides_no_other(
    database: tuple[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dsn, connection = database
    runs(connection, "wrun_1", "wrun_2")
    monkeypatch.setattr(workflow_pg, "STATEMENT_S", 0.3)
    real = workflow_pg._Tables._read_events

    def slow(self: Any, runs: Any, found: Any) -> None:
        if "wrun_1" in runs:
            self._connection.execute("select pg_sleep(20)")
        real(self, runs, found)

    monkeypatch.setattr(workflow_pg._Tables, "_read_events", slow)
    first, second = into(tmp_path / "out", dsn)
    assert first.landed is None
    assert second.landed is not None


def test_nothing_can_be_written(database: tuple[str, Any]) -> None:
    import psycopg

    dsn, connection = database
    runs(connection, "wrun_1")
    with (
        DatabaseSource(dsn) as source,
        source._runs._moment() as inside,
        pytest.raises(psycopg.Error, match="read-only"),
    ):
        inside.execute("delete from workflow.workflow_events")
    with DatabaseSource(dsn) as source, source._runs._moment() as inside:
        found = inside.execute("select current_setting('transaction_isolation'), current_setting('statement_timeout')")
        assert found.fetchone() == ("repeatable read", f"{workflow_pg.STATEMENT_S}s")
    assert connection.execute("select count(*) from workflow.workflow_events").fetchone() == (2,)


def test_a_run_is_of_one_moment_while_it_is_written(database: tuple[str, Any], tmp_path: Path) -> None:
    """Each transaction of the writer adds an event and counts it in the run's row: both agree in every capture."""
    import psycopg

    dsn, connection = database
    fill(
        connection,
        "workflow_runs",
        [{"id": "wrun_1", "deployment_id": "d", "status": "running", "name": "w", "error": "0"}],
    )
    fill(connection, "workflow_events", [row("wrun_1", 0, "run_created", workflowName="w")])
    stop = threading.Event()

    def write() -> None:
        number = 0
        with psycopg.connect(dsn, autocommit=True) as other:
            while not stop.is_set() and number < 3_000:
                number += 1
                with other.transaction():
                    fill(other, "workflow_events", [row("wrun_1", number)])
                    other.execute(
                        "update workflow.workflow_runs set execution_context = %s", [f'{{"count": {number}}}']
                    )

    writer = threading.Thread(target=write)
    writer.start()
    try:
        seen: list[Taken] = []
        with DatabaseSource(dsn) as source:
            for _ in range(15):
                seen += source.read(["wrun_1"])
    finally:
        stop.set()
        writer.join()
    counts = []
    for one in seen:
        assert one.capture is not None
        facts = one.capture.data["run"].get("executionContext", {"count": 0})
        assert len(one.capture.log) == facts["count"] + 1
        counts.append(len(one.capture.log))
    assert counts == sorted(counts)
    assert counts[-1] > counts[0]


def test_a_connection_that_is_lost_is_made_again(database: tuple[str, Any]) -> None:
    dsn, connection = database
    runs(connection, "wrun_1", "wrun_2")
    with DatabaseSource(dsn) as source:
        steps = source.read(["wrun_1", "wrun_2"])
        assert next(steps).capture is not None
        connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()"
                           " and datname = current_database()")  # fmt: skip
        assert next(steps).capture is not None


def gone(dsn: str) -> None:
    """Wait until nobody answers any more: an immediate shutdown takes its time on a busy machine."""
    import psycopg

    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            psycopg.connect(dsn, connect_timeout=2).close()
        except psycopg.OperationalError:
            return
        time.sleep(0.02)
    pytest.fail("the server did not end")


def test_a_server_that_is_gone_ends_it(own_postgres: Callable[..., Any]) -> None:
    import os
    import signal

    import psycopg

    server = own_postgres()
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(TABLES)
        runs(connection, "wrun_1", "wrun_2")
    with DatabaseSource(server.dsn) as source:
        steps = source.read(["wrun_1", "wrun_2"])
        assert next(steps).capture is not None
        os.kill(server.pid, signal.SIGQUIT)
        gone(server.dsn)
        with pytest.raises(SourceLost) as lost:
            next(steps)
        assert lost.value.remedy


def test_a_database_of_our_own_worlds_is_captured_too(postgres_dsn: str, tmp_path: Path) -> None:
    async def write() -> list[str | None]:
        async with world_of(prepared(postgres_dsn), "main-pg") as world:
            for request in [*make_run(), want("hook_created", HOOK, token="a-secret-token")]:
                assert isinstance(await world.append(request), Appended)
            return [event.event_id for event in (await world.load(RUN)).events]

    written = run(write())
    (step,) = into(tmp_path / "out", postgres_dsn)
    (found,) = open_captures([tmp_path / "out"])
    assert step.broken == ()
    assert isinstance(found, Capture)
    assert [event.event_id for event in found.log] == written
    assert "a-secret-token" not in (tmp_path / "out" / "logs" / f"{RUN}.ndjson").read_text()


def test_what_is_no_event_log_says_so(postgres_dsn: str) -> None:
    with pytest.raises(UnreadableInput, match=r"no table workflow\.workflow_events"), DatabaseSource(postgres_dsn):
        pass


def test_a_dsn_that_is_none_is_not_repeated() -> None:
    with pytest.raises(UsageError) as refused:
        DatabaseSource("postgresql://me:se@cret@host/db")
    assert "cret" not in f"{refused.value} {refused.value.remedy}"
