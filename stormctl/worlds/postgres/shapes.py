"""Events and entity rows as table rows: what stands in each column, and back.

``payload_cbor`` holds an event's data as one CBOR map, payloads as tagged bytes (tag 64) of the same form that the
local world's files have, times as tag 1; so rows of a real world-postgres are read by the same functions, and ours by
the real one's. Decoding is the exact inverse of encoding.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from stormctl.errors import UnreadableInput, UsageError
from stormctl.history import Event, Inline, Payload, ids
from stormctl.times import LAST_ISO_MS, iso, ms_of
from stormctl.worlds.base import AppendRequest
from stormctl.worlds.encode import pack_bytes, unpack_bytes
from stormctl.worlds.pipeline import SPEC
from stormctl.worlds.postgres import cells
from stormctl.worlds.postgres.cells import Cell
from stormctl.worlds.rows import Entity, Kind, RunEntity
from stormctl.worlds.shapes import PAYLOAD_KEY
from stormctl.worlds.store_ops import Mark, Tail

_OTHER_PAYLOAD = "payload"
_ASIDE = "stormctl"
_FIELDS = frozenset({"stepName", "token", "resumeAt"})
_BYTES, _TIME = 64, 1
_TAGGED = b"\xd8\x40"
_DEPLOYMENT = "stormctl"
_EMPTY = cells.jsonb(b"{}")


class Packed(Inline):
    """A payload whose bytes came from a row, and whose value is made only when somebody asks.

    ``raw`` are the bytes themselves, ``cell`` the column's CBOR that holds them, so that a row can be written again
    without taking it apart. One of the two is given.
    """

    __slots__ = ("_raw", "cell")

    def __init__(self, raw: bytes | None = None, cell: bytes | None = None) -> None:
        self._raw = raw
        self.cell = cell

    @property
    def raw(self) -> bytes:
        """The bytes."""
        if self._raw is None:
            self._raw = _payload_bytes(_load(self.cell or b"")) or b""
        return self._raw

    @property
    def value(self) -> Any:
        """The value; UnreadableInput when the bytes are encrypted, compressed or damaged."""
        return unpack_bytes(self.raw)

    def load(self) -> Any:
        return self.value

    def __repr__(self) -> str:
        return f"Packed({self.digest})"


# -- events -----------------------------------------------------------------------------------------------------------

EVENT_COLUMNS = "id, type, correlation_id, created_at, run_id, payload, payload_cbor, spec_version, seq"


def event_cells(event: Event) -> tuple[Cell, Cell, Cell, Cell, Cell, Cell, Cell, Cell]:
    """An event's id, type, correlation_id, created_at, run_id, payload_cbor, spec_version and seq."""
    return (
        cells.text(event.event_id),
        cells.text(event.type),
        cells.text(event.correlation_id),
        cells.stamp(event.created_at),
        cells.text(event.run_id),
        _event_data(event),
        cells.int4(event.spec),
        cells.int8(None if event.position == ids.slot_of(event.event_id or "") else event.position),
    )


def _event_data(event: Event) -> bytes | None:
    import cbor2

    data: dict[str, Any] = {}
    if event.name is not None:
        data["stepName"] = event.name
    if event.token is not None:
        data["token"] = event.token
    if event.resume_at is not None:
        data["resumeAt"] = _time(event.resume_at)
    key = PAYLOAD_KEY.get(event.type, _OTHER_PAYLOAD)
    if event.data:
        aside: dict[str, Any] = {}
        for name, value in event.data.items():
            if name in _FIELDS or (name == key and event.payload is not None) or name == _ASIDE:
                aside[name] = value
            elif name == "retryAfter" and isinstance(value, int):
                data[name] = _time(value)
            else:
                data[name] = value
        if aside:
            data[_ASIDE] = aside
    if event.payload is not None:
        data[key] = _tagged(event.payload)
    return cbor2.dumps(data) if data else None


