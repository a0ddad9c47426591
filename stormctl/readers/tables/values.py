"""What cells hold, as values of ours: numbers, times, ids, in whatever form a store or an export wrote them."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime
from typing import Any

from stormctl import times
from stormctl.history import Sealed, ids
from stormctl.history.payload import digest_bytes, digest_value
from stormctl.readers.fields import shown
from stormctl.readers.text import damaged

#: Milliseconds per unit of an epoch time.
UNITS = {"s": 1000.0, "ms": 1.0, "us": 0.001, "ns": 0.000001}
_MAX = 1 << 63
_NUMBER = re.compile(r"[+-]?[0-9]{1,20}(\.[0-9]{1,12})?\Z")
_HEX_16 = re.compile(r"(?:\\x|0x)?([0-9a-fA-F]{32})\Z")
_OFFSET = re.compile(r"(.*[0-9])\s?([+-][0-9]{2})\Z")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_TEXT = 4096


class Ms(int):
    """Epoch milliseconds that are known to be such, whatever unit the map names: a column of times has its own."""


def text_of(value: Any, where: str, column: str) -> str:
    """A name, an id or a word: text, or a number as text."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = value if isinstance(value, str) else None
    if isinstance(value, int) and not isinstance(value, bool):
        text = str(int(value))
    if isinstance(value, bytes):
        text = value.hex()
    if text is None:
        raise damaged(where, f"has {shown(value)} in {column!r}, which takes text")
    if len(text) > _MAX_TEXT:
        raise damaged(where, f"has a text in {column!r} that is longer than {_MAX_TEXT} characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise damaged(where, f"has text in {column!r} that is not Unicode") from None
    return text


def number_of(value: Any, where: str, column: str, digits: int = 10) -> int:
    """A whole number, written in that many digits (10, or 16 for hexadecimal)."""
    number: int | None = None
    if (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer()):
        number = int(value)
    elif isinstance(value, str) and 0 < len(value) <= 40:
        try:
            number = int(value.removesuffix(".0") if digits == 10 else value, digits)
        except ValueError:
            number = None
    if number is None or abs(number) >= _MAX:
        raise damaged(where, f"has {shown(value)} in {column!r}, which takes a whole number")
    return number


def time_of(value: Any, where: str, column: str, unit: str) -> int:
    """Epoch milliseconds of ISO 8601 text (without an offset: in UTC), or of a number of ``unit``."""
    try:
        if isinstance(value, Ms):
            return int(value)
        if isinstance(value, datetime):
            moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
            return math.floor((moment - _EPOCH).total_seconds() * 1000)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return _bounded(value, unit)
        if isinstance(value, str) and len(value) <= 64:
            text = value.strip()
            if _NUMBER.match(text):
                return _bounded(float(text) if "." in text else int(text), unit)
            return _iso(text)
    except (ValueError, TypeError, OverflowError):
        pass
    raise damaged(where, f"has no time in {column!r}: {shown(value)}")


def _bounded(value: float, unit: str) -> int:
    per = {"s": (1000, 1), "ms": (1, 1), "us": (1, 1000), "ns": (1, 1_000_000)}[unit]
    ms = value * per[0] // per[1] if isinstance(value, int) else math.floor(value * UNITS[unit])
    if abs(ms) >= _MAX:
        raise OverflowError
    return int(ms)


def _iso(text: str) -> int:
    found = _OFFSET.match(text)
    if found is not None and (":" in found[1]):  # PostgreSQL writes +00
        text = f"{found[1]}{found[2]}:00"
    moment = datetime.fromisoformat(text)
    return times.ms_of((moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).isoformat())


def ulid_of(value: Any, where: str, column: str) -> str:
    """The text of a ULID that a store keeps as 16 bytes (PostgreSQL writes them as hexadecimal); text stays text."""
    if isinstance(value, bytes) and len(value) == 16:
        return ids.body_of(int.from_bytes(value, "big"))
    if isinstance(value, str) and (found := _HEX_16.match(value)) is not None:
        return ids.body_of(int(found[1], 16))
    return text_of(value, where, column)


def payload_of(value: Any) -> Sealed:
    """A payload by its digest alone: of its bytes, or of the JSON value that its text stands for."""
    if isinstance(value, bytes):
        return Sealed(digest_bytes(value))
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return Sealed(digest_bytes(value.encode("utf-8", "replace")))
    try:
        return Sealed(digest_value(value))
    except (ValueError, TypeError, RecursionError):
        return Sealed(digest_bytes(ascii(value).encode()))


def is_number(text: str) -> bool:
    """Whether a text is a plain number."""
    return _NUMBER.match(text) is not None
