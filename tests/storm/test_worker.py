"""A worker: it delivers what the queues hold, many at once, and loses no message whatever fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from stormctl.engine.generations import generation
from stormctl.errors import StoreFailure
from stormctl.history import kinds
from stormctl.runtime.rules import Rules
from stormctl.storm.virtual import run_virtually
from stormctl.storm.worker import (
    AT_ONCE,
    MAX_DELIVERIES,
    MAX_IN_HAND,
    RECEIVE_TRIES,
    REPLAY_CONCURRENCY,
    CellWorker,
    serve,
)
from stormctl.workloads.registry import workload
from stormctl.worlds import AppendRequest, Message, condition_named
from stormctl.worlds.memory import MemoryWorld
from tests.storm.stage import RUN

INPUT = {"token": "t", "rounds": 1, "width": 2, "reconcile_base": 1}


class Bench:
    """One cell's worker on a memory world, with one run created in it."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self.world = MemoryWorld(condition_named("seq-final"), clock=clock, random=Random(1))
        self.journal: list[Mapping[str, Any]] = []
        rules = Rules(generation=generation("dispenser"))
        self.cell = CellWorker(self.world, rules, workload("step-storm"), self.journal.append, clock)

    async def create(self, messages: int = 1) -> None:
        await self.world.append(
            AppendRequest(RUN, kinds.RUN_CREATED, "driver", payload=INPUT, data={"workflowName": "step-storm"})
        )
        for _ in range(messages):
            await self.world.queue.send(Message(RUN))

    async def status(self) -> str | None:
        row = await self.world.run(RUN)
        return None if row is None else row.status


def on_bench(play: Callable[[Bench], Awaitable[Any]]) -> Any:
    """Play in virtual time."""

    async def main(clock: Callable[[], int]) -> Any:
        return await play(Bench(clock))

    return run_virtually(main)


async def served(bench: Bench, seconds: float) -> BaseException | None:
    """Serve for so long; the error with which serving ended before its time."""
    task = asyncio.create_task(serve([bench.cell]))
    await asyncio.wait([task], timeout=seconds)
    if task.done():
        return task.exception()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return None


class Failing:
    """A store call that fails so many times, and then works."""

    def __init__(self, call: Callable[..., Awaitable[Any]], times: int) -> None:
        self._call = call
        self.left = times

    async def __call__(self, *arguments: Any, **named: Any) -> Any:
        if self.left > 0:
            self.left -= 1
            raise StoreFailure("the store failed: No space left on device", remedy="Free space.")
        return await self._call(*arguments, **named)


