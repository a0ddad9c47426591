"""The faults of one cell in one process: they see its appends, its step bodies and its queue, and strike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from stormctl.storm.faults.base import STEP_BODY, Fault, Hands, When, type_of
from stormctl.storm.faults.fired import FaultFired, Ledger
from stormctl.worlds.base import AppendRequest, Claimed, Message, Queue
from stormctl.worlds.condition import Point
from stormctl.worlds.delay import PRODUCTION, DelayShape
from stormctl.worlds.mint import now_ms

#: The writer of everything that the driver appends: no fault strikes that, because it is not the software under test.
DRIVER = "driver"


class Trigger:
    """Decides, by a seeded sequence of its own, whether a fault fires this time."""

    def __init__(self, number: int, when: When, seed: str, ledger: Ledger) -> None:
        self._number = number
        self._when = when
        self._random = Random(f"fault {number} {seed}")
        self._ledger = ledger
        self._chances = 0

    def fires(self) -> bool:
        """Take one chance."""
        self._chances += 1
        when = self._when
        if when.probability is not None:
            due = self._random.random() < when.probability
        else:
            due = self._chances % (when.every or 1) == 0
        return due and self._ledger.claim(self._number, when.limit)


@dataclass(frozen=True, slots=True)
class Planned:
    """A fault with its number in the plan, counted from 1, and its trigger in this process."""

    number: int
    fault: Fault
    trigger: Trigger


class Injector:
    """``faults`` are (number, fault) pairs that apply to the cell. ``seed`` names plan, cell and worker."""

    def __init__(
        self,
        faults: Sequence[tuple[int, Fault]],
        *,
        seed: str,
        worker: str,
        cell: str,
        hands: Hands,
        ledger: Ledger,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        self._planned = [
            Planned(number, fault, Trigger(number, fault.when, seed, ledger))
            for number, fault in faults
            if fault.when is not None
        ]
        self._always = [(number, fault) for number, fault in faults if fault.when is None]
        self._worker = worker
        self._cell = cell
        self._hands = hands
        self._ledger = ledger
        self._clock = clock

    def shape(self, shape: DelayShape = PRODUCTION) -> DelayShape:
        """The delay between mint and publication in force. Faults that are always in force are written down here."""
        for number, fault in self._always:
            changed = fault.shape(shape)
            if changed is not shape:
                self._write(number, fault, struck=0)
                shape = changed
        return shape

    async def on_point(self, point: Point, request: AppendRequest) -> None:
        """An append has reached a point."""
        if request.writer == DRIVER:
            return
        for one in self._planned:
            if one.fault.looks_at(point, type_of(request)) and one.trigger.fires():
                self._write(
                    one.number,
                    one.fault,
                    at=str(point),
                    run_id=request.run_id,
                    type=type_of(request),
                    correlation_id=request.correlation_id,
                )
                await one.fault.strike(self._hands)

    async def in_body(self, run_id: str) -> None:
        """A step's body lets time pass."""
        for one in self._planned:
            if one.fault.looks_at(STEP_BODY, None) and one.trigger.fires():
                self._write(one.number, one.fault, at=STEP_BODY, run_id=run_id)
                await one.fault.strike(self._hands)

    def queue(self, queue: Queue) -> Queue:
        """The queue, as its senders see it."""
        planned = [one for one in self._planned if one.fault.matches(_WAKE) or one.fault.matches(_STEP)]
        return FaultyQueue(queue, planned, self._write) if planned else queue

    def _write(self, number: int, fault: Fault, **more: Any) -> None:
        self._ledger.write(FaultFired(number, fault.label, self._worker, self._clock(), cell=self._cell, **more))


_WAKE = Message("")
_STEP = Message("", step_id="")


class FaultyQueue:
    """A queue whose messages meet faults when they are sent. The first fault that fires has the message."""

    def __init__(self, queue: Queue, planned: Sequence[Planned], write: Callable[..., None]) -> None:
        self._queue = queue
        self._planned = planned
        self._write = write

    async def send(self, message: Message, *, delay_ms: float = 0, key: str | None = None) -> bool:
        """As of the queue, or as a fault will have it."""
        for one in self._planned:
            if one.fault.matches(message) and one.trigger.fires():
                self._write(one.number, one.fault, run_id=message.run_id, correlation_id=message.step_id)
                return await one.fault.send(self._queue, message, delay_ms, key)
        return await self._queue.send(message, delay_ms=delay_ms, key=key)

    async def receive(self, limit: int) -> list[Claimed]:
        """As of the queue."""
        return await self._queue.receive(limit)

    async def ack(self, claimed: Claimed) -> None:
        """As of the queue."""
        await self._queue.ack(claimed)

    async def release(self, claimed: Claimed, *, delay_ms: float = 0) -> None:
        """As of the queue."""
        await self._queue.release(claimed, delay_ms=delay_ms)

    async def depth(self) -> int:
        """As of the queue."""
        return await self._queue.depth()

    async def requeue_dead(self, worker: str) -> int:
        """As of the queue."""
        return await self._queue.requeue_dead(worker)
