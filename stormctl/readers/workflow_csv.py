"""Dumps of a Postgres world's tables as CSV: ``\\copy workflow.workflow_events to 'events.csv' csv header``.

Bytes stand as ``\\x`` and hex digits. Rows of many runs may stand in any order. Where the dumps of the runs, steps,
waits and hooks lie beside that of the events under the same naming (``pg-events.csv``, ``pg-runs.csv``, ...), they are
read with it; alone, they give captures without events.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from stormctl.errors import StormctlError
from stormctl.history import Capture
from stormctl.readers import workflow_tables
from stormctl.readers.assemble import Assembly
from stormctl.readers.beside import companions
from stormctl.readers.text import MAX_ROW_BYTES, damaged, unreadable
from stormctl.readers.unpack import open_plain
from stormctl.readers.unreadable import Unreadable

_DELIMITERS = ",;\t|"
MAX_COLUMNS = 200


class WorkflowCsvReader:
    """Reads such dumps; one capture per run."""

    name = "workflow-csv"
    summary = (
        "the tables of the Workflow SDK's Postgres world as CSV with a header (workflow_events, workflow_runs, ...)"
    )
    sign = "a first line with the columns of workflow_events, _runs, _steps, _waits or _hooks"

    def recognises(self, head: bytes, path: Path) -> bool:
        """Whether the first line names the columns of one of the tables."""
        return _header(head.partition(b"\n")[0].decode("utf-8", "replace")) is not None

    def read(self, path: Path) -> Iterator[Capture | Unreadable]:
        """One capture per run, in the order of their first rows."""
        with Assembly(str(path), path.name) as assembly:
            _take(path, assembly)
            for other in companions(path):
                try:
                    _take(other, assembly)
                except StormctlError as error:
                    assembly.broken.add(error)
            if not assembly and not assembly.broken:
                raise damaged(path.name, "holds no rows", remedy="Dump the table again.")
            yield from assembly.captures(
                workflow_tables.ORIGIN, workflow_tables.event_of, workflow_tables.ordered, workflow_tables.entity_of
            )


def _header(line: str) -> tuple[list[str], str, str] | None:
    """The columns that a first line names, how it parts them, and whose they are."""
    for delimiter in _DELIMITERS:
        try:
            columns = [cell.strip().lower() for cell in next(csv.reader([line.strip()], delimiter=delimiter), [])]
        except csv.Error:
            continue
        table = workflow_tables.table_of(columns)
        if table is not None and len(columns) <= MAX_COLUMNS:
            return columns, delimiter, table
    return None


def _take(path: Path, assembly: Assembly) -> None:
    """All rows of a file."""
    csv.field_size_limit(MAX_ROW_BYTES)
    try:
        with io.TextIOWrapper(open_plain(path), encoding="utf-8", newline="") as file:
            first = file.readline(1 << 16)
            found = _header(first)
            if found is None:
                raise damaged(path.name, "does not begin with the columns of a table of the Workflow SDK")
            columns, delimiter, table = found
            reader = csv.reader(_lines(file, path.name), delimiter=delimiter, strict=True)
            for cells in reader:
                where = f"line {reader.line_num + 1} of {path.name}"
                try:
                    if len(cells) != len(columns):
                        if not cells:
                            continue
                        raise damaged(where, f"has {len(cells)} cells for {len(columns)} columns")
                    workflow_tables.add_row(assembly, table, dict(zip(columns, cells, strict=True)), where)
                except StormctlError as error:
                    assembly.broken.add(error)
    except UnicodeDecodeError:
        raise damaged(path.name, "is not UTF-8 text") from None
    except csv.Error as error:
        raise damaged(path.name, f"is not CSV: {error}") from None
    except OSError as error:
        raise unreadable(path, error) from error


def _lines(file: io.TextIOWrapper, name: str) -> Iterator[str]:
    """The lines of a file, none longer than a row may be."""
    while line := file.readline(MAX_ROW_BYTES + 1):
        if len(line) > MAX_ROW_BYTES:
            raise damaged(name, f"has a line longer than {MAX_ROW_BYTES >> 20} MiB")
        yield line


READER = WorkflowCsvReader()
