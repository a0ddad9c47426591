"""Slots: dense whoever writes, except where a condition is there to show a hole."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from stormctl.worlds import Appended, Point, Snapshot
from tests.worlds.making import NOW, RUN, STEP, STEP_2, corr, want
from tests.worlds.postgres.making import condition, new_space, query, run, world_of
from tests.worlds.postgres.test_transactions import killed_at
from tests.worlds.stores import Stop

pytestmark = pytest.mark.storm

WRITERS, EACH = 4, 15


@pytest.mark.parametrize("name", ["slots-sql", "slots-link", "in-band", "seq-final", "slots-reserve"])
def test_four_writers_leave_no_hole_and_no_duplicate(dsn: str, name: str) -> None:
    space = new_space()

    async def writer(number: int) -> list[int | None]:
        async with world_of(dsn, name, space) as world:
            landed = []
            for index in range(EACH):
                entity = corr("step", number * EACH + index)
                answer = await world.append(want("step_created", entity, name="s", payload=1, writer=f"w{number}"))
                assert isinstance(answer, Appended)
                landed.append(answer.events[0].position)
            return landed

    async def main() -> None:
        async with world_of(dsn, name, space) as world:
            await world.append(want("run_created", payload=1, name="flow"))
            landed = await asyncio.gather(*(writer(number) for number in range(WRITERS)))
            for each in landed:
                assert each == sorted(each, key=lambda place: place or 0)
            positions = [event.position for event in (await world.load(RUN)).events]
            assert positions == list(range(1, WRITERS * EACH + 2))

    run(main())


def test_the_loser_of_a_slot_waits_for_the_winner_and_is_told_what_it_skipped(dsn: str) -> None:
    stop = Stop(Point.PUBLISH, writer="slow")
    space = new_space()

    async def main() -> None:
        async with world_of(dsn, "slots-sql", space, on_point=stop) as slow, world_of(dsn, "slots-sql", space) as quick:
            await slow.append(want("run_created", payload=1, name="flow"))
            task = asyncio.create_task(
                slow.append(want("step_created", STEP, name="s", payload=1, writer="slow", count=1))
            )
            assert await stop.reached(task)
            assert isinstance(await quick.append(want("step_created", STEP_2, name="s", payload=1)), Appended)
            stop.go_on()
            answer = await task
            assert isinstance(answer, Appended)
            assert answer.events[0].position == 3
            assert [event.correlation_id for event in answer.skipped] == [STEP_2]

    run(main())


def test_a_slot_that_was_reserved_by_a_writer_that_died_stays_empty(dsn: str) -> None:
    space = new_space()
    killed_at(dsn, "slots-reserve", space, Point.PUBLISH)

    async def main() -> None:
        async with world_of(dsn, "slots-reserve", space) as world:
            await world.append(want("step_created", STEP_2, name="s", payload=1))
            assert [event.position for event in (await world.load(RUN)).events] == [1, 2, 3, 5]

    run(main())


@pytest.mark.parametrize(("name", "expected"), [("slots-stage-shared", [1, 2, 3, 5]), ("slots-sql", [1, 2, 3, 4])])
def test_a_staged_event_of_a_writer_that_died_blocks_its_slot_only_where_the_name_is_shared(
    dsn: str, name: str, expected: list[int]
) -> None:
    space = new_space()
    killed_at(dsn, name, space, Point.PUBLISH)

    async def main() -> None:
        async with world_of(dsn, name, space) as world:
            await world.append(want("step_created", STEP_2, name="s", payload=1))
            assert [event.position for event in (await world.load(RUN)).events] == expected

    run(main())


def test_a_run_that_was_numbered_by_ulids_stays_so(dsn: str) -> None:
    space = new_space()

    async def main() -> None:
        async with world_of(dsn, "main", space) as world:
            await world.append(want("run_created", payload=1, name="flow"))
        async with world_of(dsn, "slots-sql", space) as world:
            answer = await world.append(want("step_created", STEP, name="s", payload=1))
            assert isinstance(answer, Appended)
            assert answer.events[0].position is None

    run(main())


def test_a_run_from_before_seq_is_taken_up_behind_its_last_event(dsn: str) -> None:
    space = new_space()

    async def main() -> None:
        async with world_of(dsn, "main", space) as world:
            await world.append(want("run_created", payload=1, name="flow"))
            await world.append(want("run_started"))
            await world.append(want("step_created", STEP, name="s", payload=1))
        async with world_of(dsn, "seq-final", space) as world:
            await world.append(want("step_started", STEP))
            page = await world.load(RUN)
            assert [event.position for event in page.events] == [None, None, None, 4]
            old = page.events[1]
            behind = await world.load(RUN, old.event_id)
            assert [event.type for event in behind.events] == ["step_created", "step_started"]
            assert (await world.load(RUN, page.cursor)).events == ()

    run(main())


def test_rows_whose_mark_nobody_recorded_count_as_fenced_when_in_doubt(dsn: str) -> None:
    space = new_space()

    async def main() -> None:
        async with world_of(dsn, "seq-final", space) as world:
            await world.append(want("run_created", payload=1, name="flow"))
            await world.append(want("step_created", STEP, name="s", payload=1, count=1, snapshot_writer="A"))
            await world.append(want("step_started", STEP))
            query(dsn, "update stormctl.workflow_events set fenced = null where space = %s", space)
            query(
                dsn,
                "update stormctl.workflow_runs set next_event_seq = 0, last_event_id = null where space = %s",
                space,
            )
            # The start follows its create at once: it may have been a lazy one, so it counts too.
            behind = await world.append(want("step_created", STEP_2, name="s", payload=1, count=2, snapshot_writer="B"))
            assert not isinstance(behind, Appended)
            abreast = await world.append(
                want("step_created", STEP_2, name="s", payload=1, count=3, snapshot_writer="B")
            )
            assert isinstance(abreast, Appended)
            assert abreast.events[0].position == 4

    run(main())


def test_a_guard_counts_what_it_should(dsn: str) -> None:
    async def main() -> None:
        async with world_of(dsn, condition("guard")) as world:
            await world.append(want("run_created", payload=1, name="flow"))
            await world.append(want("step_created", STEP, name="s", payload=1))
            create = want("step_created", STEP_2, name="s", payload=1)
            short = replace(create, snapshot=Snapshot(1, None, "w", watermark=NOW * 2))
            assert "1 of the 2 events" in str(await world.append(short))
            enough = replace(create, snapshot=Snapshot(2, None, "w", watermark=NOW * 2))
            assert isinstance(await world.append(enough), Appended)
            await world.append(want("step_completed", STEP, payload=1))
            stale = replace(create, correlation_id=corr("step", 9), snapshot=Snapshot(9, None, "w", watermark=NOW))
            assert "an outside event is" in str(await world.append(stale))

    run(main())
