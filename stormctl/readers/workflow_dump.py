"""Plain-text dumps of ``pg_dump`` that hold the tables of a Postgres world: ``pg_dump --table 'workflow.*' DATABASE``.

Only the rows between ``COPY ... FROM stdin;`` and ``\\.`` are read; no statement of the file is executed, and other
tables in it are passed over.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

from stormctl.errors import StormctlError
from stormctl.history import Capture
from stormctl.readers import workflow_tables
from stormctl.readers.assemble import Assembly
from stormctl.readers.text import MAX_ROW_BYTES, damaged, unreadable
from stormctl.readers.unpack import open_plain
from stormctl.readers.unreadable import Unreadable

_COPY = re.compile(r'COPY (?:"?[^"\s]+"?\.)?"?([A-Za-z_]+)"? \(([^)]*)\) FROM stdin;\s*\Z')
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_NULL, _END = r"\N", "\\."


class WorkflowDumpReader:
    """Reads such dumps; one capture per run."""

    name = "workflow-dump"
    summary = "a plain-text pg_dump of the tables of the Workflow SDK's Postgres world"
    sign = "the first lines of a pg_dump"

    def recognises(self, head: bytes, path: Path) -> bool:
        """Whether the file begins as a dump of PostgreSQL's."""
        return b"PostgreSQL database dump" in head or re.search(rb"(?m)^COPY \S*workflow_\w+ \(", head) is not None

    def read(self, path: Path) -> Iterator[Capture | Unreadable]:
        """One capture per run, in the order of their first rows."""
        with Assembly(str(path), path.name) as assembly:
            if not _take(path, assembly):
                remedy = "Dump the schema of the world: pg_dump --schema workflow DATABASE."
                raise damaged(path.name, "holds no rows of workflow_events", remedy=remedy)
            yield from assembly.captures(
                workflow_tables.ORIGIN, workflow_tables.event_of, workflow_tables.ordered, workflow_tables.entity_of
            )


def _take(path: Path, assembly: Assembly) -> bool:
    """All rows of the SDK's tables in a dump; whether there were any of events."""
    table: str | None = None
    columns: list[str] = []
    copying = found = False
    number = 0
    try:
        with io.TextIOWrapper(open_plain(path), encoding="utf-8", newline="\n") as file:
            while line := file.readline(MAX_ROW_BYTES + 1):
                number += 1
                if len(line) > MAX_ROW_BYTES:
                    raise damaged(path.name, f"has a line longer than {MAX_ROW_BYTES >> 20} MiB")
                line = line.rstrip("\r\n")
                if copying and line == _END:
                    copying = False
                elif copying and table is not None:
                    where = f"line {number} of {path.name}"
                    try:
                        workflow_tables.add_row(assembly, table, _row(line, columns, where), where)
                        found = found or table == "workflow_events"
                    except StormctlError as error:
                        assembly.broken.add(error)
                elif not copying and line.startswith("COPY ") and (begun := _COPY.match(line)) is not None:
                    copying = True
                    columns = [column.strip().strip('"') for column in begun[2].split(",")]
                    table = begun[1] if begun[1] in workflow_tables.TABLES else None
    except UnicodeDecodeError:
        raise damaged(path.name, "is not UTF-8 text") from None
    except OSError as error:
        raise unreadable(path, error) from error
    if copying:
        assembly.broken.add(damaged(path.name, "is cut off inside a table"))
    return found or bool(assembly.broken)


def _row(line: str, columns: list[str], where: str) -> dict[str, str]:
    cells = line.split("\t")
    if len(cells) != len(columns):
        raise damaged(where, f"has {len(cells)} cells for {len(columns)} columns")
    return {name: _cell(cell) for name, cell in zip(columns, cells, strict=True) if cell != _NULL}


def _cell(cell: str) -> str:
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[1]), cell) if "\\" in cell else cell


READER = WorkflowDumpReader()
