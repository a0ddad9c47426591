"""Values on disk: payload bytes, in the form that the Workflow SDK's own tools read.

A payload is stored as ``{"__type": "Uint8Array", "data": <base64>}`` of the bytes ``devl`` + flattened JSON.
Flattened means: an array of all values, in which objects and arrays hold indices of it; index 0 is the root, and a
negative number stands for a value that JSON lacks.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from stormctl.errors import UnreadableInput, UsageError

_MAGIC = b"devl"
_UNDEFINED, _HOLE, _NAN, _INFINITY, _MINUS_INFINITY, _MINUS_ZERO = -1, -2, -3, -4, -5, -6
_SPECIAL = {
    _UNDEFINED: None,
    _HOLE: None,
    _NAN: math.nan,
    _INFINITY: math.inf,
    _MINUS_INFINITY: -math.inf,
    _MINUS_ZERO: -0.0,
}


def flatten(value: Any) -> list[Any] | int:
    """The flattened form of a JSON value; UsageError when it holds something that JSON cannot say."""
    flat: list[Any] = []

    def put(item: Any) -> int:
        if isinstance(item, float) and not math.isfinite(item):
            return _NAN if math.isnan(item) else _INFINITY if item > 0 else _MINUS_INFINITY
        index = len(flat)
        if item is None or isinstance(item, (str, bool, int, float)):
            flat.append(item)
        elif isinstance(item, Mapping):
            flat.append(None)
            flat[index] = {str(key): put(inner) for key, inner in item.items()}
        elif isinstance(item, Sequence) and not isinstance(item, (bytes, bytearray)):
            flat.append(None)
            flat[index] = [put(inner) for inner in item]
        else:
            raise UsageError(
                f"a payload holds a {type(item).__name__}, which JSON cannot say",
                remedy="Give steps, hooks and workflows JSON values only.",
            )
        return index

    root = put(value)
    return flat if root >= 0 else root


def unflatten(flat: Any) -> Any:
    """The inverse of :func:`flatten`; UnreadableInput for anything else."""
    if isinstance(flat, int):
        return _SPECIAL.get(flat)
    if not isinstance(flat, list) or not flat:
        raise UnreadableInput("a payload is not a flattened value", remedy="Read the log without its payloads.")

    def get(index: int) -> Any:
        if index < 0:
            return _SPECIAL.get(index)
        item = flat[index]
        if isinstance(item, dict):
            return {key: get(inner) for key, inner in item.items()}
        if isinstance(item, list):
            if item and isinstance(item[0], str):  # a typed value of JavaScript (Date, Map, ...), kept as it stands
                return item
            return [get(inner) for inner in item]
        return item

    try:
        return get(0)
    except (IndexError, TypeError, RecursionError):
        raise UnreadableInput("a payload is damaged", remedy="Read the log without its payloads.") from None


def pack_bytes(value: Any) -> bytes:
    """A payload as bytes: what a binary column holds."""
    return _MAGIC + json.dumps(flatten(value), separators=(",", ":"), ensure_ascii=False).encode()


def pack(value: Any) -> dict[str, str]:
    """A payload as it stands in an event or row file."""
    return {"__type": "Uint8Array", "data": base64.b64encode(pack_bytes(value)).decode("ascii")}


def is_packed(value: Any) -> bool:
    """Whether a value of an event or row file is payload bytes."""
    return isinstance(value, dict) and value.get("__type") == "Uint8Array"


def unpack_bytes(data: bytes) -> Any:
    """The value of payload bytes; UnreadableInput when they are not of this form (encrypted, compressed)."""
    if not data.startswith(_MAGIC):
        raise UnreadableInput(
            "a payload is not plain (encrypted or compressed)", remedy="Read the log without its payloads."
        )
    return unflatten(json.loads(data[len(_MAGIC) :]))


def unpack(value: Mapping[str, Any]) -> Any:
    """The value of a payload as it stands in a file. Errors as :func:`unpack_bytes`."""
    return unpack_bytes(base64.b64decode(value["data"]))
