"""The queue in a database: at least once, in several workers' hands, whatever happens to them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from stormctl.errors import StoreFailure
from stormctl.worlds.base import Claimed, Message
from stormctl.worlds.postgres import queue as queues
from stormctl.worlds.postgres.links import Links
from stormctl.worlds.postgres.queue import PostgresQueue
from tests.worlds.making import RUN
from tests.worlds.postgres.making import new_space, query, run

pytestmark = pytest.mark.storm

MESSAGE = Message(
    RUN, step_id="step_1", step_name="s", divergences=2, divergent_event="e", reinvocations=1, data={"a": 1}
)


@asynccontextmanager
async def queue_of(dsn: str, space: str, worker: str = "w", lease_ms: float = 60_000) -> AsyncIterator[PostgresQueue]:
    links = Links.shared(dsn, 60_000)

    async def connected() -> Links:
        return links

    queue = PostgresQueue(connected, space, worker, lease_ms=lease_ms)
    try:
        yield queue
    finally:
        await queue.close()
        await links.leave()


async def until(queue: PostgresQueue, wanted: int = 1, limit_s: float = 10.0) -> list[Claimed]:
    """Poll as a worker does, until so many messages came."""
    found: list[Claimed] = []
    end = time.monotonic() + limit_s
    while len(found) < wanted and time.monotonic() < end:
        found += await queue.receive(100)
        await asyncio.sleep(0.002)
    return found


def test_a_message_is_delivered_whole_and_is_gone_when_it_is_done_with(dsn: str) -> None:
    async def main() -> None:
        async with queue_of(dsn, new_space()) as queue:
            assert await queue.send(MESSAGE)
            assert await queue.depth() == 1
            (claimed,) = await queue.receive(10)
            assert (claimed.message, claimed.attempt) == (MESSAGE, 1)
            assert await queue.receive(10) == []
            assert await queue.depth() == 1
            await queue.ack(claimed)
            assert await queue.depth() == 0

    run(main())


def test_the_longest_due_comes_first_and_the_limit_holds(dsn: str) -> None:
    async def main() -> None:
        async with queue_of(dsn, new_space()) as queue:
            for name in "abc":
                await queue.send(Message(name))
            assert [one.message.run_id for one in await queue.receive(2)] == ["a", "b"]
            assert [one.message.run_id for one in await queue.receive(2)] == ["c"]
            assert await queue.receive(0) == []

    run(main())


def test_a_delayed_message_comes_when_it_is_due(dsn: str) -> None:
    async def main() -> None:
        async with queue_of(dsn, new_space()) as queue:
            assert await queue.receive(1) == []
            sent = time.monotonic()
            await queue.send(Message("late"), delay_ms=150)
            assert await queue.receive(1) == []
            assert len(await until(queue)) == 1
            assert 0.14 < time.monotonic() - sent < 2

    run(main())


def test_a_key_is_taken_for_ever(dsn: str) -> None:
    async def main() -> None:
        space = new_space()
        async with queue_of(dsn, space) as queue, queue_of(dsn, new_space()) as elsewhere:
            assert await queue.send(Message("a"), key="k")
            assert not await queue.send(Message("b"), key="k")
            await queue.ack((await queue.receive(1))[0])
            assert not await queue.send(Message("c"), key="k")
            assert await queue.depth() == 0
            assert await elsewhere.send(Message("a"), key="k")
            found = await asyncio.gather(*(queue.send(Message("r"), key="raced") for _ in range(8)))
            assert sum(found) == 1
            assert await queue.depth() == 1

    run(main())


def test_many_are_sent_at_once(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "BATCH", 7)

    async def main() -> None:
        async with queue_of(dsn, new_space()) as queue:
            sent = await queue.send_many([(Message(f"r{n}"), 0, f"k{n % 15}") for n in range(20)])
            assert sent == [True] * 15 + [False] * 5
            assert {one.message.run_id for one in await queue.receive(50)} == {f"r{n}" for n in range(15)}
            assert await queue.send_many([]) == []

    run(main())


def test_two_workers_share_the_messages_without_loss(dsn: str) -> None:
    space, count = new_space(), 300

    async def worker(name: str, seen: Counter[str]) -> None:
        async with queue_of(dsn, space, name) as queue:
            while sum(seen.values()) < count:
                for claimed in await queue.receive(5):
                    seen[claimed.message.run_id] += 1
                    await queue.ack(claimed)
                await asyncio.sleep(0)

    async def main() -> None:
        async with queue_of(dsn, space) as queue:
            await queue.send_many([(Message(f"r{n}"), 0, None) for n in range(count)])
            mine: Counter[str] = Counter()
            await asyncio.gather(*(worker(f"w{n}", mine) for n in range(3)))
            assert mine == Counter({f"r{n}": 1 for n in range(count)})
            assert await queue.depth() == 0

    run(main())


def test_a_message_that_is_given_back_comes_again_with_its_attempt_counted(dsn: str) -> None:
    async def main() -> None:
        async with queue_of(dsn, new_space()) as queue:
            await queue.send(MESSAGE)
            (first,) = await queue.receive(1)
            await queue.release(first, delay_ms=30)
            assert await queue.receive(1) == []
            (second,) = await until(queue)
            assert (second.message_id, second.message, second.attempt) == (first.message_id, MESSAGE, 2)

    run(main())


def test_a_lease_that_ran_out_frees_the_message_and_the_late_worker_cannot_touch_it(dsn: str) -> None:
    async def main() -> None:
        space = new_space()
        async with queue_of(dsn, space, "slow", lease_ms=40) as slow, queue_of(dsn, space, "quick") as quick:
            await slow.send(MESSAGE)
            (late,) = await slow.receive(1)
            (again,) = await until(quick)
            assert (again.message_id, again.attempt) == (late.message_id, 2)
            await slow.ack(late)
            await slow.release(late)
            assert await quick.depth() == 1
            await quick.ack(again)
            assert await quick.depth() == 0

    run(main())


KILLED = """
import asyncio, os, signal, sys
from tests.worlds.postgres.test_pg_queue import queue_of

