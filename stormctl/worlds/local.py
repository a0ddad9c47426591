"""The local world: an event-log store in a folder, shared by the processes of one machine.

Each append is the generator of ``worlds.pipeline``. Its store operations are file calls; an event loop carries on at
every named point, so that other appends of this process and of others get between any two. Reads of whole logs are made
in a few threads.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from stormctl.errors import StoreFailure
from stormctl.history import AuditRecord, RunRow
from stormctl.worlds import owner
from stormctl.worlds.admission import counts_in_band
from stormctl.worlds.audit import AuditWriter, read_audit
from stormctl.worlds.base import Appended, AppendRequest, HookRow, Page, Queue, Refused
from stormctl.worlds.condition import Condition, Point
from stormctl.worlds.conditions import condition_named
from stormctl.worlds.delay import PRODUCTION, DelayShape, PublishDelay
from stormctl.worlds.files import Files, failure
from stormctl.worlds.folder_queue import FolderQueue
from stormctl.worlds.hands import Hands
from stormctl.worlds.local_store import LocalStore
from stormctl.worlds.lock import AppendLocks, Held
from stormctl.worlds.mint import Minter, now_ms
from stormctl.worlds.pipeline import append_batch
from stormctl.worlds.reads import page_of
from stormctl.worlds.store_ops import (
    AbandonLock,
    At,
    ConfirmLock,
    Delay,
    Intent,
    ReadTail,
    ReleaseLock,
    StoreOp,
    TakeLock,
)
from stormctl.worlds.trace import Trace

_Answers = list[Appended | Refused]
_Generator = Generator[StoreOp, Any, _Answers]
_WAITING = (Delay, TakeLock)

RETRY_S = 0.008
"""How long a writer waits before it looks at a taken lock again."""

OnPoint = Callable[[Point, AppendRequest], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """What may be set when a store is opened.

    ``worker`` names this process in the queue. ``storage_scale`` multiplies the injected publish delay, seeded by
    ``seed`` and the process. ``threads`` make the reads. ``lock_limit_ms`` bounds the wait for a run's lock (None:
    the age at which locks may be broken, and half a minute). ``lease_ms`` is the age at which a claimed queue message
    goes back. ``clock``, ``random``, ``files`` and ``on_point`` (awaited at each point of each append) are for tests
    and faults.
    """

    worker: str | None = None
    storage_scale: float = 1.0
    seed: int | str = 0
    threads: int = 3
    lock_limit_ms: float | None = None
    lease_ms: float = 300_000
    shape: DelayShape = PRODUCTION
    audit: bool = True
    clock: Callable[[], int] = now_ms
    random: Random | None = None
    files: Files = field(default_factory=Files)
    on_point: OnPoint | None = None


_DEFAULTS = LocalOptions()
T = TypeVar("T")


class LocalWorld:
    """A store folder under one condition. Made by :meth:`create` (the driver) or :meth:`join` (its workers)."""

    name = "local"

    def __init__(
        self, folder: Path, condition: Condition, options: LocalOptions, driver: owner.DriverLock | None
    ) -> None:
        self.folder = folder
        self.condition = condition
        self.notes: tuple[str, ...] = ()
        worker = options.worker or f"{os.getpid()}"
        minter = Minter(options.clock, options.random)
        self.store = LocalStore(folder, condition, options.files, minter)
        self.queue: Queue = FolderQueue(
            folder / "queue", worker, clock=options.clock, files=options.files, lease_ms=options.lease_ms, minter=minter
        )
        self._options = options
        self._driver = driver
        self._delay = PublishDelay(seed=f"{options.seed} {worker}", scale=options.storage_scale, shape=options.shape)
        self._locks = AppendLocks(
            options.files,
            self.store.layout.holders,
            condition.stale_ms,
            minter.nonce,
            breaking=condition.breaking,
            release=condition.release,
        )
        self._limit_s = (options.lock_limit_ms or condition.stale_ms + 30_000) / 1000
        self._hands = Hands(options.threads)
        self._audit = AuditWriter(folder, options.files) if options.audit else None
        self._fifo: dict[str, tuple[asyncio.Lock, list[int]]] = {}
        self._held: dict[str, Held] = {}

    @classmethod
    def create(cls, folder: Path | str, condition: Condition, options: LocalOptions = _DEFAULTS) -> LocalWorld:
        """Make the store (or take up one of ours) and own it: the part of a driver.

        StoreForeign for a folder that holds something else, StoreBusy for one that another driver uses. A dead driver's
        folder is taken over, and ``notes`` says so.
        """
        folder = Path(folder)
        nonce = Minter().nonce
        owner.prepare(folder, condition.name, options.files, nonce)
        lock = owner.DriverLock(folder, options.files, nonce)
        note = lock.take()
        world = cls(folder, condition, options, lock)
        world.notes = () if note is None else (note,)
        return world

    @classmethod
    def join(
        cls, folder: Path | str, condition: Condition | None = None, options: LocalOptions = _DEFAULTS
    ) -> LocalWorld:
        """Work in a store that exists, beside its driver: the part of a worker or a reader.

        The condition is the recorded one; UsageError when another is given. StoreForeign when there is no store.
        """
        folder = Path(folder)
        if condition is None:
            condition = condition_named(owner.recorded_condition(folder))
        else:
            owner.check(folder, condition.name)
        return cls(folder, condition, options, None)

    # -- the World protocol

    async def append(self, request: AppendRequest) -> Appended | Refused:
        """Append one event under the store's condition."""
        return (await self._append([request]))[0]

    async def append_batch(self, requests: Sequence[AppendRequest]) -> list[Appended | Refused]:
        """Append the writes of one suspension: as one where the condition is ``batch_atomic``."""
        if self.condition.batch_atomic and self.condition.locks:
            return await self._append(requests)
        return [await self.append(request) for request in requests]

    async def load(self, run_id: str, after: str | None = None) -> Page:
        """The events that are visible now, behind the cursor, as the condition's reads show them."""
        return await self._call(lambda: self._page(run_id, after))

    async def run(self, run_id: str) -> RunRow | None:
        """The run's row."""
        row = await self._call(lambda: self.store.read_run(run_id))
        return None if row is None else row.row()

    async def hook(self, token: str) -> HookRow | None:
        """The live hook that holds the token."""
        return await self._call(lambda: self.store.find_hook(token))

    async def close(self) -> None:
        """Stop the threads, write what the audit kept, give the folder back."""
        self._hands.close()
        self._locks.close()
        if self._driver is not None:
            self._driver.release()
        if self._audit is not None:
            self._audit.close()

    async def audit_of(self, run_id: str) -> tuple[AuditRecord, ...]:
        """What the processes of this store have written down about every append to the run."""
        return await self._call(lambda: tuple(read_audit(self.folder, run_id)))

    # -- interpreting an append

    async def _append(self, requests: Sequence[AppendRequest]) -> list[Appended | Refused]:
        trace = Trace()
        generator = append_batch(requests, self.condition)
        try:
            answers = await self._drive(generator, requests[0], trace)
        except BaseException as error:
            for request in requests:
                self._write_down(trace.records(request, error))
            raise
        for request, answer in zip(requests, answers, strict=True):
            self._write_down(trace.records(request, answer))
        return answers

    def _page(self, run_id: str, after: str | None) -> Page:
        now = self._options.clock()
        counted = None
        if counts_in_band(self.condition):
            counted = self.store.perform(ReadTail(run_id, rescan=False)).in_band
        return self.store.logs.ask(run_id, lambda log: page_of(self.condition, log, after, now, counted))

    async def _drive(self, generator: _Generator, request: AppendRequest, trace: Trace) -> _Answers:
        """Perform the operations where they are asked for, and let others run at every point behind one.

        The calls are made on the loop: each costs 10 to 50 microseconds, less than handing it to a thread.
        """
        worked = False
        try:
            op = next(generator)
            while True:
                kind = type(op)
                reply: Any = None
                try:
                    if kind is At:
                        point = op.point  # type: ignore[union-attr]
                        trace.at(point)
                        if self._options.on_point is not None:
                            await self._options.on_point(point, request)
                        if worked:
                            await asyncio.sleep(0)
                            worked = False
                    elif kind in _WAITING:
                        reply = await self._wait_for(op)
                    else:
                        reply = self._perform(op)
                        trace.did(op)
                        worked = True
                except StoreFailure as problem:
                    op = generator.throw(problem)
                except BaseException as error:
                    self._abort(generator, error)
                    raise
                else:
                    op = generator.send(reply)
        except StopIteration as stop:
            answers: _Answers = stop.value
            return answers

    def _perform(self, op: StoreOp) -> Any:
        kind = type(op)
        if kind is ReleaseLock:
            return self._release(op.run_id)  # type: ignore[union-attr]
        if kind is AbandonLock:
            return self._abandon(op.run_id)  # type: ignore[union-attr]
        if kind is ConfirmLock:
            try:
                return self._locks.confirm(self._held[op.run_id])  # type: ignore[union-attr]
            except OSError as error:
                raise failure(self.folder, error) from error
        return self.store.perform(op)

    def _abort(self, generator: _Generator, error: BaseException) -> None:
        """The caller is gone: let the append clean up after itself without waiting for anything."""
        try:
            op = generator.throw(error)
            while True:
                try:
                    reply = None if type(op) is At or type(op) in _WAITING else self._perform(op)
                except StoreFailure as problem:
                    op = generator.throw(problem)
                else:
                    op = generator.send(reply)
        except (StopIteration, type(error), StoreFailure):
            return

    async def _wait_for(self, op: StoreOp) -> Any:
        if isinstance(op, TakeLock):
            return await self._take(op)
        assert isinstance(op, Delay)
        ms = self._delay.draw(create=op.create)
        if ms > 0:
            await asyncio.sleep(ms / 1000)
        return None

    # -- locks

    async def _take(self, op: TakeLock) -> tuple[Intent, ...]:
        """First in, first out within this process; then against the other processes by retry."""
        lock, waiting = self._fifo.setdefault(op.run_id, (asyncio.Lock(), [0]))
        waiting[0] += 1
        try:
            await lock.acquire()
        except BaseException:
            self._forget(op.run_id)
            raise
        try:
            deadline = time.monotonic() + self._limit_s
            while (held := self._try_take(op)) is None:
                if time.monotonic() > deadline:
                    raise StoreFailure(
                        f"the append lock of {op.run_id} stayed taken for {self._limit_s:.0f} s",
                        remedy="Look for a stopped stormctl worker, end it, and run again.",
                    )
                await asyncio.sleep(RETRY_S)
        except BaseException:
            self._leave(op.run_id)
            raise
        self._held[op.run_id] = held
        return held.left

    def _try_take(self, op: TakeLock) -> Held | None:
        try:
            return self._locks.try_take(self.store.layout.lock(op.run_id), op.intent)
        except OSError as error:
            raise failure(self.folder, error) from error

    def _release(self, run_id: str) -> None:
        held = self._held.pop(run_id)
        try:
            self._locks.release(held)
        finally:
            self._leave(run_id)

    def _abandon(self, run_id: str) -> None:
        self._locks.abandon(self._held.pop(run_id))
        self._leave(run_id)

    def _leave(self, run_id: str) -> None:
        self._fifo[run_id][0].release()
        self._forget(run_id)

    def _forget(self, run_id: str) -> None:
        waiting = self._fifo[run_id][1]
        waiting[0] -= 1
        if not waiting[0]:
            del self._fifo[run_id]

    # -- small things

    async def _call(self, job: Callable[[], T]) -> T:
        try:
            return await self._hands.run(job)
        except OSError as error:
            raise failure(self.folder, error) from error

    def _write_down(self, records: tuple[AuditRecord, ...]) -> None:
        if self._audit is not None:
            self._audit.write(*records)
