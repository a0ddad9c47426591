"""Running a storm: attempts side by side over all cells, each with its pump, until the last has landed.

The driver prints nothing: it yields typed events. It can be cancelled at any await and leaves a usable folder; its
workers end with it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from stormctl.errors import StoreFailure
from stormctl.outside import outside
from stormctl.storm.attempt import Cell
from stormctl.storm.describe import calibration
from stormctl.storm.embedded import Embedded
from stormctl.storm.events import AttemptLanded, AttemptStarted, StormEvent, StormFinished, StormNoted, StormStarted
from stormctl.storm.folder import StormFolder
from stormctl.storm.plan import Plan
from stormctl.storm.resume import Earlier
from stormctl.storm.run import AttemptRun, Lab
from stormctl.storm.subject import Stage, Target
from stormctl.storm.until import FILE as UNTIL_FILE
from stormctl.storm.until import Until

NEVER_STARTED = Earlier()


@dataclass(frozen=True, slots=True)
class Turn:
    """One attempt to make."""

    cell: Cell
    number: int


def turns(plan: Plan, earlier: Earlier = NEVER_STARTED) -> deque[Turn]:
    """All attempts that have not landed, the cells in turn, so that a drift of the machine hits every cell alike."""
    landed = {(one.cell, one.number) for one in earlier.landed}
    return deque(
        Turn(cell, number)
        for number in range(1, plan.attempts + 1)
        for cell in plan.cells
        if number <= plan.attempts_of(cell) and (cell, number) not in landed
    )


def rounds(waiting: deque[Turn], *, apart: bool) -> list[deque[Turn]]:
    """The turns in the order in which they are taken: one round of all, or cell after cell."""
    if not apart:
        return [waiting]
    by_cell: dict[Cell, deque[Turn]] = {}
    for turn in waiting:
        by_cell.setdefault(turn.cell, deque()).append(turn)
    return list(by_cell.values())


async def run_storm(
    plan: Plan,
    folder: StormFolder,
    *,
    earlier: Earlier = NEVER_STARTED,
    target: Target | None = None,
    until: Until | None = None,
) -> AsyncGenerator[StormEvent, None]:
    """Run every attempt of the plan that has not landed ``earlier`` and yield what happens.

    ``target`` is what runs them; none stands for our own runtime without a database. No attempt is started after the
    launch budget, nor once ``until`` is resolved; those in flight always land. StoreFailure when a store fails, or the
    workers do again and again; StoreBusy or StoreForeign when a store cannot be had, or another driver has the folder:
    what landed before is kept. Whoever stops early closes the generator (``contextlib.aclosing``): the workers end.
    """
    began = outside().running_ns()
    yield StormStarted(
        plan.name,
        plan.seed,
        folder.path,
        {cell: plan.attempts_of(cell) for cell in plan.cells},
        tuple(calibration(plan)),
        len(earlier.landed),
    )
    storm = _Storm(plan, folder, earlier, target if target is not None else Embedded(), until)
    with folder.owned() as note:
        if note is not None:
            yield StormNoted(note)
        try:
            async with aclosing(storm.run()) as events:
                async for event in events:
                    yield event
        except BaseException as bad:
            with suppress(StoreFailure):  # the disk may be what failed, and the first error is the one to tell
                storm.finish("interrupted" if isinstance(bad, (asyncio.CancelledError, GeneratorExit)) else "failed")
            raise
        reason = "resolved" if storm.resolved else "budget" if storm.left else "done"
        storm.finish(reason)
    yield StormFinished(folder.path, storm.landed, plan.total, reason, (outside().running_ns() - began) / 1e9)


def _seconds() -> float:
    return outside().running_ns() / 1e9


class _Storm:
    """The state of a storm in progress."""

    def __init__(self, plan: Plan, folder: StormFolder, earlier: Earlier, target: Target, until: Until | None) -> None:
        self._plan = plan
        self._folder = folder
        self._earlier = earlier
        self._target = target
        self._until = until
        self.waiting = turns(plan, earlier)
        self.left = len(self.waiting)
        self.landed = len(earlier.landed)
        self._events: asyncio.Queue[StormEvent | BaseException | None] = asyncio.Queue(maxsize=1000)

    @property
    def resolved(self) -> bool:
        """Whether the storm has shown what it was run for, so that nothing more is started."""
        return self._until is not None and self._until.resolved

    async def run(self) -> AsyncGenerator[StormEvent, None]:
        """Yield the events of all attempts as they come."""
        plan = self._plan
        self._keep_standing()
        async with self._target.stage(plan, self._folder, self._events.put, self._earlier.lost) as stage:
            for note in stage.notes:
                yield StormNoted(note)
            tasks = [asyncio.create_task(self._rounds(stage))]
            tasks += [asyncio.create_task(self._watch(one)) for one in stage.watches()]
            try:
                while (event := await self._events.get()) is not None:
                    if isinstance(event, BaseException):
                        raise event
                    yield event
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    def finish(self, reason: str) -> None:
        """Leave a word in the folder about how the storm ended."""
        self._keep_standing()
        self._folder.write_json(
            "storm.json",
            {"schema": "stormctl.storm/1", "reason": reason, "landed": self.landed, "planned": self._plan.total},
        )

    def _keep_standing(self) -> None:
        if self._until is not None:
            self._folder.write_json(UNTIL_FILE, self._until.row())

    async def _rounds(self, stage: Stage) -> None:
        """Make every round of attempts, each when all of the one before have landed."""
        try:
            labs = {cell: Lab(self._plan, cell, self._folder) for cell in self._plan.cells}
            deadline: float | None = None
            for waiting in rounds(self.waiting, apart=self._target.apart):
                cells = tuple(dict.fromkeys(turn.cell for turn in waiting))
                if deadline is not None and _seconds() >= deadline:
                    break
                for cell in cells:
                    await stage.open(cell)
                    labs[cell].fit(stage)
                if deadline is None:  # what had to be installed and started first is not launching
                    deadline = _seconds() + self._plan.budget_ms / 1000
                await self._round(stage, waiting, labs, deadline)
                for cell in cells:
                    await stage.close(cell)
        except Exception as bad:
            await self._events.put(bad)
            return
        await self._events.put(None)

    async def _round(self, stage: Stage, waiting: deque[Turn], labs: dict[Cell, Lab], deadline: float) -> None:
        launching = [
            asyncio.create_task(self._launch(stage, waiting, labs, deadline))
            for _ in range(min(self._plan.concurrency, len(waiting)))
        ]
        try:
            await asyncio.gather(*launching)
        finally:
            for task in launching:
                task.cancel()
            await asyncio.gather(*launching, return_exceptions=True)

    async def _launch(self, stage: Stage, waiting: deque[Turn], labs: dict[Cell, Lab], deadline: float) -> None:
        """Make one attempt after another while there are any and the budget lasts."""
        while waiting and _seconds() < deadline and not self.resolved:
            turn = waiting.popleft()
            self.left -= 1
            subject = stage.subject(turn.cell, turn.number)
            attempt = AttemptRun(labs[turn.cell], subject, turn.number, self._earlier.note(turn.cell, turn.number))
            landed = await attempt.run(partial(self._announce, turn))
            self._folder.record(landed)
            self.landed += 1
            await self._events.put(AttemptLanded(landed))
            if self._until is not None and (said := self._until.landed(landed)) is not None:
                await self._events.put(StormNoted(said))

    async def _announce(self, turn: Turn, run_id: str) -> None:
        self._folder.announce(turn.cell, turn.number, run_id)
        await self._events.put(AttemptStarted(turn.cell, turn.number, run_id))

    async def _watch(self, watching: Coroutine[Any, Any, None]) -> None:
        try:
            await watching
        except Exception as bad:
            await self._events.put(bad)
