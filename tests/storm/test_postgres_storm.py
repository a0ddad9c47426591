"""Small real storms in a database: found or started servers, faults, workers that join, and what is left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stormctl.worlds.postgres.inspect import connect
from stormctl.worlds.postgres.migrate import ensure_schema
from stormctl.worlds.postgres.server import Server
from tests.postgres_server import needs_postgres
from tests.storm.processes import children_of, command_of, gone
from tests.storm.real import LONG, Ended, Storm, command, environment

pytestmark = [
    pytest.mark.storm,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="these tests watch processes in /proc"),
]
Start = Callable[..., Storm]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a storm in a database; nothing of it outlives the test."""
    started: list[Storm] = []

    def begin(*arguments: object, **changes: Any) -> Storm:
        started.append(Storm.start(tmp_path, "--report-only", *arguments, **{"world": "postgres", **changes}))
        return started[-1]

    yield begin
    for one in started:
        one.kill()


def ran(*arguments: object) -> Ended:
    done = subprocess.run(
        command(*arguments), capture_output=True, text=True, env=environment(), check=False, timeout=180
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def counted(dsn: str, table: str) -> int:
    with connect(dsn) as connection:
        row = connection.execute(f"select count(*) from stormctl.{table}").fetchone()
    assert row is not None
    return int(row[0])


class TestANamedDatabase:
    def test_gets_no_schema_unasked(self, start: Start, own_postgres: Callable[..., Server]) -> None:
        server = own_postgres()
        assert server.folder is not None
        mark = server.folder / "stormctl.json"
        mark.rename(mark.with_suffix(".aside"))  # as if somebody else had made it
        try:
            ended = start("--dsn", server.dsn).end()
        finally:
            mark.with_suffix(".aside").rename(mark)
        assert ended.code == 2
        assert "--create-schema" in ended.err
        assert ended.err.count("\n") == 1

    def test_serves_a_storm_whose_folder_never_names_a_password(self, start: Start, postgres_dsn: str) -> None:
        dsn = postgres_dsn + "&password=hunter2"
        storm = start("--dsn", dsn, "--create-schema", attempts=1, matrix={"condition": ["main", "seq-final"]})
        ended = storm.end(120)
        assert (ended.code, ended.err) == (0, "")
        assert {(row["world"], row["condition"]) for row in storm.attempts()} == {
            ("postgres", "main"),
            ("postgres", "seq-final"),
        }
        assert {row["outcome"] for row in storm.attempts() if row["condition"] == "seq-final"} == {"completed"}
        for path in storm.folder.rglob("*"):
            assert not path.is_file() or b"hunter2" not in path.read_bytes(), path
        assert "hunter2" not in ended.out
        assert json.loads((storm.folder / "env.json").read_text())["server"].startswith("postgresql://")
        for row in storm.attempts():
            assert (storm.folder / "audit" / f"{row['run_id']}.ndjson").stat().st_size > 0
        late = ran("worker", "--dsn", postgres_dsn)
        assert (late.code, late.out) == (2, ""), "the storm has ended, and nobody joins it"
        assert re.match(r"stormctl: no storm is running in postgresql://", late.err)

    def test_that_no_cell_needs_is_a_wrong_command(self, start: Start, postgres_dsn: str) -> None:
        ended = start("--dsn", postgres_dsn, world="local").end()
        assert ended.code == 2
        assert "no cell of the plan lies in a database" in ended.err


class TestFaults:
    def test_kills_and_ended_connections_lose_no_event(self, start: Start, postgres_dsn: str) -> None:
        faults = [
            {"kill": "worker", "at": "counter", "every": 20, "limit": 2},
            {"disconnect": "postgres", "every": "700ms", "limit": 2},
        ]
        storm = start("--dsn", postgres_dsn, "--create-schema", attempts=2, concurrency=2, faults=faults)
        ended = storm.end(180)
        assert (ended.code, ended.err) == (0, "")
        assert re.search(r"faults fired: disconnect postgres [12], kill worker at counter 2", ended.out)
        assert {row["outcome"] for row in storm.attempts()} == {"completed"}
        for row in storm.attempts():
            log = (storm.folder / "logs" / f"{row['run_id']}.ndjson").read_text().splitlines()
            positions = [json.loads(line)["position"] for line in log]
            assert positions == list(range(1, len(positions) + 1))


class TestAServerOfOurOwn:
    def test_is_gone_five_seconds_after_its_driver_was_killed_and_so_are_the_workers(self, start: Start) -> None:
        needs_postgres()
        storm = start(**LONG)
        workers = storm.workers()
        storm.wait_for(1)
        others = [pid for pid in children_of(storm.process.pid) if pid not in workers]
        servers = [child for pid in others for child in children_of(pid)]
        assert any("postgres" in " ".join(command_of(pid)) for pid in servers)
        storm.process.kill()
        gone([*workers, *others, *servers], 5)

    def test_that_is_killed_ends_the_storm_with_one_sentence_and_what_landed_stays(self, start: Start) -> None:
        needs_postgres()
        storm = start(**LONG)
        workers = storm.workers()
        storm.wait_for(1)
        servers = [
            child
            for pid in children_of(storm.process.pid)
            for child in children_of(pid)
            if pid not in workers and "postgres" in " ".join(command_of(child))
        ]
        assert servers
        for pid in servers:
            os.kill(pid, signal.SIGKILL)
        ended = storm.end(60)
        gone(workers, 60)
        assert ended.code == 4
        assert re.fullmatch(r"stormctl: [^\n]+\. [^\n]+\.\n", ended.err)
        assert re.search(r"^small, seed 11: \d+ of 400 attempts landed, a store or worker failed$", ended.out, re.M)
        assert len(storm.attempts()) >= 1
        assert json.loads((storm.folder / "storm.json").read_text())["reason"] == "failed"


class TestAWorkerThatJoins:
    def test_serves_until_the_storm_ends_and_its_work_is_counted(self, start: Start, postgres_dsn: str) -> None:
        # most of its time it sleeps, so that it is still under way when the guest has started, however slow that is
        paced = {"attempts": 8, "concurrency": 2, "processes": 1, "time_scale": 0.3}
        storm = start("--dsn", postgres_dsn, "--create-schema", **paced)
        storm.workers(1)
        joined = subprocess.Popen(
            command("worker", "--dsn", postgres_dsn, "--name", "guest"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            env=environment(),
        )
        try:
            ended = storm.end(180)
            out, err = joined.communicate(timeout=60)
        finally:
            joined.kill()
        assert (ended.code, ended.err) == (0, "")
        assert (joined.returncode, err) == (0, "")
        lines = out.splitlines()
        assert re.fullmatch(r"joined storm small \(\w{26}\) of \S+: serving 1 cells", lines[0])
        assert lines[1:] == ["the storm has ended"]
        assert {row["outcome"] for row in storm.attempts()} == {"completed"}
        own = (storm.folder / "workers" / "0.ndjson").read_text().count("\n")
        counted_here = sum(row["work"]["deliveries"] for row in storm.attempts())
        assert counted(postgres_dsn, "work") > 0
        assert counted_here > own / 2

    def test_where_no_storm_runs_says_so(self, postgres_dsn: str) -> None:
        """Neither runs one in a database where none ever did; where one has ended: ``TestANamedDatabase``."""
        ensure_schema(postgres_dsn, create=True)
        ended = ran("worker", "--dsn", postgres_dsn)
        assert (ended.code, ended.out) == (2, "")
        assert re.match(r"stormctl: no storm is running in postgresql://", ended.err)

    def test_without_a_database_is_told_how_to_name_one(self) -> None:
        ended = ran("worker")
        assert ended.code == 2
        assert "--dsn" in ended.err


class TestResumingAndCleaning:
    def test_a_killed_storm_goes_on_in_its_database_and_clean_removes_its_stores(
        self, start: Start, postgres_dsn: str
    ) -> None:
        storm = start("--dsn", postgres_dsn, "--create-schema", attempts=4, concurrency=2)
        storm.workers()
        storm.wait_for(1)
        storm.process.kill()
        gone(storm.seen_workers, 60)
        went_on = ran("run", "--resume", storm.folder, "--dsn", postgres_dsn, "--report-only")
        assert (went_on.code, went_on.err) == (0, "")
        assert "note: step-storm/postgres/seq-final/dispenser: took over the store" in went_on.out
        assert sorted(row["number"] for row in storm.attempts()) == list(range(1, 5))
        assert any("note" in row for row in storm.attempts())
        assert counted(postgres_dsn, "workflow_events") > 0
        ended = ran("clean", "--keep", "0", "--out", storm.out.parent, "--dsn", postgres_dsn)
        assert (ended.code, ended.err) == (0, "")
        assert ended.out.splitlines()[-1] == "deleted 1 stores of them from the database"
        tables = ("spaces", "workflow_events", "workflow_runs", "messages", "audit", "storms", "work")
        assert {table: counted(postgres_dsn, table) for table in tables} == dict.fromkeys(tables, 0)
        assert not storm.out.exists()
