"""The memory world: the append pipeline on dictionaries, and a queue in a heap, in one process.

Time and pauses are injectable, so that virtual time serves: ``clock`` gives epoch milliseconds and ``sleep`` waits.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Sequence
from random import Random
from typing import Any

from stormctl.errors import StoreFailure
from stormctl.history import AuditRecord, RunRow, ids
from stormctl.worlds.admission import counts_in_band
from stormctl.worlds.base import Appended, AppendRequest, Claimed, HookRow, Message, Page, Queue, Refused
from stormctl.worlds.condition import Condition, Point
from stormctl.worlds.delay import PublishDelay
from stormctl.worlds.memory_store import BLOCKED, MemoryStore
from stormctl.worlds.mint import Minter, now_ms
from stormctl.worlds.pipeline import append_batch
from stormctl.worlds.process import is_kill
from stormctl.worlds.reads import page_of
from stormctl.worlds.store_ops import AbandonLock, At, Delay, ReleaseLock, StoreOp, Tail, TakeLock
from stormctl.worlds.trace import Trace

Sleep = Callable[[float], Awaitable[None]]
_Generator = Generator[StoreOp, Any, list[Appended | Refused]]


async def _sleep(ms: float) -> None:
    await asyncio.sleep(ms / 1000)


class MemoryQueue:
    """At-least-once delivery in one process. Nothing waits in here: an empty queue replies at once."""

    def __init__(self, clock: Callable[[], int] = now_ms) -> None:
        self._clock = clock
        self._minter = Minter(clock, Random(0))
        self._heap: list[tuple[int, int, str, int, Message]] = []
        self._order = 0
        self._keys: set[str] = set()
        self._claimed: dict[str, tuple[Message, int]] = {}

    async def send(self, message: Message, *, delay_ms: float = 0, key: str | None = None) -> bool:
        """Enqueue; False when a message with the same ``key`` was enqueued before (it is dropped)."""
        if key is not None:
            if key in self._keys:
                return False
            self._keys.add(key)
        message_id = f"msg_{ids.split(self._minter.mint(self._clock(), monotonic=True))[1]}"
        self._push(message_id, message, 1, delay_ms)
        return True

    async def receive(self, limit: int) -> list[Claimed]:
        """Claim up to ``limit`` messages that are due, the longest due first."""
        found: list[Claimed] = []
        while self._heap and len(found) < limit and self._heap[0][0] <= self._clock():
            _, _, message_id, attempt, message = heapq.heappop(self._heap)
            self._claimed[message_id] = (message, attempt)
            found.append(Claimed(message_id, message, attempt))
        return found

    async def ack(self, claimed: Claimed) -> None:
        """The message is done with."""
        self._claimed.pop(claimed.message_id, None)

    async def release(self, claimed: Claimed, *, delay_ms: float = 0) -> None:
        """Give a claimed message back, to be delivered again with ``attempt + 1``."""
        if self._claimed.pop(claimed.message_id, None) is not None:
            self._push(claimed.message_id, claimed.message, claimed.attempt + 1, delay_ms)

    async def depth(self) -> int:
        """How many messages wait or are in work."""
        return len(self._heap) + len(self._claimed)

    async def requeue_dead(self, worker: str) -> int:
        """Put back everything that is claimed: there is one worker, and a test says that it died."""
        lost = [Claimed(message_id, message, attempt) for message_id, (message, attempt) in self._claimed.items()]
        for claimed in lost:
            await self.release(claimed)
        return len(lost)

    def _push(self, message_id: str, message: Message, attempt: int, delay_ms: float) -> None:
        self._order += 1
        heapq.heappush(self._heap, (self._clock() + round(delay_ms), self._order, message_id, attempt, message))


class MemoryWorld:
    """A world without files. Several may share one ``store``, as processes share a folder."""

    name = "memory"

    def __init__(
        self,
        condition: Condition,
        *,
        clock: Callable[[], int] = now_ms,
        random: Random | None = None,
        delay: PublishDelay | None = None,
        sleep: Sleep = _sleep,
        store: MemoryStore | None = None,
        on_point: Callable[[Point, AppendRequest], Awaitable[None]] | None = None,
    ) -> None:
        self.condition = condition
        self.store = store if store is not None else MemoryStore(condition, Minter(clock, random))
        self.queue: Queue = MemoryQueue(clock)
        self.audit: list[AuditRecord] = []
        self._delay = delay if delay is not None else PublishDelay(scale=0)
        self._sleep = sleep
        self._on_point = on_point

    async def append(self, request: AppendRequest) -> Appended | Refused:
        """Append one event under the world's condition."""
        return (await self._append([request]))[0]

    async def append_batch(self, requests: Sequence[AppendRequest]) -> list[Appended | Refused]:
        """Append the writes of one suspension: as one where the condition is ``batch_atomic``."""
        if self.condition.batch_atomic and self.condition.locks:
            return await self._append(requests)
        return [await self.append(request) for request in requests]

    async def load(self, run_id: str, after: str | None = None) -> Page:
        """The events that are visible now, behind the cursor, as the condition's reads show them."""
        await asyncio.sleep(0)
        counted = self.store.tails.get(run_id, Tail()).in_band if counts_in_band(self.condition) else None
        return page_of(self.condition, self.store.log(run_id), after, self.store.minter.clock(), counted)

    async def audit_of(self, run_id: str) -> tuple[AuditRecord, ...]:
        """What was written down about every append to the run."""
        return tuple(record for record in self.audit if record.run_id == run_id)

    async def run(self, run_id: str) -> RunRow | None:
        """The run's row."""
        row = self.store.runs.get(run_id)
        return None if row is None else row.row()

    async def hook(self, token: str) -> HookRow | None:
        """The live hook that holds the token."""
        return self.store.find_hook(token)

    async def close(self) -> None:
        """Nothing to give back."""

    async def _append(self, requests: Sequence[AppendRequest]) -> list[Appended | Refused]:
        trace = Trace()
        try:
            answers = await self._drive(append_batch(requests, self.condition), requests[0], trace)
        except BaseException as error:
            for request in requests if not is_kill(error) else ():
                self.audit.extend(trace.records(request, error))
            raise
        for request, answer in zip(requests, answers, strict=True):
            self.audit.extend(trace.records(request, answer))
        return answers

    async def _drive(self, generator: _Generator, request: AppendRequest, trace: Trace) -> list[Appended | Refused]:
        held: TakeLock | None = None
        try:
            op = next(generator)
            while True:
                try:
                    reply = await self._perform(op, request, trace)
                except StoreFailure as problem:
                    op = generator.throw(problem)
                except BaseException as error:
                    if is_kill(error):
                        self._die(generator, held)
                    else:
                        self._abort(generator, error)
                    raise
                else:
                    if isinstance(op, TakeLock):
                        held = op
                    elif isinstance(op, (ReleaseLock, AbandonLock)):
                        held = None
                    op = generator.send(reply)
        except StopIteration as stop:
            answers: list[Appended | Refused] = stop.value
            return answers

    async def _perform(self, op: StoreOp, request: AppendRequest, trace: Trace) -> Any:
        if isinstance(op, At):
            trace.at(op.point)
            if self._on_point is not None:
                await self._on_point(op.point, request)
            await asyncio.sleep(0)
            return None
        if isinstance(op, Delay):
            ms = self._delay.draw(create=op.create)
            return await self._sleep(ms) if ms > 0 else None
        if isinstance(op, TakeLock):
            while (reply := self.store.perform(op)) is BLOCKED:
                await self._turn(op.run_id)
            return reply
        reply = self.store.perform(op)
        trace.did(op)
        if isinstance(op, (ReleaseLock, AbandonLock)):
            self._next(op.run_id)
        return reply

    def _abort(self, generator: _Generator, error: BaseException) -> None:
        """The caller is gone: let the append clean up after itself without waiting for anything."""
        try:
            op = generator.throw(error)
            while True:
                reply = self.store.perform(op)
                if isinstance(op, AbandonLock):
                    self._next(op.run_id)
                op = generator.send(reply)
        except (StopIteration, type(error)):
            return

    def _die(self, generator: _Generator, held: TakeLock | None) -> None:
        """The process is gone: nothing is cleaned up, and others see that the holder of its lock is dead."""
        generator.close()
        if held is not None:
            self.store.perform(AbandonLock(held.run_id, held.intent))
            self._next(held.run_id)

    async def _turn(self, run_id: str) -> None:
        """Wait until the lock is given back, or is old enough to be broken."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self.store.waiting.setdefault(run_id, deque()).append(turn)
        stale_ms = self.condition.stale_ms
        alarm = None if stale_ms == math.inf else loop.call_later(stale_ms / 1000 + 0.002, _wake, turn)
        try:
            await turn
        finally:
            if alarm is not None:
                alarm.cancel()

    def _next(self, run_id: str) -> None:
        """Wake the first that still waits for the lock."""
        waiting = self.store.waiting.get(run_id)
        while waiting:
            turn = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.store.waiting.pop(run_id, None)


def _wake(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)
