"""A storm as its database knows it: workers on other hosts find it there, and leave there what they did."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from stormctl.errors import StormctlError
from stormctl.storm.plan import Plan, resolved_yaml
from stormctl.worlds.open import Registry, world_kind
from stormctl.worlds.owner import HEARTBEAT_S

#: how long saying that the storm has ended may take: a server that is gone would be waited for
END_SECONDS = 3.0


class Registered:
    """A storm's entry, or nothing at all for one without a database."""

    def __init__(self, registry: Registry | None, storm: str) -> None:
        self._registry = registry
        self._storm = storm

    async def work_rows(self, run_id: str) -> list[dict[str, Any]]:
        """What workers on other hosts wrote down about a run's deliveries. None are told where the server is gone."""
        if self._registry is None:
            return []
        try:
            return await self._registry.work_of(self._storm, run_id)
        except StormctlError:
            return []


@asynccontextmanager
async def registered(plan: Plan, storm: str, dsn: str | None) -> AsyncIterator[Registered]:
    """Register the storm in its database, with a heartbeat, for as long as it runs.

    StoreBusy when it is driven from another host; StoreFailure when the database cannot be had.
    """
    make = next((kind.registry for cell in plan.cells if (kind := world_kind(cell.world)).registry is not None), None)
    if make is None or dsn is None:
        yield Registered(None, storm)
        return
    registry = make(dsn)
    try:
        await registry.register_storm(storm, plan.name, resolved_yaml(plan))
        beating = asyncio.create_task(_beat(registry, storm))
        try:
            yield Registered(registry, storm)
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)
            with suppress(StormctlError, TimeoutError):
                await asyncio.wait_for(registry.end_storm(storm), END_SECONDS)
    finally:
        await registry.close()


async def _beat(registry: Registry, storm: str) -> None:
    while True:
        await asyncio.sleep(HEARTBEAT_S)
        with suppress(StormctlError):  # a beat that fails is made up for by the next
            await registry.beat(storm)
