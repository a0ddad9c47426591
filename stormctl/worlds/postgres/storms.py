"""The storms that use a database, and what their workers did: how a worker on another machine finds its storm.

Rows of the work journal are the worker's own (run, ending, deliveries, passes, restarts ...) and kept as they come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from stormctl.errors import StoreBusy, StormctlError
from stormctl.worlds import process
from stormctl.worlds.owner import HEARTBEAT_S, STALE_S
from stormctl.worlds.postgres import cells
from stormctl.worlds.postgres.cells import Cell
from stormctl.worlds.postgres.links import Links
from stormctl.worlds.postgres.pipe import Call, Rows, Sql

__all__ = ["HEARTBEAT_S", "STALE_S", "Storm", "StormTable"]

_T = "stormctl.storms"
_REGISTER = Sql(f"""
insert into {_T} as t (id, name, plan, host, pid) values ($1, $2, $3, $4, $5)
on conflict (id) do update
set host = excluded.host, pid = excluded.pid, heartbeat_at = clock_timestamp(), ended_at = null
where t.ended_at is not null or t.host = excluded.host
   or t.heartbeat_at <= clock_timestamp() - $6::bigint * interval '1 millisecond'
returning true
""")
_BEAT = Sql(f"update {_T} set heartbeat_at = clock_timestamp() where id = $1 and ended_at is null returning true")
_END = Sql(f"update {_T} set ended_at = clock_timestamp() where id = $1 and ended_at is null")
_COLUMNS = "id, name, plan, host, pid, created_at at time zone 'UTC', heartbeat_at at time zone 'UTC', ended_at is null"
_RUNNING = Sql(f"""
select {_COLUMNS} from {_T}
where ended_at is null and heartbeat_at > clock_timestamp() - $1::bigint * interval '1 millisecond'
order by created_at, id
""")
_FIND = Sql(f"select {_COLUMNS} from {_T} where id = $1")
_JOURNAL = Sql("""
insert into stormctl.work (storm, run_id, row) select $1, one->>'run', one from jsonb_array_elements($2::jsonb) as one
""")
_WORK = Sql("select row from stormctl.work where storm = $1 and run_id = $2 order by number")
_ALL_WORK = Sql("select row from stormctl.work where storm = $1 order by number")


@dataclass(frozen=True, slots=True)
class Storm:
    """A storm as its database knows it. ``plan`` is the text of its plan file; times are in UTC. ``running``: it has
    not said that it ended (whether its driver lives, ``heartbeat_at`` tells)."""

    id: str
    name: str
    plan: str
    host: str
    pid: int
    created_at: datetime
    heartbeat_at: datetime
    running: bool


class StormTable:
    """The storms of one database. Every method may raise StoreFailure. Use it in one event loop and close it."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._links: Links | None = None

    async def register_storm(self, storm_id: str, name: str, plan: str) -> None:
        """Say that a storm begins here, or goes on, driven by this process. StoreBusy when a driver on another machine
        has it (on this machine its folder says so)."""
        values = (cells.text(storm_id), cells.text(name), cells.text(plan))
        me = process.whoami()
        mine = (cells.text(str(me["host"])), cells.int4(int(me["pid"])), cells.int8(round(STALE_S * 1000)))
        if not (await self._run([(_REGISTER, (*values, *mine))]))[0]:
            other = await self.storm(storm_id)
            who = f"pid {other.pid} on {other.host}" if other is not None else "somebody else"
            raise StoreBusy(f"the storm {storm_id} is driven by {who}", remedy="Wait until it ends, or stop it.")

    async def beat(self, storm_id: str) -> bool:
        """Say that the driver lives, every :data:`HEARTBEAT_S` seconds. False when the storm has ended."""
        return bool((await self._run([(_BEAT, (cells.text(storm_id),))]))[0])

    async def end_storm(self, storm_id: str) -> None:
        """Say that the storm has ended. Doing it twice does no harm."""
        await self._run([(_END, (cells.text(storm_id),))])

    async def running_storms(self) -> tuple[Storm, ...]:
        """The storms whose driver gave a sign of life within :data:`STALE_S` seconds, the oldest first."""
        rows = (await self._run([(_RUNNING, (cells.int8(round(STALE_S * 1000)),))]))[0]
        return tuple(map(_storm, rows))

    async def storm(self, storm_id: str) -> Storm | None:
        """One storm, running or not; None when there is none of that id."""
        rows = (await self._run([(_FIND, (cells.text(storm_id),))]))[0]
        return _storm(rows[0]) if rows else None

    async def journal(self, storm_id: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write down what a worker did: JSON objects, each with its ``run``. All of them or none."""
        if rows:
            packed = cells.jsonb(msgspec.json.encode([dict(row) for row in rows]))
            await self._run([(_JOURNAL, (cells.text(storm_id), packed))])

    async def work_of(self, storm_id: str, run_id: str | None = None) -> list[dict[str, Any]]:
        """What all workers wrote down for a run (or for the whole storm), in the order of writing."""
        call: Call = (_ALL_WORK, (cells.text(storm_id),))
        if run_id is not None:
            call = (_WORK, (cells.text(storm_id), cells.text(run_id)))
        return [msgspec.json.decode(cells.as_json(row[0]) or b"{}") for row in (await self._run([call]))[0]]

    async def close(self) -> None:
        """Give the connections back."""
        if self._links is not None:
            links, self._links = self._links, None
            await links.leave()

    async def _run(self, calls: Sequence[Call]) -> list[Rows]:
        if self._links is None:
            self._links = Links.shared(self._dsn, STALE_S * 1000)
        try:
            return await self._links.run(calls)
        except StormctlError:
            raise
        except Exception as error:
            raise self._links.failure(error) from error


def _storm(row: tuple[Cell, ...]) -> Storm:
    storm_id, name, plan, host, pid, created, heartbeat, running = row
    return Storm(
        cells.need(storm_id),
        cells.need(name),
        cells.need(plan),
        cells.need(host),
        cells.as_int(pid) or 0,
        _time(created),
        _time(heartbeat),
        bool(cells.as_flag(running)),
    )


def _time(cell: Cell) -> datetime:
    return datetime.fromtimestamp((cells.as_ms(cell) or 0) / 1000, UTC)
