"""The readers: who can turn a file into captures, found by what the file holds and not by its name.

A reader is registered once, here. It is asked with the first bytes of a file; the first that recognises them reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from stormctl.errors import UnreadableInput
from stormctl.history import Capture
from stormctl.readers import compact, ndjson, sdk_json, worldlocal
from stormctl.readers.text import HEAD_BYTES, head_of, refuse_hopeless


class Reader(Protocol):
    """Something that reads one kind of file."""

    @property
    def name(self) -> str:
        """One word for the format."""
        ...

    @property
    def summary(self) -> str:
        """The format as an error message lists it."""
        ...

    def recognises(self, head: bytes, path: Path) -> bool:
        """Whether this reader reads the file, told from its first ``HEAD_BYTES`` bytes."""
        ...

    def read(self, path: Path) -> Iterator[Capture]:
        """The captures of the file, in its order. UnreadableInput when it turns out to be damaged."""
        ...


READERS: tuple[Reader, ...] = (ndjson.READER, worldlocal.READER, sdk_json.READER, compact.READER)


def reader_for(path: Path) -> Reader:
    """The reader that recognises the file; UnreadableInput says what the file is instead, and lists what is known."""
    head = head_of(path)
    refuse_hopeless(head, path)
    for reader in READERS:
        if reader.recognises(head, path):
            return reader
    raise UnreadableInput(
        f"{path.name} is not an event log that stormctl knows",
        remedy=f"Give it one of: {'; '.join(reader.summary for reader in READERS)}.",
    )


__all__ = ["HEAD_BYTES", "READERS", "Reader", "reader_for"]
