"""One run of the real SDK under test: begun and pressed through its servers, watched from outside."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stormctl.history import COMMIT_TIMES, LOG_READ_AT, Capture, EventLog, Facet, RunRow
from stormctl.storm.subject import Remains
from stormctl.targets.sdk.host import Host, HostBusy, HostDied, HostRefused
from stormctl.targets.sdk.station import Station
from stormctl.targets.sdk.trace import audit_of, reads_of, work_of

#: resumes of one run that may be under way at once: a run that diverges answers late, and more would drown it
MOST_RESUMES = 4
_SERVER_SICK = (HostBusy, HostRefused, HostDied)
_ENDED = ("completed", "failed", "cancelled")
NOTHING: Mapping[str, Any] = {}
TRACED = "appends and reads are those that the host saw its world asked for, by the host's clock"


class SdkRun:
    """A run of a scenario at a station. ``about`` goes into the data of its capture."""

    def __init__(self, station: Station, workload: str, about: Mapping[str, Any] = NOTHING) -> None:
        self.run_id: str | None = None
        self._about = about
        self._station = station
        self._workload = workload
        self._resumes = asyncio.Semaphore(MOST_RESUMES)
        self._read: Capture | None = None
        self._read_at = 0

    async def begin(self, input: Any) -> None:
        """Start it. A server that dies meanwhile is asked again when it is back: what it had begun is nobody's."""
        try:
            self.run_id = await (await self._station.server()).start_run(self._workload, input)
        except HostDied:
            self.run_id = await (await self._station.server()).start_run(self._workload, input)
        self._station.begun()

    async def row(self) -> RunRow | None:
        """As the store has it. CellLost for one that has not ended where a server is gone for good."""
        row = await asyncio.to_thread(self._station.store.row, self._id)
        if row is None or row.status not in _ENDED:
            self._station.check()
        return row

    async def hook(self, token: str) -> str | None:
        """By the server; one that does not answer now is asked again later."""
        try:
            found = await (await self._station.server()).hook(token)
        except _SERVER_SICK:
            return None
        return found.hook_id if found is not None and found.run_id == self._id else None

    async def resume(self, token: str, payload: Any) -> bool:
        """Through the server. False also when it does not answer: whether the payload arrived is for the log to say."""
        async with self._resumes:
            try:
                return await (await self._station.server()).resume(token, payload)
            except _SERVER_SICK:
                return False

    async def last_wait(self) -> int | None:
        """By the log."""
        return await asyncio.to_thread(self._station.store.last_wait, self._id)

    async def log(self) -> EventLog:
        """The whole log, with what else the store has, and when it was read."""
        self._read_at = time.time_ns()
        self._read = await asyncio.to_thread(self._station.store.capture, self._id)
        return self._read.log

    async def remains(self, log: EventLog, *, ended: bool, live: bool) -> Remains:
        """What the store has, and what the hosts wrote down."""
        return await asyncio.to_thread(self._remains, log, live)

    async def cancel(self, reason: str) -> None:
        """Ask the server to; one that is too busy, or dead, cannot."""
        if self.run_id is None:
            return
        try:
            server: Host = await asyncio.wait_for(self._station.server(), 1.0)
            await server.cancel(self.run_id)
        except (*_SERVER_SICK, TimeoutError):
            return

    @property
    def _id(self) -> str:
        assert self.run_id is not None
        return self.run_id

    def _remains(self, log: EventLog, live: bool) -> Remains:  # noqa: FBT001
        found = self._read if self._read is not None else self._station.store.capture(self._id)
        trace = self._station.traces.take(self._id)
        audit = audit_of(trace, found.data.get(COMMIT_TIMES, {}))
        evidence = replace(found.evidence, live=live, notes=(*found.evidence.notes, TRACED))
        if audit:
            evidence = replace(evidence, missing=evidence.missing - {Facet.AUDIT})
        if trace.left_out:
            note = f"{trace.left_out} of its calls were too many to keep"
            evidence = replace(evidence, notes=(*evidence.notes, note))
        capture = replace(
            found,
            source=f"logs/{self._id}.ndjson",
            log=log,
            evidence=evidence,
            audit=audit or None,
            reads=reads_of(trace) or None,
            data={**found.data, **self._about, LOG_READ_AT: self._read_at},
        )
        return Remains(capture, work_of(trace))
