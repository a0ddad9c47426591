"""Many messages through the queues of both worlds, with a consumer that is killed on the way: none is lost.

``STORMCTL_MESSAGES=200000`` makes it that many over both (some minutes); by default it is a few thousand.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import time
from collections import Counter
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from stormctl.worlds import Message, World, condition_named, open_world
from stormctl.worlds.postgres.migrate import ensure_schema

pytestmark = [pytest.mark.storm]

MESSAGES = int(os.environ.get("STORMCTL_MESSAGES", "4000")) // 2
#: a queue is kept this short: who listed a folder of all of them for each message would never end
BACKLOG = 1000
LIMIT_S = 60 + MESSAGES / 200


def opened(kind: str, folder: str, dsn: str | None, role: str, worker: str) -> World:
    place = Path(folder) if kind == "local" else None
    condition = condition_named("seq-final", kind)
    return open_world(kind, place, condition, role=role, worker=worker, dsn=dsn, space="many", lease_ms=600_000)


def consume(kind: str, folder: str, dsn: str | None, worker: str, log: str) -> None:
    """Take messages until killed or told that there are no more, and write each down before it is acknowledged."""

    async def go() -> None:
        world = opened(kind, folder, dsn, "worker", worker)
        with open(log, "a", buffering=1) as file:
            while not Path(f"{folder}-done").exists():
                claimed = await world.queue.receive(16)
                for one in claimed:
                    file.write(f"{one.message.run_id}\n")
                    await world.queue.ack(one)
                if not claimed:
                    await asyncio.sleep(0.005)
        await world.close()

    asyncio.run(go())


async def send(world: World, killed: BaseProcess, logs: list[Path]) -> None:
    """Send all of them, never too many at once; kill a consumer in the middle, and give back what it had."""
    deadline = time.monotonic() + LIMIT_S
    for number in range(MESSAGES):
        await world.queue.send(Message(f"wrun_{number}"), key=f"key-{number}")
        if number % 200 == 0:
            while await world.queue.depth() > BACKLOG and time.monotonic() < deadline:
                await asyncio.sleep(0.02)
        if number == MESSAGES // 2:
            assert killed.pid is not None
            os.kill(killed.pid, signal.SIGKILL)
            killed.join()
            await world.queue.requeue_dead("consumer-0")
    while await world.queue.depth() and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
    assert await world.queue.depth() == 0
    await world.close()


@pytest.mark.timeout(LIMIT_S + 60)
@pytest.mark.parametrize("kind", ["local", "postgres"])
def test_no_message_is_lost_when_a_consumer_is_killed(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    dsn = request.getfixturevalue("postgres_dsn") if kind == "postgres" else None
    if dsn is not None:
        ensure_schema(dsn, create=True)
    folder = str(tmp_path / "store")
    logs = [tmp_path / f"consumer-{index}.log" for index in range(3)]
    spawn = multiprocessing.get_context("spawn")

    async def go() -> None:
        world = opened(kind, folder, dsn, "driver", "driver")
        consumers = [
            spawn.Process(target=consume, args=(kind, folder, dsn, f"consumer-{index}", str(log)), daemon=True)
            for index, log in enumerate(logs)
        ]
        try:
            for consumer in consumers:
                consumer.start()
            await send(world, consumers[0], logs)
        finally:
            Path(f"{folder}-done").touch()
            for consumer in consumers:
                consumer.join(20)
                if consumer.is_alive():
                    consumer.kill()

    asyncio.run(go())
    seen = Counter(line for log in logs if log.exists() for line in log.read_text().split())
    assert set(seen) == {f"wrun_{number}" for number in range(MESSAGES)}
    repeated = sum(count - 1 for count in seen.values())
    assert repeated <= 16  # what the killed one had in its hands
