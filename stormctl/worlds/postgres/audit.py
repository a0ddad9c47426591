"""The audit of a store in a database: written in batches beside the appends, never inside their transactions.

Records wait at most :data:`EVERY_S`; a process that is killed loses those. The stamps in them are of one machine's
monotonic clock, so each row names the machine and its boot.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import fields, replace

import msgspec

from stormctl.errors import StoreFailure, StormctlError
from stormctl.history import AuditRecord
from stormctl.worlds import process
from stormctl.worlds.postgres import cells
from stormctl.worlds.postgres.links import Links
from stormctl.worlds.postgres.pipe import Sql

EVERY_S = 0.05
"""How long a record waits before it is written."""

MOST = 20_000
"""How many records may wait; an append that would exceed it waits for the database."""

_BATCH = 2_000
_NAMES = tuple(field.name for field in fields(AuditRecord))
_TYPES = {
    "admitted": "boolean",
    **dict.fromkeys(("position", "snapshot", "entered", "minted", "published", "returned"), "bigint"),
}
_COLUMNS = ", ".join(_NAMES)
_RECORD = ", ".join(f"{name} {_TYPES.get(name, 'varchar')}" for name in _NAMES)

_WRITE = Sql(f"""
insert into stormctl.audit (space, machine, {_COLUMNS})
select $1, $2, {_COLUMNS} from jsonb_to_recordset($3::jsonb) as r({_RECORD})
""")
_READ = Sql("select machine, to_jsonb(a) from stormctl.audit a where run_id = $1 and space = $2 order by number")


def machine() -> str:
    """The machine and its boot, and where pids are unique: whose monotonic clock the stamps are of."""
    return f"{process.host()} {process.space()}"


class AuditTable:
    """Takes records at once and writes them behind the appends' backs."""

    def __init__(self, links: Links, space: str) -> None:
        self._links = links
        self._space = space.encode()
        self._machine = machine().encode()
        self._waiting: list[AuditRecord] = []
        self._task: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()
        self._closed = False

    async def write(self, records: Iterable[AuditRecord]) -> None:
        """Take records. Waits, and may raise StoreFailure, only when too many wait already."""
        if self._closed:
            return  # an append that outlived its world: nobody reads this any more
        self._waiting.extend(records)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._later())
        if len(self._waiting) > MOST:
            await self.flush()

    async def flush(self) -> None:
        """Write what waits; StoreFailure when the database does not take it: it then waits on."""
        async with self._writing:
            while self._waiting:
                batch = self._waiting[:_BATCH]
                try:
                    await self._links.run([(_WRITE, (self._space, self._machine, cells.jsonb(_json(batch))))])
                except StormctlError:
                    raise
                except Exception as error:
                    raise self._links.failure(error) from error
                del self._waiting[: len(batch)]

    async def close(self) -> None:
        """Write what waits; StoreFailure when that is not possible."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await self.flush()

    async def read(self, run_id: str) -> tuple[AuditRecord, ...]:
        """Every record of a run, by all processes, those of this one included.

        Where the run was written from several machines, the stamps of all but the busiest are 0 (not known): they
        would not compare.
        """
        await self.flush()
        try:
            rows = (await self._links.run([(_READ, (cells.text(run_id), self._space))]))[0]
        except StormctlError:
            raise
        except Exception as error:
            raise self._links.failure(error) from error
        found = [(cells.need(where), _record(cells.as_json(row) or b"{}")) for where, row in rows]
        busiest = Counter(where for where, _ in found).most_common(1)
        return tuple(
            record if where == busiest[0][0] else replace(record, entered=0, minted=0, published=0, returned=0)
            for where, record in found
        )

    async def _later(self) -> None:
        """Write after a moment; what the database does not take now is tried again, and told of at the end."""
        while self._waiting:
            await asyncio.sleep(EVERY_S)
            with suppress(StoreFailure):
                await self.flush()


def _json(records: list[AuditRecord]) -> bytes:
    # jsonb cannot hold a NUL, and a reason may quote anything
    raw = msgspec.json.encode(records)
    return raw.replace(b"\\u0000", b"\\ufffd") if b"\\u0000" in raw else raw


def _record(raw: bytes) -> AuditRecord:
    row = msgspec.json.decode(raw)
    return AuditRecord(**{name: row[name] for name in _NAMES})
