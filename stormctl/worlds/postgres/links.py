"""The connections of a process to one server: a bounded pool, opened when it is first used.

All worlds of a process that use one database share its pool, so that a storm of many cells does not take all the
connections that a server gives.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from stormctl.errors import StoreFailure
from stormctl.worlds.postgres.disconnect import application
from stormctl.worlds.postgres.dsn import redact
from stormctl.worlds.postgres.failures import explain_failure
from stormctl.worlds.postgres.inspect import CONNECT_SECONDS
from stormctl.worlds.postgres.pipe import Call, Lost, Pipe, Rows

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from psycopg_pool import AsyncConnectionPool

LARGEST = 8
"""How many connections one process takes of one server at most."""

WAIT_S = 30.0
"""How long an operation waits for a free connection, or for a lost server to come back."""

STATEMENT_S = 150
"""How long the server lets one statement run or wait for a lock."""

_FOR_EVER_S = 1e9

_SETTINGS = """
select set_config('TimeZone', 'UTC', false),
       set_config('default_transaction_isolation', 'read committed', false),
       set_config('statement_timeout', %(limit)s, false),
       set_config('lock_timeout', %(limit)s, false),
       set_config('idle_in_transaction_session_timeout', %(idle)s, false),
       set_config('jit', 'off', false),
       set_config('plan_cache_mode', 'force_generic_plan', false)
"""


class Link:
    """One connection in somebody's hands."""

    __slots__ = ("connection", "pipe")

    def __init__(self, connection: AsyncConnection[Any], pipe: Pipe) -> None:
        self.connection = connection
        self.pipe = pipe


