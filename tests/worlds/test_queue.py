"""The queues: in memory, in a folder, and in a folder shared by processes."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormctl.worlds import Claimed, Message, Queue
from stormctl.worlds.folder_queue import FolderQueue
from stormctl.worlds.memory import MemoryQueue
from tests.worlds.making import RUN, FakeClock

ROOT = Path(__file__).resolve().parents[2]
MESSAGE = Message(RUN)
FULL = Message(RUN, "step_1", "step//x//work", 2, "evnt_9", 3, {"why": "test"})


@pytest.fixture(params=["memory", "folder"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[FakeClock], Queue]:
    if request.param == "memory":
        return MemoryQueue
    return lambda clock: FolderQueue(tmp_path, "w1", clock=clock)


def run(make: Callable[[FakeClock], Queue], script: Callable[[Queue, FakeClock], Any]) -> None:
    async def go() -> None:
        clock = FakeClock()
        await script(make(clock), clock)

    asyncio.run(go())


class TestAQueue:
    def test_delivers_what_was_sent_in_order_and_forgets_what_was_acknowledged(self, make) -> None:  # type: ignore[no-untyped-def]
        async def script(queue: Queue, clock: FakeClock) -> None:
            for number in range(5):
                assert await queue.send(Message(RUN, f"step_{number}"))
            assert await queue.depth() == 5
            first = await queue.receive(2)
            rest = await queue.receive(10)
            assert [claimed.message.step_id for claimed in first + rest] == [f"step_{number}" for number in range(5)]
            assert await queue.depth() == 5
            for claimed in first + rest:
                assert claimed.attempt == 1
                await queue.ack(claimed)
            assert await queue.depth() == 0
            assert await queue.receive(10) == []

        run(make, script)

    def test_keeps_every_field(self, make) -> None:  # type: ignore[no-untyped-def]
        async def script(queue: Queue, clock: FakeClock) -> None:
            await queue.send(FULL)
            assert [claimed.message for claimed in await queue.receive(1)] == [FULL]

        run(make, script)

    def test_holds_a_delayed_message_until_it_is_due(self, make) -> None:  # type: ignore[no-untyped-def]
        async def script(queue: Queue, clock: FakeClock) -> None:
            await queue.send(MESSAGE, delay_ms=100)
            await queue.send(Message("wrun_now"))
            assert [claimed.message.run_id for claimed in await queue.receive(5)] == ["wrun_now"]
            clock.now += 99
            assert await queue.receive(5) == []
            clock.now += 1
            assert len(await queue.receive(5)) == 1

        run(make, script)

    def test_counts_redeliveries_and_keeps_the_message_id(self, make) -> None:  # type: ignore[no-untyped-def]
        async def script(queue: Queue, clock: FakeClock) -> None:
            await queue.send(MESSAGE)
            (one,) = await queue.receive(1)
            await queue.release(one, delay_ms=50)
            assert await queue.receive(1) == []
            clock.now += 50
            (two,) = await queue.receive(1)
            assert (two.message_id, two.attempt) == (one.message_id, 2)
            await queue.ack(two)
            assert await queue.depth() == 0

        run(make, script)

    def test_drops_a_message_whose_key_was_used(self, make) -> None:  # type: ignore[no-untyped-def]
        async def script(queue: Queue, clock: FakeClock) -> None:
            assert await queue.send(MESSAGE, key="a")
            assert not await queue.send(MESSAGE, key="a")
            assert await queue.send(MESSAGE, key="b")
            (one, _) = await queue.receive(9)
            await queue.ack(one)
            assert not await queue.send(MESSAGE, key="a"), "a key stays used"

        run(make, script)

    def test_puts_back_what_a_dead_worker_had(self, make) -> None:  # type: ignore[no-untyped-def]
        async def script(queue: Queue, clock: FakeClock) -> None:
            for _ in range(3):
                await queue.send(MESSAGE)
            await queue.receive(2)
            assert await queue.requeue_dead("w1") == 2
            assert sorted(claimed.attempt for claimed in await queue.receive(9)) == [1, 2, 2]

        run(make, script)


class TestAFolderQueue:
    def test_takes_back_a_claim_whose_lease_ran_out(self, tmp_path: Path) -> None:
        async def go() -> None:
            clock = FakeClock()
            one = FolderQueue(tmp_path, "w1", clock=clock, lease_ms=1000)
            other = FolderQueue(tmp_path, "w2", clock=clock, lease_ms=1000)
            await one.send(MESSAGE)
            (lost,) = await one.receive(1)
            clock.now += 900
            assert await other.receive(1) == []
            clock.now += 200
            (again,) = await other.receive(1)
            assert (again.message_id, again.attempt) == (lost.message_id, 2)
            await one.ack(lost)
            await one.release(lost)
            assert await other.depth() == 1, "the late acknowledgement took nothing away"

        asyncio.run(go())

    def test_wakes_nobody_in_another_process_but_shares_every_message(self, tmp_path: Path) -> None:
        async def go() -> None:
            clock = FakeClock()
            one, other = (FolderQueue(tmp_path, worker, clock=clock) for worker in ("w1", "w2"))
            for number in range(6):
                await one.send(Message(RUN, f"step_{number}"))
            got = [*await one.receive(2), *await other.receive(3), *await one.receive(9), *await other.receive(9)]
            assert sorted(claimed.message.step_id or "" for claimed in got) == [f"step_{number}" for number in range(6)]

        asyncio.run(go())

    def test_looks_at_an_empty_folder_in_a_fraction_of_a_millisecond(self, tmp_path: Path) -> None:
        async def go() -> float:
            queue = FolderQueue(tmp_path, "w1")
            best = 1.0
            for _ in range(50):
                begin = time.perf_counter()
                await queue.receive(10)
                best = min(best, time.perf_counter() - begin)
            return best

        assert asyncio.run(go()) < 0.001


WORKER = """
import asyncio, json, sys
from pathlib import Path
from stormctl.worlds.folder_queue import FolderQueue

async def go(folder, worker):
    queue, got = FolderQueue(Path(folder), worker), []
    while not Path(folder, "stop").exists():
        claimed = await queue.receive(4)
        for one in claimed:
            if one.attempt == 1 and one.message.step_id.endswith("7"):
                await queue.release(one)
                continue
            got.append(one.message.step_id)
            await queue.ack(one)
        await asyncio.sleep(0.001 if claimed else 0.002)
    print(json.dumps(got))

asyncio.run(go(*sys.argv[1:]))
"""


def test_a_burst_shared_by_two_processes_is_neither_lost_nor_claimed_twice(tmp_path: Path) -> None:
    async def fill() -> None:
        queue = FolderQueue(tmp_path, "driver")
        for number in range(200):
            assert await queue.send(Message(RUN, f"step_{number}"), delay_ms=number % 5, key=f"{number}")
        async with asyncio.timeout(60):
            while await queue.depth():
                await asyncio.sleep(0.01)

    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(tmp_path), name],
            env=os.environ | {"PYTHONPATH": path},
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "two")
    ]
    try:
        asyncio.run(fill())
    finally:
        (tmp_path / "stop").touch()
        printed = [worker.communicate(timeout=30)[0] for worker in workers]
    got = [json.loads(text) for text in printed]
    assert Counter(got[0] + got[1]) == Counter(f"step_{number}" for number in range(200))


def test_claimed_messages_can_be_compared() -> None:
    assert Claimed("msg_1", MESSAGE, 1) == Claimed("msg_1", Message(RUN), 1)
