"""The Postgres world: an event-log store in a database, shared by processes on any number of machines.

Each append is the generator of ``worlds.pipeline``; its store operations are statements (``store``, ``ahead``). Under a
condition with a lock they are one transaction whose first lock is the run's advisory lock; elsewhere each commits at
exactly its point.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

from stormctl.errors import StoreFailure, StormctlError, UsageError
from stormctl.history import AuditRecord, RunRow
from stormctl.worlds.admission import counts_in_band
from stormctl.worlds.base import Appended, AppendRequest, HookRow, Page, Queue, Refused
from stormctl.worlds.condition import Condition
from stormctl.worlds.delay import PRODUCTION, DelayShape, PublishDelay
from stormctl.worlds.local import OnPoint
from stormctl.worlds.mint import Minter, now_ms
from stormctl.worlds.open import Opening
from stormctl.worlds.pipeline import append_batch
from stormctl.worlds.postgres import cells, shapes, spaces
from stormctl.worlds.postgres import statements as sql
from stormctl.worlds.postgres.audit import AuditTable
from stormctl.worlds.postgres.disconnect import END_CONNECTIONS, application
from stormctl.worlds.postgres.links import STATEMENT_S, Links
from stormctl.worlds.postgres.migrate import check_schema, ensure_schema
from stormctl.worlds.postgres.pipe import Call, Rows
from stormctl.worlds.postgres.queue import PostgresQueue
from stormctl.worlds.postgres.reads import Reading
from stormctl.worlds.postgres.store import Facts
from stormctl.worlds.postgres.tx import Session
from stormctl.worlds.store_ops import (
    AbandonLock,
    At,
    Clock,
    Delay,
    End,
    Intent,
    Mint,
    OweRepair,
    ReleaseLock,
    StoreOp,
    TakeLock,
    TakeOwed,
)
from stormctl.worlds.trace import Trace

_Generator = Generator[StoreOp, Any, list[Appended | Refused]]

CLEAN_UP_S = 30.0
"""How long an append whose caller is gone may take to clean up after itself."""


@dataclass(frozen=True, slots=True)
class PostgresOptions:
    """What may be set when a store is opened, besides what :class:`~stormctl.worlds.open.Opening` says.

    ``reads_ahead`` False sends every store operation by itself, under a lock too. ``audit`` False writes none.
    """

    worker: str | None = None
    storage_scale: float = 1.0
    seed: int | str = 0
    lease_ms: float = 300_000
    shape: DelayShape = PRODUCTION
    on_point: OnPoint | None = None
    audit: bool = True
    reads_ahead: bool = True
    clock: Callable[[], int] = now_ms
    random: Random | None = None


class PostgresWorld:
    """One store (``space``) of a database under one condition. Made by :func:`open_postgres`.

    Connections are made when they are first needed, in the event loop that then runs; the world stays in that loop.
    """

    name = "postgres"

    def __init__(
        self, dsn: str, condition: Condition, space: str, options: PostgresOptions, *, nonce: str | None = None
    ) -> None:
        self.condition = condition
        self.space = space
        self.notes: tuple[str, ...] = ()
        worker = options.worker or f"{os.getpid()}"
        self._dsn = dsn
        self._options = options
        self._nonce = nonce
        self._minter = Minter(options.clock, options.random)
        self._delay = PublishDelay(seed=f"{options.seed} {worker}", scale=options.storage_scale, shape=options.shape)
        self._reading = Reading(condition, space.encode())
        self._links: Links | None = None
        self._audit: AuditTable | None = None
        self._queue = PostgresQueue(self._connected, space, worker, lease_ms=options.lease_ms)
        self.queue: Queue = self._queue
        self._turns: dict[str, tuple[asyncio.Lock, list[int]]] = {}
        self._owed: dict[str, tuple[Intent, ...]] = {}
        self._beating: asyncio.Task[None] | None = None
        self._cleaning: set[asyncio.Task[None]] = set()
        self._closed = False

    # -- the World protocol

    async def append(self, request: AppendRequest) -> Appended | Refused:
        """Append one event under the store's condition."""
        return (await self._append((request,)))[0]

    async def append_batch(self, requests: Sequence[AppendRequest]) -> list[Appended | Refused]:
        """Append the writes of one suspension: as one where the condition is ``batch_atomic``."""
        if self.condition.batch_atomic and self.condition.locks and requests:
            return await self._append(requests)
        return [await self.append(request) for request in requests]

    async def load(self, run_id: str, after: str | None = None) -> Page:
        """The events behind the cursor, as the condition's reads show them."""
        calls: list[Call] = [self._reading.start(run_id, after)]
        counts = counts_in_band(self.condition)
        if counts:  # read before the log, so that it can only lag
            calls.insert(0, (sql.READ_TAIL, (cells.text(run_id), self._reading.space)))
        found = await self._run(calls)
        in_band = None
        if counts:
            tail = shapes.tail_of(found[0][0]) if found[0] else None
            in_band = 0 if tail is None else tail.in_band
        rows = found[-1]
        events = tuple(self._reading.events(rows))
        while self._reading.is_full(rows):
            rows = (await self._run([self._reading.on(run_id, events[-1])]))[0]
            events += tuple(self._reading.events(rows))
        return self._reading.page(events, after, self._minter.clock(), in_band)

    async def run(self, run_id: str) -> RunRow | None:
        """The run's row."""
        rows = (await self._run([(sql.READ_RUN, (cells.text(run_id), self._reading.space))]))[0]
        return shapes.run_of(rows[0]).row() if rows else None

    async def hook(self, token: str) -> HookRow | None:
        """The live hook that holds the token; of several the oldest."""
        statement = sql.FIND_OWNED_HOOK if self.condition.unique_tokens else sql.FIND_HOOK
        rows = (await self._run([(statement, (cells.text(token), self._reading.space))]))[0]
        return HookRow(cells.need(rows[0][0]), cells.need(rows[0][1]), token) if rows else None

    async def audit_of(self, run_id: str) -> tuple[AuditRecord, ...]:
        """What was written down about every append to the run, by all processes."""
        links = await self._connected()
        table = self._audit if self._audit is not None else AuditTable(links, self.space)
        return await table.read(run_id)

    async def disconnect_others(self) -> int:
        """End the connections of the workers of the storm that this store belongs to. Replies how many there were."""
        storm = self.space.partition("/")[0]
        rows = (await self._run([(END_CONNECTIONS, (cells.text(application(storm)),))]))[0]
        return cells.as_int(rows[0][0]) or 0

    async def close(self) -> None:
        """Write what the audit kept, give the store back, close the connections. StoreFailure when the audit cannot be
        written."""
        if self._closed:
            return
        self._closed = True
        if self._beating is not None:
            self._beating.cancel()
            with suppress(asyncio.CancelledError):
                await self._beating
        if self._cleaning:
            await asyncio.wait(self._cleaning, timeout=CLEAN_UP_S)
        try:
            await self._queue.close()
            if self._audit is not None:
                await self._audit.close()
            if self._nonce is not None:
                await self._run([(spaces.GIVE_BACK, (cells.text(self.space), cells.text(self._nonce)))])
        finally:
            if self._links is not None:
                links, self._links = self._links, None
                await links.leave()

    # -- interpreting an append

    async def _append(self, requests: Sequence[AppendRequest]) -> list[Appended | Refused]:
        for request in requests:
            shapes.check_texts(request)
        links = await self._connected()
        trace = Trace()
        facts = Facts.of(self.condition, self.space, requests)
        session = Session(links, facts, requests, reads_ahead=self._options.reads_ahead)
        generator = append_batch(requests, self.condition)
        try:
            answers = await self._drive(generator, session, requests[0], trace)
        except BaseException as error:
            await self._write_down(trace, requests, [error] * len(requests))
            raise
        await self._write_down(trace, requests, answers)
        return answers

    async def _drive(
        self, generator: _Generator, session: Session, request: AppendRequest, trace: Trace
    ) -> list[Appended | Refused]:
        """Perform the operations where they are asked for.

        A point behind which the database was asked has let others run by that. Where nothing was asked, and under the
        lock much is done at its end, there is nothing that another append could see, and no need to wait for it.
        """
        turn = False
        reply: Any = None
        on_point = self._options.on_point
        try:
            op = next(generator)
            while True:
                kind = type(op)
                problem: StoreFailure | None = None
                try:
                    if kind is At:
                        point = op.point  # type: ignore[union-attr]
                        trace.at(point)
                        if on_point is not None:
                            await on_point(point, request)
                        reply = None
                    elif kind in _AT_HAND:
                        reply = self._at_hand(op)
                        trace.did(op)
                    elif kind is Delay:
                        await self._pause(op.create)  # type: ignore[union-attr]
                        reply = None
                    else:
                        if kind is TakeLock:
                            await self._take_turn(request.run_id)
                            turn = True
                        elif kind is ReleaseLock and trace.published:
                            # It becomes readable with the commit. Before that, so that the next holder's comes later.
                            trace.published = time.monotonic_ns()
                        reply = await session.perform(op)
                        trace.did(op)
                        if kind is End and trace.published:
                            trace.published = time.monotonic_ns()
                        if turn and kind in _LEAVES:
                            self._leave_turn(request.run_id)
                            turn = False
                except StoreFailure as error:
                    problem, reply = error, None
                op = generator.send(reply) if problem is None else generator.throw(problem)
        except StopIteration as stop:
            answers: list[Appended | Refused] = stop.value
            return answers
        except BaseException as error:
            await self._clean_up(generator, session, error)
            raise
        finally:
            if turn:
                self._leave_turn(request.run_id)

    async def _pause(self, create: bool) -> None:  # noqa: FBT001
        ms = self._delay.draw(create=create)
        if ms > 0:
            await asyncio.sleep(ms / 1000)

    def _at_hand(self, op: StoreOp) -> Any:
        """What needs no database."""
        if isinstance(op, Clock):
            return self._minter.clock()
        if isinstance(op, Mint):
            return self._minter.mint(op.ms, monotonic=op.monotonic)
        if isinstance(op, TakeOwed):
            return self._owed.pop(op.run_id, ())
        if isinstance(op, OweRepair):
            self._owed[op.run_id] = (*self._owed.get(op.run_id, ()), op.intent)
        return None

    async def _clean_up(self, generator: _Generator, session: Session, error: BaseException) -> None:
        """The caller is gone, or a fault of ours came up: let the append clean up after itself, within a limit."""
        if generator.gi_frame is None and not session.holds:  # type: ignore[attr-defined]
            return
        task = asyncio.create_task(_finish(self, generator, session, error))
        self._cleaning.add(task)
        task.add_done_callback(self._cleaning.discard)
        if isinstance(error, (Exception, asyncio.CancelledError)):
            await asyncio.wait([task], timeout=CLEAN_UP_S)

    # -- turns: of the appends of this process to one run only one waits in the database

    async def _take_turn(self, run_id: str) -> None:
        lock, waiting = self._turns.setdefault(run_id, (asyncio.Lock(), [0]))
        waiting[0] += 1
        try:
            await asyncio.wait_for(lock.acquire(), STATEMENT_S) if lock.locked() else await lock.acquire()
        except BaseException as error:
            self._forget_turn(run_id)
            if isinstance(error, TimeoutError):
                raise StoreFailure(
                    f"the append lock of {run_id} stayed taken for {STATEMENT_S} s",
                    remedy="Look for a stopped stormctl worker, end it, and run again.",
                ) from None
            raise

    def _leave_turn(self, run_id: str) -> None:
        self._turns[run_id][0].release()
        self._forget_turn(run_id)

    def _forget_turn(self, run_id: str) -> None:
        waiting = self._turns[run_id][1]
        waiting[0] -= 1
        if not waiting[0]:
            del self._turns[run_id]

    # -- small things

    async def _connected(self) -> Links:
        """The connections, from the first use on."""
        if self._links is None:
            if self._closed:
                raise StoreFailure("the store is closed", remedy="This is a fault of stormctl.")
            self._links = Links.shared(self._dsn, self.condition.stale_ms)
            if self._options.audit:
                self._audit = AuditTable(self._links, self.space)
            if self._nonce is not None:
                self._beating = asyncio.create_task(self._beat(self._links, self._nonce))
        return self._links

    async def _run(self, calls: Sequence[Call]) -> list[Rows]:
        links = await self._connected()
        try:
            return await links.run(calls)
        except StormctlError:
            raise
        except Exception as error:
            raise links.failure(error) from error

    async def _write_down(
        self, trace: Trace, requests: Sequence[AppendRequest], answers: Sequence[Appended | Refused | BaseException]
    ) -> None:
        if self._audit is not None:
            for request, answer in zip(requests, answers, strict=True):
                await self._audit.write(trace.records(request, answer))

    async def _beat(self, links: Links, nonce: str) -> None:
        """Say that the driver lives, until cancelled. A beat that fails is made up for by the next."""
        while True:
            await asyncio.sleep(spaces.HEARTBEAT_S)
            with suppress(Exception):
                await links.run([(spaces.BEAT, (cells.text(self.space), cells.text(nonce)))])


