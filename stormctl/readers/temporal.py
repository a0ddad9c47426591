"""Temporal histories as JSON: what ``temporal workflow show --output json`` prints, and what the Web UI downloads.

A document ``{"events": [...]}``, a bare array, or one event per line; event types as ``EVENT_TYPE_TIMER_FIRED`` or, of
older tools and of Cadence, ``TimerFired``. Payloads are base64 in their protobuf form or plain values in the command
line's shorthand; both give the same digest. Events stand in the order of their numbers, which are positions: Temporal
counts a run's events from 1 without a gap.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from stormctl.history import Capture, Event, EventLog, Evidence, Inline, Payload, RunRow, Sealed, kinds
from stormctl.history.payload import digest_bytes
from stormctl.readers import temporal_types as own
from stormctl.readers.evidence import missing_from
from stormctl.readers.fields import optional, required, shown
from stormctl.readers.json_stream import Around, documents
from stormctl.readers.tables.values import time_of
from stormctl.readers.text import damaged
from stormctl.readers.unpack import bare_name

_HEAD = re.compile(rb'"eventType"\s*:\s*"(?:EVENT_TYPE_[A-Z_]+|(?:[A-Z][a-z]+)+)"')
_START = re.compile(rb"\s*[\[{]")
_DURATION = re.compile(r"(\d{1,12})(\.\d{1,9})?s\Z")
_MAX_EVENTS = 1_000_000
#: In which attribute an event of each type has its payload.
_PAYLOADS = ("input", "result", "signalInput", "details")
_JSON = frozenset({"json/plain", "json/protobuf"})
_STATUS = {kinds.RUN_COMPLETED: "completed", kinds.RUN_FAILED: "failed", kinds.RUN_CANCELLED: "cancelled"}


class TemporalReader:
    """Reads such histories; a file holds one run."""

    name = "temporal-history"
    summary = "a Temporal history as JSON (temporal workflow show --output json)"

    sign = 'an "eventType" such as EVENT_TYPE_TIMER_FIRED or TimerFired'

    def recognises(self, head: bytes, path: Path) -> bool:
        """Whether the file begins as one."""
        return _START.match(head) is not None and _HEAD.search(head) is not None

    def read(self, path: Path) -> Iterator[Capture]:
        """The one capture of the file."""
        events: list[tuple[int, Event]] = []
        first: Mapping[str, Any] = {}
        more = False
        for item in documents(path, ("events",)):
            if isinstance(item, Around):
                more = more or bool(item.fields.get("nextPageToken"))
                continue
            row = item.value
            if not isinstance(row, Mapping):
                raise damaged(item.where, f"is {shown(row)}, not an object")
            if len(events) >= _MAX_EVENTS:
                raise damaged(path.name, f"holds more than {_MAX_EVENTS:,} events, which no history does")
            number, event, attributes = _event(row, item.where)
            if event.type == kinds.RUN_CREATED and not first:
                first = attributes
            events.append((number, event))
        if not events:
            raise damaged(path.name, "holds no events", remedy="Fetch the history again.")
        yield _capture(path, [event for _, event in sorted(events, key=lambda one: one[0])], first, more=more)


def _event(row: Mapping[str, Any], where: str) -> tuple[int, Event, Mapping[str, Any]]:
    number = own.event_number(row.get("eventId"))
    if number is None:
        raise damaged(where, f"has no number in 'eventId': {shown(row.get('eventId'))}")
    word = own.own_type(required(row, "eventType", str, where))
    attributes = _attributes(row, where)
    event_type = own.our_type(word, attributes)
    kind = kinds.kind_of_type(event_type)
    created_at = _created_at(row, where)
    data: dict[str, Any] = {}
    if event_type not in kinds.ALL_TYPES:
        data["name"] = own.name(word, attributes)
    if (attempt := own.event_number(attributes.get("attempt"))) is not None and event_type == kinds.STEP_STARTED:
        data["attempt"] = attempt
    if (task := own.event_number(row.get("taskId"))) is not None:
        data["taskId"] = task
    event = Event(
        type=event_type,
        correlation_id=own.entity(word, number, attributes, kind),
        position=number,
        created_at=created_at,
        name=own.name(word, attributes) if kind == kinds.STEP else None,
        resume_at=_due(attributes, created_at) if event_type == kinds.WAIT_CREATED else None,
        payload=_payload(attributes),
        data={key: value for key, value in data.items() if value is not None},
    )
    return number, event, attributes


def _attributes(row: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """The attributes of the event's type; they stand under a key that is named for it."""
    for key in row:
        if key.endswith("EventAttributes") or key == "attributes":
            return optional(row, key, dict, where) or {}
    return {}


