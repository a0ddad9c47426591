"""Each way in which a PostgreSQL server can fail is one clear sentence and one remedy, on a real server."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg_pool import PoolTimeout

from stormctl.errors import StoreFailure, StormctlError, UsageError
from stormctl.worlds.postgres import inspect as inspecting
from stormctl.worlds.postgres.account import server_account
from stormctl.worlds.postgres.binaries import find_binaries
from stormctl.worlds.postgres.cluster import dsn_of, initialise, make_folder, remove, start
from stormctl.worlds.postgres.dsn import redact
from stormctl.worlds.postgres.failures import explain_failure
from stormctl.worlds.postgres.inspect import inspect
from stormctl.worlds.postgres.server import Server, resolve_server, start_private
from tests.postgres_server import QUICK, needs_postgres

pytestmark = pytest.mark.storm

SECRET = "s3cret-Passw0rd"


@pytest.fixture(scope="module")
def door() -> Iterator[str]:
    """A server that can also be reached over loopback, with a password: the DSN without user and database."""
    needs_postgres()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    with start_private(settings=QUICK | {"listen_addresses": "127.0.0.1", "port": port}) as server:
        assert server.folder is not None
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute(f"create role alice login password '{SECRET}'")
            connection.execute(f"create role one login password '{SECRET}' connection limit 0")
            connection.execute(f"create role reader login password '{SECRET}'")
            connection.execute("alter role reader set default_transaction_read_only = on")
            with (server.folder / "data" / "pg_hba.conf").open("a") as rules:
                rules.write("host all alice,one,reader 127.0.0.1/32 scram-sha-256\n")
            connection.execute("select pg_reload_conf()")
        address = f"127.0.0.1:{port}"
        deadline = time.monotonic() + 10
        while "pg_hba" in str(refusal(f"postgresql://alice:wrong@{address}/stormctl")):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield address


def refusal(dsn: str) -> StormctlError:
    with pytest.raises(StormctlError) as refused:
        inspect(dsn)
    assert SECRET not in f"{refused.value} {refused.value.remedy}"
    return refused.value


def test_a_good_dsn_is_used_as_it_is(door: str) -> None:
    dsn = f"postgresql://alice:{SECRET}@{door}/stormctl"
    with resolve_server(dsn) as server:
        assert (server.dsn, server.shown, server.ours, server.origin) == (
            dsn,
            f"postgresql://alice@{door}/stormctl",
            False,
            "--dsn",
        )
    assert inspect(dsn).sessions == 0


def test_stormctl_dsn_is_second_to_the_option(door: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dsn = f"postgresql://alice:{SECRET}@{door}/stormctl"
    monkeypatch.setenv("STORMCTL_DSN", dsn)
    assert resolve_server(None, start=False).origin == "STORMCTL_DSN"
    with pytest.raises(UsageError, match="--dsn holds"):
        resolve_server("nonsense")


def test_a_wrong_password(door: str) -> None:
    wrong = refusal(f"postgresql://alice:wrong@{door}/stormctl")
    assert str(wrong) == f"the PostgreSQL server postgresql://alice@{door}/stormctl does not accept this password"
    assert isinstance(wrong, UsageError)


def test_no_password(door: str) -> None:
    assert "asks for a password, and none was given" in str(refusal(f"postgresql://alice@{door}/stormctl"))


def test_an_unknown_user_is_not_let_in(door: str) -> None:
    assert "does not let this user in: no pg_hba.conf entry" in str(refusal(f"postgresql://bob:x@{door}/stormctl"))


def test_a_missing_database(door: str) -> None:
    missing = refusal(f"postgresql://alice:{SECRET}@{door}/nowhere")
    assert str(missing) == f"the database of postgresql://alice@{door}/nowhere does not exist"
    assert isinstance(missing, UsageError)


def test_too_many_connections(door: str) -> None:
    crowded = refusal(f"postgresql://one:{SECRET}@{door}/stormctl")
    assert "takes no more connections" in str(crowded)
    assert isinstance(crowded, StoreFailure)


def test_an_unknown_host() -> None:
    unknown = refusal(f"postgresql://alice:{SECRET}@no-such-host.invalid/stormctl")
    assert str(unknown) == "the host of postgresql://alice@no-such-host.invalid/stormctl is unknown"


def test_nobody_listens() -> None:
    with socket.socket() as taken:  # bound and not listening: nobody else can come to listen there
        taken.bind(("127.0.0.1", 0))
        closed = refusal(f"postgresql://alice:{SECRET}@127.0.0.1:{taken.getsockname()[1]}/stormctl")
    assert str(closed).startswith("no PostgreSQL server listens at postgresql://alice@127.0.0.1:")
    assert isinstance(closed, StoreFailure)


def test_a_server_that_never_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        dsn = f"postgresql://alice:{SECRET}@127.0.0.1:{mute.getsockname()[1]}/stormctl"
        with pytest.raises(StoreFailure, match="did not answer in time"):
            inspecting.connect(dsn, seconds=2)


def test_nonsense_as_a_dsn_is_explained_without_repeating_it() -> None:
    for dsn in (f"postgres//alice:{SECRET}@db", f"host=db password={SECRET} nonsense", f"host=db bogus={SECRET}"):
        with pytest.raises(psycopg.Error) as failed:
            psycopg.connect(dsn)
        explained = explain_failure(failed.value, redact(dsn))
        assert str(explained) == "the DSN is not one that PostgreSQL can read"
        assert SECRET not in explained.remedy


def test_a_read_only_user(door: str) -> None:
    refused = refusal(f"postgresql://reader:{SECRET}@{door}/stormctl")
    assert str(refused) == f"the PostgreSQL server postgresql://reader@{door}/stormctl is read-only"


def test_a_database_that_turns_read_only_later(postgres_dsn: str) -> None:
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute("set transaction read only")
        with pytest.raises(psycopg.Error) as failed:
            connection.execute("create table x ()")
    assert str(explain_failure(failed.value, "X")) == "the PostgreSQL server X is read-only"


def test_a_standby_is_read_only() -> None:
    needs_postgres()
    account = server_account()
    folder = make_folder(account, {})
    try:
        binaries = initialise(find_binaries(account), account, folder, settings=QUICK)
        signal_file = folder / "data" / "standby.signal"
        signal_file.touch()
        account.give(signal_file)
        process = start(binaries, account, folder, bound=True)
        try:
            assert "is read-only" in str(refusal(dsn_of(folder, "postgres")))
        finally:
            process.send_signal(signal.SIGQUIT)
            process.wait(10)
    finally:
        remove(folder)
    assert not folder.exists()


def test_a_server_that_is_too_old(postgres_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspecting, "MINIMUM_MAJOR", 99)
    old = refusal(postgres_dsn)
    assert isinstance(old, UsageError)
    assert "is version" in str(old)


def test_a_user_without_rights(door: str) -> None:
    dsn = f"postgresql://alice:{SECRET}@{door}/stormctl"
    with psycopg.connect(dsn) as connection, pytest.raises(psycopg.Error) as failed:
        connection.execute("create schema stormctl")
    explained = explain_failure(failed.value, redact(dsn))
    assert "may not do that: permission denied for database stormctl" in str(explained)


def test_a_foreign_database_without_our_schema_asks_for_create_schema(door: str) -> None:
    dsn = f"postgresql://alice:{SECRET}@{door}/stormctl"
    with psycopg.connect(dsn) as connection, pytest.raises(psycopg.Error) as failed:
        connection.execute("select * from stormctl.workflow_events")
    assert "--create-schema" in explain_failure(failed.value, redact(dsn)).remedy


def test_a_server_of_ours_that_lost_the_schema_does_not_ask_for_it(postgres_dsn: str) -> None:
    with psycopg.connect(postgres_dsn) as connection, pytest.raises(psycopg.Error) as failed:
        connection.execute("select * from stormctl.workflow_events")
    explained = explain_failure(failed.value, redact(postgres_dsn))
    assert isinstance(explained, StoreFailure)
    assert "--create-schema" not in explained.remedy


def test_a_server_that_is_killed_went_away_and_then_nobody_listens(own_postgres: Callable[..., Server]) -> None:
    server = own_postgres()
    assert server.pid is not None

    async def lose() -> BaseException:
        connection = await psycopg.AsyncConnection.connect(server.dsn)
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        try:
            async with connection:
                for _ in range(500):
                    await connection.execute("select 1")
                    await asyncio.sleep(0.01)
        except psycopg.Error as error:
            return error
        raise AssertionError("the server survived")

    explained = explain_failure(asyncio.run(lose()), server.shown)
    assert isinstance(explained, StoreFailure)
    assert str(explained) == f"the PostgreSQL server {server.shown} went away"
    assert str(refusal(server.dsn)) == f"no PostgreSQL server listens at {server.shown}"


def test_a_full_disk(small_disk_postgres: Callable[..., Server]) -> None:
    server = small_disk_postgres(megabytes=64)
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute("create table filling (x text)")
        with pytest.raises(psycopg.Error) as failed:
            connection.execute("insert into filling select repeat(md5(n::text), 30) from generate_series(1, 100000) n")
    explained = explain_failure(failed.value, server.shown)
    assert isinstance(explained, StoreFailure)
    assert "disk" in str(explained)
    assert "is full" in str(explained)
    assert "Free space" in explained.remedy


def test_a_server_that_fell_for_want_of_room_is_not_told_as_one_that_nobody_started(
    small_disk_postgres: Callable[..., Server],
) -> None:
    server = small_disk_postgres(megabytes=64)
    assert server.pid is not None
    assert server.folder is not None
    os.kill(server.pid, signal.SIGKILL)
    stuffing = server.folder / "stuffing"
    try:
        with pytest.raises(OSError, match="No space left"):
            stuffing.write_bytes(bytes(64 << 20))
        deadline = time.monotonic() + 10
        while "is full" not in str(refusal(server.dsn)):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        stuffing.unlink()


# -- without a server


def test_an_error_of_ours_stays_what_it_is() -> None:
    ours = UsageError("a", remedy="b")
    assert explain_failure(ours, "X") is ours


def test_a_pool_that_waited_in_vain() -> None:
    explained = explain_failure(PoolTimeout("couldn't get a connection after 30.00 sec"), "X")
    assert str(explained) == "the PostgreSQL server X did not answer in time"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (psycopg.errors.DiskFull, "the disk of the PostgreSQL server X is full"),
        (psycopg.errors.TooManyConnections, "takes no more connections"),
        (psycopg.errors.CannotConnectNow, "starting, stopping or recovering"),
        (psycopg.errors.AdminShutdown, "went away"),
        (psycopg.errors.CrashShutdown, "went away"),
        (psycopg.errors.InvalidPassword, "does not accept this password"),
        (psycopg.errors.NumericValueOutOfRange, "answered with error 22003: boom"),
    ],
)
def test_a_state_of_the_server_says_it_in_any_language(kind: type[psycopg.Error], words: str) -> None:
    assert words in str(explain_failure(kind("boom"), "X"))


def test_an_unknown_failure_still_says_what_is_known() -> None:
    explained = explain_failure(
        psycopg.OperationalError("connection failed: FATAL:  the moon is full\nHINT: wait"), "X"
    )
    assert str(explained) == "the PostgreSQL server X cannot be used: the moon is full"
    assert "no reason" in str(explain_failure(psycopg.OperationalError(), "X"))


def test_a_socket_that_is_not_ours_is_no_reason_to_look_at_the_disk(tmp_path: Path) -> None:
    shown = f"postgresql://a@/b?host={tmp_path}/socket"
    assert "no PostgreSQL server listens" in str(explain_failure(psycopg.OperationalError("Connection refused"), shown))
