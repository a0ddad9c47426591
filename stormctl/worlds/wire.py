"""Events on the wire: the JSON object in which a store sends an event with an answer, and back.

The shape is that of an event file (``worlds.shapes``). What comes back over a wire is not trusted: it is the only way
for an event into a delivery's view that does not lead through a read of the log, so whatever is not exactly an event of
that run is refused, and the reader reads the log instead.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stormctl.errors import StormctlError
from stormctl.history import Event, ids, kinds
from stormctl.times import ms_of
from stormctl.worlds import shapes
from stormctl.worlds.base import Page
from stormctl.worlds.encode import is_packed

#: The fields of an event that hold opaque bytes. A buffer that went through plain JSON (``{"0": 1, "1": 2}``) does not.
PAYLOAD_FIELDS = frozenset({"input", "output", "error", "result", "metadata", "payload"})

EVENTS = "events"
CURSOR = "cursor"
RECORDED = "recordedAtOrBelow"
UPDATED = "stateUpdatedAt"

_NAMES_AN_ENTITY = kinds.STEP_TYPES | kinds.HOOK_TYPES | kinds.WAIT_TYPES
#: Without it a replay would go on with no value where there was one, and be silently wrong.
_NEEDS_PAYLOAD = frozenset({kinds.STEP_CREATED, kinds.STEP_COMPLETED, kinds.STEP_FAILED, kinds.HOOK_RECEIVED})


def event_to_wire(event: Event) -> dict[str, Any]:
    """The JSON object of an event, payload bytes included."""
    return shapes.event_body(event)


def event_from_wire(mapping: object, run_id: str) -> Event:
    """The event of a JSON object; ValueError, saying why, for anything but a whole event of that run.

    Refused: another run, no event id, an unknown type, a field missing that its type must have, payload fields that
    are not readable bytes, and times that are none.
    """
    body = _object("the event", mapping)
    if body.get("runId") != run_id:
        raise ValueError(f"it belongs to run {body.get('runId')!r}")
    event_id = _text(body, "eventId", needed=True)
    kind = _text(body, "eventType", needed=True)
    if kind not in kinds.ALL_TYPES:
        raise ValueError(f"there is no event type {kind!r}")
    _text(body, "correlationId", needed=kind in _NAMES_AN_ENTITY)
    _time(body, "createdAt", needed=True)
    _time(body, "occurredAt")
    _number(body, "specVersion", least=0)
    _number(body, "seq", least=1)
    given = body.get("eventData")
    data = {} if given is None else _object("its eventData", given)
    for key in PAYLOAD_FIELDS & data.keys():
        _bytes(data, key)
    if kind in _NEEDS_PAYLOAD and shapes.PAYLOAD_KEY[kind] not in data:
        raise ValueError(f"its {shapes.PAYLOAD_KEY[kind]} is missing")
    _text(data, "stepName", needed=kind == kinds.STEP_CREATED)
    _text(data, "token", needed=kind == kinds.HOOK_CREATED)
    _time(data, "resumeAt", needed=kind == kinds.WAIT_CREATED)
    _time(data, "retryAfter")
    try:
        event = shapes.event_of_body(body)
    except (ValueError, KeyError, TypeError, StormctlError, RecursionError) as bad:
        raise ValueError(f"it cannot be read: {bad}") from None
    slot = ids.slot_of(event_id)
    if slot is None:
        return event
    if event.position not in (None, slot):
        raise ValueError(f"it stands on slot {slot} and says {event.position}")
    return replace(event, position=slot)


def refusal_body(delta: Page | None, counts: tuple[int, int] | None) -> dict[str, Any]:
    """What a refused precondition carries: the events behind the writer's cursor, and the pair of counts that its
    snapshot was compared with (how many events stand at or below a time, and that time), each if it is told."""
    body: dict[str, Any] = {}
    if delta is not None:
        body[EVENTS] = [event_to_wire(event) for event in delta.events]
        if delta.cursor is not None:
            body[CURSOR] = delta.cursor
    if counts is not None:
        body[RECORDED], body[UPDATED] = counts
    return body


# -- checks -----------------------------------------------------------------------------------------------------------


def _object(what: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ValueError(f"{what} is not an object")
    return value


def _text(body: Mapping[str, Any], key: str, *, needed: bool = False) -> str:
    """A string field; the empty string when it is absent and may be."""
    value = body.get(key)
    if value is None and not needed:
        return ""
    if not isinstance(value, str) or (needed and not value):
        raise ValueError(f"its {key} is not a string")
    return value


def _number(body: Mapping[str, Any], key: str, *, least: int) -> None:
    value = body.get(key)
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"its {key} is not a whole number from {least} on")


def _time(body: Mapping[str, Any], key: str, *, needed: bool = False) -> None:
    value = body.get(key)
    if value is None and not needed:
        return
    try:
        sound = ms_of(value) >= 0  # type: ignore[arg-type]
    except (ValueError, TypeError, OverflowError):
        sound = False
    if not sound:
        raise ValueError(f"its {key} is not a time")


def _bytes(data: Mapping[str, Any], key: str) -> None:
    value = data[key]
    if not is_packed(value) or not isinstance(value.get("data"), str):
        raise ValueError(f"its {key} is not bytes")
    try:
        base64.b64decode(value["data"], validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"its {key} is not base64") from None
