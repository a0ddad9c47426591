"""Payload bytes of the Workflow SDK: what stands behind their prefix, as JSON values.

A payload is ``devl`` + a flattened JSON array (element 0 is the root, whole numbers are indices, negative ones stand
for what JSON lacks), or ``gzip`` or ``zstd`` around such bytes, or ``encr`` or ``encp`` (encrypted, which nobody here
opens). Bytes without a prefix are plain JSON, as runs of spec version 1 have them.

The values are those that ``JSON.stringify`` would give: a key whose value is undefined is left out, a hole is null, a
date is its ISO text. What JSON cannot say is an object with ``$type``: maps, sets, regular expressions, errors and
the SDK's own types. Everything is bounded, because the bytes are a stranger's: the size after decompression, the depth,
and the size after shared references are written out. A value inside itself becomes ``{"$ref": <its index>}``.
"""

from __future__ import annotations

import base64
import math
import re
import zlib
from typing import Any

from stormctl.errors import UnreadableInput
from stormctl.readers.text import damaged, parse

DEVALUE, GZIP, ZSTD = b"devl", b"gzip", b"zstd"
#: AES-256-GCM, and the sealed box of X25519
ENCRYPTED = (b"encr", b"encp")
#: The most that a payload may unpack to, in bytes, and the most that its values may weigh when written out.
MAX_BYTES = 32 << 20
#: How deep values may nest. A digest is taken by a recursive encoder, so this stays far below Python's own limit.
MAX_DEPTH = 200
#: How many prefixes may stand behind each other; the SDK writes two.
MAX_WRAPPINGS = 4
_PREFIX = re.compile(rb"[a-z0-9]{4}")
_GZIP_BITS = 31
_UNDEFINED, _SPARSE = -1, -7
_CONSTANTS = {_UNDEFINED: None, -2: None, -3: math.nan, -4: math.inf, -5: -math.inf, -6: -0.0}
_WHERE = "a payload"
_REMEDY = "Capture the run again, or read the log without its payloads."


def prefix_of(data: bytes) -> bytes:
    """The four letters that say how a payload is wrapped; empty when there are none."""
    found = _PREFIX.match(data)
    return found[0] if found is not None and not data[:4].isdigit() else b""


def is_encrypted(data: bytes) -> bool:
    """Whether only the holder of a key can read the bytes."""
    return data[:4] in ENCRYPTED


def decode(data: bytes, *, most: int = MAX_BYTES) -> Any:
    """The value of payload bytes; UnreadableInput when they are encrypted, damaged, or more than ``most`` bytes."""
    for _ in range(MAX_WRAPPINGS):
        prefix, body = prefix_of(data), data[4:]
        if len(data) > most + 4:
            raise _fault(f"holds more than {most} bytes")
        if prefix == DEVALUE:
            return unflatten(parse(_text(body), _WHERE), most=most)
        if prefix == GZIP:
            data = _gunzip(body, most)
        elif prefix == ZSTD:
            data = _unzstd(body, most)
        elif prefix in ENCRYPTED:
            raise UnreadableInput(f"{_WHERE} is encrypted", remedy="Read the log without its payloads.")
        elif prefix and data not in (b"true", b"null"):
            raise _fault(f"is wrapped in {prefix.decode()!r}, which this stormctl does not know")
        else:
            return _within(parse(_text(data), _WHERE), most)
    raise _fault(f"is wrapped more than {MAX_WRAPPINGS} times")


def unflatten(flat: Any, *, most: int = MAX_BYTES) -> Any:
    """The value of a flattened array; UnreadableInput for anything else, and for one that weighs over ``most``."""
    if isinstance(flat, int) and not isinstance(flat, bool):
        if flat not in _CONSTANTS:
            raise _fault("is a lone number that stands for nothing")
        return _CONSTANTS[flat]
    if not isinstance(flat, list) or not flat:
        raise _fault("is not a flattened value")
    return _Flat(flat, most).get(0, 0)


