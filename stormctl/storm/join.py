"""A worker on any host: it joins a running storm through the database and serves the cells that lie there.

It has no folder of the storm. Its work journal goes into the database. Faults that strike workers or messages leave it
alone: nobody would replace it, and their limits are kept in the storm's folder; a planned delay of publication holds.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from stormctl.errors import StormctlError, UsageError
from stormctl.storm.attempt import Cell
from stormctl.storm.plan import Plan, parse_plan
from stormctl.storm.planfile import parse_yaml
from stormctl.storm.stores import Stores
from stormctl.storm.worker import Journal, until_terminated, work
from stormctl.worlds.open import WORLDS, Registry, StormRow, WorldKind, world_kind
from stormctl.worlds.process import STORM_VARIABLE, host

FLUSH_SECONDS = 0.25
LOOK_SECONDS = 1.0
#: how many rows of the journal wait at most while the database does not answer; older ones are then lost
MOST_ROWS = 10_000

Say = Callable[[str], None]


def join(dsn: str, storm: str | None, name: str | None, say: Say) -> None:
    """Serve a storm until it ends, or until SIGTERM; KeyboardInterrupt passes through.

    ``storm`` is its id, which may be left out while only one storm runs there. UsageError when there is none, or
    several; and whatever reaching the database raises.
    """
    kind = _kind()
    assert kind.server is not None
    server = kind.server(dsn)
    asyncio.run(until_terminated(_Joined(kind, server.dsn, server.shown, name, say).serve(storm)))


def _kind() -> WorldKind:
    return next(kind for kind in WORLDS.values() if kind.registry is not None)


class _Joined:
    """One worker, from finding its storm to that storm's end."""

    def __init__(self, kind: WorldKind, dsn: str, shown: str, name: str | None, say: Say) -> None:
        self._kind = kind
        self._dsn = dsn
        self._shown = shown
        self._worker = f"{name or f'{host()}-{os.getpid()}'}-{secrets.token_hex(3)}"
        self._say = say
        self._rows: list[Mapping[str, Any]] = []

    async def serve(self, wanted: str | None) -> None:
        assert self._kind.registry is not None
        registry = self._kind.registry(self._dsn)
        try:
            storm = self._chosen(await registry.running_storms(), wanted)
            plan = parse_plan(parse_yaml(storm.plan, f"the plan of storm {storm.id}"), f"the plan of storm {storm.id}")
            cells = [cell for cell in plan.cells if world_kind(cell.world).needs_server]
            if not cells:
                raise UsageError(
                    f"no cell of storm {storm.id} lies in a database",
                    remedy="Its own workers serve it, on its machine.",
                )
            self._say(f"joined storm {storm.name} ({storm.id}) of {storm.host}: serving {len(cells)} cells")
            os.environ[STORM_VARIABLE] = storm.id
            await self._until_ended(registry, storm.id, plan, cells)
        finally:
            await registry.close()

    def _chosen(self, running: Sequence[StormRow], wanted: str | None) -> StormRow:
        found = [one for one in running if wanted in (None, one.id)]
        if not found:
            what = "no storm is running" if wanted is None else f"storm {wanted} is not running"
            known = f"Running there: {', '.join(one.id for one in running)}." if running else "Start one there first."
            raise UsageError(f"{what} in {self._shown}", remedy=known)
        if len(found) > 1:
            listed = ", ".join(f"{one.id} ({one.name}, {one.host})" for one in found)
            what = f"{len(found)} storms are running in {self._shown}"
            raise UsageError(what, remedy=f"Name one with --storm: {listed}.")
        return found[0]

    async def _until_ended(self, registry: Registry, storm: str, plan: Plan, cells: Sequence[Cell]) -> None:
        stores = Stores(plan, storm, None, self._dsn)
        working = asyncio.create_task(work(stores, cells, self._worker, self._journal, give_back=True))
        tasks = [
            working,
            asyncio.create_task(self._watch(registry, storm)),
            asyncio.create_task(self._flush(registry, storm)),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            self._say("the storm has ended")
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            with suppress(StormctlError):
                await self._write(registry, storm)

    def _journal(self, _cell: Cell) -> Journal:
        return self._rows.append

    async def _watch(self, registry: Registry, storm: str) -> None:
        """Return when the storm has ended, or its driver gave no sign of life for too long."""
        while any(one.id == storm for one in await registry.running_storms()):
            await asyncio.sleep(LOOK_SECONDS)

    async def _flush(self, registry: Registry, storm: str) -> None:
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            with suppress(StormctlError):  # they are kept and written with the next ones
                await self._write(registry, storm)

    async def _write(self, registry: Registry, storm: str) -> None:
        del self._rows[:-MOST_ROWS]
        rows = list(self._rows)
        if rows:
            await registry.journal(storm, rows)
            del self._rows[: len(rows)]
