"""The workers of a storm, as their driver sees them: started, watched, and replaced when one dies.

A worker's death is an event of the storm and not its end: faults kill workers on purpose, and a scenario may kill its
own. What a dead worker had in hand goes back to the queues at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stormctl.errors import StoreFailure
from stormctl.storm.attempt import Cell
from stormctl.storm.events import StormEvent, WorkerDied
from stormctl.storm.folder import StormFolder
from stormctl.storm.worker import DSN_VARIABLE, worker_name
from stormctl.worlds import World
from stormctl.worlds.process import STORM_VARIABLE

#: how long a worker may take to end after it was asked to
GRACE_SECONDS = 3.0
#: how long workers may take until they serve
READY_SECONDS = 120.0
#: how many workers one storm may lose in all
MAX_DEATHS = 5_000
#: how many of them may end by an error of their own, which is a store or a program that does not work
MAX_FAILURES = 5
#: how many may die in a row without having ended a single delivery
MAX_FRUITLESS = 25
BACK_OFF_SECONDS = 0.05
LONGEST_BACK_OFF_SECONDS = 2.0
WATCH_SECONDS = 0.02

Tell = Callable[[StormEvent], Awaitable[None]]


@dataclass(slots=True)
class _Worker:
    """One worker process. ``name`` is also its journal's; a successor has another one."""

    index: int
    name: str
    process: asyncio.subprocess.Process


class Workers:
    """An async context that starts so many worker processes and ends them, whatever happened.

    It is entered when all of them serve: a storm whose second worker comes late is a storm of one process, and its
    first runs would be charged with the start of the workers. ``worlds`` are the stores whose queues get back what a
    dead worker held; ``spare`` is how many more deaths than usual the plan's faults may cause.
    """

    def __init__(
        self,
        folder: StormFolder,
        count: int,
        *,
        worlds: Mapping[Cell, World] | None = None,
        dsn: str | None = None,
        tell: Tell | None = None,
        spare: int = 0,
    ) -> None:
        self._folder = folder
        self._count = count
        self._worlds = worlds or {}
        self._dsn = dsn
        self._tell = tell
        self._spare = spare
        self._workers: list[_Worker] = []
        self._deaths = 0
        self._failures = 0
        self._fruitless = 0

    async def __aenter__(self) -> Workers:
        try:
            for index in range(self._count):
                self._workers.append(await self._start(index))
            for worker in self._workers:
                await self._until_ready(worker)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_exception: object) -> None:
        processes = [worker.process for worker in self._workers]
        for process in processes:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(signal.SIGCONT)  # nothing stays stopped after the storm
                    process.terminate()
        for process in processes:
            try:
                await asyncio.wait_for(process.wait(), GRACE_SECONDS)
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()

    async def watch(self) -> None:
        """Replace every worker that dies, until cancelled. StoreFailure when that leads nowhere: one that never served,
        or too many deaths; a storm without workers is a wall of stuck runs."""
        while True:
            for place, worker in enumerate(self._workers):
                if worker.process.returncode is not None:
                    self._workers[place] = await self._replace(worker)
            await asyncio.sleep(WATCH_SECONDS)

    async def _replace(self, worker: _Worker) -> _Worker:
        self._count_death(worker)
        back = BACK_OFF_SECONDS * 2 ** min(self._fruitless, 10) if self._fruitless > 1 else 0.0
        await asyncio.sleep(min(back, LONGEST_BACK_OFF_SECONDS))
        requeued = 0
        for world in self._worlds.values():
            requeued += await world.queue.requeue_dead(worker_name(worker.name))
        successor = await self._start(worker.index)
        if self._tell is not None:
            await self._tell(WorkerDied(worker.name, self._how(worker), requeued, successor.name))
        return successor

    def _count_death(self, worker: _Worker) -> None:
        journal = self._folder.journal_file(worker.name)
        if not journal.exists():
            raise self._failure(worker, self._how(worker))
        self._deaths += 1
        self._failures += (worker.process.returncode or 0) > 0
        self._fruitless = 0 if journal.stat().st_size else self._fruitless + 1
        if self._failures > MAX_FAILURES + self._spare:
            raise self._failure(worker, f"{self._how(worker)} after {self._failures - 1} others had")
        if self._fruitless > MAX_FRUITLESS + self._spare:
            raise self._failure(
                worker, f"{self._how(worker)}, the {self._fruitless}th in a row that ended no delivery before"
            )
        if self._deaths > MAX_DEATHS:
            raise self._failure(worker, f"{self._how(worker)}, the {self._deaths}th of this storm")

    async def _until_ready(self, worker: _Worker) -> None:
        deadline = asyncio.get_running_loop().time() + READY_SECONDS
        while not self._folder.journal_file(worker.name).exists():
            for one in self._workers:
                if one.process.returncode is not None:
                    raise self._failure(one, self._how(one))
            if asyncio.get_running_loop().time() > deadline:
                raise StoreFailure(
                    f"worker {worker.name} does not serve after {READY_SECONDS:.0f} s: {self._last_words(worker.name)}",
                    remedy="Plan fewer processes, or give the machine less to do.",
                )
            await asyncio.sleep(0.01)

    def _failure(self, worker: _Worker, how: str) -> StoreFailure:
        return StoreFailure(
            f"worker {worker.name} {how}: {self._last_words(worker.name)}",
            remedy=f"See {self._log(worker.name)}; the attempts that landed before are kept.",
        )

    def _how(self, worker: _Worker) -> str:
        code = worker.process.returncode or 0
        return f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"

    async def _start(self, index: int) -> _Worker:
        """As :meth:`_started`, with StoreFailure for what the system refuses."""
        try:
            return await self._started(index)
        except OSError as bad:
            raise StoreFailure(
                f"a worker process could not be started: {bad.strerror or bad}",
                remedy="Make room on the disk, or plan fewer processes.",
            ) from bad

    async def _started(self, index: int) -> _Worker:
        """Start the next worker in this place, under a name that nobody had before, in an earlier life of the storm
        either."""
        life = 0
        while self._log(name := str(index) if not life else f"{index}-{life}").exists():
            life += 1
        told = {**os.environ, STORM_VARIABLE: self._folder.id}
        told.pop(DSN_VARIABLE, None)
        if self._dsn is not None:
            told[DSN_VARIABLE] = self._dsn
        with self._log(name).open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *_isolation(),
                "-m",
                "stormctl",
                "worker",
                "--storm",
                str(self._folder.path),
                "--name",
                name,
                stdin=asyncio.subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=told,
            )
        return _Worker(index, name, process)

    def _log(self, name: str) -> Path:
        return self._folder.path / "workers" / f"{name}.log"

    def _last_words(self, name: str) -> str:
        lines = self._log(name).read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1][:200].rstrip(".") if lines else "it said nothing"


def _isolation() -> Sequence[str]:
    """``-m`` would look for modules in the current folder first, where a user may have a ``queue.py``. Only when
    stormctl itself is run from there must it."""
    return () if Path(__file__).resolve().parents[2] == Path.cwd() else ("-P",)
