"""Several statements in one round trip, on one connection.

An append under a lock is seven statements that nobody waits for one by one. Sent through psycopg's cursors, in its
pipeline mode too, they cost about a millisecond of Python per append, which is more than the server needs; sent
through ``psycopg.pq``, its own door to libpq, a third of that (measured: 1,016, 1,208 and 335 microseconds). So this is
what the store speaks: prepared statements, binary values, any number of them per trip.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stormctl.worlds.postgres.cells import Cell

if TYPE_CHECKING:
    from psycopg.pq import Format
    from psycopg.pq.abc import PGconn, PGresult

LIMIT_S = 160.0
"""How long a round trip may take: a little more than the server allows a statement (see ``links``)."""


class Sql:
    """One statement, prepared once per connection, with ``$1``, ``$2`` ... for its values."""

    __slots__ = ("name", "text")
    _count = 0

    def __init__(self, text: str) -> None:
        Sql._count += 1
        self.name = b"stormctl_%d" % Sql._count
        self.text = text.encode()


Call = tuple[Sql, tuple[Cell, ...]]
Rows = list[tuple[Cell, ...]]

SYNC: Call = (Sql("sync"), ())
"""Not a statement: what comes before it is a transaction of its own, where none is open."""

_SYNC, _PREPARE, _QUERY = range(3)
_Sent = list[tuple[int, Sql]]


class Lost(Exception):
    """The connection broke, or nothing came back in time: what was sent may have happened or not."""


class Pipe:
    """A connection in libpq's pipeline mode. One caller at a time."""

    def __init__(self, pgconn: PGconn) -> None:
        from psycopg import pq

        self._pg = pgconn
        self._pq = pq
        self._prepared: set[Sql] = set()
        self._formats: list[list[Format]] = [[pq.Format.BINARY] * count for count in range(32)]
        self._busy = False
        self._waiter: asyncio.Future[None] | None = None
        self._socket = pgconn.socket
        self._loop: asyncio.AbstractEventLoop | None = None
        self._spoke = False
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        pgconn.nonblocking = 1
        pgconn.enter_pipeline_mode()

    @property
    def broken(self) -> bool:
        """Whether the connection is of no more use: it is closed, was left in the middle of a trip, or the server said
        something while nobody asked (a farewell, as a rule)."""
        return self._busy or self._spoke or self._pg.status == self._pq.ConnStatus.BAD

    async def run(self, calls: Sequence[Call], limit_s: float = LIMIT_S) -> list[Rows]:
        """Send them all, and reply the rows of each (none for a :data:`SYNC`).

        Outside of a transaction all between two SYNCs take effect or none does. The server's first error is raised as
        psycopg's class for it; Lost when the connection broke or ``limit_s`` ran out. Whoever is cancelled leaves a
        broken connection.
        """
        from psycopg import OperationalError

        if self.broken:
            raise Lost("the connection is closed")
        self._busy = True
        loop = self._loop
        if loop is None:  # watched from now on: watching anew in each trip costs 60 microseconds per append
            loop = self._loop = asyncio.get_running_loop()
            loop.add_reader(self._socket, self._wake)
        timer = loop.call_later(limit_s, self._time_out, limit_s)
        try:
            sent = self._send(calls)
            while self._pg.flush():
                await self._drain(loop)
            found, error = await self._receive(loop, sent)
            self._busy = False
        except OperationalError as lost:
            raise Lost(str(lost) or "the connection is lost") from lost
        finally:
            timer.cancel()
            if self._busy:
                self.close()
        if error is not None:
            raise error
        return found

    def close(self) -> None:
        """End the connection at once, without waiting for anything; the server rolls back what was open."""
        self.unwatch()
        self._pg.finish()

    def unwatch(self) -> None:
        """To be called before anybody else closes the connection, so that the event loop forgets its socket."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._socket)
        self._loop = None

    # -- sending

    def _send(self, calls: Sequence[Call]) -> _Sent:
        pg, binary = self._pg, self._pq.Format.BINARY
        sent: _Sent = []
        for call in calls:
            sql, values = call
            if call is SYNC:
                pg.pipeline_sync()
                sent.append((_SYNC, sql))
                continue
            if sql not in self._prepared:
                pg.send_prepare(sql.name, sql.text)
                sent.append((_PREPARE, sql))
                self._prepared.add(sql)  # taken back when it fails
            pg.send_query_prepared(sql.name, values, param_formats=self._formats[len(values)], result_format=binary)
            sent.append((_QUERY, sql))
        pg.pipeline_sync()
        sent.append((_SYNC, SYNC[0]))
        return sent

    async def _drain(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait until the server takes more, taking what it sends meanwhile: both sides could wait for ever else."""
        loop.add_writer(self._socket, self._wake)
        try:
            await self._wait(loop)
        finally:
            loop.remove_writer(self._socket)
        self._pg.consume_input()

    # -- receiving

    async def _receive(self, loop: asyncio.AbstractEventLoop, sent: _Sent) -> tuple[list[Rows], Exception | None]:
        status = self._pq.ExecStatus
        found: list[Rows] = []
        failed: Exception | None = None
        for kind, sql in sent:
            result = await self._next(loop)
            if result is None:
                raise self._lost(failed)
            state = result.status
            if kind != _SYNC:
                if state == status.TUPLES_OK:
                    found.append(_rows(result))
                elif state == status.COMMAND_OK:
                    if kind == _QUERY:
                        found.append([])
                else:
                    if kind == _PREPARE:
                        self._prepared.discard(sql)
                    if failed is None and state == status.FATAL_ERROR:
                        failed = _error(result)
                if await self._next(loop) is not None:
                    raise self._lost(failed)
            elif state != status.PIPELINE_SYNC:
                raise self._lost(failed or _error(result))
        return found, failed

    async def _next(self, loop: asyncio.AbstractEventLoop) -> PGresult | None:
        pg = self._pg
        while pg.is_busy():
            await self._wait(loop)
            pg.consume_input()
        return pg.get_result()

    def _lost(self, why: Exception | None) -> Lost:
        return Lost(str(why) if why is not None else self._pg.get_error_message())

    # -- waiting

    async def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        self._waiter = loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None:
            if not self._waiter.done():
                self._waiter.set_result(None)
        elif not self._busy and self._poll.poll(0):  # else it was woken for what the last trip has taken already
            self._spoke = True
            self.unwatch()

    def _time_out(self, limit_s: float) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(Lost(f"timeout: nothing came back within {limit_s:.0f} s"))


def _rows(result: PGresult) -> Rows:
    columns = range(result.nfields)
    return [tuple([result.get_value(row, column) for column in columns]) for row in range(result.ntuples)]


def _error(result: PGresult) -> Exception:
    from psycopg.errors import error_from_result

    return error_from_result(result)
