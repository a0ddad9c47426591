"""Fields of rows: from JSON to values and back, with errors that name the place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from stormctl import times
from stormctl.readers.text import damaged

T = TypeVar("T")

_MAX_INT = 1 << 63


def iso_of(ms: int | None) -> str | int | None:
    """Epoch milliseconds as ``2026-11-30T15:43:37.943Z``; a time that no calendar can write stays a number."""
    if ms is None or not 0 <= ms <= times.LAST_ISO_MS:
        return ms
    return times.iso(ms)


def ms_of(value: Any, where: str, key: str) -> int | None:
    """The inverse of :func:`iso_of`. Any ISO 8601 time with an offset is understood."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < _MAX_INT):
        return value
    if isinstance(value, str):
        try:
            return times.ms_of(value)
        except (ValueError, TypeError):
            pass
    raise damaged(where, f"has no time in {key!r}: {shown(value)}")


def shown(value: Any) -> str:
    """A value as an error shows it: one short line."""
    text = ascii(value)
    return text if len(text) <= 40 else text[:37] + "..."


def optional(row: Mapping[str, Any], key: str, kind: type[T], where: str) -> T | None:
    """A field that may be absent or null; the error names the field when it holds something else."""
    value = row.get(key)
    if value is None or (type(value) is kind and kind in _ANY_OF_IT):
        return value
    if type(value) is str and kind is str and value.isascii():
        return cast("T", value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise damaged(where, f"has {shown(value)} in {key!r}, which takes {_NAMES.get(kind, kind.__name__)}")
    if isinstance(value, int) and abs(value) >= _MAX_INT:
        raise damaged(where, f"has a number in {key!r} that is too large")
    if isinstance(value, str) and not value.isascii() and not _writable(value):
        raise damaged(where, f"has text in {key!r} that is not Unicode")
    return value


def required(row: Mapping[str, Any], key: str, kind: type[T], where: str) -> T:
    """A field that must be there."""
    value = optional(row, key, kind, where)
    if value is None:
        raise damaged(where, f"lacks {key!r}")
    return value


def _writable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


#: Kinds of which every value will do.
_ANY_OF_IT = frozenset({dict, list, bool})
_NAMES: Mapping[type, str] = {
    str: "text",
    int: "a whole number",
    dict: "an object",
    list: "a list",
    bool: "true or false",
}
