"""The worker of stores that live in one process: the driver serves them itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from stormctl.storm.attempt import Cell
from stormctl.storm.events import WorkerDied
from stormctl.storm.faults.injector import Injector
from stormctl.storm.folder import StormFolder
from stormctl.storm.in_hand import InHand, WorkerKilled
from stormctl.storm.stores import Stores
from stormctl.storm.worker import CellWorker, serve, worker_name
from stormctl.storm.workers import Tell
from stormctl.workloads.registry import workload
from stormctl.worlds import World


class Standing:
    """Whoever is the worker at the moment: the faults of a store outlive its workers."""

    def __init__(self) -> None:
        self.hand = InHand()

    async def kill(self, reason: str) -> None:
        """Kill the worker of the moment."""
        await self.hand.kill(reason)

    async def stop(self, ms: float) -> None:
        """As of the worker of the moment."""
        await self.hand.stop(ms)


class InProcess:
    """An async context in which a task serves the stores of one process. A killed worker has a successor."""

    def __init__(
        self,
        stores: Stores,
        folder: StormFolder,
        worlds: Mapping[Cell, World],
        injectors: Mapping[Cell, Injector],
        hands: Standing,
        tell: Tell | None = None,
    ) -> None:
        self._stores = stores
        self._folder = folder
        self._worlds = worlds
        self._injectors = injectors
        self._hands = hands
        self._tell = tell
        self._serving: asyncio.Task[None] | None = None

    async def __aenter__(self) -> InProcess:
        self._serving = asyncio.create_task(self._serve())
        return self

    async def __aexit__(self, *_exception: object) -> None:
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.gather(self._serving, return_exceptions=True)

    async def watch(self) -> None:
        """Wait for the serving to end before its time, which is a fault of ours."""
        assert self._serving is not None
        await asyncio.shield(self._serving)

    async def _serve(self) -> None:
        life = 0
        name = "in-process"
        with self._folder.journal(name) as journal:
            while True:
                cells = [
                    CellWorker(
                        world,
                        self._stores.rules(cell),
                        workload(cell.scenario),
                        journal,
                        kill=self._hands.kill,
                        in_body=self._injectors[cell].in_body if self._stores.plan.faults else None,
                        perturb=self._stores.perturb(cell, f"{name}-{life}"),
                    )
                    for cell, world in self._worlds.items()
                ]
                try:
                    await serve(cells, self._hands.hand)
                    return
                except WorkerKilled as killed:
                    life += 1
                    self._hands.hand = InHand()
                    requeued = 0
                    for world in self._worlds.values():
                        requeued += await world.queue.requeue_dead(worker_name(name))
                    if self._tell is not None:
                        await self._tell(WorkerDied(name, f"was killed ({killed})", requeued, f"{name}-{life}"))
