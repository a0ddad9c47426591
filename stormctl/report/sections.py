"""A table for a terminal whose rows stand under headings: a heading has the whole width, not that of a column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

#: between two columns; the same where this leaves every name whole; what the first column has at least
_GAP, _NARROW, _LEAST = 2, 1, 12
Row = tuple[Text | None, Text, Sequence[Text]]


class Sections:
    """Rows under headings. The first column holds names and takes what room the others leave; these hold numbers and
    are as wide as their widest cell in any section, so that they stand below each other.

    A row is its heading (None for that of the row before it), its name and its numbers. A long name goes on below
    itself.
    """

    def __init__(self, head: Sequence[str], rows: Iterable[Row], *, inset: int = 2) -> None:
        self.head = tuple(head)
        self.rows = list(rows)
        self.inset = inset

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        numbers = [
            max([Text(head).cell_len, *(row[2][index].cell_len for row in self.rows)])
            for index, head in enumerate(self.head[1:])
        ]
        names = max([self.inset + row[1].cell_len for row in self.rows] + [Text(self.head[0]).cell_len])
        room = options.max_width - sum(numbers)
        whole = (gap for gap in (_GAP, _NARROW) if room - gap * len(numbers) >= names)
        gap = next(whole, _GAP)
        first = max(_LEAST, room - gap * len(numbers))
        yield self._table([first, *numbers], (), gap, show_header=True)
        for heading, rows in self._parts():
            if heading is not None:
                yield heading
            yield self._table([first, *numbers], rows, gap, show_header=False)

    def _parts(self) -> Iterator[tuple[Text | None, list[Row]]]:
        part: list[Row] = []
        heading: Text | None = None
        for row in self.rows:
            if row[0] is not None and part:
                yield heading, part
                part = []
            heading = row[0] if row[0] is not None else heading
            part.append(row)
        if part:
            yield heading, part

    def _table(self, widths: Sequence[int], rows: Iterable[Row], gap: int, *, show_header: bool) -> Table:
        made = Table(
            box=SIMPLE_HEAD,
            padding=(0, gap - 1, 0, 0),
            pad_edge=False,
            show_edge=False,
            show_header=show_header,
            expand=True,
        )
        for index, (head, width) in enumerate(zip(self.head, widths, strict=True)):
            made.add_column(
                head,
                width=width,
                justify="right" if index else "left",
                overflow="fold",
                no_wrap=bool(index),
                ratio=None if index else 1,
            )
        for _, name, numbers in rows:
            made.add_row(Padding(name, (0, 0, 0, self.inset)), *numbers)
        return made
