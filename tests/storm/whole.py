"""A whole storm on the memory world in virtual time: a plan in, and out come attempts, tables, sweeps and audit.

The driver, its worker, its faults and its report are those of `stormctl run`; only the clock is not. The same plan
gives the same storm again, so that a seed which once shows a defect always does.
"""

from __future__ import annotations

import asyncio
import io
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from rich.console import Console

from stormctl.history import AuditRecord, Capture, kinds
from stormctl.readers import open_captures
from stormctl.report.load import Artefact, load_artefact
from stormctl.report.storm import render_storm
from stormctl.report.work import WorkRow, work_rows
from stormctl.storm import stores
from stormctl.storm.after import sweep_storm
from stormctl.storm.attempt import Attempt
from stormctl.storm.events import StormEvent
from stormctl.storm.folder import StormFolder
from stormctl.storm.plan import Plan
from stormctl.storm.virtual import run_virtually
from stormctl.worlds import AppendRequest, Point
from tests.storm.making import collect

OnPoint = Callable[[Point, AppendRequest], Awaitable[None]]


@dataclass(frozen=True)
class Whole:
    """A storm that is over, read back from its folder."""

    events: list[StormEvent]
    artefact: Artefact
    captures: dict[str, Capture]

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        return self.artefact.attempts

    def of(self, condition: str) -> list[Attempt]:
        """The attempts under a condition, in the order of their numbers."""
        mine = [one for one in self.attempts if one.cell.condition == condition]
        return sorted(mine, key=lambda one: one.number)

    def outcomes(self, condition: str) -> Counter[str]:
        """How often each outcome came out under a condition."""
        return Counter(str(one.outcome) for one in self.of(condition))

    def logs(self, condition: str) -> list[Capture]:
        """What was captured of the runs of a condition."""
        return [self.captures[one.run_id or ""] for one in self.of(condition)]

    def findings(self, sweep: str, condition: str) -> int:
        """How many fatal findings a sweep has in the logs of a condition."""
        runs = {one.run_id for one in self.of(condition)}
        results = [found for log in self.artefact.logs if log.run_id in runs for found in log.sweeps]
        return sum(found.findings.get("fatal", 0) for found in results if found.sweep == sweep)

    def work(self, condition: str) -> WorkRow:
        """The row of the work table."""
        return next(row for row in work_rows(self.artefact) if row.cell.condition == condition)

    @property
    def table(self) -> str:
        """What `stormctl run` prints at the end."""
        console = Console(file=io.StringIO(), width=100, force_terminal=False)
        render_storm(self.artefact, console)
        text: str = console.file.getvalue()  # type: ignore[attr-defined]
        return text


def whole(wanted: Plan, place: Path, *, slow: OnPoint | None = None, sweeps: bool = False) -> Whole:
    """Run a storm. ``slow`` is awaited at every point of every append of every cell, beside the plan's faults."""
    folder = StormFolder.create(wanted, place)
    seen: list[StormEvent] = []

    async def main(_clock: Callable[[], int]) -> None:
        with _slowed(slow):
            await collect(wanted, folder, seen)

    run_virtually(main)
    artefact = load_artefact(folder.path)
    if sweeps:
        with patch("os.cpu_count", lambda: 1):
            list(sweep_storm(wanted, folder, list(artefact.attempts)))
        artefact = load_artefact(folder.path)
    captures = [one for one in open_captures([folder.path]) if isinstance(one, Capture)]
    return Whole(seen, artefact, {one.log.run_id or "": one for one in captures})


@contextmanager
def _slowed(slow: OnPoint | None) -> Iterator[None]:
    """Stores that are opened have something more awaited at each point."""
    opened = stores.open_world

    def slowed(*arguments: Any, **options: Any) -> Any:
        struck = options["on_point"]

        async def on_point(point: Point, request: AppendRequest) -> None:
            if slow is not None:
                await slow(point, request)
            if struck is not None:
                await struck(point, request)

        return opened(*arguments, **{**options, "on_point": on_point})

    with patch.object(stores, "open_world", slowed):
        yield


def slow_at(point: Point, *, share: float, ms: float, seed: int = 0, types: frozenset[str] = frozenset()) -> OnPoint:
    """Holds up a share of the appends at one point, of some types where any are named; never the driver's."""
    random = Random(f"slow {point} {seed}")

    async def hold_up(reached: Point, request: AppendRequest) -> None:
        if reached is not point or request.writer == "driver" or (types and request.type not in types):
            return
        if random.random() < share:
            await asyncio.sleep(ms / 1000)

    return hold_up


def both(*parts: OnPoint) -> OnPoint:
    """One after another."""

    async def hold_up(point: Point, request: AppendRequest) -> None:
        for part in parts:
            await part(point, request)

    return hold_up


def decisions(capture: Capture) -> list[AuditRecord]:
    """The admitted decisions whose writers said what they had read, in the order of the log."""
    place = {event.event_id: index for index, event in enumerate(capture.log, start=1)}
    found = [
        record
        for record in capture.audit or ()
        if record.admitted
        and record.event_id in place
        and record.snapshot is not None
        and kinds.is_decision(record.type)
    ]
    return sorted(found, key=lambda record: place[record.event_id])


def shared_snapshots(capture: Capture) -> int:
    """How many numbers of events read have decisions of several writers: none may, for the first of these writers moves
    the log beyond what the other had read."""
    writers: dict[int, set[str]] = {}
    for record in decisions(capture):
        writers.setdefault(record.snapshot or 0, set()).add(record.writer)
    return sum(len(found) > 1 for found in writers.values())


def stale_decisions(capture: Capture) -> int:
    """How many decisions stand behind another writer's that their own writer had not read."""
    place = {event.event_id: index for index, event in enumerate(capture.log, start=1)}
    before: list[tuple[int, str]] = []
    stale = 0
    for record in decisions(capture):
        stale += any(at > (record.snapshot or 0) and writer != record.writer for at, writer in before)
        before.append((place[record.event_id], record.writer))
    return stale
