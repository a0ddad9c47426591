"""The log as data: events, ids and ranks, logs, captures. Nothing here reads a file or knows an engine."""

from stormctl.history.capture import (
    CAPTURED_AT,
    COMMIT_CLOCK,
    COMMIT_TIMES,
    LOG_READ_AT,
    AuditRecord,
    Capture,
    Evidence,
    Facet,
    ReadRecord,
    RunRow,
)
from stormctl.history.event import Event
from stormctl.history.log import EventLog
from stormctl.history.payload import Damaged, Inline, Payload, Sealed, digest_value

__all__ = [
    "CAPTURED_AT",
    "COMMIT_CLOCK",
    "COMMIT_TIMES",
    "LOG_READ_AT",
    "AuditRecord",
    "Capture",
    "Damaged",
    "Event",
    "EventLog",
    "Evidence",
    "Facet",
    "Inline",
    "Payload",
    "ReadRecord",
    "RunRow",
    "Sealed",
    "digest_value",
]
