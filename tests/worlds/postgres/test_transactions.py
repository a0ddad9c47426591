"""What a transaction keeps together and what autocommit does not, with writers that are refused, stopped or killed."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from stormctl.errors import StoreFailure
from stormctl.worlds import Appended, AppendRequest, Condition, Point, Refusal, Refused
from tests.worlds.making import HOOK, HOOK_2, OTHER_RUN, RUN, STEP, STEP_2, want
from tests.worlds.postgres.making import condition, new_space, query, run, world_of
from tests.worlds.stores import Stop

pytestmark = pytest.mark.storm

WRITER = """
import asyncio, os, signal, sys
from stormctl.worlds import Point
from tests.worlds.making import STEP, want
from tests.worlds.postgres.making import world_of

async def on_point(at, request):
    if at is Point(sys.argv[4]) and request.type == "step_started":
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    async with world_of(sys.argv[1], sys.argv[2], sys.argv[3], on_point=on_point) as world:
        for request in (want("run_created", payload=1, name="flow"), want("run_started"),
                        want("step_created", STEP, name="s", payload=1), want("step_started", STEP, lazy=LAZY)):
            await world.append(request)

asyncio.run(main())
"""


def killed_at(dsn: str, name: str, space: str, point: Point, script: str = WRITER) -> None:
    """A writer process that kills itself when its start of a step reaches the point."""
    code = script.replace("lazy=LAZY", "lazy=False")
    done = subprocess.run([sys.executable, "-c", code, dsn, name, space, point], timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize("point", [Point.EFFECTS, Point.ALLOCATE, Point.PUBLISH, Point.COUNTER, Point.UNLOCK])
def test_a_writer_killed_under_the_lock_leaves_nothing_and_frees_the_lock(dsn: str, point: Point) -> None:
    space = new_space()
    killed_at(dsn, "seq-final", space, point)

    async def main() -> None:
        async with world_of(dsn, "seq-final", space) as world:
            assert [event.position for event in (await world.load(RUN)).events] == [1, 2, 3]
            landed = await world.append(want("step_started", STEP))
            assert isinstance(landed, Appended)
            assert landed.events[0].position == 4

    run(main())
    assert query(dsn, "select attempt from stormctl.workflow_steps where space = %s", space) == [(1,)]


def test_a_writer_killed_between_two_autocommits_leaves_a_row_without_its_event(dsn: str) -> None:
    space = new_space()
    script = WRITER.replace('"step_started"', '"step_created"')
    killed_at(dsn, "main", space, Point.PUBLISH, script)
    assert query(dsn, "select step_id, status::text from stormctl.workflow_steps where space = %s", space) == [
        (STEP, "pending")
    ]

    async def main() -> None:
        async with world_of(dsn, "main", space) as world:
            assert [event.type for event in (await world.load(RUN)).events] == ["run_created", "run_started"]
            refused = await world.append(want("step_created", STEP, name="s", payload=1))
            assert isinstance(refused, Refused)
            assert refused.refusal is Refusal.CONFLICT  # stranded, as upstream

    run(main())


def test_a_type_that_is_atomic_leaves_neither(dsn: str) -> None:
    space = new_space()
    killed_at(dsn, "main", space, Point.PUBLISH)  # dies in step_started, which 4.3.7 puts into one transaction
    assert query(dsn, "select status::text, attempt from stormctl.workflow_steps where space = %s", space) == [
        ("pending", 0)
    ]


@pytest.mark.parametrize("reads_ahead", [True, False])
def test_a_late_refusal_takes_its_effects_back(dsn: str, reads_ahead: bool) -> None:
    async def main() -> None:
        async with world_of(dsn, "seq-buggy-admit", reads_ahead=reads_ahead) as world:
            await world.append(want("run_created", payload=1, name="flow"))
            await world.append(want("run_started"))
            await world.append(want("step_created", STEP, count=2, snapshot_writer="A", name="s", payload=1))
            refused = await world.append(
                want("step_created", STEP_2, count=2, snapshot_writer="B", name="s", payload=1)
            )
            assert isinstance(refused, Refused)
            assert refused.refusal is Refusal.PRECONDITION
            assert query(dsn, "select step_id from stormctl.workflow_steps where space = %s", world.space) == [(STEP,)]
            again = await world.append(want("step_created", STEP_2, count=3, snapshot_writer="B", name="s", payload=1))
            assert isinstance(again, Appended)

    run(main())


async def raced(
    dsn: str, found: Condition, point: Point, first: AppendRequest, second: AppendRequest
) -> list[Appended | Refused]:
    """Two writers that are at the point at the same time, whoever comes first from there."""
    space = new_space()
    both = asyncio.Barrier(2)

    async def on_point(at: Point, request: AppendRequest) -> None:
        if at is point and request.type == first.type:
            await both.wait()

    async with (
        world_of(dsn, found, space, on_point=on_point) as one,
        world_of(dsn, found, space, on_point=on_point) as two,
    ):
        for request in (first, second):
            await one.append(want("run_created", run=request.run_id, payload=1, name="flow"))
        return list(await asyncio.gather(one.append(first), two.append(second)))


def test_two_that_race_for_a_token_both_get_it_in_world_postgres_4(dsn: str) -> None:
    async def main() -> None:
        token = [want("hook_created", HOOK, token="t"), want("hook_created", HOOK_2, run=OTHER_RUN, token="t")]
        found = condition("main")
        # Both look for the token before either has written its hook.
        for _ in range(20):
            answers = await raced(dsn, found, Point.EFFECTS, *token)
            assert all(isinstance(answer, Appended) for answer in answers)
            types = sorted(answer.events[0].type for answer in answers if isinstance(answer, Appended))
            if types == ["hook_created", "hook_created"]:
                return
        pytest.fail("20 races, and never two owners")

    run(main())


@pytest.mark.parametrize("name", ["seq-final", "slots-sql"])
def test_where_tokens_have_one_owner_exactly_one_of_two_gets_it(dsn: str, name: str) -> None:
    async def main() -> None:
        token = [want("hook_created", HOOK, token="t"), want("hook_created", HOOK_2, run=OTHER_RUN, token="t")]
        for _ in range(5):
            answers = await raced(dsn, condition(name), Point.EFFECTS, *token)
            types = sorted(answer.events[0].type for answer in answers if isinstance(answer, Appended))
            assert types == ["hook_conflict", "hook_created"]

    run(main())


def test_of_two_ends_of_a_run_exactly_one_wins_in_world_postgres_4(dsn: str) -> None:
    async def main() -> None:
        for _ in range(5):
            # Both are past the validation when the first writes the row.
            ends = want("run_completed", payload=1), want("run_completed", payload=2)
            answers = await raced(dsn, condition("main"), Point.ADMIT_LATE, *ends)
            assert sorted(type(answer).__name__ for answer in answers) == ["Appended", "Refused"]

    run(main())


def test_one_create_of_two_wins(dsn: str) -> None:
    async def main() -> None:
        for name in ("main", "slots-sql", "guard"):
            create = want("step_created", STEP, name="s", payload=1)
            answers = await raced(dsn, condition(name), Point.EFFECTS, create, replace(create, writer="other"))
            assert sorted(type(answer).__name__ for answer in answers) == ["Appended", "Refused"], name

    run(main())


def test_a_holder_that_stood_still_for_too_long_loses_its_lock_and_finds_out(dsn: str) -> None:
    found = condition("seq-final", stale_ms=400)
    space = new_space()
    stop = Stop(Point.PUBLISH, writer="slow")

    async def main() -> None:
        async with world_of(dsn, found, space, on_point=stop) as slow, world_of(dsn, found, space) as quick:
            await slow.append(want("run_created", payload=1, name="flow"))
            task = asyncio.create_task(slow.append(want("step_created", STEP, name="s", payload=1, writer="slow")))
            assert await stop.reached(task)
            landed = await quick.append(want("step_created", STEP_2, name="s", payload=1))
            assert isinstance(landed, Appended)
            stop.go_on()
            with pytest.raises(StoreFailure) as raised:
                await task
            assert raised.value.remedy
            assert [event.correlation_id for event in (await quick.load(RUN)).events] == [None, STEP_2]
            assert isinstance(await slow.append(want("step_created", STEP, name="s", payload=1)), Appended)

    run(main())


def test_two_batches_that_lock_tokens_crosswise_are_one_sentence(dsn: str) -> None:
    found = condition("seq-final", batch_atomic=True)
    space = new_space()
    both = asyncio.Barrier(2)
    seen: set[str] = set()

    async def on_point(at: Point, request: AppendRequest) -> None:
        if at is Point.ALLOCATE and request.run_id not in seen:  # each has its first token
            seen.add(request.run_id)
            await both.wait()

    async def main() -> None:
        async with world_of(dsn, found, space, on_point=on_point) as world:
            answers = await asyncio.gather(
                world.append_batch([want("hook_created", HOOK, token="a"), want("hook_created", HOOK_2, token="b")]),
                world.append_batch(
                    [
                        want("hook_created", HOOK, run=OTHER_RUN, token="b"),
                        want("hook_created", HOOK_2, run=OTHER_RUN, token="a"),
                    ]
                ),
                return_exceptions=True,
            )
            failed = [answer for answer in answers if isinstance(answer, BaseException)]
            assert len(failed) == 1
            assert isinstance(failed[0], StoreFailure)
            assert "waited for each other" in str(failed[0])
            logs = [len((await world.load(run_id)).events) for run_id in (RUN, OTHER_RUN)]
            assert sorted(logs) == [0, 2]  # the whole batch was taken back

    run(main())


def test_a_caller_that_is_cancelled_gives_the_lock_back(dsn: str) -> None:
    space = new_space()
    stop = Stop(Point.ALLOCATE, writer="gone")

    async def main() -> None:
        async with world_of(dsn, "seq-final", space, on_point=stop) as world:
            await world.append(want("run_created", payload=1, name="flow"))
            task = asyncio.create_task(world.append(want("step_created", STEP, name="s", payload=1, writer="gone")))
            assert await stop.reached(task)
            waiting = asyncio.create_task(world.append(want("step_created", STEP_2, name="s", payload=1)))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            landed = await asyncio.wait_for(waiting, 10)
            assert isinstance(landed, Appended)
            assert landed.events[0].position == 2
            assert isinstance(await world.append(want("step_created", STEP, name="s", payload=1)), Appended)

    run(main())


def test_a_caller_cancelled_without_a_lock_has_its_rows_repaired(dsn: str) -> None:
    stop = Stop(Point.PUBLISH, writer="gone")

    async def main() -> None:
        async with world_of(dsn, "slots-sql", on_point=stop) as world:
            await world.append(want("run_created", payload=1, name="flow"))
            task = asyncio.create_task(world.append(want("step_created", STEP, name="s", payload=1, writer="gone")))
            assert await stop.reached(task)
            assert query(dsn, "select step_id from stormctl.workflow_steps where space = %s", world.space) == [(STEP,)]
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert query(dsn, "select step_id from stormctl.workflow_steps where space = %s", world.space) == []
            assert isinstance(await world.append(want("step_created", STEP, name="s", payload=1)), Appended)

    run(main())
