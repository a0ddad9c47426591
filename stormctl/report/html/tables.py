"""The tables of the page: the report's grids, and those that ``stormctl run`` prints, as cells that can be sorted."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stormctl.report.facts import StormFacts
from stormctl.report.grids import Grid, grids
from stormctl.report.load import Artefact
from stormctl.report.printed import printed

#: letters in the heads of columns beyond which a table is wider than paper
_WIDE = 110
_NUMBER = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?")
_SHARE = re.compile(r"(\d+)/(\d+)")
#: the name of the column that holds a grid's groups
_GROUPS = {"signatures": "code", "quantities": "quantity", "latencies": "latency", "stuck": "cell"}


@dataclass(frozen=True, slots=True)
class Cell:
    """What a cell shows, and the number that it is sorted by (None: by its text)."""

    text: str
    key: float | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the page. ``numbers`` says of each column whether it holds numbers."""

    key: str
    title: str
    head: tuple[str, ...]
    numbers: tuple[bool, ...]
    rows: tuple[tuple[Cell, ...], ...]
    about: str = ""
    more: str = ""

    @property
    def wide(self) -> bool:
        """Whether paper has no room for it unless words are broken: many arms stand side by side."""
        return sum(map(len, self.head)) > _WIDE


def tables(artefact: Artefact, facts: StormFacts) -> list[Table]:
    """Every table that has something to tell, in the order of the page."""
    return [table_of(grid) for grid in (*printed(artefact, facts), *grids(facts)) if grid.rows]


def table_of(grid: Grid) -> Table:
    """A grid with its groups as a column of their own, so that rows can be put into another order."""
    named = any(group for group, _ in grid.rows)
    words = grid.words + named
    head = ((_GROUPS.get(grid.key, "group"),) if named else ()) + grid.head
    rows = [((group,) if named else ()) + cells for group, cells in grid.rows]
    numbers = tuple(index >= words for index in range(len(head)))
    return Table(
        grid.key,
        grid.title,
        head,
        numbers,
        tuple(
            tuple(Cell(text, sort_key(text) if numbers[index] else None) for index, text in enumerate(cells))
            for cells in rows
        ),
        grid.about,
        grid.more,
    )


def sort_key(text: str) -> float | None:
    """The number that a cell is sorted by: the share of ``18/24``, else the first number in it."""
    share = _SHARE.match(text)
    if share is not None:
        return int(share[1]) / int(share[2]) if int(share[2]) else None
    found = _NUMBER.search(text)
    return None if found is None else float(found[0].replace(",", ""))
