"""The JSON of event, row, token and counter files.

Events and rows have the keys that the Workflow SDK's local world gives them (times as ISO strings, payloads as bytes
under the key of their type) plus ``seq`` where a condition numbers events densely. Decoding is the exact inverse.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from stormctl.history import Event, Inline, Payload, kinds
from stormctl.times import iso, ms_of
from stormctl.worlds.encode import is_packed, pack, unpack
from stormctl.worlds.rows import Entity, Kind, RunEntity
from stormctl.worlds.store_ops import Mark, Tail, TokenOwner

PAYLOAD_KEY = kinds.PAYLOAD_KEY
_OTHER_PAYLOAD = "payload"
#: Where a field of ours goes whose name the payload of its type has taken.
_ASIDE = "stormctl"

_ENVELOPE = frozenset(
    {"eventType", "specVersion", "correlationId", "eventData", "runId", "eventId", "createdAt", "seq"}
)
_FIELDS = frozenset({"stepName", "token", "resumeAt"})
_DEPLOYMENT = "stormctl"

dump = msgspec.json.Encoder().encode
parse = msgspec.json.Decoder().decode


def pretty(value: Any) -> bytes:
    """JSON as the SDK writes it: two spaces of indent, no newline at the end."""
    return msgspec.json.format(dump(value), indent=2)


# -- events -----------------------------------------------------------------------------------------------------------


def event_bytes(event: Event) -> bytes:
    """The file of an event."""
    return pretty(event_body(event))


def event_body(event: Event) -> dict[str, Any]:
    """An event as the JSON object that its file holds."""
    data: dict[str, Any] = {}
    if event.name is not None:
        data["stepName"] = event.name
    if event.token is not None:
        data["token"] = event.token
    if event.resume_at is not None:
        data["resumeAt"] = iso(event.resume_at)
    key = PAYLOAD_KEY.get(event.type, _OTHER_PAYLOAD)
    aside: dict[str, Any] = {}
    for name, value in event.data.items():
        if name in _FIELDS or (name == key and event.payload is not None) or name == _ASIDE:
            aside[name] = value
        elif name == "retryAfter" and isinstance(value, int):
            data[name] = iso(value)
        else:
            data[name] = value
    if event.payload is not None:
        data[key] = pack(event.payload.load())
    if aside:
        data[_ASIDE] = aside
    body: dict[str, Any] = {"eventType": event.type}
    if event.spec is not None:
        body["specVersion"] = event.spec
    if event.correlation_id is not None:
        body["correlationId"] = event.correlation_id
    if data:
        body["eventData"] = data
    body["runId"] = event.run_id
    body["eventId"] = event.event_id
    if event.created_at is not None:
        body["createdAt"] = iso(event.created_at)
    if event.position is not None:
        body["seq"] = event.position
    return body


def event_of(raw: bytes) -> Event:
    """The event of a file; ValueError, KeyError or TypeError when it holds none."""
    return event_of_body(parse(raw))


def event_of_body(body: Mapping[str, Any]) -> Event:
    """The inverse of :func:`event_body`, which trusts what it is given; the errors are those of :func:`event_of`."""
    given = body.get("eventData") or {}
    data = {key: value for key, value in body.items() if key not in _ENVELOPE}
    payload: Payload | None = None
    name = token = resume_at = None
    payload_key = PAYLOAD_KEY.get(body["eventType"], _OTHER_PAYLOAD)
    for key, value in given.items():
        if key == payload_key and is_packed(value):
            payload = Inline(unpack(value))
        elif key == "stepName":
            name = value
        elif key == "token":
            token = value
        elif key == "resumeAt":
            resume_at = ms_of(value)
        elif key == "retryAfter" and isinstance(value, str):
            data[key] = ms_of(value)
        elif key == _ASIDE and isinstance(value, dict):
            data.update(value)
        else:
            data[key] = value
    return Event(
        type=body["eventType"],
        run_id=body["runId"],
        event_id=body["eventId"],
        correlation_id=body.get("correlationId"),
        position=body.get("seq"),
        created_at=ms_of(body["createdAt"]),
        name=name,
        token=token,
        resume_at=resume_at,
        spec=body.get("specVersion"),
        payload=payload,
        data=data,
    )


# -- rows -------------------------------------------------------------------------------------------------------------


def run_bytes(row: RunEntity, spec: int) -> bytes:
    """The file of a run row."""
    body: dict[str, Any] = {
        "runId": row.run_id,
        "deploymentId": row.data.get("deploymentId", _DEPLOYMENT),
        "workflowName": row.workload,
        "specVersion": spec,
        "input": _packed(row.input),
        "createdAt": iso(row.created_at),
        "startedAt": _iso(row.started_at),
        "status": row.status,
        "output": _packed(row.output),
        "error": None
        if row.error_message is None and row.error_code is None
        else {"message": row.error_message, "code": row.error_code},
        "errorCode": row.error_code,
        "completedAt": _iso(row.completed_at),
        "updatedAt": iso(row.updated_at),
        "attributes": dict(row.attributes),
        "data": dict(row.data) or None,
    }
    return pretty({key: value for key, value in body.items() if value is not None})


def run_of(raw: bytes) -> RunEntity:
    """The inverse of :func:`run_bytes`."""
    body = parse(raw)
    error = body.get("error") or {}
    return RunEntity(
        run_id=body["runId"],
        status=body["status"],
        created_at=ms_of(body["createdAt"]),
        updated_at=ms_of(body["updatedAt"]),
        workload=body.get("workflowName"),
        input=_unpacked(body.get("input")),
        output=_unpacked(body.get("output")),
        started_at=_ms(body.get("startedAt")),
        completed_at=_ms(body.get("completedAt")),
        error_code=body.get("errorCode"),
        error_message=error.get("message"),
        attributes=body.get("attributes") or {},
        data=body.get("data") or {},
    )


def entity_bytes(row: Entity, spec: int) -> bytes:
    """The file of a step, wait or hook row."""
    body: dict[str, Any]
    if row.kind is Kind.STEP:
        failed = row.status == "failed" or row.retry_at is not None or row.status == "pending"
        body = {
            "runId": row.run_id,
            "stepId": row.id,
            "stepName": row.name,
            "status": row.status,
            "input": _packed(row.input),
            "error" if failed else "output": _packed(row.result),
            "attempt": row.attempt,
            "retryAfter": _iso(row.retry_at),
        }
    elif row.kind is Kind.WAIT:
        body = {
            "waitId": f"{row.run_id}-{row.id}",
            "runId": row.run_id,
            "status": row.status,
            "resumeAt": _iso(row.resume_at),
        }
    else:
        body = {
            "runId": row.run_id,
            "hookId": row.id,
            "token": row.token,
            "metadata": _packed(row.input),
            "ownerId": "local-owner",
            "projectId": "local-project",
            "environment": "local",
            "isWebhook": False,
        }
    body |= {
        "startedAt": _iso(row.started_at),
        "createdAt": iso(row.created_at),
        "updatedAt": iso(row.updated_at),
        "completedAt": _iso(row.completed_at),
        "specVersion": spec,
    }
    return pretty({key: value for key, value in body.items() if value is not None})


def entity_of(kind: Kind, entity_id: str, raw: bytes) -> Entity:
    """The inverse of :func:`entity_bytes`."""
    body = parse(raw)
    return Entity(
        kind,
        body["runId"],
        entity_id,
        body.get("status", "live"),
        created_at=ms_of(body["createdAt"]),
        updated_at=ms_of(body["updatedAt"]),
        name=body.get("stepName"),
        token=body.get("token"),
        resume_at=_ms(body.get("resumeAt")),
        attempt=body.get("attempt", 0),
        retry_at=_ms(body.get("retryAfter")),
        started_at=_ms(body.get("startedAt")),
        completed_at=_ms(body.get("completedAt")),
        input=_unpacked(body.get("input") or body.get("metadata")),
        result=_unpacked(body.get("output") or body.get("error")),
    )


# -- tokens, counter, journal -----------------------------------------------------------------------------------------


def token_bytes(token: str, owner: TokenOwner) -> bytes:
    """The file of a token claim."""
    body = {"token": token, "hookId": owner.hook_id, "runId": owner.run_id, "eventId": owner.event_id}
    return dump({key: value for key, value in body.items() if value is not None})


def owner_of(raw: bytes) -> TokenOwner:
    """The inverse of :func:`token_bytes`."""
    body = parse(raw)
    return TokenOwner(body["runId"], body["hookId"], body.get("eventId"))


#: Counter files have one size, so that each is overwritten in place.
COUNTER_SIZE = 512


def tail_bytes(tail: Tail) -> bytes:
    """The counter file, padded with spaces."""
    body = {
        "seq": tail.seq,
        "lastEventId": tail.last_event_id,
        "lastFencedSeq": tail.last_fenced,
        "writerSnapshot": tail.credit_key,
        "writerBaseCount": tail.credit_base,
    }
    if tail.in_band:
        body["seqInBand"] = tail.in_band
    return dump(body).ljust(COUNTER_SIZE)


def tail_of(raw: bytes) -> Tail | None:
    """The tail of a counter file; None when it is damaged."""
    try:
        body = parse(raw)
        return Tail(
            int(body["seq"]),
            body["lastEventId"],
            int(body["lastFencedSeq"]),
            body["writerSnapshot"],
            body["writerBaseCount"],
            int(body.get("seqInBand", 0)),
        )
    except (ValueError, KeyError, TypeError):
        return None


def journal_bytes(events: tuple[Event, ...], mark: Mark) -> bytes:
    """The journal lines of events about to be published.

    Each stands between newlines, so that a torn one spoils no other.
    """
    lines = bytearray()
    for event in events:
        body: dict[str, Any] = {"eventId": event.event_id}
        if event.position is not None:
            body["seq"] = event.position
        if mark.fenced:
            body["fenced"] = {"key": mark.key, "base": mark.base}
        if mark.in_band:
            body["inBand"] = True
        lines += b"\n" + dump(body) + b"\n"
    return bytes(lines)


def journal_of(raw: bytes) -> list[tuple[str, Mark]]:
    """The complete lines of a journal, in the order in which they were written."""
    found = []
    for line in raw.split(b"\n"):
        if not line:
            continue
        try:
            body = parse(line)
            fenced = body.get("fenced")
            in_band = body.get("inBand") is True
            mark = Mark(in_band=in_band)
            if fenced is not None:
                mark = Mark(fenced=True, key=fenced["key"], base=fenced["base"], in_band=in_band)
            found.append((str(body["eventId"]), mark))
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return found


def _iso(ms: int | None) -> str | None:
    return None if ms is None else iso(ms)


def _ms(text: str | None) -> int | None:
    return None if text is None else ms_of(text)


def _packed(payload: Payload | None) -> Mapping[str, str] | None:
    return None if payload is None else pack(payload.load())


def _unpacked(value: Any) -> Payload | None:
    return Inline(unpack(value)) if is_packed(value) else None
