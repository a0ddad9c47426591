"""A server of ours: who gets in, what it promises, and that it never outlives whom it was started for."""

from __future__ import annotations

import json
import os
import pwd
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pytest

from stormctl.errors import StoreFailure, StormctlError, UsageError
from stormctl.worlds.postgres import cluster, standing, supervisor
from stormctl.worlds.postgres.account import LENT, server_account
from stormctl.worlds.postgres.inspect import inspect
from stormctl.worlds.postgres.server import Server, create_database, reset_database, resolve_server, start_private
from stormctl.worlds.postgres.standing import process_started
from stormctl.worlds.process import space
from tests.postgres_server import needs_postgres

pytestmark = pytest.mark.storm

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def needed() -> None:
    needs_postgres()


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A state folder of the test's own; what was started there is removed."""
    monkeypatch.setenv("STORMCTL_STATE", str(tmp_path / "state"))
    yield tmp_path / "state"
    standing.down(remove=True)


def value(dsn: str, query: str) -> object:
    with psycopg.connect(dsn, autocommit=True) as connection:
        row = connection.execute(query).fetchone()
        assert row is not None
        return row[0]


# -- what it is


def test_it_promises_what_the_storms_rest_on() -> None:
    with start_private() as server:
        for name, wanted in {
            "fsync": "on",
            "synchronous_commit": "on",
            "full_page_writes": "on",
            "track_commit_timestamp": "on",
            "listen_addresses": "",
            "server_encoding": "UTF8",
        }.items():
            assert value(server.dsn, f"show {name}") == wanted
        facts = inspect(server.dsn)
        assert (facts.database, facts.schema, facts.commit_stamps) == ("stormctl", None, True)
        assert facts.version == server.version or facts.version.startswith(f"{server.version} ")
        assert server.ours
        assert server.shown == server.dsn  # there is no password in it
        folder = server.folder
        assert folder is not None
        assert folder.is_dir()
    assert not folder.exists()
    server.close()  # a second time does no harm


def test_only_its_own_user_can_open_its_folders(postgres_server: Server) -> None:
    assert postgres_server.folder is not None
    owner = postgres_server.folder.stat()
    assert stat.S_IMODE(owner.st_mode) == 0o700
    assert stat.S_IMODE((postgres_server.folder / "socket").stat().st_mode) == 0o700
    assert owner.st_uid == server_account().uid
    if os.geteuid() == 0:
        assert pwd.getpwuid(owner.st_uid).pw_name in LENT
    assert len(f"{postgres_server.folder}/socket/.s.PGSQL.5432") < 100


def test_the_server_itself_lets_in_only_who_started_it(postgres_server: Server) -> None:
    assert postgres_server.folder is not None
    stranger = postgres_server.dsn.replace("stormctl@", "somebody@")
    with pytest.raises(StormctlError, match="does not let this user in"):
        inspect(stranger)
    if os.geteuid() != 0:
        return
    nobody = pwd.getpwnam("nobody")
    if server_account().uid == nobody.pw_uid:
        pytest.skip("the server itself runs as nobody")
    # Past the folder, as a process that inherited it would be, the peer's name still has to be a known one.
    script = "import os, psycopg, sys; os.setgid({1}); os.setuid({0}); psycopg.connect(sys.argv[1])"
    folder = postgres_server.folder
    try:
        for path in (folder, folder / "socket", folder / "socket" / ".s.PGSQL.5432"):
            path.chmod(0o777)
        done = subprocess.run(
            [sys.executable, "-c", script.format(nobody.pw_uid, nobody.pw_gid), postgres_server.dsn],
            capture_output=True,
            text=True,
        )
    finally:
        for path in (folder / "socket" / ".s.PGSQL.5432", folder / "socket", folder):
            path.chmod(0o700)
    assert "Peer authentication failed" in done.stderr


def test_a_statement_that_fails_leaves_nothing_in_the_log(postgres_server: Server) -> None:
    assert postgres_server.folder is not None
    with psycopg.connect(postgres_server.dsn) as connection, pytest.raises(psycopg.Error):
        connection.execute("select 'a-value-of-a-storm' from nowhere")
    assert "a-value-of-a-storm" not in cluster.log_file(postgres_server.folder).read_text()


def test_a_place_whose_path_is_too_long_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("x" * 90)
    long.mkdir()
    monkeypatch.setenv("TMPDIR", str(long))
    folder = cluster.make_folder(server_account(), {})
    assert not folder.is_relative_to(long)
    cluster.remove(folder)
    with pytest.raises(StoreFailure, match="no folder for a PostgreSQL server could be made") as failed:
        cluster.make_folder(server_account(), {}, parent=long)
    assert "TMPDIR" in failed.value.remedy


def test_why_it_did_not_start_is_one_sentence() -> None:
    with pytest.raises(StoreFailure, match=r"^the server failed in \S+: .*max_connections.*$") as failed:
        start_private(settings={"max_connections": "many"})
    assert "--dsn" in failed.value.remedy


