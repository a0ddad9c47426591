"""The audit stream: what a store writes down beside the log about every append attempt.

One NDJSON file per process in ``audit/``, one line per :class:`~stormctl.history.AuditRecord`. A lazy start lands as
two events and leaves two records, so that every event of a log has the record of its writer.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import msgspec

from stormctl.errors import UnreadableInput
from stormctl.history import AuditRecord
from stormctl.worlds.files import Files, failure

FOLDER = "audit"
_NAMES = tuple(field.name for field in fields(AuditRecord))


class AuditWriter:
    """Appends records to this process's file, each in one write.

    A record that the disk refuses is kept and written with the next one: losing it would make an append look as if it
    had never been tried.
    """

    def __init__(self, folder: Path, files: Files, *, name: str | None = None) -> None:
        self._folder = folder
        self._files = files
        self._path = str(folder / FOLDER / f"{name or os.getpid()}.ndjson")
        self._unwritten = bytearray()
        self._encoder = msgspec.json.Encoder()

    def write(self, *records: AuditRecord) -> None:
        """Write records; those that cannot be written now are kept for the next call."""
        for record in records:
            self._unwritten += self._encoder.encode(record) + b"\n"
        try:
            self.flush()
        except OSError:
            if not self._unwritten.startswith(b"\n"):
                self._unwritten[:0] = b"\n"  # part of it may stand in the file already, without its end

    def flush(self) -> None:
        """Write what is kept; OSError when the disk still refuses."""
        if self._unwritten:
            self._files.append(self._path, bytes(self._unwritten))
            self._unwritten.clear()

    def close(self) -> None:
        """Write what is kept; StoreFailure when that is not possible."""
        try:
            self.flush()
        except OSError as error:
            raise failure(self._folder, error) from error


def read_audit(folder: Path | str, run_id: str | None = None) -> Iterator[AuditRecord]:
    """Every audit record of a store, or of one run: file by file in the order of names; nothing when it kept none.

    A line that was torn by a killed writer or a full disk is left out. UnreadableInput for one that is whole and no
    record.
    """
    places = Path(folder) / FOLDER
    wanted = b"" if run_id is None else run_id.encode()
    for path in sorted(places.glob("*.ndjson")) if places.is_dir() else ():
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
            if wanted not in line:
                continue  # a storm asks for one run after another: the others' lines are not worth parsing
            try:
                row = json.loads(line)
            except ValueError:
                continue
            try:
                yield AuditRecord(**{name: row[name] for name in _NAMES})
            except (KeyError, TypeError):
                raise UnreadableInput(
                    f"line {number} of {path.name} in {places} is not an audit record",
                    remedy="Sweep without the audit, or capture the runs again.",
                ) from None
