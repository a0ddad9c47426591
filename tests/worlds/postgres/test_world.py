"""Opening, reading and closing a store in a database."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from stormctl.errors import StoreBusy, StoreFailure, StoreForeign, UsageError
from stormctl.worlds import Appended, Condition, open_world
from stormctl.worlds.condition import Reads
from stormctl.worlds.postgres import reads as reading
from stormctl.worlds.postgres import spaces
from tests.worlds.making import HOOK, OTHER_RUN, RUN, STEP, STEP_2, want
from tests.worlds.postgres.making import condition, new_space, query, run, world_of

pytestmark = pytest.mark.storm


def opened(dsn: str | None, space: str, *, name: str | Condition = "seq-final", role: str = "driver"):  # type: ignore[no-untyped-def]
    return open_world("postgres", None, name, dsn=dsn, space=space, role=role, storage_scale=0.0)


def test_a_driver_makes_the_store_and_a_worker_joins_it(dsn: str) -> None:
    space = new_space()

    async def main() -> None:
        driver = opened(dsn, space)
        worker = opened(dsn, space, role="worker")
        try:
            await driver.append(want("run_created", payload={"a": 1}, name="flow"))
            assert isinstance(await worker.append(want("run_started")), Appended)
            row = await worker.run(RUN)
            assert row is not None
            assert (row.status, row.workload, row.input) == ("running", "flow", {"a": 1})
            assert await worker.run(OTHER_RUN) is None
        finally:
            await worker.close()
            await driver.close()
            await driver.close()  # harmless

    run(main())
    assert spaces.driver_of(dsn, space) is None
    assert spaces.recorded_condition(dsn, space) == "seq-final"


def test_one_driver_at_a_time(dsn: str) -> None:
    space = new_space()

    async def main() -> None:
        first = opened(dsn, space)
        try:
            with pytest.raises(StoreBusy, match=f"pid {os.getpid()} on "):
                opened(dsn, space)
            found = spaces.driver_of(dsn, space)
            assert found is not None
            assert found["pid"] == os.getpid()
        finally:
            await first.append(want("run_created"))
            await first.close()
        second = opened(dsn, space)
        assert second.notes == ()
        await second.append(want("run_started"))
        await second.close()

    run(main())


@pytest.mark.parametrize("silent_s", [59, 61])
def test_a_driver_on_another_host_is_taken_for_dead_after_a_minute(dsn: str, silent_s: int) -> None:
    space = new_space()
    query(
        dsn,
        "insert into stormctl.spaces (space, condition, driver, heartbeat_at) "
        "values (%s, 'seq-final', %s::jsonb, now() - %s * interval '1 second')",
        space,
        json.dumps({"pid": 7, "host": "elsewhere", "nonce": "theirs"}),
        silent_s,
    )

    async def main() -> None:
        if silent_s < 60:
            with pytest.raises(StoreBusy, match="pid 7 on elsewhere"):
                opened(dsn, space)
            return
        world = opened(dsn, space)
        assert "pid 7 on elsewhere" in world.notes[0]
        await world.append(want("run_created"))
        await world.close()

    run(main())


def test_what_cannot_be_opened_is_said(dsn: str, postgres_dsn: str) -> None:
    space = new_space()
    with pytest.raises(UsageError, match="needs a server"):
        opened(None, space)
    with pytest.raises(UsageError) as raised:
        opened(postgres_dsn, space)
    assert "--create-schema" in raised.value.remedy
    with pytest.raises(StoreForeign, match="holds no store"):
        opened(dsn, space, role="worker")
    spaces.take(dsn, space, "main")
    with pytest.raises(UsageError, match="made under condition main"):
        opened(dsn, space)
    with pytest.raises(UsageError, match="made under condition main"):
        opened(dsn, space, role="worker")


def test_a_wrong_server_is_one_sentence() -> None:
    with pytest.raises(StoreFailure) as raised:
        opened("host=127.0.0.1 port=1 dbname=x password=secret", new_space())
    assert "secret" not in str(raised.value)


def test_stores_in_one_database_know_nothing_of_each_other(dsn: str) -> None:
    async def main() -> None:
        async with world_of(dsn, "seq-final") as one, world_of(dsn, "main") as other:
            for world in (one, other):
                await world.append(want("run_created", payload=1, name="flow"))
                answer = await world.append(want("hook_created", HOOK, token="t"))
                assert isinstance(answer, Appended)
                assert answer.events[0].type == "hook_created"
            await one.append(want("hook_disposed", HOOK, token="t"))
            assert await one.hook("t") is None
            found = await other.hook("t")
            assert found is not None
            assert (found.run_id, found.correlation_id) == (RUN, HOOK)
            assert len((await other.load(RUN)).events) == 2
            assert len(await other.audit_of(RUN)) == 2

    run(main())


@pytest.mark.parametrize("name", ["seq-final", "main", "slots-sql"])
def test_a_reader_follows_the_log_by_cursor(dsn: str, name: str) -> None:
    async def main() -> None:
        async with world_of(dsn, name) as world:
            assert (await world.load(RUN)).events == ()
            await world.append(want("run_created", payload=1, name="flow"))
            first = await world.load(RUN)
            assert (await world.load(RUN, first.cursor)) == replace(first, events=())
            await world.append(want("run_started"))
            await world.append(want("step_created", STEP, name="s", payload=1))
            rest = await world.load(RUN, first.cursor)
            assert [event.type for event in rest.events] == ["run_started", "step_created"]
            for cursor in ("nonsense!", "12x", "9" * 40):
                with pytest.raises(UsageError, match="cursor"):
                    await world.load(RUN, cursor)

    run(main())


@pytest.mark.parametrize("name", ["seq-final", "main"])
def test_a_log_longer_than_one_statement_brings_comes_in_several(
    dsn: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with world_of(dsn, name) as world:
            await world.append(want("run_created", payload=1, name="flow"))
            for _ in range(3):
                await world.append(want("hook_created", HOOK, token="t"))
                await world.append(want("hook_received", HOOK, payload=1))
            whole = await world.load(RUN)
            for most in (1, 2, 3, len(whole.events)):
                monkeypatch.setattr(reading, "MOST", most)
                assert await world.load(RUN) == whole

    run(main())


def test_under_lagging_reads_what_is_young_is_not_shown_yet(dsn: str) -> None:
    now = [1_764_515_687_309]
    found = condition("seq-final", reads=Reads.LAGGING, lag_ms=100)

    async def main() -> None:
        async with world_of(dsn, found, clock=lambda: now[0]) as world:
            await world.append(want("run_created", payload=1, name="flow"))
            now[0] += 200
            await world.append(want("run_started"))
            page = await world.load(RUN)
            assert [event.type for event in page.events] == ["run_created"]
            now[0] += 200
            assert [event.type for event in (await world.load(RUN, page.cursor)).events] == ["run_started"]

    run(main())


def test_under_the_4_x_condition_the_server_stamps_the_events(dsn: str) -> None:
    async def main() -> None:
        for name, stamped in (("main", True), ("seq-final", False), ("slots-sql", False)):
            async with world_of(dsn, name, clock=lambda: 1_000_000_000_000) as world:
                await world.append(want("run_created", payload=1, name="flow"))
                (event,) = (await world.load(RUN)).events
                assert event.created_at is not None
                assert (event.created_at > 1_000_000_000_001) is stamped, name

    run(main())


def test_what_the_server_cannot_store_is_one_sentence(dsn: str) -> None:
    async def main() -> None:
        for name in ("seq-final", "main"):
            async with world_of(dsn, name) as world:
                await world.append(want("run_created", payload=1, name="flow"))
                for bad in ("nul\x00", "half \ud800"):
                    with pytest.raises(UsageError, match="PostgreSQL cannot keep"):
                        await world.append(want("hook_created", HOOK, token=bad))
                    with pytest.raises(UsageError, match="PostgreSQL cannot keep"):
                        await world.append(want("step_created", STEP + bad, name="s"))
                with pytest.raises(UsageError):
                    await world.append(want("step_created", STEP, name="s", payload="half \ud800"))
                with pytest.raises(StoreFailure):
                    await world.append(want("attr_set", data={"changes": [{"key": "k", "value": "nul\x00"}]}))
                with pytest.raises(UsageError, match="JSON"):
                    await world.append(want("step_created", STEP, name="s", payload=object()))
                assert isinstance(await world.append(want("step_created", STEP_2, name="s", payload=1)), Appended)

    run(main())


def test_a_world_that_was_closed_says_so(dsn: str) -> None:
    async def main() -> None:
        async with world_of(dsn, "seq-final") as world:
            await world.append(want("run_created"))
        with pytest.raises(StoreFailure, match="closed"):
            await world.append(want("run_started"))

    run(main())
