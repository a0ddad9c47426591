"""Running a storm: attempts side by side over all cells, each with its pump, until the last has landed.

The driver prints nothing: it yields typed events. It can be cancelled at any await and leaves a usable folder; its
workers end with it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import dataclass

from stormctl.errors import StoreFailure
from stormctl.storm.attempt import Cell
from stormctl.storm.describe import calibration
from stormctl.storm.events import AttemptLanded, AttemptStarted, StormEvent, StormFinished, StormStarted
from stormctl.storm.folder import StormFolder
from stormctl.storm.plan import Plan
from stormctl.storm.run import AttemptRun, Lab
from stormctl.storm.workers import InProcess, Workers
from stormctl.worlds import World, open_world


@dataclass(frozen=True, slots=True)
class Turn:
    """One attempt to make."""

    cell: Cell
    number: int


def turns(plan: Plan) -> deque[Turn]:
    """All attempts, the cells taken in turn so that a drift of the machine hits every cell alike."""
    return deque(Turn(cell, number) for number in range(1, plan.attempts + 1) for cell in plan.cells)


async def run_storm(plan: Plan, folder: StormFolder) -> AsyncGenerator[StormEvent, None]:
    """Run every attempt of the plan and yield what happens.

    No attempt is started after the launch budget; those in flight always land. StoreFailure when a store or a worker
    fails, StoreBusy or StoreForeign when a store cannot be had: what landed before is kept. Whoever stops early closes
    the generator (``contextlib.aclosing``), which ends the workers.
    """
    began = time.monotonic()
    yield StormStarted(
        plan.name, plan.seed, folder.path, dict.fromkeys(plan.cells, plan.attempts), tuple(calibration(plan))
    )
    storm = _Storm(plan, folder)
    try:
        async with aclosing(storm.run()) as events:
            async for event in events:
                yield event
    except BaseException as bad:
        with suppress(StoreFailure):  # the disk may be what failed, and the first error is the one to tell
            storm.finish("interrupted" if isinstance(bad, (asyncio.CancelledError, GeneratorExit)) else "failed")
        raise
    reason = "budget" if storm.waiting else "done"
    storm.finish(reason)
    yield StormFinished(folder.path, storm.landed, plan.total, reason, time.monotonic() - began)


class _Storm:
    """The state of a storm in progress."""

    def __init__(self, plan: Plan, folder: StormFolder) -> None:
        self._plan = plan
        self._folder = folder
        self.waiting = turns(plan)
        self.landed = 0
        self._events: asyncio.Queue[StormEvent | BaseException | None] = asyncio.Queue(maxsize=1000)

    async def run(self) -> AsyncGenerator[StormEvent, None]:
        """Yield the events of all attempts as they come."""
        plan = self._plan
        worlds: dict[Cell, World] = {}
        try:
            for cell in plan.cells:
                worlds[cell] = open_world(
                    cell.world,
                    self._folder.store(cell),
                    cell.condition,
                    worker="driver",
                    seed=plan.seed,
                    storage_scale=plan.storage_scale,
                )
            memory = any(cell.world == "memory" for cell in plan.cells)
            async with (
                InProcess(plan, self._folder, worlds) if memory else Workers(self._folder, plan.processes)
            ) as workers:
                labs = {cell: Lab(plan, cell, worlds[cell], self._folder) for cell in plan.cells}
                deadline = time.monotonic() + plan.budget_ms / 1000
                tasks = [
                    asyncio.create_task(self._launch(labs, deadline))
                    for _ in range(min(plan.concurrency, len(self.waiting)))
                ]
                tasks.append(asyncio.create_task(self._watch(workers)))
                try:
                    left = len(tasks) - 1
                    while left:
                        event = await self._events.get()
                        if event is None:
                            left -= 1
                        elif isinstance(event, BaseException):
                            raise event
                        else:
                            yield event
                finally:
                    for task in tasks:
                        task.cancel()
                    await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            for world in worlds.values():
                await world.close()

    def finish(self, reason: str) -> None:
        """Leave a word in the folder about how the storm ended."""
        self._folder.write_json(
            "storm.json",
            {"schema": "stormctl.storm/1", "reason": reason, "landed": self.landed, "planned": self._plan.total},
        )

    async def _launch(self, labs: dict[Cell, Lab], deadline: float) -> None:
        """Make one attempt after another while there are any and the budget lasts."""
        try:
            while self.waiting and time.monotonic() < deadline:
                turn = self.waiting.popleft()
                attempt = AttemptRun(labs[turn.cell], turn.number)
                await self._events.put(AttemptStarted(turn.cell, turn.number, attempt.run_id))
                landed = await attempt.run()
                self._folder.record(landed)
                self.landed += 1
                await self._events.put(AttemptLanded(landed))
        except Exception as bad:
            await self._events.put(bad)
            return
        await self._events.put(None)

    async def _watch(self, workers: Workers | InProcess) -> None:
        try:
            await workers.watch()
        except Exception as bad:
            await self._events.put(bad)
