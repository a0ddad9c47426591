"""One append's way through the database: the transaction that it holds, and the store that answers it.

``TakeLock`` opens a transaction whose first lock is the run's advisory lock; ``Begin`` opens one without. Until the
matching end everything goes through that one connection. Outside of both each operation commits by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stormctl.errors import StormctlError, UsageError
from stormctl.worlds.base import AppendRequest
from stormctl.worlds.postgres import cells
from stormctl.worlds.postgres import statements as sql
from stormctl.worlds.postgres.ahead import Ahead
from stormctl.worlds.postgres.links import Link, Links
from stormctl.worlds.postgres.pipe import Call, Lost, Rows
from stormctl.worlds.postgres.store import Facts, Store
from stormctl.worlds.store_ops import (
    AbandonLock,
    Begin,
    ConfirmLock,
    End,
    Publish,
    ReleaseLock,
    ReserveSlots,
    StoreOp,
    TakeLock,
)


class Session:
    """Performs the store operations of one append or batch. ``reads_ahead`` False sends each operation by itself,
    inside a run's lock too: the plain way, which the other must equal."""

    def __init__(self, links: Links, facts: Facts, requests: Sequence[AppendRequest], *, reads_ahead: bool) -> None:
        self._links = links
        self._facts = facts
        self._requests = requests
        self._reads_ahead = reads_ahead
        self._alone = Store(facts, links.run)
        self._store = self._alone
        self._link: Link | None = None
        self._unsent: list[Call] = []
        self._published: list[tuple[str, str]] = []

    async def perform(self, op: StoreOp) -> Any:
        """The reply to an operation; StoreFailure when the database cannot give it."""
        try:
            if isinstance(op, TakeLock):
                await self._take_lock(op.run_id)
                return ()
            if isinstance(op, Begin):
                self._link = await self._links.take()
                self._unsent = [(sql.BEGIN, ())]
                self._store = Store(self._facts, self._in_transaction, inside=True)
                return None
            if isinstance(op, (ReleaseLock, End)):
                return await (self._commit(op.run_id) if op.keep else self._roll_back())
            if isinstance(op, AbandonLock):
                return await self._roll_back()
            if isinstance(op, ConfirmLock):
                return None  # a lock of a transaction is lost with the transaction only
            if isinstance(op, ReserveSlots):
                return await self._alone.perform(op)  # for good, whatever becomes of the transaction
            reply = await self._store.perform(op)
        except StormctlError:
            raise
        except UnicodeEncodeError:
            raise UsageError(
                "a payload holds half of a surrogate pair, which no store can keep",
                remedy="Give steps, hooks and workflows texts that are valid Unicode.",
            ) from None
        except Exception as error:
            if isinstance(op, Publish) and isinstance(error, Lost) and self._link is None:
                return await self._landed(op, error)
            raise self._links.failure(error) from error
        if isinstance(op, Publish) and self._link is not None:
            self._published += ((event.run_id, event.event_id or "") for event in op.events)
        return reply

    @property
    def holds(self) -> bool:
        """Whether a transaction is open."""
        return self._link is not None

    async def drop(self) -> None:
        """Give up whatever is held, without asking the server: it rolls back when the connection ends."""
        if self._link is not None:
            self._link.pipe.close()
            await self._leave()

    # -- transactions

    async def _take_lock(self, run_id: str) -> None:
        self._link = await self._links.take()
        try:
            if self._reads_ahead:
                ahead = Ahead(self._facts, self._in_transaction, run_id)
                await ahead.begin(self._requests)
                self._store = ahead
            else:
                self._store = Store(self._facts, self._in_transaction, inside=True)
                await self._in_transaction([(sql.BEGIN, ()), (sql.LOCK, (cells.text(run_id),))])
        except BaseException:
            await self.drop()
            raise

    async def _in_transaction(self, calls: Sequence[Call]) -> list[Rows]:
        assert self._link is not None
        unsent, self._unsent = self._unsent, []
        return (await self._link.pipe.run([*unsent, *calls]))[len(unsent) :]

    async def _commit(self, run_id: str) -> None:
        assert self._link is not None
        store, published = self._store, self._published
        try:
            if isinstance(store, Ahead):
                await store.commit()
            elif not self._unsent:
                await self._in_transaction([(sql.COMMIT, ())])
        except Lost as lost:
            await self._leave()
            if not published or not await self._is_there(published, lost):
                raise
            return
        except BaseException:
            await self._roll_back()
            raise
        await self._leave()

    async def _roll_back(self) -> None:
        """Never fails: where the server cannot be told, it ends the transaction with the connection."""
        link = self._link
        if link is None:
            return
        if link.pipe.broken:
            await self.drop()
            return
        try:
            if not self._unsent:
                await link.pipe.run([(sql.ROLLBACK, ())])
        except Exception:
            link.pipe.close()
        await self._leave()

    async def _leave(self) -> None:
        link, self._link = self._link, None
        self._store, self._unsent, self._published = self._alone, [], []
        if link is not None:
            await self._links.give(link)

    # -- what became of an append whose connection was lost

    async def _landed(self, op: Publish, lost: Lost) -> bool:
        """Whether the events are in the log; StoreFailure when they are not, or nobody can tell."""
        if await self._is_there([(event.run_id, event.event_id or "") for event in op.events], lost):
            return True
        raise self._links.failure(lost)

    async def _is_there(self, published: list[tuple[str, str]], lost: Lost) -> bool:
        """Look after the lost transaction has ended: it holds the run's lock as long as it lives."""
        run_id, event_id = published[-1]
        run = run_id.encode()
        try:
            found = await self._links.run(
                [(sql.LOCK, (run,)), (sql.HAS_EVENT, (run, self._facts.space, event_id.encode()))]
            )
        except Exception:
            raise self._links.failure(lost) from None
        return bool(found[1])
