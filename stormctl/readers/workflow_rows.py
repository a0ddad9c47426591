"""Rows of a Postgres world as the SDK's own objects: columns by name, CBOR or the older JSON, bytes and times.

A row is a mapping from column names to values as a driver gives them, or as a CSV dump has them (bytes as ``\\x`` and
hex digits, times as text). Columns that a version of the schema does not have are absent. Times without an offset are
UTC.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from stormctl.errors import StormctlError
from stormctl.history import Event
from stormctl.readers.fields import shown
from stormctl.readers.sdk_events import event_of
from stormctl.readers.text import damaged, parse
from stormctl.times import iso

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
#: No event of the SDK carries more.
MAX_CBOR_BYTES = 64 << 20
#: Columns of workflow_events that have a place in the object; the rest are kept under their own names.
_EVENT_COLUMNS = frozenset(
    {"id", "type", "correlation_id", "created_at", "run_id", "payload", "payload_cbor", "spec_version", "seq"}
)
#: Columns of workflow_steps, _waits and _hooks that say how an entity stands, by the SDK's names.
ENTITY_FIELDS = {
    "status": "status",
    "step_name": "stepName",
    "attempt": "attempt",
    "resume_at": "resumeAt",
    "retry_after": "retryAfter",
    "created_at": "createdAt",
    "started_at": "startedAt",
    "completed_at": "completedAt",
    "updated_at": "updatedAt",
    "spec_version": "specVersion",
}


def event_of_row(row: Mapping[str, Any]) -> Event:
    """The event of a row of ``workflow_events``; UnreadableInput, naming the event, when it is damaged."""
    where = f"event {shown(row.get('id'))}"
    data = _value(row, "payload_cbor", "payload", where)
    if data is not None and not isinstance(data, dict):
        raise damaged(where, "has data that are no map")
    body = {
        "eventType": row.get("type"),
        "eventId": row.get("id"),
        "runId": row.get("run_id"),
        "correlationId": row.get("correlation_id") or None,
        "createdAt": _time(row.get("created_at"), where),
        "specVersion": _number(row.get("spec_version"), where),
        "seq": _number(row.get("seq"), where),
        "eventData": data,
    }
    others = {
        name: plain(value) for name, value in row.items() if name not in _EVENT_COLUMNS and value not in (None, "")
    }
    return event_of({**others, **body}, where)


def run_of_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """The run row of the SDK's API out of a row of ``workflow_runs``."""
    where = f"run {shown(row.get('id'))}"
    found = {
        "runId": row.get("id"),
        "status": row.get("status"),
        "workflowName": row.get("name"),
        "deploymentId": row.get("deployment_id"),
        "input": _value(row, "input_cbor", "input", where),
        "output": _value(row, "output_cbor", "output", where),
        "error": _value(row, "error_cbor", "error", where),
        "errorCode": row.get("error_code"),
        **_facts(row, where),
    }
    return {key: value for key, value in found.items() if value not in (None, "")}


def _facts(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    """What only a replay by the real engine needs: what is damaged of it is left out."""
    found: dict[str, Any] = {}
    with suppress(StormctlError):
        found["specVersion"] = _number(row.get("spec_version"), where)
    with suppress(StormctlError):
        found["executionContext"] = _value(row, "execution_context_cbor", "execution_context", where)
    for name, column in (("createdAt", "created_at"), ("startedAt", "started_at")):
        with suppress(StormctlError):
            found[name] = _time(row.get(column), where)
    return found


def entity_of_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """How a step, wait or hook stands, without what it was given and returned, and without its token."""
    found = {name: plain(row[column]) for column, name in ENTITY_FIELDS.items() if column in row}
    return {name: value for name, value in found.items() if value not in (None, "")}


def plain(value: Any) -> Any:
    """A JSON value of what a driver or CBOR gives: times as ISO text, bytes as ``{"$bytes": base64}``, sets as lists,
    undefined as null."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if isinstance(value, (set, frozenset)):
        return sorted((plain(inner) for inner in value), key=str)
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        return iso((moment - _EPOCH) // _MILLISECOND)  # cut off, as JavaScript does with PostgreSQL's microseconds
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"$bytes": base64.b64encode(value).decode("ascii")}
    if value is None or isinstance(value, (str, int, float)):
        return value
    if hasattr(value, "tag"):  # bytes of one type or another (64), a Map (259), an error (27): what the tag is about
        return plain(value.value)
    return None  # what JavaScript calls undefined


def _value(row: Mapping[str, Any], cbor: str, legacy: str, where: str) -> Any:
    """A value from its CBOR column, or from the JSON one of older rows."""
    raw = _raw(row.get(cbor), where)
    if raw is not None:
        return _decoded(raw, where)
    value = row.get(legacy)
    if isinstance(value, str) and value:
        try:
            return parse(value, where)
        except Exception:
            return value  # the error column of old rows is a text that need not be JSON
    return plain(value) if value not in (None, "") else None


def _raw(cell: Any, where: str) -> bytes | None:
    if cell is None or cell == "":
        return None
    if isinstance(cell, (bytes, bytearray, memoryview)):
        return bytes(cell)
    if isinstance(cell, str) and cell.startswith("\\x"):
        try:
            return bytes.fromhex(cell[2:])
        except ValueError:
            pass
    raise damaged(where, f"has {shown(cell)} where bytes belong")


def _decoded(raw: bytes, where: str) -> Any:
    if len(raw) > MAX_CBOR_BYTES:
        raise damaged(where, f"holds more than {MAX_CBOR_BYTES >> 20} MiB")
    import cbor2

    try:
        return plain(cbor2.loads(raw))
    except Exception as error:  # cbor2 has its own errors for bytes, and Python's for what is in them
        raise damaged(where, f"is not readable CBOR ({type(error).__name__})") from None


def _time(cell: Any, where: str) -> Any:
    """A time as ISO text with its offset."""
    if isinstance(cell, str):
        try:
            cell = datetime.fromisoformat(cell)
        except ValueError:
            raise damaged(where, f"has no time in {shown(cell)}") from None
    return plain(cell)


def _number(cell: Any, where: str) -> Any:
    if cell is None or cell == "":
        return None
    try:
        return int(cell)
    except (ValueError, TypeError):
        raise damaged(where, f"has {shown(cell)} where a number belongs") from None
