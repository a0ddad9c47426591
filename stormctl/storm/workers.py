"""The worker processes of a storm, as their driver sees them."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Mapping
from pathlib import Path

from stormctl.errors import StoreFailure
from stormctl.storm.attempt import Cell
from stormctl.storm.folder import StormFolder
from stormctl.storm.plan import Plan
from stormctl.storm.worker import cell_worker, serve
from stormctl.worlds import World

#: how long a worker may take to end after it was asked to
GRACE_SECONDS = 3.0
#: how long workers may take until they serve
READY_SECONDS = 120.0


class InProcess:
    """Workers of a store that lives in one process: the driver serves it itself."""

    def __init__(self, plan: Plan, folder: StormFolder, worlds: Mapping[Cell, World]) -> None:
        self._plan = plan
        self._folder = folder
        self._worlds = worlds
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
        with self._folder.journal(0) as journal:
            await serve([cell_worker(self._plan, cell, world, journal) for cell, world in self._worlds.items()])


class Workers:
    """An async context that starts so many worker processes and ends them, whatever happened.

    It is entered when all of them serve: a storm whose second worker comes late is a storm of one process, and its
    first runs would be charged with the start of the workers.
    """

    def __init__(self, folder: StormFolder, count: int) -> None:
        self._folder = folder
        self._count = count
        self._processes: list[asyncio.subprocess.Process] = []

    async def __aenter__(self) -> Workers:
        try:
            for index in range(self._count):
                self._processes.append(await self._start(index))
            await self._until_ready()
        except BaseException as bad:
            await self.__aexit__()
            if isinstance(bad, OSError):
                raise StoreFailure(
                    f"a worker process could not be started: {bad.strerror or bad}",
                    remedy="Make room on the disk, or plan fewer processes.",
                ) from bad
            raise
        return self

    async def __aexit__(self, *_exception: object) -> None:
        for process in self._processes:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.terminate()
        for process in self._processes:
            try:
                await asyncio.wait_for(process.wait(), GRACE_SECONDS)
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()

    async def watch(self) -> None:
        """Wait for a worker to end before its time, and say so: a storm without workers is a wall of stuck runs."""
        await asyncio.wait(
            [asyncio.create_task(process.wait()) for process in self._processes],
            return_when=asyncio.FIRST_COMPLETED,
        )
        self._miss_none()

    async def _until_ready(self) -> None:
        deadline = asyncio.get_running_loop().time() + READY_SECONDS
        waiting = set(range(self._count))
        while waiting := {index for index in waiting if not self._folder.journal_file(index).exists()}:
            self._miss_none()
            if asyncio.get_running_loop().time() > deadline:
                index = min(waiting)
                raise StoreFailure(
                    f"worker {index} does not serve after {READY_SECONDS:.0f} s: {self._last_words(index)}",
                    remedy="Plan fewer processes, or give the machine less to do.",
                )
            await asyncio.sleep(0.01)

    def _miss_none(self) -> None:
        """StoreFailure that says how a worker ended, when one has."""
        for index, process in enumerate(self._processes):
            code = process.returncode
            if code is not None:
                how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
                raise StoreFailure(
                    f"worker {index} {how}: {self._last_words(index)}",
                    remedy=f"See {self._log(index)}; the attempts that landed before are kept.",
                )

    async def _start(self, index: int) -> asyncio.subprocess.Process:
        with self._log(index).open("ab") as log:
            return await asyncio.create_subprocess_exec(
                sys.executable,
                *_isolation(),
                "-m",
                "stormctl",
                "worker",
                "--storm",
                str(self._folder.path),
                "--index",
                str(index),
                stdin=asyncio.subprocess.PIPE,
                stdout=log,
                stderr=log,
            )

    def _log(self, index: int) -> Path:
        return self._folder.path / "workers" / f"{index}.log"

    def _last_words(self, index: int) -> str:
        lines = self._log(index).read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1][:200].rstrip(".") if lines else "it said nothing"


def _isolation() -> tuple[str, ...]:
    """``-m`` would look for modules in the current folder first, where a user may have a ``queue.py``. Only when
    stormctl itself is run from there must it."""
    return () if Path(__file__).resolve().parents[2] == Path.cwd() else ("-P",)
