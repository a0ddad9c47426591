"""What the tests of worlds are made of: requests, a clock, a failing disk, and writers that move step by step."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from stormctl.errors import StoreFailure
from stormctl.history import Event, ids
from stormctl.worlds import Appended, AppendRequest, Condition, Point, Refused, Snapshot
from stormctl.worlds.files import Files
from stormctl.worlds.local import LocalOptions, LocalWorld
from stormctl.worlds.memory import MemoryWorld
from stormctl.worlds.memory_store import BLOCKED, MemoryStore
from stormctl.worlds.mint import Minter
from stormctl.worlds.pipeline import append
from stormctl.worlds.rows import Entity, RunEntity
from stormctl.worlds.store_ops import At, Delay, StoreOp

RUN = "wrun_01M8PGBNWDM6T6H804A4Y1MJ7V"
OTHER_RUN = "wrun_01M8PGBNYW618QTC7NZCK9EMYT"
NOW = 1_764_515_687_309


def corr(kind: str, number: int) -> str:
    return f"{kind}_{ids.compose(NOW, number)}"


STEP, STEP_2 = corr("step", 1), corr("step", 2)
WAIT, HOOK, HOOK_2, ATTR = corr("wait", 3), corr("hook", 4), corr("hook", 5), corr("attr", 6)


class FakeClock:
    """Epoch milliseconds that move only when told."""

    def __init__(self, now: int = NOW) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def want(
    type: str,
    correlation_id: str | None = None,
    *,
    run: str = RUN,
    writer: str = "w",
    count: int | None = None,
    cursor: str | None = None,
    snapshot_writer: str | None = None,
    **more: Any,
) -> AppendRequest:
    """An append request; ``count`` gives it a snapshot of that many events."""
    snapshot = None if count is None else Snapshot(count, cursor, snapshot_writer or writer)
    return AppendRequest(run, type, writer=writer, correlation_id=correlation_id, snapshot=snapshot, **more)


def make_run(run: str = RUN) -> list[AppendRequest]:
    return [
        want("run_created", run=run, payload={"rounds": 2}, data={"workflowName": "step-storm"}),
        want("run_started", run=run),
    ]


def memory(condition: Condition, **options: Any) -> MemoryWorld:
    return MemoryWorld(condition, random=Random(1), **options)


def local(folder: Path, condition: Condition, **options: Any) -> LocalWorld:
    """A store opened as its driver, without injected delays."""
    return LocalWorld.create(folder, condition, LocalOptions(storage_scale=0, threads=2, **options))


def joined(folder: Path, **options: Any) -> LocalWorld:
    return LocalWorld.join(folder, None, LocalOptions(storage_scale=0, threads=2, **options))


def append_all(world: LocalWorld | MemoryWorld, requests: list[AppendRequest]) -> list[Appended | Refused]:
    """Append one after another, then close the world."""

    async def go() -> list[Appended | Refused]:
        try:
            return [await world.append(request) for request in requests]
        finally:
            await world.close()

    return asyncio.run(go())


def types(events: tuple[Event, ...] | list[Event]) -> list[str]:
    return [event.type for event in events]


# -- writers that move from point to point ----------------------------------------------------------------------------


class Writer:
    """One append on a memory store that a test moves by hand."""

    def __init__(self, store: MemoryStore, request: AppendRequest) -> None:
        self._store = store
        self.run_id = request.run_id
        self._generator: Generator[StoreOp, Any, Appended | Refused] = append(request, store.condition)
        self._next: StoreOp | None = next(self._generator)
        self.answer: Appended | Refused | None = None
        self.point = Point.ENTER

    @property
    def done(self) -> bool:
        return self.answer is not None

    def step(self) -> bool:
        """Go on to the next point behind at least one operation on the store; False when a taken lock is in the way."""
        worked = False
        while self._next is not None:
            op = self._next
            if isinstance(op, At):
                self.point = op.point
                if worked:
                    return True
            reply = self._store.perform(op)
            if reply is BLOCKED:
                return False
            worked = worked or not isinstance(op, (At, Delay))
            try:
                self._next = self._generator.send(reply)
            except StopIteration as stop:
                self.answer, self._next = stop.value, None
        return True


def interleavings(
    condition: Condition, before: list[AppendRequest], requests: list[AppendRequest]
) -> Iterator[tuple[tuple[int, ...], MemoryStore, list[Appended | Refused]]]:
    """Every order in which the writers of the requests can take their turns: the order, the store, the answers."""
    pending: list[tuple[int, ...]] = [()]
    while pending:
        schedule = pending.pop()
        store = MemoryStore(condition, Minter(FakeClock(), Random(3)))
        for request in before:
            writer = Writer(store, request)
            while not writer.done:
                assert writer.step()
        writers = [Writer(store, request) for request in requests]
        for turn in schedule:
            writers[turn].step()
        taken = list(schedule)
        while True:
            able = [index for index, writer in enumerate(writers) if not writer.done and _can_move(store, writer)]
            if not able:
                break
            pending.extend((*taken, index) for index in able[1:])
            writers[able[0]].step()
            taken.append(able[0])
        answers = [writer.answer for writer in writers]
        assert all(answer is not None for answer in answers), "a writer was never let in"
        yield tuple(taken), store, [answer for answer in answers if answer is not None]


def some_interleavings(
    condition: Condition, before: list[AppendRequest], requests: list[AppendRequest], count: int
) -> Iterator[MemoryStore]:
    """The store after the writers took their turns in a random order, for that many seeds."""
    for seed in range(count):
        random = Random(seed)
        store = MemoryStore(condition, Minter(FakeClock(), Random(3)))
        for request in before:
            writer = Writer(store, request)
            while not writer.done:
                assert writer.step()
        writers = [Writer(store, request) for request in requests]
        while able := [writer for writer in writers if not writer.done and _can_move(store, writer)]:
            random.choice(able).step()
        assert all(writer.done for writer in writers)
        yield store


def _can_move(store: MemoryStore, writer: Writer) -> bool:
    return not (writer.point is Point.LOCK and writer.run_id in store.held)


# -- a failing disk ---


class FailingFiles(Files):
    """A file layer whose write number ``fail_at`` fails, and (``lasting``) every one after it until :meth:`mend`.

    Half of the data reaches the file, as on a full disk.
    """

    def __init__(self, *, lasting: bool = False) -> None:
        self.writes = 0
        self.fail_at: int | None = None
        self.lasting = lasting
        self.failed = 0

    def mend(self) -> None:
        self.fail_at = None

    def _count(self, path: str, half: Callable[[], None] | None = None) -> None:
        number, self.writes = self.writes, self.writes + 1
        if self.fail_at is None or number < self.fail_at:
            return
        if not self.lasting:
            self.fail_at = None
        self.failed += 1
        if half is not None:
            half()
        raise OSError(errno.ENOSPC, "No space left on device", path)

    def write_new(self, path: str, data: bytes) -> None:
        self._count(path, lambda: Files.write_new(self, path, data[: len(data) // 2]))
        super().write_new(path, data)

    def create(self, path: str) -> int:
        self._count(path)
        return super().create(path)

    def write_in_place(self, path: str, data: bytes) -> None:
        self._count(path, lambda: Files.write_in_place(self, path, data[: len(data) // 2]))
        super().write_in_place(path, data)

    def rewrite(self, fd: int, data: bytes) -> None:
        self._count("a holder", lambda: Files.rewrite(self, fd, data[: len(data) // 2]))
        super().rewrite(fd, data)

    def append(self, path: str, data: bytes) -> None:
        self._count(path, lambda: Files.append(self, path, data[: len(data) // 2]))
        super().append(path, data)

    def link(self, source: str, target: str) -> None:
        self._count(target)
        super().link(source, target)

    def rename(self, source: str, target: str) -> None:
        self._count(target)
        super().rename(source, target)

    def unlink(self, path: str) -> None:
        self._count(path)
        super().unlink(path)

    def age(self, fd: int, seconds: float) -> None:
        self._count("a lock")
        super().age(fd, seconds)


async def try_append(world: LocalWorld, request: AppendRequest) -> Appended | Refused | StoreFailure:
    try:
        return await world.append(request)
    except StoreFailure as failure:
        return failure


def timeless(row: Entity | RunEntity | None) -> Entity | RunEntity | None:
    """A row without its times: one that is written before its event is minted can be some milliseconds older."""
    return None if row is None else replace(row, created_at=0, updated_at=0, started_at=None, completed_at=None)
