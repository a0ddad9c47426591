"""What one worker has in hand, and how it loses all of it at once."""

from __future__ import annotations

import asyncio

from stormctl.worlds.process import KILLED


class WorkerKilled(Exception):
    """The worker was killed, by a fault or by its own step. Only one that shares its driver's process raises this."""


class InHand:
    """The deliveries of one worker."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._failures: list[BaseException] = []
        self.killed: str | None = None

    def __len__(self) -> int:
        return len(self._tasks)

    def add(self, task: asyncio.Task[None]) -> None:
        """Take one more."""
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        if self.killed is not None:
            task.cancel(KILLED)

    def check(self) -> None:
        """The first error of a delivery; WorkerKilled after a kill."""
        if self.killed is not None:
            raise WorkerKilled(self.killed)
        if self._failures:
            raise self._failures[0]

    async def drop(self) -> None:
        """Cancel what is left."""
        for task in self._tasks if self.killed is None else ():
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (bad := task.exception()) is not None:
            self._failures.append(bad)

    # -- what a fault can do to a worker that is no process of its own

    async def kill(self, reason: str) -> None:
        """Abandon every delivery, the caller's among them, where it stands. Does not return."""
        if self.killed is None:
            self.killed = reason
            for task in self._tasks:
                task.cancel(KILLED)
        await asyncio.Future()

    async def stop(self, ms: float) -> None:
        """A plan that asks for this is refused: the driver would stop as well."""
        raise NotImplementedError("a worker in the driver's process cannot be stopped")
