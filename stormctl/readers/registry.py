"""The readers: who can turn a file into captures, found by what the file holds and not by its name.

A reader is registered once, here, by one line. It is asked with the first bytes of a file; the first that recognises
them reads it. A person may name the reader instead (``--from``).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from stormctl.errors import UnreadableInput, UsageError, suggest
from stormctl.history import Capture
from stormctl.readers import (
    archive,
    compact,
    harness,
    inspect,
    ndjson,
    parquet,
    sdk_json,
    temporal,
    workflow_csv,
    workflow_dsn,
    workflow_dump,
    worldlocal,
)
from stormctl.readers.tables import detect
from stormctl.readers.tables.sources import PARQUET
from stormctl.readers.text import HEAD_BYTES, head_of, refuse_hopeless
from stormctl.readers.unreadable import Unreadable


class Reader(Protocol):
    """Something that reads one kind of file."""

    @property
    def name(self) -> str:
        """One word for the format, as ``--from`` takes it."""
        ...

    @property
    def summary(self) -> str:
        """The format in one line, as help, the docs and error messages list it."""
        ...

    @property
    def sign(self) -> str:
        """What a file is recognised by, in one line."""
        ...

    def recognises(self, head: bytes, path: Path) -> bool:
        """Whether this reader reads the file, told from its first ``HEAD_BYTES`` bytes, unpacked."""
        ...

    def read(self, path: Path) -> Iterator[Capture | Unreadable]:
        """The captures of the file, in its order, and what of it is broken beside them. UnreadableInput when the file
        turns out to be damaged as a whole."""
        ...


#: One line per reader. The first that recognises a file reads it, so the particular come before the general.
READERS: tuple[Reader, ...] = (
    ndjson.READER,
    parquet.READER,
    temporal.READER,
    worldlocal.READER,
    workflow_dsn.READER,
    workflow_csv.READER,
    workflow_dump.READER,
    harness.READER,
    inspect.READER,
    sdk_json.READER,
    compact.READER,
    detect.READER,
    archive.READER,
)


def reader_named(name: str) -> Reader:
    """The reader of that name, or of a map (``map:dbos``, ``map:./own.yaml``); UsageError, with the likeliest that was
    meant, when there is none."""
    if name.startswith(detect.MAP):
        return detect.reader_by_map(name)
    for reader in READERS:
        if reader.name == name:
            return reader
    raise UsageError(f"there is no reader {name!r}", remedy=suggest(name, [reader.name for reader in READERS]))


def reader_for(path: Path, name: str | None = None) -> Reader:
    """The reader that recognises the file, or the one of that name; UnreadableInput says what the file is instead, and
    lists what is known."""
    if name is not None:
        named = reader_named(name)
        head_of(path)  # a file that is not there, or a pipe that nobody writes into, is no reader's affair
        return named
    head = head_of(path)
    if archive.READER.recognises(head, path):
        return archive.READER
    if not head.startswith(PARQUET):
        refuse_hopeless(head, path)
    for reader in READERS:
        if reader.recognises(head, path):
            return reader
    raise UnreadableInput(
        f"{path.name} is not an event log that stormctl knows",
        remedy=f"Known are: {', '.join(reader.name for reader in READERS)}; docs/readers.md says what each of them is.",
    )


__all__ = ["HEAD_BYTES", "READERS", "Reader", "reader_for", "reader_named"]