class TestAMessage:
    def test_is_acknowledged_and_journalled_when_it_was_delivered(self) -> None:
        async def play(bench: Bench) -> Any:
            await bench.create()
            assert await served(bench, 30) is None
            return await bench.status(), await bench.world.queue.depth(), bench.journal

        status, depth, journal = on_bench(play)
        assert (status, depth) == ("completed", 0)
        assert {row["run"] for row in journal} == {RUN}
        assert "completed" in {row["ending"] for row in journal}
        assert all(row["deliveries"] == 1 for row in journal)

    @pytest.mark.parametrize("call", ["append", "load"])
    def test_goes_back_when_the_store_fails_and_the_run_is_brought_to_its_end_later(
        self, call: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        async def play(bench: Bench) -> Any:
            await bench.create()
            setattr(bench.world, call, Failing(getattr(bench.world, call), 5))
            assert await served(bench, 60) is None
            return await bench.status(), await bench.world.queue.depth()

        assert on_bench(play) == ("completed", 0)
        assert capsys.readouterr().err.count("StoreFailure: the store failed: No space left on device") == 5

    def test_waits_longer_after_each_failure(self) -> None:
        times: list[float] = []

        async def play(bench: Bench) -> Any:
            await bench.create()

            async def fails(*_: Any) -> Any:
                times.append(asyncio.get_running_loop().time())
                raise StoreFailure("the store failed", remedy="Mend it.")

            bench.world.append = fails  # type: ignore[method-assign, assignment]
            await served(bench, 2)
            return await bench.world.queue.depth()

        assert on_bench(play) == 1
        gaps = [after - before for before, after in pairwise(times)]
        assert gaps == sorted(gaps)
        assert gaps[-1] > 2 * gaps[0]

    def test_that_never_can_be_delivered_is_given_up_and_does_not_spin(self) -> None:
        async def play(bench: Bench) -> Any:
            await bench.create()
            broken = Failing(bench.world.append, 10_000)
            bench.world.append = broken  # type: ignore[method-assign]
            await served(bench, 1_000)
            return 10_000 - broken.left, await bench.world.queue.receive(9)

        assert on_bench(play) == (MAX_DELIVERIES, [])

    def test_is_in_the_queue_still_when_even_giving_it_back_fails_and_serving_ends(self) -> None:
        async def play(bench: Bench) -> Any:
            await bench.create()
            bench.world.append = Failing(bench.world.append, 1)  # type: ignore[method-assign]
            bench.world.queue.release = Failing(bench.world.queue.release, 1)  # type: ignore[method-assign]
            ended = await served(bench, 30)
            assert await bench.world.queue.depth() == 1
            await bench.world.queue.requeue_dead("somebody")  # what the store does about a dead worker
            assert await served(bench, 30) is None
            return ended, await bench.status()

        ended, status = on_bench(play)
        assert isinstance(ended, StoreFailure)
        assert status == "completed"

    def test_that_cannot_be_journalled_ends_serving(self) -> None:
        def full(_row: Mapping[str, Any]) -> None:
            raise StoreFailure("0.ndjson could not be written: No space left on device", remedy="Make room.")

        async def play(bench: Bench) -> Any:
            bench.cell._journal = full
            await bench.create()
            return await served(bench, 30)

        assert isinstance(on_bench(play), StoreFailure)

    @pytest.mark.parametrize(("times", "ends"), [(RECEIVE_TRIES - 1, False), (RECEIVE_TRIES, True)])
    def test_a_queue_that_fails_again_and_again_ends_serving(self, times: int, ends: bool) -> None:
        """A server that ended a connection answers again in a moment; a full disk does not."""

        async def play(bench: Bench) -> Any:
            await bench.create()
            bench.world.queue.receive = Failing(bench.world.queue.receive, times)  # type: ignore[method-assign]
            return await served(bench, 60), await bench.status()

        ended, status = on_bench(play)
        assert isinstance(ended, StoreFailure) == ends
        assert (status == "completed") != ends


class TestManyAtOnce:
    def test_deliveries_of_one_run_overlap_up_to_a_bound(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert REPLAY_CONCURRENCY == 10
        running, most = [], []

        async def play(bench: Bench) -> Any:
            load = bench.world.load

            async def slow(*arguments: Any) -> Any:
                running.append(1)
                most.append(len(running))
                await asyncio.sleep(1)
                running.pop()
                return await load(*arguments)

            bench.world.load = slow  # type: ignore[method-assign, assignment]
            await bench.create(messages=40)
            await served(bench, 0.9)

        on_bench(play)
        assert max(most) == REPLAY_CONCURRENCY

    def test_a_worker_takes_a_few_at_a_time_and_never_more_than_it_can_hold(self) -> None:
        """What one worker took, another cannot: a worker that hoards leaves its siblings idle."""
        asked: list[int] = []

        async def play(bench: Bench) -> Any:
            receive = bench.world.queue.receive

            async def counted(limit: int) -> Any:
                asked.append(limit)
                return await receive(limit)

            async def held(*_: Any) -> Any:
                await asyncio.sleep(1_000)

            bench.world.queue.receive = counted  # type: ignore[method-assign]
            await bench.create(messages=MAX_IN_HAND + 50)
            bench.world.append = held  # type: ignore[method-assign, assignment]
            await served(bench, 5)
            return await bench.world.queue.receive(1_000)

        left = on_bench(play)
        assert max(asked[:-1]) == AT_ONCE
        assert len(left) == 50

    def test_cancelling_leaves_no_delivery_behind(self) -> None:
        async def play(bench: Bench) -> Any:
            await bench.create(messages=5)
            await served(bench, 1)
            return asyncio.all_tasks() - {asyncio.current_task()}

        assert on_bench(play) == set()


def test_a_worker_imports_nothing_that_only_a_report_needs(root: Any) -> None:
    """Two of them start before the first run does, and every second of their start is a second of the storm's."""
    import subprocess
    import sys

    heavy = {"pandas", "numpy", "matplotlib", "scipy", "pyarrow", "psycopg", "jinja2"}
    text = f"import sys; import stormctl.storm.worker, stormctl.storm.driver; print(*({heavy} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, cwd=root)
    assert found.stdout.split() == []