async def main():
    async with queue_of(sys.argv[1], sys.argv[2], "dead") as queue:
        assert len(await queue.receive(2)) == 2
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def test_what_a_killed_worker_had_in_its_hands_goes_back(dsn: str) -> None:
    async def main() -> None:
        space = new_space()
        async with queue_of(dsn, space, "alive") as queue:
            for name in "abc":
                await queue.send(Message(name))
            await asyncio.to_thread(subprocess.run, [sys.executable, "-c", KILLED, dsn, space], timeout=60, check=False)
            (mine,) = await queue.receive(5)
            assert mine.message.run_id == "c"
            assert await queue.requeue_dead("dead") == 2
            assert await queue.requeue_dead("dead") == 0
            back = await queue.receive(5)
            assert [(one.message.run_id, one.attempt) for one in back] == [("a", 2), ("b", 2)]

    run(main())


def test_a_queue_that_has_nothing_to_do_does_not_ask_the_server(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        space = new_space()
        async with queue_of(dsn, space, "idle") as idle, queue_of(dsn, space, "busy") as busy:
            for _ in range(100):  # until it is listening
                await idle.receive(1)
                await asyncio.sleep(0.005)
            asked = []
            monkeypatch.setattr(idle, "_try", lambda calls, ask=idle._try: asked.append(1) or ask(calls))
            for _ in range(100):
                assert await idle.receive(1) == []
                await asyncio.sleep(0.002)
            assert len(asked) <= 4  # a look every quarter of a second
            sent = time.monotonic()
            await busy.send(MESSAGE)
            assert len(await until(idle)) == 1
            assert time.monotonic() - sent < queues.IDLE_S  # it was told

    run(main())


def test_receiving_survives_a_lost_connection(dsn: str) -> None:
    async def main() -> None:
        async with queue_of(dsn, new_space()) as queue:
            await queue.send(MESSAGE)
            assert await queue.depth() == 1
            await asyncio.to_thread(
                query,
                dsn,
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where datname = current_database() and pid <> pg_backend_pid()",
            )
            assert len(await until(queue)) == 1

    run(main())


def test_a_damaged_message_is_one_sentence(dsn: str) -> None:
    async def main() -> None:
        space = new_space()
        query(dsn, "insert into stormctl.messages (space, due_at, body) values (%s, now(), 'junk')", space)
        async with queue_of(dsn, space) as queue:
            with pytest.raises(StoreFailure, match="damaged"):
                await queue.receive(1)

    run(main())