class _Flat:
    """A flattened array on its way back. Each element is made once, however often it is named."""

    def __init__(self, flat: list[Any], most: int) -> None:
        self._flat = flat
        self._most = most
        self._done: dict[int, Any] = {}
        self._open: set[int] = set()
        #: what an element weighs when written out, and how deep it is
        self._weight: dict[int, int] = {}
        self._height: dict[int, int] = {}

    def get(self, index: Any, depth: int) -> Any:
        """The value of an element, or of a number below 0."""
        if not isinstance(index, int) or isinstance(index, bool):
            raise _fault("names an element by something that is no number")
        if index < 0:
            if index not in _CONSTANTS:
                raise _fault(f"holds {index}, which stands for nothing")
            return _CONSTANTS[index]
        if index >= len(self._flat):
            raise _fault("names an element that it does not have")
        if index in self._open:
            return {"$ref": index}
        if index not in self._done:
            if depth > MAX_DEPTH:
                raise _fault(f"nests deeper than {MAX_DEPTH} values")
            self._open.add(index)
            self._weight[index], self._height[index] = 1, 1
            self._done[index] = self._make(index, self._flat[index], depth)
            self._open.discard(index)
        return self._done[index]

    def _make(self, index: int, item: Any, depth: int) -> Any:
        if isinstance(item, str):
            self._add(index, len(item))
            return item
        if isinstance(item, dict):
            return self._object(index, list(item.items()), depth)
        if not isinstance(item, list):
            return item
        if item and isinstance(item[0], str):
            return self._typed(index, item[0], item[1:], depth)
        if item and item[0] == _SPARSE and isinstance(item[0], int):
            return self._sparse(index, item, depth)
        return [self._inner(index, inner, depth) for inner in item]

    def _inner(self, index: int, inner: Any, depth: int) -> Any:
        """An element's own element, weighed into it."""
        value = self.get(inner, depth + 1)
        weight, height = (self._weight.get(inner, 1), self._height.get(inner, 1)) if isinstance(inner, int) else (1, 1)
        self._add(index, weight)
        self._height[index] = max(self._height[index], height + 1)
        if self._height[index] > MAX_DEPTH:
            raise _fault(f"nests deeper than {MAX_DEPTH} values")
        return value

    def _add(self, index: int, weight: int) -> None:
        self._weight[index] += weight
        if self._weight[index] > self._most:
            raise _fault(f"holds values of more than {self._most} bytes")

    def _object(self, index: int, pairs: list[tuple[str, Any]], depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, inner in pairs:
            self._add(index, len(key))
            value = self._inner(index, inner, depth)
            if inner != _UNDEFINED:
                made[key] = value
        return made

    def _sparse(self, index: int, item: list[Any], depth: int) -> list[Any]:
        """An array with holes: its length, then places and elements in turns."""
        length = item[1] if len(item) > 1 else None
        if not isinstance(length, int) or length < 0:
            raise _fault("holds an array without a length")
        self._add(index, length)
        made: list[Any] = [None] * length
        for place, inner in zip(item[2::2], item[3::2], strict=False):
            if not isinstance(place, int) or not 0 <= place < length:
                raise _fault("holds an array with an element outside of it")
            made[place] = self._inner(index, inner, depth)
        return made

    def _typed(self, index: int, name: str, rest: list[Any], depth: int) -> Any:
        self._add(index, len(name) + sum(len(part) for part in rest if isinstance(part, str)))
        match name, rest:
            case ("Date" | "URL" | "URLSearchParams", [str(text)]):
                return text
            case ("Date", [*_]):
                return None  # an invalid date, as JSON has it
            case ("BigInt", [str(text)]):
                return _whole(text)
            case ("Map", _) if len(rest) % 2 == 0:
                made = [self._inner(index, inner, depth) for inner in rest]
                return {"$type": name, "entries": [list(pair) for pair in zip(made[::2], made[1::2], strict=True)]}
            case ("Set", _):
                return {"$type": name, "values": [self._inner(index, inner, depth) for inner in rest]}
            case ("RegExp", [str(source), *flags]):
                return {"$type": name, "source": source, "flags": "".join(flag for flag in flags if flag)}
            case ("Object", [inner]):
                return self._part(index, inner, depth)  # a boxed primitive
            case ("null", _) if len(rest) % 2 == 0:
                return self._object(
                    index, [(str(key), at) for key, at in zip(rest[::2], rest[1::2], strict=True)], depth
                )
            case ("Map" | "null", _):
                raise _fault(f"holds a {name} with a key and no value")
            case ("ArrayBuffer" | "Uint8Array", [str(text)]):
                return {"$bytes": _checked(text)}
        parts = [self._part(index, part, depth) for part in rest]
        if len(parts) == 1 and isinstance(parts[0], dict) and "$type" not in parts[0]:
            return {"$type": name, **parts[0]}
        return {"$type": name, "value": parts[0] if len(parts) == 1 else parts}

    def _part(self, index: int, part: Any, depth: int) -> Any:
        """What stands behind a type that is not known here: an element, or a text as it is."""
        return part if isinstance(part, (str, bool)) or part is None else self._inner(index, part, depth)


def _whole(text: str) -> int:
    if len(text) > 4_000 or not re.fullmatch(r"-?[0-9]+", text):
        raise _fault("holds a whole number that is none")
    return int(text)


def _checked(text: str) -> str:
    try:
        base64.b64decode(text, validate=True)
    except ValueError:
        raise _fault("holds bytes that are no base64") from None
    return text


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        raise _fault("is not UTF-8 text") from None


def _gunzip(body: bytes, most: int) -> bytes:
    unpacker = zlib.decompressobj(_GZIP_BITS)
    try:
        data = unpacker.decompress(body, most + 5)
    except zlib.error:
        raise _fault("is not gzip inside") from None
    if len(data) > most + 4:
        raise _fault(f"unpacks to more than {most} bytes")
    if not unpacker.eof:
        raise _fault("is cut off")
    return data


def _unzstd(body: bytes, most: int) -> bytes:
    import zstandard

    try:
        with zstandard.ZstdDecompressor(max_window_size=MAX_BYTES).stream_reader(body) as reader:
            data = bytes(reader.read(most + 5))
            rest = reader.read(1) if len(data) <= most + 4 else b""
    except (zstandard.ZstdError, MemoryError):
        raise _fault("is not zstd inside") from None
    if len(data) > most + 4 or rest:
        raise _fault(f"unpacks to more than {most} bytes")
    return data


def _within(value: Any, most: int) -> Any:
    """A plain JSON value, refused when it nests too deep to be written again."""
    layer: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        inner = [one for one in layer if isinstance(one, (dict, list))]
        if not inner:
            return value
        layer = [part for one in inner for part in (one.values() if isinstance(one, dict) else one)]
    raise _fault(f"nests deeper than {MAX_DEPTH} values")


def _fault(what: str) -> UnreadableInput:
    return damaged(_WHERE, what, remedy=_REMEDY)