def _created_at(row: Mapping[str, Any], where: str) -> int | None:
    value = row.get("eventTime")
    if value is not None:
        return time_of(value, where, "eventTime", "ns")
    stamp = row.get("timestamp")  # Cadence: nanoseconds
    return None if stamp is None else time_of(stamp, where, "timestamp", "ns")


def _due(attributes: Mapping[str, Any], created_at: int | None) -> int | None:
    timeout = attributes.get("startToFireTimeout")
    seconds = own.event_number(attributes.get("startToFireTimeoutSeconds"))
    if isinstance(timeout, str) and (found := _DURATION.match(timeout)) is not None:
        ms = int(found[1]) * 1000 + int((found[2] or ".0")[1:4].ljust(3, "0"))
    elif seconds is not None:
        ms = seconds * 1000
    else:
        return None
    return None if created_at is None else created_at + ms


def _payload(attributes: Mapping[str, Any]) -> Payload | None:
    for key in _PAYLOADS:
        value = attributes.get(key)
        if value is not None:
            return _opened(value)
    return None


def _opened(value: Any) -> Payload:
    """A payload by its value where it is JSON, else by its bytes."""
    if isinstance(value, Mapping) and isinstance(value.get("payloads"), list):
        return _listed(value["payloads"])
    if isinstance(value, list):
        return Inline(value)
    if isinstance(value, str) and (raw := _raw(value)) is not None:
        return Sealed(digest_bytes(raw))
    return Inline(value)


def _listed(payloads: list[Any]) -> Payload:
    values: list[Any] = []
    for one in payloads:
        metadata = one.get("metadata") if isinstance(one, Mapping) else None
        encoding = _raw(metadata.get("encoding")) if isinstance(metadata, Mapping) else None
        data = _raw(one.get("data", "")) if isinstance(one, Mapping) else None
        if encoding is None or data is None:
            return Inline(payloads)
        word = encoding.decode("ascii", "replace")
        if word in _JSON:
            try:
                values.append(json.loads(data))
                continue
            except (ValueError, RecursionError):
                pass
        if word == "binary/null":
            values.append(None)
            continue
        return Sealed(digest_bytes(json.dumps(payloads, sort_keys=True, default=str).encode()))
    return Inline(values)


def _raw(value: Any) -> bytes | None:
    if not isinstance(value, str):
        return None
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return None


def _capture(path: Path, events: list[Event], first: Mapping[str, Any], *, more: bool) -> Capture:
    run_id = first.get("originalExecutionRunId")
    if not isinstance(run_id, str) or not run_id or not run_id.isascii() or len(run_id) > 200:
        run_id = bare_name(path).partition(".")[0]
    log = EventLog([_of_run(event, run_id) for event in events], run_id)
    end = next((event for event in log if event.is_terminal), None)
    run = None
    if any(event.type == kinds.RUN_CREATED for event in log):
        run = RunRow("running" if end is None else _STATUS[end.type])
    missing = missing_from(log.events, has_rows=False, has_audit=False, has_result=False)
    workflow = first.get("workflowType")
    named = workflow.get("name") if isinstance(workflow, Mapping) else None
    evidence = Evidence(
        "a Temporal history",
        missing=missing,
        truncated=more,
        live=end is None,
        notes=("more pages follow",) if more else (),
    )
    data = {"workflow": named} if isinstance(named, str) else {}
    return Capture(str(path), log, evidence, run, data=data)


def _of_run(event: Event, run_id: str) -> Event:
    return replace(event, run_id=run_id)


READER = TemporalReader()