async def _finish(world: PostgresWorld, generator: _Generator, session: Session, error: BaseException) -> None:
    try:
        op = generator.throw(error)
        while True:
            try:
                if isinstance(op, (At, Delay)):
                    reply: Any = None
                elif type(op) in _AT_HAND:
                    reply = world._at_hand(op)
                else:
                    reply = await session.perform(op)
            except StoreFailure as problem:
                op = generator.throw(problem)
            else:
                op = generator.send(reply)
    except BaseException as raised:
        if raised is not error and not isinstance(raised, (StopIteration, StoreFailure, asyncio.CancelledError)):
            raise
    finally:
        await session.drop()


_AT_HAND = frozenset({Clock, Mint, TakeOwed, OweRepair})
_LEAVES = frozenset({ReleaseLock, AbandonLock})


def open_postgres(opening: Opening) -> PostgresWorld:
    """The store ``opening.space`` of the database ``opening.dsn``: made and owned by a driver, joined by a worker.

    Connects once, and blocks for that. UsageError without a DSN, where the schema is missing (``ensure_schema`` with
    ``create`` makes it), or where the store was made under another condition; StoreForeign for a newer schema or, as a
    worker, where there is no such store; StoreBusy when another driver uses it.
    """
    if opening.dsn is None:
        raise UsageError(
            "the postgres world needs a server", remedy="Name one with --dsn or STORMCTL_DSN, or use the local world."
        )
    options = PostgresOptions(
        worker=opening.worker,
        storage_scale=opening.storage_scale,
        seed=opening.seed,
        lease_ms=opening.lease_ms,
        shape=opening.shape,
        on_point=opening.on_point,
    )
    if opening.role == "worker":
        check_schema(opening.dsn)
        spaces.join(opening.dsn, opening.space, opening.condition.name)
        return PostgresWorld(opening.dsn, opening.condition, opening.space, options)
    ensure_schema(opening.dsn, False)  # noqa: FBT003
    nonce, note = spaces.take(opening.dsn, opening.space, opening.condition.name)
    world = PostgresWorld(opening.dsn, opening.condition, opening.space, options, nonce=nonce)
    world.notes = () if note is None else (note,)
    return world
