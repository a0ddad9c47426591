"""The rows of a table, whatever file it is in, one at a time: CSV, JSON, NDJSON and Parquet."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from stormctl.readers.fields import shown
from stormctl.readers.json_stream import Around, documents
from stormctl.readers.tables.paths import Row
from stormctl.readers.text import MAX_ROW_BYTES, damaged, head_of, unreadable
from stormctl.readers.unpack import open_plain

PARQUET = b"PAR1"
_DELIMITERS = ",;\t|"
_MAX_COLUMNS = 4096
#: The longest cell of a CSV file.
_MAX_CELL = 16 << 20
#: How much text one row of a CSV file may span, quoted line breaks and all.
_MAX_TEXT = MAX_ROW_BYTES


@dataclass(frozen=True, slots=True)
class Table:
    """An open table: its columns where it declares them (None where each row has its own) and its rows."""

    columns: frozenset[str] | None
    rows: Iterator[Row]


def open_table(path: Path, rows: str | None = None) -> Table:
    """The table in a file, told by its first bytes. ``rows`` is the key under which a JSON object holds the rows."""
    head = head_of(path)
    if head.startswith(PARQUET):
        from stormctl.readers.tables.parquet_rows import parquet_table

        return parquet_table(path)
    if head.lstrip()[:1] in (b"[", b"{"):
        return Table(None, _json_rows(path, rows))
    return csv_table(path)


def first_row(head: bytes) -> frozenset[str]:
    """The columns that the beginning of a text table shows: those of its first row. Nothing where it shows none."""
    text = head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    if text.startswith(("{", "[")):
        return _json_names(text)
    line = text.partition("\n")[0].strip("\r")
    if not line or "\n" not in text:
        return frozenset()
    try:
        return frozenset(next(csv.reader([line], delimiter=_delimiter(line)), ()))
    except csv.Error:
        return frozenset()


def _json_names(text: str) -> frozenset[str]:
    return frozenset(re.findall(r'"([^"\\]{1,200})"\s*:', text))


def _json_rows(path: Path, rows: str | None) -> Iterator[Row]:
    for item in documents(path, {"rows", "events", "data"} if rows is None else {rows}):
        if isinstance(item, Around):
            continue
        if not isinstance(item.value, Mapping):
            raise damaged(item.where, f"is {shown(item.value)}, not an object")
        yield Row(item.value, item.where)


def csv_table(path: Path) -> Table:
    """A CSV file with a header. Commas, semicolons, tabs and bars are told apart by the header."""
    rows = _csv_rows(path)
    columns = next(rows, frozenset[str]())
    assert not isinstance(columns, Row)
    return Table(columns, (row for row in rows if isinstance(row, Row)))


def _csv_rows(path: Path) -> Iterator[Row | frozenset[str]]:
    """The header's columns, then the rows."""
    try:
        with io.TextIOWrapper(open_plain(path), encoding="utf-8", newline="") as file:
            yield from _csv(_bounded(file, path.name), path.name)
    except UnicodeDecodeError:
        raise damaged(path.name, "is not UTF-8 text") from None
    except csv.Error as error:
        raise damaged(path.name, f"is no CSV: {str(error).lower()[:80]}") from None
    except OSError as error:
        raise unreadable(path, error) from error


def _bounded(file: io.TextIOWrapper, name: str) -> Iterator[str]:
    """The lines, none longer than a row may be."""
    while line := file.readline(_MAX_TEXT + 1):
        if len(line) > _MAX_TEXT:
            raise damaged(name, f"has a line that is longer than {_MAX_TEXT >> 20} MiB")
        if "\0" in line:
            raise damaged(name, "is binary, not a table")
        yield line


def _csv(lines: Iterator[str], name: str) -> Iterator[Row | frozenset[str]]:
    first = next(lines, "")
    limit = csv.field_size_limit()
    reader = csv.reader(_again(first, lines), delimiter=_delimiter(first), strict=True)
    names: list[str] = []
    while True:
        # the limit is the process's own, so it is set for each row and given back
        csv.field_size_limit(_MAX_CELL)
        try:
            cells = next(reader, None)
        finally:
            csv.field_size_limit(limit)
        if cells is None:
            return
        if not cells:
            continue
        where = f"line {reader.line_num} of {name}"
        if not names:
            names = _header(cells, where)
            yield frozenset(names)
        elif len(cells) != len(names):
            raise damaged(where, f"has {len(cells)} cells where the header has {len(names)}")
        else:
            yield Row({key: value for key, value in zip(names, cells, strict=True) if value != ""}, where)


def _again(first: str, lines: Iterator[str]) -> Iterator[str]:
    yield first
    yield from lines


def _delimiter(line: str) -> str:
    return max(_DELIMITERS, key=line.count)


def _header(cells: list[str], where: str) -> list[str]:
    if len(cells) > _MAX_COLUMNS:
        raise damaged(where, f"names more than {_MAX_COLUMNS} columns")
    twice = next((cell for cell in cells if cells.count(cell) > 1), None)
    if twice is not None:
        raise damaged(where, f"names the column {shown(twice)} twice")
    return cells