def event_of(row: tuple[Cell, ...]) -> Event:
    """The event of a row of :data:`EVENT_COLUMNS`; UnreadableInput when its data are damaged."""
    event_id, kind, correlation_id, created_at, run_id, legacy, cbor, spec, seq = row
    type_ = cells.need(kind)
    given = _map(cbor, legacy)
    data: dict[str, Any] = {}
    payload: Payload | None = None
    name = token = resume_at = None
    payload_key = PAYLOAD_KEY.get(type_, _OTHER_PAYLOAD)
    for key, value in given.items():
        if key == payload_key and (raw := _payload_bytes(value)) is not None:
            payload = Packed(raw)
        elif key == "stepName":
            name = value
        elif key == "token":
            token = value
        elif key == "resumeAt":
            resume_at = _ms(value, legacy=cbor is None)
        elif key == "retryAfter":
            data[key] = _ms(value, legacy=cbor is None)
        elif key == _ASIDE and isinstance(value, dict):
            data.update(value)
        else:
            data[key] = _plain(value)
    place = cells.as_int(seq)
    shown_id = cells.as_text(event_id)
    return Event(
        type=type_,
        run_id=cells.need(run_id),
        event_id=shown_id,
        correlation_id=cells.as_text(correlation_id),
        position=ids.slot_of(shown_id or "") if place is None else place,
        created_at=cells.as_ms(created_at),
        name=name,
        token=token,
        resume_at=resume_at,
        spec=cells.as_int(spec),
        payload=payload,
        data=data,
    )


def mark_cells(mark: Mark) -> tuple[Cell, Cell, Cell, Cell]:
    """fenced, credit_key, credit_base, in_band."""
    return (cells.flag(mark.fenced), cells.text(mark.key), cells.int8(mark.base), cells.flag(mark.in_band))


# -- runs -------------------------------------------------------------------------------------------------------------

RUN_COLUMNS = (
    "id, status, created_at, updated_at, name, input_cbor, output_cbor, started_at, completed_at, error_code, "
    "error_cbor, attributes, execution_context_cbor, deployment_id"
)


def run_cells(row: RunEntity) -> tuple[Cell, ...]:
    """The values of :data:`RUN_COLUMNS`."""
    import cbor2

    message = row.error_message
    return (
        cells.text(row.run_id),
        cells.text(row.status),
        cells.stamp(row.created_at),
        cells.stamp(row.updated_at),
        cells.text(row.workload),
        _payload(row.input),
        _payload(row.output),
        cells.stamp(row.started_at),
        cells.stamp(row.completed_at),
        cells.text(row.error_code),
        None if message is None else _payload(Inline({"message": message})),
        cells.jsonb(msgspec.json.encode(dict(row.attributes))),
        cbor2.dumps(dict(row.data)) if row.data else None,
        cells.text(str(row.data.get("deploymentId", _DEPLOYMENT))),
    )


def run_of(row: tuple[Cell, ...]) -> RunEntity:
    """The inverse of :func:`run_cells`."""
    (run_id, status, created, updated, name, given, output, started, completed, code, error, attributes, data, _) = row
    return RunEntity(
        run_id=cells.need(run_id),
        status=cells.need(status),
        created_at=cells.as_ms(created) or 0,
        updated_at=cells.as_ms(updated) or 0,
        workload=cells.as_text(name),
        input=_payload_of(given),
        output=_payload_of(output),
        started_at=cells.as_ms(started),
        completed_at=cells.as_ms(completed),
        error_code=cells.as_text(code),
        error_message=_message(_payload_of(error)),
        attributes={} if attributes == _EMPTY else msgspec.json.decode(cells.as_json(attributes) or b"{}"),
        data={} if data is None else {key: _plain(value) for key, value in _map(data, None).items()},
    )


TAIL_COLUMNS = "next_event_seq, last_event_id, last_fenced_seq, writer_snapshot, writer_base_count, in_band"


