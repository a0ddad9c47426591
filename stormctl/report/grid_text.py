"""The tables of a report for a terminal of 80 columns, and for GitHub's markdown."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from stormctl.report.grids import Grid, grouped
from stormctl.report.harmless import markdown, plain
from stormctl.report.markdown import table
from stormctl.report.tables import head_table

#: a terminal has no room for these columns: they stand in a line below their row, or not at all
_BELOW = {"signatures": ("position", "such as"), "refusals": ("reasons",), "divergences-by-run": ("cell",)}
_LEFT_OUT = {"signatures": ("kind", "class")}
#: a table whose last column is a picture of blocks
_STRIPS = "latencies"


def grid_parts(grid: Grid) -> Iterator[RenderableType]:
    """The parts of one table: its title, the table, and what it says below."""
    yield Text(plain(grid.title), style="bold")
    yield _table(grid)
    for text in (grid.more, grid.about):
        if text:
            yield Text(plain(text), style="dim")
    yield Text()


def _table(grid: Grid) -> Table:
    made = head_table()
    below = _BELOW.get(grid.key, ())
    away = {*below, *_LEFT_OUT.get(grid.key, ())}
    kept = [index for index, head in enumerate(grid.head) if head not in away]
    for index in kept:
        strip = grid.key == _STRIPS and index == len(grid.head) - 1
        words = index < grid.words
        made.add_column(
            Text(plain(grid.head[index])),
            justify="left" if words or strip else "right",
            ratio=1 if index == kept[0] else None,
            overflow="fold",
            no_wrap=not words and index != kept[0],
        )
    inset = 2 if any(group for group, _ in grid.rows) else 0
    for group, cells in grouped(grid.rows):
        if group:
            made.add_row(Text(plain(group), style="bold"))
        shown = [
            Text(cells[index] if cells[index].isspace() or "█" in cells[index] else plain(cells[index]))
            for index in kept
        ]
        made.add_row(Padding(shown[0], (0, 0, 0, inset)), *shown[1:])
        for name in below:
            text = plain(cells[grid.head.index(name)])
            if text:
                said = text if name in ("reasons", "cell") else f"{name} {text}"
                made.add_row(Padding(Text(said, style="dim"), (0, 0, 0, inset + 2)))
    return made


def grid_markdown(grid: Grid) -> str:
    """The table under its title; a group is the first column of its rows."""
    named = any(group for group, _ in grid.rows)
    head = ("", *grid.head) if named else grid.head
    rows = [(group, *cells) if named else cells for group, cells in grid.rows]
    parts = [f"**{markdown(grid.title)}**", table(head, rows, words=grid.words + named)]
    if grid.more:
        parts.append(markdown(grid.more))
    if grid.about:
        parts.append(f"<sub>{markdown(grid.about)}</sub>")
    return "\n\n".join(parts)
