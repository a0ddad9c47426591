"""Where one cell is run: its store, the servers on it, and an eye on whether they live.

A server that ends by itself is told with what it said last. Where the plan allows it, it is started again once; else
the cell is lost, and every attempt that is still to be made or to end there is a fault of the harness, said as such.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from stormctl.errors import StormctlError
from stormctl.storm.events import StormNoted
from stormctl.storm.sdk_plan import HostFaults
from stormctl.storm.subject import Tell
from stormctl.targets.outside import Outside
from stormctl.targets.sdk.host import Faults, Host, HostBusy, HostDied
from stormctl.targets.sdk.projects import Project
from stormctl.targets.sdk.trace import Traces

POLL_SECONDS = 0.2
#: longer than a server may take to come back
AGAIN_SECONDS = 90.0


class CellLost(StormctlError):
    """A server of the cell ended and is not started again: nothing can be measured there any more."""


class Starts(Protocol):
    """Starts a server: :meth:`stormctl.targets.sdk.host.Host.start`, or what a test puts in its place."""

    def __call__(
        self,
        project: Project,
        folder: Path,
        *,
        dsn: str | None,
        environment: Mapping[str, str],
        faults: Faults,
    ) -> Awaitable[Host]: ...


class Station:
    """The servers of one cell on one store. Made by :meth:`open`; ``close`` it."""

    def __init__(self, label: str, store: Outside, faults: HostFaults, tell: Tell) -> None:
        self.label = label
        self.store = store
        self.traces = Traces()
        self.lost: CellLost | None = None
        self._faults = faults
        self._tell = tell
        self._hosts: dict[str, Host] = {}
        self._up: set[str] = set()
        self._turn = itertools.count()
        self._tasks: set[asyncio.Task[None]] = set()
        self._begun = False
        self._restarts_left = 1 if faults.restart else 0

    @classmethod
    async def open(
        cls,
        label: str,
        project: Project,
        folder: Path,
        store: Callable[[Path], Outside],
        *,
        processes: int = 1,
        dsn: str | None = None,
        environment: Mapping[str, str] | None = None,
        faults: HostFaults,
        seed: int = 0,
        tell: Tell,
        start: Starts = Host.start,
    ) -> Station:
        """Start the servers in a fresh folder. What keeps one from coming up is raised, and none is left behind."""
        station = cls(label, store(folder / "server-1" / "data"), faults, tell)
        try:
            for number in range(1, processes + 1):
                name = f"server {number}"
                host = await start(
                    project,
                    folder / f"server-{number}",
                    dsn=dsn,
                    environment=environment or {},
                    faults=Faults(
                        duplicate=faults.duplicate,
                        duplicate_ms=faults.duplicate_ms,
                        read_delay_ms=faults.read_delay_ms,
                        write_delay_ms=faults.write_delay_ms,
                        seed=seed + 1000 * number,
                        trace=True,
                    ),
                )
                station._hosts[name] = host
                station._up.add(name)
                station.traces.follow(name, host.trace)
        except BaseException:
            await station.close()
            raise
        station._spawn(station._watch())
        return station

    async def close(self) -> None:
        """Stop every server, by its process id; none is left."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        self._up.clear()
        await asyncio.gather(*(host.stop() for host in self._hosts.values()), return_exceptions=True)
        await asyncio.gather(*(host.kill() for host in self._hosts.values()), return_exceptions=True)
        await asyncio.to_thread(self.store.close)

    def begun(self) -> None:
        """A run was begun: from the first one the plan's kill is counted."""
        if not self._begun and self._faults.kill_after_ms is not None:
            self._spawn(self._kill_later(self._faults.kill_after_ms))
        self._begun = True

    async def server(self) -> Host:
        """A server that is up, each in its turn; CellLost when there is none and will be none."""
        deadline = asyncio.get_running_loop().time() + AGAIN_SECONDS
        while True:
            self.check()
            up = [self._hosts[name] for name in self._hosts if name in self._up and self._hosts[name].is_alive]
            if up:
                return up[next(self._turn) % len(up)]
            if asyncio.get_running_loop().time() > deadline:
                raise HostBusy(
                    f"no server of {self.label} came back within {AGAIN_SECONDS:g} s", remedy="Read its host.log."
                )
            await asyncio.sleep(POLL_SECONDS / 4)

    def check(self) -> None:
        """CellLost when the cell is lost."""
        if self.lost is not None:
            raise self.lost

    # -- the life of its servers --------------------------------------------------------------------------------------

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)

    async def _watch(self) -> None:
        while self.lost is None:
            for name, host in self._hosts.items():
                if name in self._up and not host.is_alive:
                    self._up.discard(name)
                    await self._dead(name, host)
            await asyncio.sleep(POLL_SECONDS)

    async def _dead(self, name: str, host: Host) -> None:
        """One ended that nobody ended."""
        last = host.last_lines() or "nothing"
        told = f"{self.label}: {name} (process {host.pid}) ended by itself; it said last:\n{last}"
        if not self._restarts_left:
            await self._lose(f"{told}\nNothing more is measured in this cell.", name)
            return
        self._restarts_left -= 1
        await self._tell(StormNoted(told))
        await self._again(name, host)

    async def _kill_later(self, ms: float) -> None:
        """SIGKILL one server while runs are in flight, and start it again on the same store."""
        await asyncio.sleep(ms / 1000)
        name = next((one for one in self._hosts if one in self._up), None)
        if name is None:
            return
        host = self._hosts[name]
        self._up.discard(name)
        pid = host.pid
        await host.kill()
        await self._tell(StormNoted(f"{self.label}: {name} (process {pid}) was killed, as the plan has it"))
        await self._again(name, host)

    async def _again(self, name: str, host: Host) -> None:
        await asyncio.to_thread(self.traces.next_life, name)
        try:
            await host.restart()
        except (HostDied, HostBusy) as bad:
            await self._lose(f"{self.label}: {name} does not come up again: {bad}", name)
            return
        self._up.add(name)
        await self._tell(StormNoted(f"{self.label}: {name} serves again (process {host.pid})"))

    async def _lose(self, told: str, name: str) -> None:
        self.lost = CellLost(f"{name} of the cell ended and is not started again", remedy="See what it said last.")
        await self._tell(StormNoted(told))
        for other in self._hosts.values():  # runs that go on without it would say nothing about the cell
            with suppress(StormctlError):
                await other.kill()
