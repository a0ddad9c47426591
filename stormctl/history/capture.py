"""A captured run: the log, and how far it can be trusted.

A sweep that needs something which the capture lacks answers ``unknown`` and names it; so each reader declares here
what it could not see.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from stormctl.history.log import EventLog

_NOTHING: Mapping[str, Any] = MappingProxyType({})

LOG_READ_AT = "log_read_at"
"""The key in a capture's ``data`` for when its log was read: nanoseconds of the clock of its audit."""

COMMIT_TIMES, COMMIT_CLOCK = "commit_times", "commit_clock"
"""The keys in a capture's ``data`` for when each event became readable (microseconds of the epoch by event id) and for
who says so: ``server`` (the times of its commits, exact) or ``ctime`` (the last change of a file's inode, which follows
the event's publication by as long as its writer took to tidy up). Where our worlds keep an audit, that goes before."""


CAPTURED_AT = "captured_at"
"""The key in a capture's ``data`` for when the run was captured: epoch milliseconds."""


class Facet(StrEnum):
    """A kind of evidence that a capture may hold or lack. The value is how a person reads it."""

    POSITIONS = "positions"
    EVENT_IDS = "event ids"
    TIMES = "event times"
    CORRELATION_IDS = "correlation ids"
    NAMES = "step names"
    STARTS = "the starts of its steps"
    RUN_BOUNDS = "the events that open and end the run"
    INPUTS = "step inputs"
    RESULT = "the run's returned value"
    COMMIT_STAMPS = "commit times"
    AUDIT = "the append audit"
    READS = "the reads of its deliveries"
    ROWS = "entity rows"
    EARLIER = "an earlier capture of the same run"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a capture is worth.

    ``origin`` says where it came from. ``missing`` are the facets that it lacks. ``omitted`` are positions that its
    writer declares to have left out: they are no gaps. ``truncated`` says that more events exist than were read,
    ``live`` that the run was still going.
    """

    origin: str
    missing: frozenset[Facet] = frozenset()
    omitted: tuple[int, ...] = ()
    truncated: bool = False
    live: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """What a world wrote down, beside the log, about one append attempt.

    ``admitted`` is False when the store refused, and ``reason`` says why. ``snapshot`` is the number of events that the
    writer had read, None when it sent none. The times are nanoseconds of the machine's monotonic clock, so that several
    processes on one machine compare; 0 where the point was not reached.
    """

    run_id: str
    writer: str
    type: str
    correlation_id: str | None
    admitted: bool
    reason: str
    position: int | None
    event_id: str | None
    snapshot: int | None
    entered: int
    minted: int
    published: int
    returned: int


@dataclass(frozen=True, slots=True)
class ReadRecord:
    """One read of a run's log by one delivery, as its worker wrote it down.

    ``full`` is False for a read behind the reader's cursor. ``last_event_id`` names the last of the ``count`` events
    that it returned, None when it returned none. Times are nanoseconds of the machine's monotonic clock.
    """

    reader: str
    full: bool
    last_event_id: str | None
    count: int
    began: int
    returned: int


@dataclass(frozen=True, slots=True)
class RunRow:
    """The run as the store's entity row shows it, and what the workload returned."""

    status: str
    workload: str | None = None
    input: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    output: Any = None
    error_code: str | None = None
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class Capture:
    """A log with its evidence and whatever else was captured of the run.

    ``earlier`` is another capture of the same run, made before this one: what it holds must be the beginning of this.
    """

    source: str
    log: EventLog
    evidence: Evidence
    run: RunRow | None = None
    audit: tuple[AuditRecord, ...] | None = None
    reads: tuple[ReadRecord, ...] | None = None
    data: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    earlier: Capture | None = None

    def lacks(self, needs: frozenset[Facet]) -> tuple[Facet, ...]:
        """Which of the needed facets are missing, in the order in which facets are declared."""
        absent = needs & self.evidence.missing
        return tuple(facet for facet in Facet if facet in absent) if absent else ()
