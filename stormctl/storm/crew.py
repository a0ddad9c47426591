"""Everybody who works for a storm: its stores, their workers, and the driver's own faults, by kind of world."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from stormctl.errors import StoreFailure, StormctlError
from stormctl.storm.attempt import Cell
from stormctl.storm.events import StormNoted
from stormctl.storm.faults.base import Fault
from stormctl.storm.faults.fired import FaultFired
from stormctl.storm.faults.injector import Injector
from stormctl.storm.folder import StormFolder
from stormctl.storm.in_process import InProcess, Standing
from stormctl.storm.plan import faults_of
from stormctl.storm.stores import Stores
from stormctl.storm.workers import Tell, Workers
from stormctl.worlds import World
from stormctl.worlds.mint import now_ms
from stormctl.worlds.open import world_kind

DRIVER = "driver"
#: how long a store may take to be closed: one whose server is gone would wait for it to come back
CLOSE_SECONDS = 10.0


class Crew:
    """Stores are opened by :meth:`stores` and closed with it. Entering it starts the workers, leaving it ends them."""

    def __init__(self, stores: Stores, folder: StormFolder, tell: Tell) -> None:
        self._stores = stores
        self._folder = folder
        self._tell = tell
        self._hands = Standing()
        self._ledger = stores.ledger(DRIVER)
        self._worlds: dict[Cell, World] = {}
        self._injectors: dict[Cell, Injector] = {}
        self._stack = AsyncExitStack()
        self._members: list[InProcess | Workers] = []

    @asynccontextmanager
    async def stores(self) -> AsyncIterator[dict[Cell, World]]:
        """The store of every cell, open."""
        try:
            for cell in self._stores.plan.cells:
                injector = self._stores.injector(cell, DRIVER, self._hands, self._ledger)
                self._injectors[cell] = injector
                self._worlds[cell] = self._stores.open(cell, "driver", DRIVER, injector)
            yield self._worlds
        except BaseException:
            await close_all(self._worlds.values())  # the first failure is the one to tell
            raise
        for problem in await close_all(self._worlds.values()):
            raise problem

    async def __aenter__(self) -> Crew:
        plan = self._stores.plan
        inside = {
            cell: world for cell, world in self._worlds.items() if world_kind(self._stores.world(cell)).in_process
        }
        outside = {cell: world for cell, world in self._worlds.items() if cell not in inside}
        if inside:
            self._members.append(
                InProcess(self._stores, self._folder, inside, self._injectors, self._hands, self._tell)
            )
        if outside:
            spare = sum(fault.when.limit or 0 for fault in plan.faults if fault.when is not None)
            self._members.append(
                Workers(
                    self._folder,
                    plan.processes,
                    worlds=outside,
                    dsn=self._stores.dsn,
                    tell=self._tell,
                    spare=spare,
                )
            )
        try:
            for member in self._members:
                await self._stack.enter_async_context(member)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self._stack.aclose()

    def watches(self) -> Iterator[Coroutine[Any, Any, None]]:
        """What must be awaited as long as the storm runs."""
        for member in self._members:
            yield member.watch()
        for cell, world in self._worlds.items():
            for number, fault in faults_of(self._stores.plan, cell):
                if fault.period_ms is not None:
                    yield self._press(cell, world, number, fault, fault.period_ms)

    async def _press(self, cell: Cell, world: World, number: int, fault: Fault, period_ms: float) -> None:
        """Let a fault of the driver's strike again and again, until its limit."""
        limit = fault.when.limit if fault.when is not None else None
        while True:
            await asyncio.sleep(period_ms / 1000)
            if not self._ledger.claim(number, limit):
                return
            fired = FaultFired(number, fault.label, DRIVER, now_ms(), cell=cell.label)
            self._ledger.write(fired)
            try:
                await fault.press(world)
            except StormctlError as bad:
                await self._tell(StormNoted(f"{fault.label} failed: {bad}"))


async def close_all(worlds: Iterable[World]) -> list[BaseException]:
    """Close stores, all at once and within a limit. Replies what went wrong."""
    closing = [asyncio.wait_for(world.close(), CLOSE_SECONDS) for world in worlds]
    found = [one for one in await asyncio.gather(*closing, return_exceptions=True) if isinstance(one, BaseException)]
    return [_too_slow() if isinstance(one, TimeoutError) else one for one in found]


def _too_slow() -> StoreFailure:
    return StoreFailure(
        f"a store could not be closed within {CLOSE_SECONDS:.0f} s",
        remedy="Look at its server or disk; the attempts that landed are kept.",
    )
