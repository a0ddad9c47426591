"""A server that goes away within an append: what was acknowledged is in the log, and nothing else is claimed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable

import psycopg
import pytest

from stormctl.errors import StoreFailure
from stormctl.worlds import Appended, AppendRequest, Point
from stormctl.worlds.postgres import statements as sql
from stormctl.worlds.postgres.pipe import Call, Lost, Pipe
from stormctl.worlds.postgres.server import Server
from tests.worlds.making import RUN, STEP, STEP_2, corr, want
from tests.worlds.postgres.making import prepared, query, run, world_of

pytestmark = pytest.mark.storm

CUT = (
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() "
    "and pid <> pg_backend_pid() and backend_type = 'client backend'"
)
ANY_BACKEND = "select pid from pg_stat_activity where pid <> pg_backend_pid() and datname is not null"


@pytest.mark.parametrize("name", ["seq-final", "main", "slots-sql", "in-band"])
@pytest.mark.parametrize("point", [Point.VALIDATE, Point.EFFECTS, Point.PUBLISH, Point.UNLOCK])
def test_connections_cut_at_a_point_never_lose_what_was_acknowledged(
    postgres_dsn: str, name: str, point: Point
) -> None:
    dsn = prepared(postgres_dsn)
    cut = False

    async def on_point(at: Point, request: AppendRequest) -> None:
        nonlocal cut
        if at is point and request.type == "step_created" and not cut:
            cut = True
            await asyncio.to_thread(query, dsn, CUT)
            await asyncio.sleep(0.1)  # until the farewells have arrived

    async def main() -> None:
        async with world_of(dsn, name, on_point=on_point) as world:
            await world.append(want("run_created", payload=1, name="flow"))
            acknowledged = []
            for entity in (STEP, STEP_2):
                try:
                    answer = await world.append(want("step_created", entity, name="s", payload=1))
                except StoreFailure:
                    continue
                if isinstance(answer, Appended):
                    acknowledged.append(entity)
            log = [event.correlation_id for event in (await world.load(RUN)).events]
            assert cut
            assert STEP_2 in acknowledged
            assert set(acknowledged) <= set(log)

    run(main())


@pytest.mark.parametrize("landed", [True, False])
@pytest.mark.parametrize("name", ["seq-final", "main"])
def test_after_a_commit_whose_answer_was_lost_the_store_looks(
    dsn: str, name: str, landed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection breaks while the commit (or the lone insert) is under way, and the server did or did not do it."""
    run_once = Pipe.run
    broke = []

    async def breaking(pipe: Pipe, calls: list[Call], *more: float) -> object:
        texts = [call[0] for call in calls]
        is_it = sql.COMMIT in texts if name == "seq-final" else sql.INSERT_FREE_EVENT in texts
        if is_it and not broke and any(b"step_created" in values for _, values in calls):
            broke.append(1)
            if landed:
                await run_once(pipe, calls, *more)
            pipe.close()
            raise Lost("server closed the connection unexpectedly")
        return await run_once(pipe, calls, *more)

    async def main() -> None:
        async with world_of(dsn, name) as world:
            await world.append(want("run_created", payload=1, name="flow"))
            monkeypatch.setattr(Pipe, "run", breaking)
            create = want("step_created", STEP, name="s", payload=1)
            if landed:
                assert isinstance(await world.append(create), Appended)
            else:
                with pytest.raises(StoreFailure, match="went away"):
                    await world.append(create)
            monkeypatch.setattr(Pipe, "run", run_once)
            assert broke
            log = [event.correlation_id for event in (await world.load(RUN)).events]
            assert log == ([None, STEP] if landed else [None])
            assert isinstance(await world.append(want("step_created", STEP_2, name="s", payload=1)), Appended)

    run(main())


@pytest.mark.parametrize("name", ["seq-final", "main"])
def test_a_server_that_is_killed_is_one_sentence_and_what_landed_stays(
    own_postgres: Callable[..., Server], name: str
) -> None:
    server = own_postgres()
    dsn = prepared(server.dsn)

    async def main() -> None:
        async with world_of(dsn, name, audit=False) as world:
            await world.append(want("run_created", payload=1, name="flow"))
            landed: list[str] = []
            dead = False

            async def writer(number: int) -> None:
                for index in range(1000):
                    if dead:
                        return
                    entity = corr("step", number * 1000 + index)
                    if isinstance(await world.append(want("step_created", entity, name="s", payload=1)), Appended):
                        landed.append(entity)

            writers = [asyncio.create_task(writer(number)) for number in range(3)]
            while len(landed) < 20:
                await asyncio.sleep(0.01)
            for _ in range(40):
                with contextlib.suppress(psycopg.OperationalError):  # it is still recovering
                    for (pid,) in query(dsn, ANY_BACKEND)[:1]:
                        os.kill(pid, signal.SIGKILL)  # the whole server goes down, and recovers
                await asyncio.wait(writers, timeout=0.3, return_when=asyncio.FIRST_COMPLETED)
                if any(writer.done() for writer in writers):
                    break
            dead = True
            answers = await asyncio.gather(*writers, return_exceptions=True)
            assert any(isinstance(answer, StoreFailure) for answer in answers)
            for answer in answers:  # who was between two appends has noticed nothing
                assert answer is None or isinstance(answer, StoreFailure)
                assert "\n" not in str(answer)
            for _ in range(100):
                try:
                    log = {event.correlation_id for event in (await world.load(RUN)).events}
                    break
                except StoreFailure:
                    await asyncio.sleep(0.1)
            assert set(landed) <= log
            assert isinstance(
                await world.append(want("step_created", corr("step", 9999), name="s", payload=1)), Appended
            )

    run(main())