def tail_cells(tail: Tail) -> tuple[Cell, ...]:
    """The values of :data:`TAIL_COLUMNS`."""
    return (
        cells.int8(tail.seq),
        cells.text(tail.last_event_id),
        cells.int8(tail.last_fenced),
        cells.text(tail.credit_key),
        cells.int8(tail.credit_base),
        cells.int8(tail.in_band),
    )


def tail_of(row: tuple[Cell, ...]) -> Tail | None:
    """The inverse; None when none was ever kept, and it has to be derived from the events."""
    seq, last, fenced, key, base, in_band = row
    if last is None and not cells.as_int(seq):
        return None
    return Tail(
        cells.as_int(seq) or 0,
        cells.as_text(last),
        cells.as_int(fenced) or 0,
        cells.as_text(key),
        cells.as_int(base),
        cells.as_int(in_band) or 0,
    )


# -- steps, waits, hooks ----------------------------------------------------------------------------------------------

STEP_COLUMNS = (
    "run_id, step_id, step_name, status, attempt, created_at, updated_at, started_at, completed_at, retry_after, "
    "input_cbor, output_cbor, error_cbor"
)
WAIT_COLUMNS = "run_id, wait_id, status, resume_at, created_at, updated_at, completed_at"
HOOK_COLUMNS = "run_id, hook_id, token, created_at, metadata_cbor"


def entity_cells(row: Entity) -> tuple[Cell, ...]:
    """The values of the columns of its kind."""
    if row.kind is Kind.STEP:
        result = _payload(row.result)
        done = row.status == "completed"
        return (
            cells.text(row.run_id),
            cells.text(row.id),
            cells.text(row.name),
            cells.text(row.status),
            cells.int4(row.attempt),
            cells.stamp(row.created_at),
            cells.stamp(row.updated_at),
            cells.stamp(row.started_at),
            cells.stamp(row.completed_at),
            cells.stamp(row.retry_at),
            _payload(row.input),
            result if done else None,
            None if done else result,
        )
    if row.kind is Kind.WAIT:
        return (
            cells.text(row.run_id),
            cells.text(row_id(row.kind, row.run_id, row.id)),
            cells.text(row.status),
            cells.stamp(row.resume_at),
            cells.stamp(row.created_at),
            cells.stamp(row.updated_at),
            cells.stamp(row.completed_at),
        )
    return (
        cells.text(row.run_id),
        cells.text(row.id),
        cells.text(row.token),
        cells.stamp(row.created_at),
        _payload(row.input),
    )


def entity_of(kind: Kind, row: tuple[Cell, ...]) -> Entity:
    """The inverse of :func:`entity_cells`, of what a row of that kind keeps."""
    run_id = cells.need(row[0])
    if kind is Kind.STEP:
        (_, step_id, name, status, attempt, created, updated, started, completed, retry, given, output, error) = row
        return Entity(
            kind,
            run_id,
            cells.need(step_id),
            cells.need(status),
            created_at=cells.as_ms(created) or 0,
            updated_at=cells.as_ms(updated) or 0,
            name=cells.as_text(name),
            attempt=cells.as_int(attempt) or 0,
            retry_at=cells.as_ms(retry),
            started_at=cells.as_ms(started),
            completed_at=cells.as_ms(completed),
            input=_payload_of(given),
            result=_payload_of(error if output is None else output),
        )
    if kind is Kind.WAIT:
        _, wait_id, status, resume_at, created, updated, completed = row
        return Entity(
            kind,
            run_id,
            cells.need(wait_id)[len(run_id) + 1 :],
            cells.need(status),
            created_at=cells.as_ms(created) or 0,
            updated_at=cells.as_ms(updated) or 0,
            resume_at=cells.as_ms(resume_at),
            completed_at=cells.as_ms(completed),
        )
    _, hook_id, token, created, metadata = row
    at = cells.as_ms(created) or 0
    return Entity(
        kind,
        run_id,
        cells.need(hook_id),
        "live",
        created_at=at,
        updated_at=at,
        token=cells.as_text(token),
        input=_payload_of(metadata),
    )


