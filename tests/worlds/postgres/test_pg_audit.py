"""What is written down about every append, beside the log."""

from __future__ import annotations

import asyncio

import pytest

from stormctl.errors import StoreFailure
from stormctl.worlds import Point
from stormctl.worlds.postgres import audit
from tests.worlds.making import RUN, STEP, STEP_2, corr, want
from tests.worlds.postgres.making import new_space, query, run, world_of
from tests.worlds.stores import Stop

pytestmark = pytest.mark.storm


@pytest.mark.parametrize("name", ["seq-final", "main"])
def test_every_attempt_leaves_its_record(dsn: str, name: str) -> None:
    async def main() -> None:
        async with world_of(dsn, name) as world:
            await world.append(want("run_created", payload=1, name="flow", writer="driver"))
            await world.append(want("step_started", STEP, name="s", payload=1, lazy=True, writer="A", count=1))
            await world.append(want("step_created", STEP, name="s", payload=1, writer="B", count=1))
            records = await world.audit_of(RUN)
            assert [(one.writer, one.type, one.admitted, one.snapshot) for one in records] == [
                ("driver", "run_created", True, None),
                ("A", "step_created", True, 1),
                ("A", "step_started", True, 1),
                ("B", "step_created", False, 1),
            ]
            landed = [event.event_id for event in (await world.load(RUN)).events]
            assert [one.event_id for one in records if one.admitted] == landed
            for one in records[:3]:
                assert 0 < one.entered < one.minted < one.published < one.returned
            assert "exists already" in records[3].reason
            assert records[3].published == 0

    run(main())


def test_it_is_written_within_a_moment_and_by_all_processes(dsn: str) -> None:
    async def main() -> None:
        space = new_space()
        async with world_of(dsn, "seq-final", space) as one, world_of(dsn, "seq-final", space) as other:
            await one.append(want("run_created", payload=1, name="flow", writer="one"))
            await asyncio.sleep(audit.EVERY_S * 6)
            assert query(dsn, "select writer from stormctl.audit where space = %s", space) == [("one",)]
            await other.append(want("run_started", writer="other"))
            await asyncio.sleep(audit.EVERY_S * 6)
            assert [record.writer for record in await one.audit_of(RUN)] == ["one", "other"]

    run(main())


def test_closing_writes_what_still_waits(dsn: str) -> None:
    async def main() -> str:
        async with world_of(dsn, "seq-final") as world:
            await world.append(want("run_created", payload=1, name="flow"))
            return world.space

    assert query(dsn, "select count(*) from stormctl.audit where space = %s", run(main())) == [(1,)]


def test_stamps_of_two_machines_are_not_compared(dsn: str) -> None:
    async def main() -> None:
        async with world_of(dsn, "seq-final") as world:
            for request in (want("run_created", payload=1, name="flow"), want("run_started")):
                await world.append(request)
            await world.append(want("step_created", STEP, name="s", payload=1))
            await world.audit_of(RUN)
            query(
                dsn,
                "update stormctl.audit set machine = 'other' where space = %s and type = 'run_started'",
                world.space,
            )
            assert [record.published > 0 for record in await world.audit_of(RUN)] == [True, False, True]

    run(main())


def test_under_the_lock_the_stamps_are_in_the_order_of_the_log(dsn: str) -> None:
    async def main() -> None:
        space = new_space()
        async with world_of(dsn, "seq-final", space) as one, world_of(dsn, "seq-final", space) as other:
            await one.append(want("run_created", payload=1, name="flow"))
            await asyncio.gather(
                *(
                    world.append(want("step_created", corr("step", 20 + number), name="s", payload=1))
                    for number, world in enumerate([one, other] * 15)
                )
            )
            await other.audit_of(RUN)
            records = sorted(await one.audit_of(RUN), key=lambda record: record.position or 0)
            stamps = [record.published for record in records]
            assert len(stamps) == 31
            assert stamps == sorted(stamps)

    run(main())


def test_an_audit_that_cannot_be_written_waits_and_is_told_of_at_the_end(postgres_dsn: str) -> None:
    from tests.worlds.postgres.making import prepared

    prepared(postgres_dsn)

    async def main() -> None:
        async with world_of(postgres_dsn, "seq-final") as world:
            await world.append(want("run_created", payload=1, name="flow"))
            query(postgres_dsn, "alter table stormctl.audit rename to gone")
            with pytest.raises(StoreFailure):
                await world.audit_of(RUN)
            query(postgres_dsn, "alter table stormctl.gone rename to audit")
            assert len(await world.audit_of(RUN)) == 1
            query(postgres_dsn, "alter table stormctl.audit rename to gone")
            await world.append(want("run_started"))
            with pytest.raises(StoreFailure):
                await world.close()

    run(main())


def test_too_many_records_make_appends_wait_for_the_database(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "MOST", 2)
    monkeypatch.setattr(audit, "EVERY_S", 60.0)

    async def main() -> None:
        async with world_of(dsn, "seq-final") as world:
            for request in (want("run_created", payload=1, name="flow"), want("run_started"), want("run_completed")):
                await world.append(request)
            assert query(dsn, "select count(*) from stormctl.audit where space = %s", world.space) == [(3,)]

    run(main())


def test_an_append_whose_caller_is_gone_leaves_a_record(dsn: str) -> None:
    async def main() -> None:
        stop = Stop(Point.PUBLISH, writer="gone")
        async with world_of(dsn, "seq-final", on_point=stop) as world:
            await world.append(want("run_created", payload=1, name="flow"))
            task = asyncio.create_task(world.append(want("step_created", STEP_2, name="s", payload=1, writer="gone")))
            assert await stop.reached(task)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            last = (await world.audit_of(RUN))[-1]
            assert (last.writer, last.admitted, last.reason) == ("gone", False, "failed: CancelledError")

    run(main())