class Links:
    """The pool. ``idle_ms`` is how long a transaction of ours may stand idle before the server ends it: a process that
    was stopped while it held a run's lock loses it then, and finds out when it goes on."""

    _shared: dict[tuple[str, float, asyncio.AbstractEventLoop], Links] = {}  # noqa: RUF012

    def __init__(self, dsn: str, idle_ms: float) -> None:
        self.dsn = dsn
        self.shown = redact(dsn)
        self._idle_ms = idle_ms
        self._pool: AsyncConnectionPool[Any] | None = None
        self._pipes: WeakKeyDictionary[AsyncConnection[Any], Pipe] = WeakKeyDictionary()
        self._parked: list[Link] = []
        self._asking = 0
        self._users = 0
        self._opening = asyncio.Lock()

    @classmethod
    def shared(cls, dsn: str, idle_ms: float) -> Links:
        """The pool of this event loop for that database; give it back with :meth:`leave`."""
        key = (dsn, idle_ms, asyncio.get_running_loop())
        links = cls._shared.setdefault(key, cls(dsn, idle_ms))
        links._users += 1
        return links

    async def leave(self) -> None:
        """Done with it: the last user closes the pool."""
        self._users -= 1
        if self._users > 0:
            return
        for key, links in list(self._shared.items()):
            if links is self:
                del self._shared[key]
        pool, self._pool = self._pool, None
        for pipe in self._pipes.values():
            pipe.unwatch()
        parked, self._parked = self._parked, []
        for link in parked:
            await link.connection.close()
        if pool is not None:
            await pool.close(timeout=5)

    async def take(self) -> Link:
        """A connection that was not seen broken; StoreFailure when there is none in time."""
        while True:
            link = self._parked.pop() if self._parked else await self._ask()
            if not link.pipe.broken:
                return link
            await self.give(link)  # the pool replaces it

    async def give(self, link: Link) -> None:
        """Give a connection back. A broken one is replaced. One that nobody waits for stays at hand, outside of the
        pool, whose two hand-overs cost 35 microseconds."""
        broken = link.pipe.broken
        if broken or self._pool is None:
            link.pipe.close()
        if self._pool is None:
            await link.connection.close()
        elif broken or self._asking:
            await self._pool.putconn(link.connection)
        else:
            self._parked.append(link)

    @asynccontextmanager
    async def link(self) -> AsyncIterator[Link]:
        """One connection for a moment."""
        link = await self.take()
        try:
            yield link
        finally:
            await self.give(link)

    async def run(self, calls: Sequence[Call]) -> list[Rows]:
        """Send statements on some connection, as one transaction of their own. Errors as ``Pipe.run``."""
        link = await self.take()
        try:
            return await link.pipe.run(calls)
        finally:
            await self.give(link)

    def failure(self, error: BaseException) -> StoreFailure:
        """The error of ours that one of a pool, a connection or a statement means."""
        return failure_of(error, self.shown)

    # -- inside

    async def _ask(self) -> Link:
        pool = self._pool or await self._open()
        self._asking += 1
        try:
            connection = await pool.getconn(timeout=WAIT_S)
        except Exception as error:
            raise self.failure(error) from None
        finally:
            self._asking -= 1
        return Link(connection, self._pipe(connection))

    async def _open(self) -> AsyncConnectionPool[Any]:
        from psycopg_pool import AsyncConnectionPool

        # The pool tells of each attempt to connect; what comes of them is told once, as an error of ours.
        logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())
        async with self._opening:
            if self._pool is None:
                pool: AsyncConnectionPool[Any] = AsyncConnectionPool(
                    self.dsn,
                    min_size=1,
                    max_size=LARGEST,
                    open=False,
                    timeout=WAIT_S,
                    max_waiting=1000,
                    max_idle=_FOR_EVER_S,  # nobody but us closes one: the event loop has to forget its socket first
                    max_lifetime=_FOR_EVER_S,
                    reconnect_timeout=WAIT_S,
                    configure=self._configure,
                    kwargs={
                        "autocommit": True,
                        "prepare_threshold": None,
                        "connect_timeout": CONNECT_SECONDS,
                        "application_name": application(),
                    },
                )
                try:
                    await pool.open(wait=True, timeout=WAIT_S)
                except Exception as error:
                    await pool.close(timeout=1)
                    raise self.failure(error) from None
                self._pool = pool
        return self._pool

    async def _configure(self, connection: AsyncConnection[Any]) -> None:
        await connection.execute(
            _SETTINGS, {"limit": str(STATEMENT_S * 1000), "idle": str(max(1, round(self._idle_ms)))}
        )

    def _pipe(self, connection: AsyncConnection[Any]) -> Pipe:
        pipe = self._pipes.get(connection)
        if pipe is None:
            pipe = self._pipes[connection] = Pipe(connection.pgconn)
        return pipe


def failure_of(error: BaseException, shown: str) -> StoreFailure:
    """The StoreFailure that an error of psycopg, its pool, or a pipe means: one clear sentence."""
    state = getattr(error, "sqlstate", None)
    if state in _OF_OURS:
        message, remedy = _OF_OURS[state]
        return StoreFailure(message.format(shown=shown), remedy=remedy)
    found = explain_failure(error, shown)
    return found if isinstance(found, StoreFailure) else StoreFailure(str(found), remedy=found.remedy)


_OF_OURS = {
    "40P01": (
        "two appends on {shown} waited for each other, and one was taken back",
        "Run again; if it happens often, report it: a run's lock is meant to be taken first.",
    ),
    "40001": (
        "the PostgreSQL server {shown} could not put two appends into one order, and one was taken back",
        "Run again.",
    ),
    "55P03": (
        f"an append lock on {{shown}} stayed taken for {STATEMENT_S} s",
        "Look for a stopped stormctl worker, end it, and run again.",
    ),
    "57014": (
        f"the PostgreSQL server {{shown}} ended a statement that took longer than {STATEMENT_S} s",
        "Look for a stopped stormctl worker, end it, or for what overloads the server.",
    ),
    "25P03": (
        "the PostgreSQL server {shown} took an append back whose process had stood still for too long",
        "Look for what stopped the process for so long.",
    ),
}
"""By SQLSTATE, what only an append can meet."""

__all__ = ["LARGEST", "Link", "Links", "Lost", "failure_of"]
