"""The record of every fault that fired, written down before it acts: a kill leaves no time afterwards.

One file per process, ``audit/faults-<worker>.ndjson``. How often a fault has fired in the whole storm is counted by
files that only one process can make, so that a limit holds across workers and their successors.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Protocol

from stormctl.errors import StoreFailure

SCHEMA = "stormctl.fault/1"


@dataclass(frozen=True, slots=True)
class FaultFired:
    """One firing. ``fault`` counts the plan's faults from 1, ``time`` is epoch milliseconds, ``cell`` a cell's label.

    ``struck`` is 0 for a fault that is in force all the time and strikes nobody in particular. The rest is None where
    it has no meaning.
    """

    fault: int
    label: str
    worker: str
    time: int
    cell: str | None = None
    at: str | None = None
    run_id: str | None = None
    type: str | None = None
    correlation_id: str | None = None
    struck: int = 1

    def row(self) -> dict[str, Any]:
        """As a line of the file; what is None is left out."""
        return {"schema": SCHEMA, **{key: value for key, value in asdict(self).items() if value is not None}}


class Ledger(Protocol):
    """Where firings are claimed and written down."""

    def claim(self, fault: int, limit: int | None) -> bool:
        """Whether this fault may fire once more in this storm."""
        ...

    def write(self, fired: FaultFired) -> None:
        """Keep a firing; it is safe when this returns."""
        ...


class FolderLedger:
    """The ledger of one process of a storm on this machine. StoreFailure when the disk refuses."""

    def __init__(self, folder: Path, worker: str) -> None:
        self._claims = folder / "faults"
        self._path = folder / "audit" / f"faults-{worker}.ndjson"
        self._next: dict[int, int] = {}

    def claim(self, fault: int, limit: int | None) -> bool:
        if limit is None:
            return True
        number = self._next.get(fault, 1)
        while number <= limit:
            self._next[fault] = number + 1
            try:
                self._claims.mkdir(mode=0o700, exist_ok=True)
                os.close(os.open(self._claims / f"{fault}-{number}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            except FileExistsError:
                number += 1
                continue
            except OSError as bad:
                raise self._refused(bad) from None
            return True
        return False

    def write(self, fired: FaultFired) -> None:
        try:
            with self._path.open("ab", buffering=0) as file:
                file.write(json.dumps(fired.row()).encode() + b"\n")
        except OSError as bad:
            raise self._refused(bad) from None

    def _refused(self, bad: OSError) -> StoreFailure:
        return StoreFailure(f"a fault could not be written down: {bad.strerror}", remedy="Make room on the disk.")


class ListLedger:
    """A ledger in memory."""

    def __init__(self) -> None:
        self.fired: list[FaultFired] = []
        self._claimed: dict[int, int] = {}

    def claim(self, fault: int, limit: int | None) -> bool:
        claimed = self._claimed.get(fault, 0)
        if limit is not None and claimed >= limit:
            return False
        self._claimed[fault] = claimed + 1
        return True

    def write(self, fired: FaultFired) -> None:
        self.fired.append(fired)


def read_fired(folder: Path) -> Iterator[FaultFired]:
    """Every firing of a storm, file by file. A torn line, or one of another version, is left out."""
    known = {field.name for field in fields(FaultFired)}
    for path in sorted((folder / "audit").glob("faults-*.ndjson")):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                row = json.loads(line)
                if row.pop("schema") == SCHEMA:
                    yield FaultFired(**{key: value for key, value in row.items() if key in known})
            except (ValueError, KeyError, TypeError, AttributeError):
                continue
