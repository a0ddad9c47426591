"""Rows of a log that is just what stormctl writes: decoded whole, and known to be so by writing them again.

A file is decoded into rows of known fields, and these are encoded: only where that gives the very bytes of the file
does it hold no key twice, no escape, no blank and no number in another form. Whatever else is in a file, odd or broken,
is for the reader that takes it line by line, which says what it means or what is wrong with it. So nothing is accepted
here that the other would refuse, and events are the same by either way; a test holds them equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from stormctl import times
from stormctl.errors import UnreadableInput
from stormctl.history import Event, Inline, Payload, Sealed
from stormctl.history.event import quick_event
from stormctl.readers import text as limits
from stormctl.readers.payloads import payload_of
from stormctl.readers.sdk_events import STEP_INPUT
from stormctl.readers.text import parse
from stormctl.readers.unpack import open_plain, read_up_to

#: A larger file is taken line by line.
MAX_BYTES = 32 << 20
#: Numbers from here on are refused.
LARGEST = 1 << 63
NOTHING = msgspec.Raw(b"")
#: How long a time is as stormctl writes it.
_TIME_LENGTH = len("2026-11-30T15:43:37.943Z")
#: Distinct nested values that are kept; most rows of a log repeat a few.
_KEPT = 4096


class PlainRow(msgspec.Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """A row, its fields in the order in which they are written."""

    position: int
    type: str
    event_id: str | None = None
    correlation_id: str | None = None
    created_at: str | None = None
    name: str | None = None
    token: str | None = None
    resume_at: str | None = None
    spec: int | None = None
    digest: str | None = None
    payload: msgspec.Raw = NOTHING
    bytes: str | None = None
    data: msgspec.Raw = NOTHING


_DECODER = msgspec.json.Decoder(PlainRow)
_ENCODER = msgspec.json.Encoder()


def plain_rows(path: Path) -> Sequence[PlainRow] | None:
    """The rows of a file, or None where it must be taken line by line. Errors as those of ``open_plain``."""
    with open_plain(path) as file:
        content = read_up_to(file, MAX_BYTES + 1)
    if len(content) > MAX_BYTES or not content.isascii():
        return None
    try:
        rows = _DECODER.decode_lines(content)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not rows or len(rows) > limits.MAX_EVENTS or _ENCODER.encode_lines(rows) != content:
        return None
    return rows if all(_in_bounds([row.position for row in rows], [row.spec for row in rows])) else None


def _in_bounds(positions: Sequence[int], specs: Sequence[int | None]) -> tuple[bool, bool]:
    """Whether the numbers of a log's rows are such as a row may hold."""
    given = [spec for spec in specs if spec is not None] if specs.count(None) < len(specs) else []
    return min(positions) >= 0 and max(positions) < LARGEST, not given or max(map(abs, given)) < LARGEST


class NotPlain(Exception):
    """A row that must be looked at line by line."""


class Values:
    """Values that are nested in rows, each distinct text parsed once and as strictly as line by line.

    ``column`` is where the texts stand, ``inside`` that they stand there as part of a row, and nest a level deeper than
    by themselves. NotPlain or UnreadableInput where a value would be refused.
    """

    def __init__(self, column: str, *, inside: bool = True) -> None:
        self._column = column
        self._inside = inside
        self._known: dict[bytes | str, Any] = {}

    def of(self, text: bytes | str) -> Any:
        """The value of a text."""
        found = self._known.get(text, self)
        if found is self:
            found = self._parsed(text if isinstance(text, str) else text.decode("ascii"))
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[text] = found
        return found

    def data_of(self, text: bytes | str) -> dict[str, Any]:
        """The value of a text as an event's data."""
        found = self.of(text)
        if not isinstance(found, dict):
            raise NotPlain
        return found

    def _parsed(self, text: str) -> Any:
        if not self._inside:
            return parse(text, self._column)
        if "\n" in text:
            raise NotPlain  # to whoever reads line by line these are two rows
        return parse(f'{{"{self._column}":{text}}}', self._column)[self._column]


def plain_events(rows: Sequence[PlainRow], run_id: str) -> list[Event] | None:
    """The events of the rows, or None where one of them must be looked at line by line."""
    data, payloads = Values("data"), Values("payload")
    try:
        return [
            quick_event(
                row.type,
                run_id,
                row.event_id,
                row.correlation_id,
                row.position,
                None if row.created_at is None else _ms(row.created_at),
                row.name,
                row.token,
                None if row.resume_at is None else _ms(row.resume_at),
                row.spec,
                _payload(row, payloads) if row.digest is not None or row.payload is not NOTHING or row.bytes else None,
                {} if row.data is NOTHING else _own(data.data_of(bytes(row.data))),
            )
            for row in rows
        ]
    except (NotPlain, UnreadableInput, ValueError):
        return None


def _ms(text: str) -> int:
    if len(text) != _TIME_LENGTH or text[-1] != "Z":
        raise ValueError
    return times.ms_of(text)


def _own(value: Any) -> Any:
    """A copy of a JSON value: each event has one of its own, for whoever replays may change it."""
    if isinstance(value, dict):
        return {key: _own(inner) if isinstance(inner, (dict, list)) else inner for key, inner in value.items()}
    return [_own(inner) for inner in value] if isinstance(value, list) else value


def _payload(row: PlainRow, values: Values) -> Payload | None:
    if row.bytes is None and row.payload is NOTHING:
        return None if row.digest is None else Sealed(row.digest)
    value = None if row.payload is NOTHING else _own(values.of(bytes(row.payload)))
    if row.bytes is not None:
        return payload_of({"$bytes": row.bytes}, arguments=row.type in STEP_INPUT)
    return Inline(value)


__all__ = ["LARGEST", "MAX_BYTES", "NOTHING", "NotPlain", "PlainRow", "Values", "plain_events", "plain_rows"]
