"""Tables of the systems that stormctl brings a map for are known by their columns; any other needs ``--map``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stormctl.history import Capture
from stormctl.readers.tables.maps import TableMap
from stormctl.readers.tables.reader import read_table
from stormctl.readers.tables.shipped import absolute, find_map, shipped_map, shipped_maps
from stormctl.readers.tables.sources import PARQUET, first_row
from stormctl.readers.text import damaged, head_of

#: What stands before a map's name where a reader is named.
MAP = "map:"


@dataclass(frozen=True, slots=True)
class MappedReader:
    """Reads tables by one map. ``name`` is what :func:`reader_by_map` finds it by, in another process too."""

    name: str
    table_map: TableMap

    @property
    def summary(self) -> str:
        """What the map is for."""
        return self.table_map.about or f"a table, by the map {self.table_map.name}"

    @property
    def sign(self) -> str:
        """The columns that tell such a table."""
        return f"the columns {', '.join(self.table_map.signature)}" if self.table_map.signature else "--map"

    def recognises(self, head: bytes, path: Path) -> bool:
        """Whether the table has the columns that the map is known by."""
        wanted = frozenset(self.table_map.signature)
        return bool(wanted) and wanted <= _columns(head, path)

    def read(self, path: Path) -> Iterator[Capture]:
        """One capture per run."""
        return read_table(path, self.table_map)


class TableReader:
    """Reads the tables that a shipped map is known for."""

    name = "table"
    summary = "a table (CSV, JSON, NDJSON or Parquet) of another engine, with --map for what it does not know by itself"
    sign = "columns that one of the shipped maps is for"

    def recognises(self, head: bytes, path: Path) -> bool:
        """Whether a shipped map is for a table with such columns."""
        return _map_for(head, path) is not None

    def read(self, path: Path) -> Iterator[Capture]:
        """One capture per run."""
        found = _map_for(head_of(path), path)
        if found is None:
            names = ", ".join(shipped_maps())
            remedy = f"Name the map with --map: {names}, or a file of your own."
            raise damaged(path.name, "has columns that no shipped map is for", remedy=remedy)
        return read_table(path, found)


def reader_by_map(name: str) -> MappedReader:
    """The reader for a map that is named or lies in a file; MapError when there is none."""
    name = name.removeprefix(MAP)
    return MappedReader(f"{MAP}{absolute(name)}", find_map(name))


def _map_for(head: bytes, path: Path) -> TableMap | None:
    columns = _columns(head, path)
    if not columns:
        return None
    for name in shipped_maps():
        found = shipped_map(name)
        if found.signature and columns.issuperset(found.signature):
            return found
    return None


def _columns(head: bytes, path: Path) -> frozenset[str]:
    if not head.startswith(PARQUET):
        return first_row(head)
    from stormctl.readers.tables.parquet_rows import parquet_table

    return parquet_table(path).columns or frozenset()


READER = TableReader()
