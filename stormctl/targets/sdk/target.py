"""The target ``sdk``: storms against the published Workflow SDK, each cell a version on a store of its own.

Cells are run one after the other: a run that diverges floods its server, and would slow down whatever shares the
machine. Every version is installed before the first attempt, so that one that cannot be had ends the storm at once.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from stormctl.errors import StormctlError, UsageError
from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.events import StormNoted
from stormctl.storm.folder import StormFolder
from stormctl.storm.plan import Plan
from stormctl.storm.resume import Lost
from stormctl.storm.sdk_plan import LOCAL, environment_of, processes_of, version_of, world_of
from stormctl.storm.subject import Subject, Tell
from stormctl.sweeps import SweepPlan
from stormctl.sweeps.profiles import AUTO
from stormctl.targets.outside import LocalStore, Outside, PostgresStore
from stormctl.targets.run import RefusedRun
from stormctl.targets.sdk import projects
from stormctl.targets.sdk.account import account
from stormctl.targets.sdk.databases import Databases
from stormctl.targets.sdk.generations import generation_of
from stormctl.targets.sdk.host import Host, HostBusy, HostDied
from stormctl.targets.sdk.projects import Project
from stormctl.targets.sdk.replay.storms import account_of_replays, judges, replayed_too
from stormctl.targets.sdk.run import SdkRun
from stormctl.targets.sdk.station import Starts, Station
from stormctl.targets.sdk.workflows import fitted, twin, whole_ms
from stormctl.worlds.open import ServerHandle


class SdkTarget:
    """The target. ``server`` is the database server for cells on postgres. ``replays`` are the real engines that every
    log is replayed by too (``sdk:own``, ...). ``ensure`` and ``start`` are for tests."""

    #: one diverging run takes a core, so that cells side by side would measure each other
    apart = True

    def __init__(
        self,
        server: ServerHandle | None = None,
        *,
        replays: Sequence[str] = (),
        ensure: Any = projects.ensure,
        start: Starts = Host.start,
    ) -> None:
        self._server = server
        self._replays = tuple(replays)
        self._ensure = ensure
        self._start = start

    def sweeps(self, cell: Cell) -> SweepPlan:
        """By the profile of its line of releases, and replayed by the generation of ours that predicts it best, and by
        the real engines that the plan asks for."""
        version, environment = version_of(cell), environment_of(cell)
        plan = SweepPlan(profile=AUTO, workload=cell.scenario, engines=(generation_of(version, environment),))
        return replayed_too(plan, self._replays, version=version, environment=environment)

    def account(self, folder: StormFolder, attempts: Sequence[Attempt]) -> Iterator[str]:
        """Which of the divergences that the SDK printed are predicted, and what the real engine made of the logs."""
        yield from account(folder, attempts, _stands_for)
        yield from account_of_replays(folder, attempts, lambda cell: self.sweeps(cell).engines)

    @asynccontextmanager
    async def stage(
        self, plan: Plan, folder: StormFolder, tell: Tell, _lost: Sequence[Lost] = ()
    ) -> AsyncIterator[_Stage]:
        """A stage whose cells are opened one by one. Runs of a driver that died went with its servers."""
        for scenario in plan.scenarios:
            twin(scenario)
        databases = Databases(self._server, folder.id)
        stage = _Stage(plan, folder, tell, databases, self._ensure, self._start, judges(self._replays))
        try:
            yield stage
        finally:
            await stage.close_all()


class _Stage:
    def __init__(
        self,
        plan: Plan,
        folder: StormFolder,
        tell: Tell,
        databases: Databases,
        ensure: Any,
        start: Starts,
        judges: Sequence[str] = (),
    ) -> None:
        self._plan = plan
        self._judges = judges
        self._folder = folder
        self._tell = tell
        self._databases = databases
        self._ensure = ensure
        self._start = start
        self._projects: dict[tuple[str, str], Project] = {}
        self._stations: dict[Cell, Station] = {}
        self._refused: dict[Cell, StormctlError] = {}

    @property
    def notes(self) -> Iterator[str]:
        yield from ()

    def watches(self) -> Iterator[Coroutine[Any, Any, None]]:
        yield from ()

    async def open(self, cell: Cell) -> None:
        """Install whatever the plan needs, once, and start the cell's servers on a fresh store.

        A server that does not come up is told, and costs the attempts of its cell only.
        """
        await self._install()
        project = self._projects[version_of(cell), world_of(cell)]
        place, number = _fresh(self._folder.store(cell))
        name = await self._databases.make(self._plan.cells.index(cell) + 1, number, project)
        try:
            self._stations[cell] = await Station.open(
                cell.label,
                project,
                place,
                LocalStore if name is None else _postgres(name),
                processes=processes_of(cell),
                dsn=name,
                environment=environment_of(cell),
                faults=self._plan.host_faults,
                seed=self._plan.seed,
                tell=self._tell,
                start=self._start,
            )
        except (HostDied, HostBusy) as bad:
            self._refused[cell] = bad
            await self._tell(StormNoted(f"{cell.label}: {bad}\nNothing is measured in this cell."))

    async def close(self, cell: Cell) -> None:
        """Stop its servers and drop its database: what is wanted of it was captured."""
        station = self._stations.pop(cell, None)
        if station is not None:
            await station.close()
        await self._databases.drop(self._plan.cells.index(cell) + 1)

    async def close_all(self) -> None:
        """As :meth:`close`, for every cell that is still open."""
        for cell in self._plan.cells:
            with contextlib.suppress(StormctlError):  # whatever ended the storm is what is told
                await self.close(cell)

    def fitted(self, cell: Cell, input: Any) -> Any:
        """Without attributes where the version has none, and in whole milliseconds, as timers are over there."""
        project = self._projects[version_of(cell), world_of(cell)]
        return whole_ms(fitted(input, attributes=project.attributes))

    def subject(self, cell: Cell, _number: int) -> Subject:
        if cell in self._refused:
            return RefusedRun(self._refused[cell])
        version, environment = version_of(cell), environment_of(cell)
        about = {
            "version": version,
            "environment": environment,
            "generation": generation_of(version, environment),  # which of ours stands for it
        }
        return SdkRun(self._stations[cell], cell.scenario, about)

    async def _install(self) -> None:
        told = asyncio.get_running_loop()

        def say(text: str) -> None:
            asyncio.run_coroutine_threadsafe(self._say(text), told)

        for cell in self._plan.cells:
            key = version_of(cell), world_of(cell)
            if key not in self._projects:
                self._projects[key] = await asyncio.to_thread(self._ensure, *key, tell=say)
        for version in self._judges:
            key = version, LOCAL
            if key not in self._projects:
                self._projects[key] = await asyncio.to_thread(self._ensure, *key, tell=say)

    async def _say(self, text: str) -> None:
        await self._tell(StormNoted(text))


def _stands_for(cell: Cell) -> str:
    return generation_of(version_of(cell), environment_of(cell))


def _fresh(place: Path) -> tuple[Path, int]:
    """A folder below the cell's that no earlier life of the storm used: its servers would take up the old runs."""
    for number in range(1, 1000):
        if not (place / str(number)).exists():
            return place / str(number), number
    raise UsageError(f"{place} was used a thousand times", remedy="Start a new storm.")


def _postgres(dsn: str) -> Any:
    def store(_data: Path) -> Outside:
        return PostgresStore(dsn)

    return store