def row_id(kind: Kind, run_id: str, entity_id: str) -> str:
    """What an entity is called in its table: a wait by its run too."""
    return f"{run_id}-{entity_id}" if kind is Kind.WAIT else entity_id


SPEC_CELL = cells.int4(SPEC)
SPEC_TEXT = cells.text(str(SPEC))


def check_texts(request: AppendRequest) -> None:
    """UsageError when the request names something by a text that PostgreSQL cannot keep."""
    snapshot = request.snapshot
    key = None if snapshot is None else (snapshot.writer or "") + (snapshot.cursor or "")
    for text in (request.run_id, request.correlation_id, request.name, request.token, request.writer, key):
        if text and ("\x00" in text or not (text.isascii() or _is_unicode(text))):
            raise UsageError(
                f"PostgreSQL cannot keep {text!r} as text",
                remedy="Leave NUL and halves of surrogate pairs out of ids, names and tokens.",
            )


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# -- payloads and CBOR ------------------------------------------------------------------------------------------------


def _tagged(payload: Payload) -> Any:
    import cbor2

    return cbor2.CBORTag(_BYTES, payload.raw if isinstance(payload, Packed) else pack_bytes(payload.load()))


def _payload(payload: Payload | None) -> bytes | None:
    """A payload column: the tagged bytes alone."""
    if payload is None:
        return None
    if isinstance(payload, Packed) and payload.cell is not None:
        return payload.cell
    import cbor2

    return cbor2.dumps(_tagged(payload))


def _payload_of(cell: Cell) -> Payload | None:
    if cell is None:
        return None
    if cell[:2] == _TAGGED:
        return Packed(cell=cell)
    raw = _payload_bytes(_load(cell))
    if raw is None:
        raise UnreadableInput("a payload column holds no payload", remedy="Read the log without its payloads.")
    return Packed(raw)


def _payload_bytes(value: Any) -> bytes | None:
    """The bytes of a payload, tagged (Uint8Array) or bare (Buffer); None for anything else."""
    value = getattr(value, "value", value) if getattr(value, "tag", None) == _BYTES else value
    return value if isinstance(value, bytes) else None


def _message(payload: Payload | None) -> str | None:
    if payload is None:
        return None
    value = payload.load()
    return str(value["message"] if isinstance(value, Mapping) and "message" in value else value)


def _map(cbor: Cell, legacy: Cell) -> dict[str, Any]:
    """The data of an event or row: CBOR, or in old rows JSON."""
    if cbor is not None:
        value = _load(cbor)
    elif legacy is not None:
        value = msgspec.json.decode(cells.as_json(legacy) or b"null")
    else:
        return {}
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UnreadableInput("an event's data are not a map", remedy="Read the log from another capture.")
    return value


def _load(cell: bytes) -> Any:
    import cbor2

    try:
        return cbor2.loads(cell)
    except Exception as error:  # cbor2 has its own errors for bytes, and Python's for what is in them
        raise UnreadableInput(
            f"a value is not readable CBOR ({error})", remedy="Read the log from another capture."
        ) from None


def _time(ms: int) -> Any:
    import cbor2

    return cbor2.CBORTag(_TIME, ms / 1000) if 0 <= ms <= LAST_ISO_MS else ms


def _ms(value: Any, *, legacy: bool) -> Any:
    """Epoch milliseconds of a time (in legacy JSON a text); anything else as it is."""
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, str) and legacy:
        try:
            return ms_of(value)
        except (ValueError, TypeError):
            return value
    return value


def _plain(value: Any) -> Any:
    """A JSON value of what other tools write: times as text, undefined as null, sets as lists, bytes as hex digits."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, datetime):
        return iso(round(value.timestamp() * 1000))
    if isinstance(value, (set, frozenset)):
        return sorted((_plain(inner) for inner in value), key=str)
    if isinstance(value, bytes):
        return value.hex()
    if value is None or isinstance(value, (str, int, float)):
        return value
    return _plain(value.value) if hasattr(value, "tag") else None
