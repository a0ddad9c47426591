"""One run of the real SDK under test: begun and pressed through its servers, watched from outside."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stormctl.history import COMMIT_TIMES, Capture, Facet
from stormctl.storm.subject import Remains
from stormctl.targets.run import NOTHING, OutsideRun
from stormctl.targets.sdk.host import Host, HostBusy, HostDied, HostRefused
from stormctl.targets.sdk.station import Station
from stormctl.targets.sdk.trace import audit_of, reads_of, work_of

_SERVER_SICK = (HostBusy, HostRefused, HostDied)
TRACED = "appends and reads are those that the host saw its world asked for, by the host's clock"


class SdkRun(OutsideRun):
    """A run of a scenario at a station. ``about`` goes into the data of its capture."""

    def __init__(self, station: Station, workload: str, about: Mapping[str, Any] = NOTHING) -> None:
        super().__init__(station.store, about)
        self._station = station
        self._workload = workload

    def check(self) -> None:
        """CellLost where a server is gone for good."""
        self._station.check()

    async def begin(self, input: Any) -> None:
        """Start it. A server that dies meanwhile is asked again when it is back: what it had begun is nobody's."""
        try:
            self.run_id = await (await self._station.server()).start_run(self._workload, input)
        except HostDied:
            self.run_id = await (await self._station.server()).start_run(self._workload, input)
        self._station.begun()

    async def hook(self, token: str) -> str | None:
        """By the server; one that does not answer now is asked again later."""
        try:
            found = await (await self._station.server()).hook(token)
        except _SERVER_SICK:
            return None
        return found.hook_id if found is not None and found.run_id == self.id else None

    async def resume(self, token: str, payload: Any) -> bool:
        """Through the server. False also when it does not answer: whether the payload arrived is for the log to say."""
        async with self.resumes:
            try:
                return await (await self._station.server()).resume(token, payload)
            except _SERVER_SICK:
                return False

    async def cancel(self, reason: str) -> None:
        """Ask the server to; one that is too busy, or dead, cannot."""
        if self.run_id is None:
            return
        try:
            server: Host = await asyncio.wait_for(self._station.server(), 1.0)
            await server.cancel(self.run_id)
        except (*_SERVER_SICK, TimeoutError):
            return

    def with_more(self, capture: Capture) -> Remains:
        """With what the hosts wrote down of it."""
        trace = self._station.traces.take(self.id)
        audit = audit_of(trace, capture.data.get(COMMIT_TIMES, {}))
        evidence = replace(capture.evidence, notes=(*capture.evidence.notes, TRACED))
        if audit:
            evidence = replace(evidence, missing=evidence.missing - {Facet.AUDIT})
        if trace.left_out:
            note = f"{trace.left_out} of its calls were too many to keep"
            evidence = replace(evidence, notes=(*evidence.notes, note))
        capture = replace(capture, evidence=evidence, audit=audit or None, reads=reads_of(trace) or None)
        # the inputs and results are our scenarios' own, and the real engine replays no log without them
        return Remains(capture, work_of(trace), payloads=True)
