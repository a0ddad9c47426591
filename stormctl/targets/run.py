"""One run of software that is not ours: watched from outside, by what its store holds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from stormctl.errors import StormctlError
from stormctl.history import LOG_READ_AT, Capture, EventLog, RunRow
from stormctl.storm.subject import Remains
from stormctl.targets.outside import Outside

#: resumes of one run that may be under way at once: a run that diverges answers late, and more would drown it
MOST_RESUMES = 4
ENDED = ("completed", "failed", "cancelled")
NOTHING: Mapping[str, Any] = {}

T = TypeVar("T")


class OutsideRun:
    """What all such runs have in common. ``about`` goes into the data of the capture.

    Whoever adds how a run is begun, resumed and cancelled also says, in :meth:`check`, when nothing can come of it any
    more, and in :meth:`with_more` what else is known of it.
    """

    def __init__(self, store: Outside, about: Mapping[str, Any] = NOTHING) -> None:
        self.run_id: str | None = None
        self.store = store
        self.resumes = asyncio.Semaphore(MOST_RESUMES)
        self._about = about
        self._read: Capture | None = None
        self._read_at = 0

    def check(self) -> None:
        """Raise when what serves the run is gone for good."""

    def with_more(self, capture: Capture) -> Remains:
        """The capture with whatever other evidence there is, and the work that was counted. Blocks."""
        return Remains(capture)

    async def look(self, ask: Callable[..., T], *values: Any) -> T:
        """Ask the store, in a thread."""
        return await asyncio.to_thread(ask, *values)

    async def row(self) -> RunRow | None:
        """As the store has it. What :meth:`check` raises for a run that has not ended and cannot any more."""
        row = await self.look(self.store.row, self.id)
        if row is None or row.status not in ENDED:
            self.check()
        return row

    async def last_wait(self) -> int | None:
        """By the log."""
        return await self.look(self.store.last_wait, self.id)

    async def log(self) -> EventLog:
        """The whole log, with what else the store has, and when it was read."""
        self._read_at = time.time_ns()
        self._read = await asyncio.to_thread(self.store.capture, self.id)
        return self._read.log

    async def remains(self, log: EventLog, *, ended: bool, live: bool) -> Remains:
        """What the store has, and whatever else is known."""
        return await asyncio.to_thread(self._remains, log, live)

    @property
    def id(self) -> str:
        """The id of a run that was begun."""
        assert self.run_id is not None
        return self.run_id

    def _remains(self, log: EventLog, live: bool) -> Remains:  # noqa: FBT001
        found = self._read if self._read is not None else self.store.capture(self.id)
        capture = replace(
            found,
            source=f"logs/{self.id}.ndjson",
            log=log,
            evidence=replace(found.evidence, live=live),
            data={**found.data, **self._about, LOG_READ_AT: self._read_at},
        )
        return self.with_more(capture)


class RefusedRun(OutsideRun):
    """A run of a cell that could not be made ready: beginning it tells why."""

    def __init__(self, why: StormctlError) -> None:
        self.run_id = None
        self._why = why

    async def begin(self, input: Any) -> None:
        raise self._why

    async def hook(self, _token: str) -> str | None:
        """There is none."""
        return None

    async def resume(self, _token: str, _payload: Any) -> bool:
        """There is nothing to resume."""
        return False

    async def cancel(self, _reason: str) -> None:
        """There is nothing to cancel."""
