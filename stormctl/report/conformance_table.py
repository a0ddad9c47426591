"""Which generation is which published version: the comparison as a table for a terminal, and as JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Protocol

from rich import box
from rich.console import Console
from rich.table import Table

MOST_COLUMNS = 120
SCHEMA = "stormctl.conformance/1"
#: first disagreements and logs left out that a person is told of, of each version and generation
MOST_TOLD = 5


class Parting(Protocol):
    """Where two engines part for the first time on one log."""

    @property
    def prefix(self) -> int: ...
    @property
    def real(self) -> str: ...
    @property
    def ours(self) -> str: ...


class Compared(Protocol):
    """One generation beside one version, over all logs."""

    @property
    def version(self) -> str: ...
    @property
    def judge(self) -> str: ...
    @property
    def generation(self) -> str: ...
    @property
    def logs(self) -> int: ...
    @property
    def prefixes(self) -> int: ...
    @property
    def agreed(self) -> int: ...
    @property
    def share(self) -> float | None: ...
    @property
    def first(self) -> Sequence[tuple[str, Parting]]: ...
    @property
    def left_out(self) -> Sequence[tuple[str, str]]: ...


def conformance_text(rows: Sequence[Compared], *, width: int = 80) -> str:
    """The table, and below it the first disagreement on each log; it loses nothing without colour."""
    sink = io.StringIO()
    console = Console(file=sink, width=min(width, MOST_COLUMNS), highlight=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("written by")
    table.add_column("judged by")
    table.add_column("generation")
    for title in ("logs", "prefixes", "agree"):
        table.add_column(title, justify="right")
    before = None
    for row in rows:
        shown = (row.version, row.judge) if (row.version, row.judge) != before else ("", "")
        before = (row.version, row.judge)
        table.add_row(*shown, row.generation, str(row.logs), str(row.prefixes), _percent(row.share))
    console.print(table)
    for line in _lines(rows):
        console.print(line, markup=False)
    return "\n".join(line.rstrip() for line in sink.getvalue().splitlines())


def conformance_json(rows: Sequence[Compared]) -> str:
    """The same with every disagreement. Schema ``stormctl.conformance/1``."""
    return json.dumps({"schema": SCHEMA, "rows": [{**asdict(row), "share": row.share} for row in rows]}, indent=2)  # type: ignore[call-overload]


def _percent(share: float | None) -> str:
    """Never 100 % for less than all."""
    if share is None:
        return "-"
    return "100 %" if share == 1.0 else f"{int(share * 1000) / 10:.1f} %"


def _lines(rows: Sequence[Compared]) -> Iterator[str]:
    told: set[tuple[str, str]] = set()
    for row in rows:
        for source, parting in row.first[:MOST_TOLD]:
            yield (
                f"{row.generation} and {row.judge} part at prefix {parting.prefix} of {source}: "
                f"the SDK {parting.real}; {row.generation} {parting.ours}"
            )
        if len(row.first) > MOST_TOLD:
            yield f"{row.generation} and {row.judge} part on {len(row.first) - MOST_TOLD} more logs (--format json)"
        for source, why in row.left_out[:MOST_TOLD]:
            if (source, why) not in told:
                told.add((source, why))
                yield f"left out: {source}: {why}"
