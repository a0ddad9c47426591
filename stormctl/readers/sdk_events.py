"""Events and run rows of the Workflow SDK, from the objects in which its stores and tools write them.

One shape serves them all: ``{eventType, specVersion, correlationId?, eventData?, runId, eventId, createdAt}``. What a
local world has as JSON, a Postgres world has as columns and CBOR; :mod:`stormctl.readers.workflow_rows` brings those
into the same form first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from stormctl.errors import UnreadableInput
from stormctl.history import Event, EventLog, Payload, RunRow, ids, kinds
from stormctl.readers.fields import ms_of, optional, required
from stormctl.readers.payloads import payload_of, readable

_ENVELOPE = frozenset(
    {"eventType", "specVersion", "correlationId", "eventData", "runId", "eventId", "createdAt", "seq"}
)
#: Where our own stores put a field whose name was taken.
_ASIDE = "stormctl"
#: What of an event's data has a field of its own.
_NAMED = ("stepName", "token", "resumeAt")
#: the events that carry the input of a step
STEP_INPUT = frozenset({kinds.STEP_CREATED, kinds.STEP_STARTED})
_FACTS: Mapping[str, type[Any]] = {
    "workflowName": str,
    "deploymentId": str,
    "specVersion": int,
    "executionContext": dict,
}
_ENDED = frozenset({"completed", "failed", "cancelled"})


def event_of(body: Mapping[str, Any], where: str) -> Event:
    """The event of an object; UnreadableInput, naming ``where``, when it is none.

    A slot id is the event's position, as is the ``seq`` of a store that counts beside its ids. Fields without a place
    of their own are kept in ``data`` under their names.
    """
    event_type = required(body, "eventType", str, where)
    given = optional(body, "eventData", dict, where) or {}
    event_id = required(body, "eventId", str, where)
    data = {key: value for key, value in body.items() if key not in _ENVELOPE}
    payload_key = kinds.PAYLOAD_KEY.get(event_type, "payload")
    data.update((key, value) for key, value in given.items() if key not in (payload_key, _ASIDE, *_NAMED))
    data.update(optional(given, _ASIDE, dict, where) or {})
    slot = ids.slot_of(event_id)
    return Event(
        type=event_type,
        run_id=required(body, "runId", str, where),
        event_id=event_id,
        correlation_id=optional(body, "correlationId", str, where),
        position=optional(body, "seq", int, where) if slot is None else slot,
        created_at=ms_of(_plain_time(body.get("createdAt")), where, "createdAt"),
        name=optional(given, "stepName", str, where),
        token=optional(given, "token", str, where),
        resume_at=ms_of(_plain_time(given.get("resumeAt")), where, "resumeAt"),
        spec=optional(body, "specVersion", int, where),
        payload=payload_of(given.get(payload_key), arguments=event_type in STEP_INPUT),
        data=data,
    )


def in_order(events: Iterable[Event]) -> list[Event]:
    """The events of one run in the order in which the SDK's store lists them.

    A run whose events all have positions is ordered by them, any other by creation time and then id; in such a one a
    position says nothing and is taken away. Copies of one event (pages that overlap) stay, for a sweep to speak of.
    """
    found = list(events)
    if found and all(event.position is not None for event in found):
        return sorted(found, key=lambda event: event.position or 0)
    return sorted(placed(found), key=lambda event: (event.created_at or 0, event.event_id or ""))


def placed(events: Sequence[Event]) -> list[Event]:
    """The events as they stand, with positions only where every one of them has one."""
    if all(event.position is not None for event in events):
        return list(events)
    return [event if event.position is None else replace(event, position=None) for event in events]


def run_row(
    row: Mapping[str, Any] | None, log: EventLog, workload: str | None, input: Mapping[str, Any], where: str
) -> RunRow | None:
    """A run as its row and its log show it; None where there is neither row nor an event that opens the run.

    The row says the status, because it is what the SDK goes by; without a row the log's first end does.
    """
    end = next((event for event in log if event.is_terminal), None)
    if row is None:
        if not any(event.type in (kinds.RUN_CREATED, kinds.RUN_STARTED) for event in log):
            return None
        row = {"status": "running" if end is None else end.type.removeprefix("run_")}
    status = required(row, "status", str, where)
    error = _error(row, end, where) if status == "failed" else {}
    output = payload_of(row.get("output"))
    if output is None and end is not None and end.type == kinds.RUN_COMPLETED:
        output = end.payload
    return RunRow(
        status=status,
        workload=workload,
        input=input,
        output=readable(output) if status == "completed" else None,
        error_code=optional(row, "errorCode", str, where) or error.get("code"),
        error_message=error.get("message"),
    )


def is_live(row: RunRow | None, log: EventLog) -> bool:
    """Whether the run was still going."""
    return not log.ended if row is None else row.status not in _ENDED


def _error(row: Mapping[str, Any], end: Event | None, where: str) -> dict[str, str | None]:
    """Code and message of a run that failed: from its row, else from the event that ended it."""
    code = None
    values: list[Any] = [readable(payload_of(row.get("error")))]
    if end is not None and end.type == kinds.RUN_FAILED:
        code = optional(end.data, "errorCode", str, where)
        values.append(readable(end.payload))
    for value in values:
        if isinstance(value, Mapping) and isinstance(value.get("message"), str):
            inner = value.get("code")
            return {"message": value["message"], "code": inner if isinstance(inner, str) else code}
        if isinstance(value, str):
            return {"message": value, "code": code}
    return {"message": None, "code": code}


def workflow_name(row: Mapping[str, Any] | None, events: Sequence[Event]) -> str | None:
    """The id of the run's workflow: ``workflow//./workflows/storms//stepStorm``."""
    name = None if row is None else row.get("workflowName")
    if not isinstance(name, str):
        created = next((event for event in events if event.type == kinds.RUN_CREATED), None)
        name = None if created is None else created.data.get("workflowName")
    return name if isinstance(name, str) else None


def facts_of_row(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    """What a run's row says beside its status and values: see :data:`stormctl.readers.sdk_capture.RUN_FACTS`.

    A fact that is not what it should be is left out, for most of what is done with a log needs none of them.
    """
    found: dict[str, Any] = {}
    for name, kind in _FACTS.items():
        with suppress(UnreadableInput):
            found[name] = optional(row, name, kind, where)
    for name in ("createdAt", "startedAt"):
        with suppress(UnreadableInput):
            found[name] = ms_of(_plain_time(row.get(name)), where, name)
    return {name: value for name, value in found.items() if value is not None}


def arguments_of_run(row: Mapping[str, Any] | None, events: Sequence[Event]) -> Any:
    """What the workflow was called with, as the SDK has it: a list; None where it cannot be had."""
    payload: Payload | None = None if row is None else payload_of(row.get("input"))
    if payload is None:
        created = next((event for event in events if event.type == kinds.RUN_CREATED), None)
        payload = None if created is None else created.payload
    return readable(payload)


def _plain_time(value: Any) -> Any:
    """A time as text or milliseconds; CBOR has it as a datetime."""
    return round(value.timestamp() * 1000) if isinstance(value, datetime) else value
