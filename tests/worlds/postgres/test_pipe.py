"""Several statements in one round trip: what comes back, and what an error or a lost connection leaves."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest

from stormctl.errors import StoreFailure
from stormctl.worlds.postgres import cells
from stormctl.worlds.postgres.links import Links, failure_of
from stormctl.worlds.postgres.pipe import SYNC, Lost, Pipe, Sql
from tests.worlds.postgres.making import query, run

pytestmark = pytest.mark.storm

ECHO = Sql("select $1::text, $2::bigint, $3::bytea")
DIVIDE = Sql("select 1 / $1::bigint")
SLEEP = Sql("select pg_sleep($1::bigint)::text")
KEEP = Sql("insert into kept (a) values ($1::text)")
WRONG = Sql("select nothing from nowhere")
TIME_ZONE = Sql("show timezone")


@asynccontextmanager
async def pipe_of(dsn: str) -> AsyncIterator[Pipe]:
    connection = await psycopg.AsyncConnection.connect(dsn, autocommit=True)
    try:
        yield Pipe(connection.pgconn)
    finally:
        await connection.close()


@pytest.fixture
def kept(postgres_dsn: str) -> str:
    query(postgres_dsn, "create table kept (a text)")
    return postgres_dsn


def test_each_statement_replies_its_rows_in_order(postgres_dsn: str) -> None:
    async def main() -> None:
        async with pipe_of(postgres_dsn) as pipe:
            for _ in range(2):  # prepared the first time, known the second
                found = await pipe.run(
                    [(ECHO, (b"a", cells.int8(-3), None)), SYNC, (ECHO, ("ä".encode(), None, b"\x00\xff"))]
                )
                assert [rows[0] for rows in found] == [
                    (b"a", cells.int8(-3), None),
                    ("ä".encode(), None, b"\x00\xff"),
                ]
            assert not pipe.broken

    run(main())


def test_what_is_too_large_for_a_socket_s_buffer_goes_both_ways(postgres_dsn: str) -> None:
    large = os.urandom(6_000_000)

    async def main() -> None:
        async with pipe_of(postgres_dsn) as pipe:
            found = await pipe.run([(ECHO, (None, None, large))] * 3)
            assert [rows[0][2] == large for rows in found] == [True] * 3

    run(main())


def test_an_error_takes_back_what_belongs_to_it_and_the_pipe_goes_on(kept: str) -> None:
    async def main() -> None:
        async with pipe_of(kept) as pipe:
            with pytest.raises(psycopg.errors.DivisionByZero):
                await pipe.run(
                    [(KEEP, (b"before",)), SYNC, (KEEP, (b"with",)), (DIVIDE, (cells.int8(0),)), (ECHO, (None,) * 3)]
                )
            assert not pipe.broken
            assert await pipe.run([(ECHO, (b"again", None, None))]) == [[(b"again", None, None)]]

    run(main())
    assert query(kept, "select a from kept") == [("before",)]


def test_a_statement_that_cannot_be_prepared_is_an_error_each_time(postgres_dsn: str) -> None:
    async def main() -> None:
        async with pipe_of(postgres_dsn) as pipe:
            for _ in range(2):
                with pytest.raises(psycopg.errors.UndefinedTable):
                    await pipe.run([(WRONG, ()), (ECHO, (None,) * 3)])
            assert len(await pipe.run([(ECHO, (None,) * 3)])) == 1

    run(main())


def test_nothing_in_time_is_a_lost_connection(postgres_dsn: str) -> None:
    async def main() -> None:
        async with pipe_of(postgres_dsn) as pipe:
            with pytest.raises(Lost, match="timeout"):
                await pipe.run([(SLEEP, (cells.int8(20),))], limit_s=0.1)
            assert pipe.broken
            with pytest.raises(Lost):
                await pipe.run([(ECHO, (None,) * 3)])

    run(main())


def test_a_caller_that_is_cancelled_leaves_a_broken_connection(postgres_dsn: str) -> None:
    async def main() -> None:
        async with pipe_of(postgres_dsn) as pipe:
            task = asyncio.create_task(pipe.run([(SLEEP, (cells.int8(20),))]))
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert pipe.broken

    run(main())


def test_a_backend_that_is_killed_is_a_lost_connection_and_the_pool_finds_another(postgres_dsn: str) -> None:
    own_pid = Sql("select pg_backend_pid()")

    async def main() -> None:
        links = Links.shared(postgres_dsn, 60_000)
        try:
            for idle in (True, False):
                async with links.link() as link:
                    pid = cells.as_int((await link.pipe.run([(own_pid, ())]))[0][0][0])
                    waiting = asyncio.create_task(
                        asyncio.sleep(0) if idle else link.pipe.run([(SLEEP, (cells.int8(20),))])
                    )
                    await asyncio.sleep(0.1)
                    await asyncio.to_thread(query, postgres_dsn, "select pg_terminate_backend(%s)", pid)
                    if idle:
                        await asyncio.sleep(0.1)
                    else:
                        with pytest.raises(Lost):
                            await waiting
                assert len(await links.run([(ECHO, (None,) * 3)])) == 1
        finally:
            await links.leave()

    run(main())


def test_the_worlds_of_a_process_share_their_connections_and_the_last_one_closes_them(postgres_dsn: str) -> None:
    async def main() -> None:
        one, other = Links.shared(postgres_dsn, 60_000), Links.shared(postgres_dsn, 60_000)
        assert one is other
        assert (await one.run([(TIME_ZONE, ())]))[0] == [(b"UTC",)]
        await one.leave()
        assert len(await other.run([(ECHO, (None,) * 3)])) == 1
        await other.leave()
        fresh = Links.shared(postgres_dsn, 60_000)
        assert fresh is not one
        await fresh.leave()

    run(main())
    assert query(postgres_dsn, "select count(*) from pg_stat_activity where datname = current_database()") == [(1,)]


def test_more_callers_than_connections_wait_their_turn(postgres_dsn: str) -> None:
    async def main() -> None:
        links = Links.shared(postgres_dsn, 60_000)
        try:
            found = await asyncio.gather(*(links.run([(ECHO, (b"%d" % n, None, None))]) for n in range(60)))
            assert [rows[0][0][0] for rows in found] == [b"%d" % n for n in range(60)]
        finally:
            await links.leave()

    run(main())


@pytest.mark.parametrize("state", ["40P01", "40001", "55P03", "57014", "25P03"])
def test_what_only_an_append_can_meet_is_one_sentence(state: str) -> None:
    error = failure_of(psycopg.errors.lookup(state)("something long"), "host=h")
    assert isinstance(error, StoreFailure)
    assert "host=h" in str(error)
    assert error.remedy
