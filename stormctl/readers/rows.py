"""Events and audit records as flat rows of our own log format, both ways.

A row has the same columns in every log, so that pandas, DuckDB and jq need no schema:
``position, type, event_id, correlation_id, created_at, name, token, resume_at, spec, digest``, then ``payload`` (only
when asked for), ``bytes`` (its bytes as base64, of a store that encodes its payloads: a replay by the engine that wrote
them needs just these) and ``data`` (whatever else the store held, under its own names). A column that is null is left
out of a row, except ``position`` and ``type``, which come first in each.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, fields
from typing import Any

from stormctl.errors import UnreadableInput
from stormctl.history import AuditRecord, Event, Inline, Payload, ReadRecord, Sealed
from stormctl.readers.fields import iso_of, ms_of, optional, required
from stormctl.readers.payloads import Encoded, payload_of
from stormctl.readers.sdk_events import STEP_INPUT
from stormctl.readers.text import damaged

COLUMNS = (
    "position", "type", "event_id", "correlation_id", "created_at", "name", "token", "resume_at", "spec", "digest",
    "payload", "bytes", "data",
)  # fmt: skip
_KNOWN = frozenset(COLUMNS)


def row_of_event(event: Event, *, with_payloads: bool = False) -> dict[str, Any]:
    """The row of one event."""
    row: dict[str, Any] = {
        "position": event.position,
        "type": event.type,
        "event_id": event.event_id,
        "correlation_id": event.correlation_id,
        "created_at": iso_of(event.created_at),
        "name": event.name,
        "token": event.token,
        "resume_at": iso_of(event.resume_at),
        "spec": event.spec,
        "digest": None if event.payload is None else event.payload.digest,
    }
    row = {key: value for key, value in row.items() if value is not None or key == "position"}
    if with_payloads and event.payload is not None and not isinstance(event.payload, Sealed):
        with suppress(UnreadableInput):  # damaged at its source: its digest is all that there is
            row["payload"] = event.payload.load()
        if isinstance(event.payload, Encoded):
            row["bytes"] = base64.b64encode(event.payload.raw).decode("ascii")
    if event.data:
        row["data"] = dict(event.data)
    return row


def event_of_row(row: Mapping[str, Any], run_id: str, where: str) -> Event:
    """The event of one row. Columns that this version does not know are kept in ``data``."""
    data: dict[str, Any] = dict(optional(row, "data", dict, where) or {})
    data.update((key, value) for key, value in row.items() if key not in _KNOWN)
    position = optional(row, "position", int, where)
    if position is not None and position < 0:
        raise damaged(where, "has a position below 0")
    return Event(
        type=required(row, "type", str, where),
        run_id=run_id,
        event_id=optional(row, "event_id", str, where),
        correlation_id=optional(row, "correlation_id", str, where),
        position=position,
        created_at=ms_of(row.get("created_at"), where, "created_at"),
        name=optional(row, "name", str, where),
        token=optional(row, "token", str, where),
        resume_at=ms_of(row.get("resume_at"), where, "resume_at"),
        spec=optional(row, "spec", int, where),
        payload=_payload(row, where),
        data=data,
    )


def _payload(row: Mapping[str, Any], where: str) -> Payload | None:
    raw = optional(row, "bytes", str, where)
    if raw is not None:
        return payload_of({"$bytes": raw}, arguments=row.get("type") in STEP_INPUT)
    if "payload" in row:
        return Inline(row["payload"])
    digest = optional(row, "digest", str, where)
    return None if digest is None else Sealed(digest)


def row_of_audit(record: AuditRecord | ReadRecord) -> dict[str, Any]:
    """The row of one append attempt or one read: every field of the record, under its own name."""
    return asdict(record)


def trail_of_row(row: Mapping[str, Any], where: str) -> AuditRecord | ReadRecord:
    """The inverse of :func:`row_of_audit`: a row with a ``reader`` is a read."""
    return read_of_row(row, where) if "reader" in row else audit_of_row(row, where)


def read_of_row(row: Mapping[str, Any], where: str) -> ReadRecord:
    """The record of one read; unknown columns of a newer writer are passed over."""
    return ReadRecord(
        reader=required(row, "reader", str, where),
        full=required(row, "full", bool, where),
        last_event_id=optional(row, "last_event_id", str, where),
        count=required(row, "count", int, where),
        began=required(row, "began", int, where),
        returned=required(row, "returned", int, where),
    )


def audit_of_row(row: Mapping[str, Any], where: str) -> AuditRecord:
    """The record of one append attempt; unknown columns of a newer writer are passed over."""
    kinds: dict[str, type[Any]] = {"admitted": bool, "position": int, "snapshot": int}
    kinds |= dict.fromkeys(("entered", "minted", "published", "returned"), int)
    optional_keys = {"correlation_id", "position", "event_id", "snapshot"}
    values: dict[str, Any] = {}
    for field in fields(AuditRecord):
        take = optional if field.name in optional_keys else required
        values[field.name] = take(row, field.name, kinds.get(field.name, str), where)
    return AuditRecord(**values)


__all__ = ["COLUMNS", "event_of_row", "read_of_row", "row_of_audit", "row_of_event", "trail_of_row"]