def test_why_it_could_not_be_made_is_one_sentence() -> None:
    with pytest.raises(StoreFailure, match=r"^initdb failed in \S+: .*nonsense.*$"):
        start_private(options=["--nonsense"])


def test_a_folder_that_stormctl_did_not_make_is_never_removed(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    cluster.remove(tmp_path)
    assert (tmp_path / "data").is_dir()


# -- it does not outlive its driver


@dataclass
class Driven:
    """A driver in a process of its own, with its server and one busy session."""

    process: subprocess.Popen[str]
    folder: Path
    postmaster: int
    supervisor: int
    backend: int
    born: dict[int, str | None]

    def alive(self) -> list[int]:
        return [pid for pid, born in self.born.items() if process_started(pid) == born]


DRIVER = """
import json, sys, threading, time, psycopg
sys.path.insert(0, {root!r})
from stormctl.worlds.postgres.server import start_private
server = start_private()
busy = psycopg.connect(server.dsn, autocommit=True)
backend = busy.info.backend_pid
threading.Thread(target=busy.execute, args=["select pg_sleep(600)"], daemon=True).start()
time.sleep(0.2)
watcher = server._supervisor.pid
print(json.dumps([str(server.folder), server.pid, watcher, backend]), flush=True)
{then}
"""


@pytest.fixture
def drive() -> Iterator[Callable[..., Driven]]:
    started: list[Driven] = []

    def start(then: str = "time.sleep(600)") -> Driven:
        process = subprocess.Popen(
            [sys.executable, "-c", DRIVER.format(root=str(ROOT), then=then)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert process.stdout is not None
        folder, postmaster, watcher, backend = json.loads(process.stdout.readline())
        pids = [watcher, postmaster, *supervisor.children(postmaster)]
        assert backend in pids
        driven = Driven(
            process, Path(folder), postmaster, watcher, backend, {pid: process_started(pid) for pid in pids}
        )
        assert len(driven.alive()) >= 6
        started.append(driven)
        return driven

    yield start
    for driven in started:
        driven.process.kill()
        driven.process.wait()
        for stream in (driven.process.stdin, driven.process.stdout):
            assert stream is not None
            stream.close()
        for pid in driven.alive():
            with suppress(ProcessLookupError):  # its watcher may be ending it just now
                os.kill(pid, signal.SIGKILL)


def gone_within(driven: Driven, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while driven.alive() and time.monotonic() < deadline:
        time.sleep(0.02)
    return not driven.alive()


@pytest.mark.parametrize("stopped", ["nothing", "server and session"])
def test_a_killed_driver_leaves_no_process_and_no_folder(drive: Callable[..., Driven], stopped: str) -> None:
    driven = drive()
    if stopped != "nothing":
        os.kill(driven.postmaster, signal.SIGSTOP)
        os.kill(driven.backend, signal.SIGSTOP)
    driven.process.kill()
    killed = time.monotonic()
    assert gone_within(driven, 5.0)
    while driven.folder.exists() and time.monotonic() < killed + 5.0:
        time.sleep(0.02)
    assert not driven.folder.exists()


def test_a_driver_that_only_ends_leaves_nothing_either(drive: Callable[..., Driven]) -> None:
    driven = drive(then="time.sleep(0.3)")
    driven.process.wait(10)
    assert gone_within(driven, 5.0)


def test_a_driver_whose_other_children_hold_the_pipe_leaves_nothing_either(drive: Callable[..., Driven]) -> None:
    fork = "import os\nif os.fork() == 0: time.sleep(30); os._exit(0)\ntime.sleep(600)"
    driven = drive(then=fork)
    driven.process.kill()
    try:
        assert gone_within(driven, 5.0)
    finally:
        os.killpg(driven.process.pid, signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent was killed")
def test_a_kill_that_hits_the_supervisor_too_leaves_no_process_and_the_next_start_tidies_up(
    drive: Callable[..., Driven],
) -> None:
    driven = drive()
    os.kill(driven.supervisor, signal.SIGKILL)
    driven.process.kill()
    driven.process.wait()
    assert gone_within(driven, 5.0)
    assert driven.folder.exists()
    with start_private():
        assert not driven.folder.exists()


def test_ctrl_c_in_the_terminal_is_not_the_servers(drive: Callable[..., Driven]) -> None:
    """It goes to all processes of the foreground; the driver needs its server to end in good order."""
    driven = drive(
        then="import signal\nsignal.signal(signal.SIGINT, lambda *_: None)\n"
        "sys.stdin.readline()\nbusy2 = psycopg.connect(server.dsn)\nprint('still', flush=True)\ntime.sleep(600)"
    )
    time.sleep(0.1)
    os.killpg(driven.process.pid, signal.SIGINT)
    assert driven.process.stdin is not None
    assert driven.process.stdout is not None
    driven.process.stdin.write("\n")
    driven.process.stdin.flush()
    assert driven.process.stdout.readline() == "still\n"


def test_a_server_that_dies_by_itself_keeps_its_log_until_it_is_closed(own_postgres: Callable[..., Server]) -> None:
    server = own_postgres()
    assert server.pid is not None
    assert server.folder is not None
    os.kill(server.pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while process_started(server.pid) is not None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert cluster.log_file(server.folder).stat().st_size > 0
    server.close()
    assert not server.folder.exists()


def test_two_at_once_do_not_meet() -> None:
    servers: list[Server] = []
    threads = [threading.Thread(target=lambda: servers.append(start_private())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    try:
        # The threads that started them are over, and they are up all the same.
        assert [value(server.dsn, "select 1") for server in servers] == [1, 1]
        assert servers[0].folder != servers[1].folder
    finally:
        for server in servers:
            server.close()


# -- one that stays


def test_it_is_found_by_whoever_comes_later_and_keeps_its_data(state: Path) -> None:
    with pytest.raises(UsageError, match="none is up"):
        resolve_server(None, start=False)
    with resolve_server(None, lifetime="standing") as server:
        assert (server.ours, server.origin) == (True, "stormctl world up")
        with psycopg.connect(server.dsn) as connection:
            connection.execute("create table kept as select 42 as answer")
    found = resolve_server(None, start=False)  # closing the first did not end it
    assert (found.dsn, found.pid) == (server.dsn, server.pid)
    assert not standing.up().fresh

    was = standing.down()
    assert was.stopped is not None
    assert was.kept == server.folder
    assert standing.find() is None
    assert standing.down().stopped is None

    again = standing.up()
    assert again.fresh
    assert again.record.folder == server.folder
    assert value(again.record.dsn, "select answer from kept") == 42


def test_two_ups_at_once_start_one(state: Path) -> None:
    code = "from stormctl.worlds.postgres import standing; u = standing.up(); print(u.record.pid, u.fresh)"
    racing = [
        subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    said = [process.communicate(timeout=60)[0].split() for process in racing]
    assert len({pid for pid, _ in said}) == 1
    assert sorted(fresh for _, fresh in said) == ["False", "False", "True"]


def test_a_process_id_that_was_given_to_another_is_recognised(state: Path) -> None:
    record = standing.up().record
    assert record.is_running()
    stranger = replace(record, pid=os.getpid())
    assert not stranger.is_running()
    assert not replace(record, space=f"{space()} before the reboot").is_running()

    os.kill(record.pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while record.is_running():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    # A crash leaves the record and the server's own claim; both now name a process of somebody else.
    claim = record.folder / "data" / "postmaster.pid"
    claim.write_text("\n".join([str(os.getpid()), *claim.read_text().splitlines()[1:]]))
    file = next(state.glob("world-*.json"))
    file.write_text(json.dumps(json.loads(file.read_text()) | {"pid": os.getpid()}))
    assert standing.find() is None
    assert standing.down().stopped is None  # and this process is still here to say so

    again = standing.up()
    assert again.fresh
    assert value(again.record.dsn, "select 1") == 1


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"schema": "stormctl.world/99"}', "\x00"])
def test_a_damaged_record_is_no_server(state: Path, damage: str) -> None:
    state.mkdir()
    (state / standing._record_file().name).write_text(damage)
    assert standing.find() is None


def test_a_state_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("STORMCTL_STATE", str(tmp_path / "file" / "state"))
    with pytest.raises(UsageError, match="cannot be written") as refused:
        standing.up()
    assert "STORMCTL_STATE" in refused.value.remedy


def test_a_reset_empties_the_database_unless_somebody_uses_it(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="is up"):
        reset_database()
    record = standing.up().record
    with psycopg.connect(record.dsn, autocommit=True) as connection:
        connection.execute("create table gone ()")
        with pytest.raises(UsageError, match="one session is connected") as refused:
            reset_database()
        assert "--force" in refused.value.remedy
    reset_database(force=True)
    assert value(record.dsn, "select to_regclass('gone') is null") is True

    monkeypatch.setenv("STORMCTL_DSN", record.dsn)  # as `world up` advises
    assert resolve_server(None, start=False).ours
    reset_database(force=True)


def test_nothing_is_dropped_on_a_server_that_up_did_not_start(
    state: Path, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORMCTL_DSN", postgres_dsn)
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute("create table kept ()")
    with pytest.raises(UsageError, match="nothing is ever dropped"):
        reset_database(force=True)
    assert value(postgres_dsn, "select to_regclass('kept') is null") is False


def test_the_schemas_version_is_shown_once_there_is_one(postgres_dsn: str) -> None:
    assert inspect(postgres_dsn).schema is None
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute("create schema stormctl")
        connection.execute("create table stormctl.migrations (version int primary key)")
        connection.execute("insert into stormctl.migrations values (1), (12), (3)")
    assert inspect(postgres_dsn).schema == 12


def test_a_database_is_made_once(postgres_server: Server) -> None:
    assert postgres_server.folder is not None
    for _ in range(2):
        create_database(cluster.dsn_of(postgres_server.folder, "postgres"), "stormctl")
