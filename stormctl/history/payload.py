"""Payloads: the opaque values that events carry, held by reference.

A log may be read without its payloads (they can be large, or secret). What is always kept is the digest, so that two
creates can be compared by input.
"""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from typing import Any, Protocol

from stormctl.errors import UnreadableInput


def digest_bytes(data: bytes) -> str:
    """The digest under which payload bytes are compared: the first 16 hex digits of their SHA-256."""
    return hashlib.sha256(data).hexdigest()[:16]


def digest_value(value: Any) -> str:
    """The digest of a JSON value, by its canonical form (sorted keys, no spaces)."""
    return digest_bytes(json.dumps(value, sort_keys=True, separators=(",", ":"), default=str).encode())


class Payload(Protocol):
    """A reference to a payload: its digest is known, its value is loaded on demand."""

    @property
    def digest(self) -> str: ...

    def load(self) -> Any: ...


class Inline:
    """A payload whose value is at hand."""

    __slots__ = ("__dict__", "value")

    def __init__(self, value: Any) -> None:
        self.value = value

    @cached_property
    def digest(self) -> str:
        return digest_value(self.value)

    def load(self) -> Any:
        return self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (Inline, Sealed)) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Inline({self.digest})"


class Sealed:
    """A payload of which only the digest is known. ``why`` says what became of the rest."""

    __slots__ = ("_digest", "why")

    def __init__(self, digest: str, why: str = "was not captured") -> None:
        self._digest = digest
        self.why = why

    @property
    def digest(self) -> str:
        return self._digest

    def load(self) -> Any:
        raise UnreadableInput(
            f"the payload {self._digest} {self.why}",
            remedy="Capture the run again with --with-payloads.",
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (Inline, Sealed)) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self._digest)

    def __repr__(self) -> str:
        return f"Sealed({self._digest})"


class Damaged:
    """A payload that is there and cannot be read: cut off, or sealed with a key that is gone. ``reason`` says how."""

    __slots__ = ("digest", "reason")

    def __init__(self, reason: str, digest: str = "") -> None:
        self.reason = reason
        self.digest = digest or digest_value(reason)

    def load(self) -> Any:
        raise UnreadableInput(f"a payload cannot be read: {self.reason}", remedy="Capture the run again.")

    def __repr__(self) -> str:
        return f"Damaged({self.reason})"
