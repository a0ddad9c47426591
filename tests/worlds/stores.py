"""One store of each kind, opened by as many worlds as a test wants: what the conformance tests run on.

A test that takes the fixture ``stores`` runs on memory, in a folder and on PostgreSQL.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any

from stormctl.history import Event, ids
from stormctl.worlds import Appended, AppendRequest, Condition, Point, Refused, World, condition_named, open_world
from stormctl.worlds.local import LocalOptions, LocalWorld
from stormctl.worlds.memory import MemoryWorld
from stormctl.worlds.memory_store import MemoryStore
from stormctl.worlds.mint import Minter
from stormctl.worlds.postgres.inspect import connect
from tests.worlds.making import RUN

KINDS = ("memory", "local", "postgres")
OnPoint = Callable[[Point, AppendRequest], Awaitable[None]]

_numbers = count(1)


class Stores:
    """A store of one kind. ``open`` may be called again: the second world is another process's."""

    def __init__(self, kind: str, folder: Path, dsn: str | None) -> None:
        self.kind = kind
        self._folder = folder
        self._dsn = dsn
        self._stack = AsyncExitStack()
        self._memory: dict[str, MemoryStore] = {}
        self._opened = 0
        #: what no other store in the same database begins its spaces with
        self._own = f"{os.getpid()}-{next(_numbers)}"

    def named(self, name: str) -> Condition:
        """The condition as this kind of world follows it."""
        return condition_named(name, self.kind)

    def open(self, condition: Condition | str, *, on_point: OnPoint | None = None, space: str = "one") -> World:
        """A world on the store; closed with the ``async with`` of this object."""
        world = self._open(self.named(condition) if isinstance(condition, str) else condition, on_point, space)
        self._stack.push_async_callback(world.close)
        return world

    def _open(self, condition: Condition, on_point: OnPoint | None, space: str) -> World:
        self._opened += 1
        worker = f"w{self._opened}"
        if self.kind == "memory":
            store = self._memory.setdefault(space, MemoryStore(condition, Minter(random=Random(self._opened))))
            store.condition = condition
            return MemoryWorld(condition, store=store, on_point=on_point)
        if self.kind == "local":
            options = LocalOptions(storage_scale=0, threads=2, on_point=on_point, worker=worker)
            folder = self._folder / space
            if not (folder / "store.json").exists():
                return LocalWorld.create(folder, condition, options)
            facts = json.loads((folder / "store.json").read_text())
            if facts["condition"] != condition.name:  # a store that is taken over: what was written stays
                (folder / "store.json").write_text(json.dumps(facts | {"condition": condition.name}))
            return LocalWorld.join(folder, condition, options)
        assert self._dsn is not None
        space = f"{self._own}-{space}"
        if self._opened > 1:  # a store that is taken over: what was written stays
            with connect(self._dsn) as connection:
                taken_over = "update stormctl.spaces set condition = %s where space = %s"
                connection.execute(taken_over, (condition.name, space))
        return open_world(
            "postgres",
            None,
            condition,
            dsn=self._dsn,
            space=space,
            role="driver" if self._opened == 1 else "worker",
            worker=worker,
            storage_scale=0,
            on_point=on_point,
        )

    async def __aenter__(self) -> Stores:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()


class Stop:
    """Holds up the appends of one writer when they reach a point, until told to go on; as ``on_point`` of a world.

    Never told to, it is a writer that died there, as far as anybody else can see.
    """

    def __init__(self, point: Point, writer: str = "A") -> None:
        self.point = point
        self.writer = writer
        self.armed = True
        self._there = asyncio.Event()
        self._go_on = asyncio.Event()

    async def __call__(self, at: Point, request: AppendRequest) -> None:
        if self.armed and at is self.point and request.writer == self.writer:
            self._there.set()
            await self._go_on.wait()

    async def reached(self, slow: asyncio.Task[Any]) -> bool:
        """Wait until the writer stands there; False when its append was over before."""
        waiting = asyncio.create_task(self._there.wait())
        await asyncio.wait([waiting, slow], return_when=asyncio.FIRST_COMPLETED, timeout=30)
        waiting.cancel()
        return self._there.is_set()

    def go_on(self) -> None:
        """Let it, and everybody after it, pass."""
        self.armed = False
        self._go_on.set()


class Fresh:
    """Renames runs, entities and tokens of requests, so that many little runs fit into one store."""

    def __init__(self) -> None:
        self._number = next(_numbers)

    def __call__(self, request: AppendRequest) -> AppendRequest:
        corr = request.correlation_id
        return replace(
            request,
            run_id=self.run(request.run_id),
            correlation_id=None if corr is None else self.corr(corr),
            token=None if request.token is None else f"{request.token}-{self._number}",
        )

    def run(self, run_id: str = RUN) -> str:
        """The run that stands for this one."""
        return self._moved(run_id, 40)

    def corr(self, correlation_id: str) -> str:
        """The entity that stands for this one."""
        return self._moved(correlation_id, 20)

    def _moved(self, name: str, shift: int) -> str:
        kind, body = ids.split(name)
        return f"{kind}_{ids.body_of(ids.ordinal(body) + (self._number << shift))}"


async def append(world: World, requests: list[AppendRequest]) -> list[Appended | Refused]:
    """Append one after another."""
    return [await world.append(request) for request in requests]


async def logged(world: World, run_id: str) -> tuple[Event, ...]:
    """The run's whole log."""
    return (await world.load(run_id)).events


def word(answer: Appended | Refused) -> str:
    """What an answer says, in one word: the position of what landed, ``ulid`` without one, or the refusal."""
    if isinstance(answer, Refused):
        return str(answer.refusal)
    if not answer.events:
        return "nothing"
    position = answer.events[-1].position
    return "ulid" if position is None else str(position)
