"""Notifications: one connection per process and database that hears, for every queue there, that something was sent.

They only save looking. A queue that is not told, or cannot be, looks by itself after a while.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from stormctl.worlds.postgres.disconnect import application
from stormctl.worlds.postgres.inspect import CONNECT_SECONDS
from stormctl.worlds.postgres.pipe import Sql

CHANNEL = "stormctl_queue"
NOTIFY = Sql(f"select pg_notify('{CHANNEL}', $1::text)::text")

_FIRST_RETRY_S = 0.25
_LONGEST_RETRY_S = 5.0


class Signal:
    """What one queue is told. ``raised``: something was sent since it was lowered. ``deaf``: nobody listens now."""

    __slots__ = ("deaf", "raised")

    def __init__(self, *, deaf: bool) -> None:
        self.raised = True
        self.deaf = deaf


class Signals:
    """Listens as long as somebody has subscribed."""

    _shared: dict[tuple[str, asyncio.AbstractEventLoop], Signals] = {}  # noqa: RUF012

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._deaf = True
        self._wanted: dict[str, list[Signal]] = {}
        self._task: asyncio.Task[None] | None = None

    @classmethod
    def shared(cls, dsn: str) -> Signals:
        """The listener of this event loop for that database."""
        return cls._shared.setdefault((dsn, asyncio.get_running_loop()), cls(dsn))

    def subscribe(self, space: str) -> Signal:
        """A signal that is raised whenever something is sent in the space."""
        signal = Signal(deaf=self._deaf)
        self._wanted.setdefault(space, []).append(signal)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._listen())
        return signal

    async def unsubscribe(self, space: str, signal: Signal) -> None:
        """Done with it: the last one ends the listening."""
        signals = self._wanted.get(space, [])
        if signal in signals:
            signals.remove(signal)
        if not signals:
            self._wanted.pop(space, None)
        if self._wanted:
            return
        for key, one in list(self._shared.items()):
            if one is self:
                del self._shared[key]
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _listen(self) -> None:
        import psycopg

        pause = _FIRST_RETRY_S
        while True:
            try:
                connection = await psycopg.AsyncConnection.connect(
                    self._dsn, autocommit=True, connect_timeout=CONNECT_SECONDS, application_name=application()
                )
                async with connection:
                    await connection.execute(f"listen {CHANNEL}")
                    self._set(deaf=False)
                    pause = _FIRST_RETRY_S
                    async for told in connection.notifies():
                        for signal in self._wanted.get(told.payload, ()):
                            signal.raised = True
            except psycopg.Error:
                pass  # the queues look by themselves meanwhile
            finally:
                self._set(deaf=True)
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_RETRY_S)

    def _set(self, *, deaf: bool) -> None:
        self._deaf = deaf
        for signals in self._wanted.values():
            for signal in signals:
                signal.deaf, signal.raised = deaf, True
