"""Payloads of the Workflow SDK's events, in every form in which a store or a tool writes their bytes.

The digest is that of the value, not of the bytes: the same value compares equal whether it was compressed or not, and
with what an engine of ours would have written. Only where the bytes cannot be opened are they themselves digested.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from stormctl.errors import UnreadableInput
from stormctl.history import Damaged, Inline, Payload, Sealed, digest_value
from stormctl.history.payload import digest_bytes
from stormctl.readers import devalue

#: What tools print in place of a payload that they may not, or can no longer, show.
_HIDDEN = ("\N{LOCK} Encrypted", "<data expired>")
#: Bytes up to this many are opened at once, so that a damaged payload is known as such before a replay needs it.
_AT_ONCE = 1 << 16
_AROUND_ARGUMENTS = frozenset({"args", "closureVars", "thisVal"})


class Encoded(Inline):
    """Payload bytes whose value is made when somebody asks for it, and then kept.

    ``arguments`` says that the value is a step's input: then it is the list of its arguments, as our own events have
    it, as long as the step closed over nothing and had no ``this``.
    """

    __slots__ = ("_arguments", "raw")

    def __init__(self, raw: bytes, *, arguments: bool = False) -> None:
        self.raw = raw
        self._arguments = arguments

    @cached_property
    def value(self) -> Any:
        """The value; UnreadableInput when the bytes are damaged."""
        value = devalue.decode(self.raw)
        return arguments_of(value) if self._arguments else value

    @cached_property
    def digest(self) -> str:
        try:
            return digest_value(self.value)
        except UnreadableInput:
            return digest_bytes(self.raw)

    def load(self) -> Any:
        return self.value

    def __repr__(self) -> str:
        return f"Encoded({self.digest})"


def arguments_of(value: Any) -> Any:
    """A step's arguments out of its input; the input as it is where there is more to it."""
    if not isinstance(value, Mapping) or not value.keys() <= _AROUND_ARGUMENTS:
        return value
    more = any(value.get(key) is not None for key in _AROUND_ARGUMENTS - {"args"})
    return value if more or not isinstance(value.get("args"), list) else value["args"]


def payload_of(value: Any, *, arguments: bool = False) -> Payload | None:
    """The payload in a field of an event: bytes in any wrapping, or a value that a tool has already opened."""
    if value is None:
        return None
    try:
        raw = bytes_of(value)
    except ValueError:
        return Damaged("its bytes are broken", digest_value(value))
    if raw is not None:
        return _of_bytes(raw, arguments=arguments)
    if isinstance(value, str) and value.startswith(_HIDDEN):
        return Sealed(digest_value(value), "was hidden by the tool that printed it")
    return Inline(arguments_of(value) if arguments else value)


def bytes_of(value: Any) -> bytes | None:
    """The bytes that a value stands for: bytes, ``{"__type": "Uint8Array"}`` of a local world, ``{"$bytes"}`` of a
    capture, a Buffer or an array of bytes as JSON has them. None for anything else; ValueError for broken base64."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if not isinstance(value, Mapping):
        return None
    match value:
        case {"__type": "Uint8Array", "data": str(text)}:
            return base64.b64decode(text, validate=True)
        case {"$bytes": str(text)} if len(value) == 1:
            return base64.b64decode(text, validate=True)
        case {"type": "Buffer", "data": list(numbers)} if len(value) == 2:
            if not all(isinstance(number, int) for number in numbers):
                raise ValueError("a Buffer holds something that is no byte")
            return bytes(numbers)
    return _by_index(value)


def _by_index(value: Mapping[str, Any]) -> bytes | None:
    """``{"0": 100, "1": 101}``: what JSON makes of an array of bytes."""
    if "0" not in value or list(value) != [str(place) for place in range(len(value))]:
        return None
    numbers = list(value.values())
    if not all(isinstance(number, int) and 0 <= number <= 255 for number in numbers):
        return None
    return bytes(numbers)


def _of_bytes(raw: bytes, *, arguments: bool) -> Payload:
    if devalue.is_encrypted(raw):
        return Sealed(digest_bytes(raw), "is encrypted")
    payload = Encoded(raw, arguments=arguments)
    if len(raw) <= _AT_ONCE:
        try:
            payload.load()
        except UnreadableInput as error:
            return Damaged(str(error), digest_bytes(raw))
    return payload


def readable(payload: Payload | None) -> Any:
    """A payload's value where it can be had, else None."""
    if payload is None or isinstance(payload, (Sealed, Damaged)):
        return None
    try:
        return payload.load()
    except UnreadableInput:
        return None
