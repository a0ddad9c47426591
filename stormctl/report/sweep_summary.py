"""The report of many sweeps for a terminal: sweep by world, findings by kind, and only the failing logs, in short."""

from __future__ import annotations

import io
from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from stormctl.report.sweep_table import HINT, MOST_COLUMNS, VERDICT_STYLES
from stormctl.report.sweep_tally import Tally, cell
from stormctl.sweeps import Verdict
from stormctl.sweeps.witness import clean

#: Worlds side by side; more of them make further tables.
ABREAST = 3


def summary_text(tally: Tally, *, width: int = 80, color: bool = False) -> str:
    """The summary as text for so many columns. NO_COLOR turns colour off whatever ``color`` says."""
    sink = io.StringIO()
    console = Console(file=sink, width=min(width, MOST_COLUMNS), force_terminal=color or None, highlight=False)
    console.print(Group(*_parts(tally)), crop=False)
    return "\n".join(line.rstrip() for line in sink.getvalue().splitlines())


def _parts(tally: Tally) -> Iterator[RenderableType]:
    yield Text.assemble((tally.word, VERDICT_STYLES.get(tally.verdict, "")), f"  {tally.line}")
    yield Text(f"{tally.events:,} events", style="dim")
    worlds = tally.names_of_worlds
    for start in range(0, len(worlds), ABREAST):
        yield Text()
        yield _table(tally, worlds[start : start + ABREAST])
    if tally.findings:
        yield Text()
        yield _kinds(tally)
    for one in tally.failing:
        yield Text()
        yield _head("violated", "bold red", one.source)
        yield Padding(Text(clean(f"run {one.run}: {one.short}" if one.run else one.short)), (0, 0, 0, 2))
    yield from _more(tally.verdicts[Verdict.VIOLATED], len(tally.failing), "violated")
    if tally.reasons:
        yield Text()
        yield Text("unknown because", style="yellow")
        for reason, count in tally.told_reasons:
            yield Padding(Text(f"{count:,} log{'' if count == 1 else 's'}: {reason}"), (0, 0, 0, 2))
    for broken in tally.broken:
        yield Text()
        yield _head("unreadable", "bold red", broken.source)
        yield Padding(Text(clean(broken.text)), (0, 0, 0, 2))
    yield from _more(tally.unreadable, len(tally.broken), "unreadable")
    if tally.logs and not tally.replayed:
        yield Text()
        yield Text(HINT, style="dim")


def _more(count: int, told: int, word: str) -> Iterator[RenderableType]:
    if count > told:
        yield Text()
        yield Text(f"and {count - told:,} more {word}; --format ndjson tells of each log")


def _head(word: str, style: str, source: str) -> Text:
    return Text.assemble((word, style), f"  {clean(source)}", no_wrap=True, overflow="ignore")


def _table(tally: Tally, worlds: list[str]) -> Table:
    grid = Table.grid(padding=(0, 3))
    grid.add_column()
    for _ in worlds:
        grid.add_column(justify="right")
    grid.add_row(Text("clean / violated / unknown", style="dim"), *(Text(world, style="bold") for world in worlds))
    grid.add_row("logs", *(cell(tally.worlds[world]) for world in worlds))
    for sweep in tally.sweeps:
        by_world = tally.by[sweep]
        if not any(world in by_world for world in worlds):
            continue
        grid.add_row(f"  {sweep}", *(cell(by_world[world]) if world in by_world else "" for world in worlds))
    return grid


def _kinds(tally: Tally) -> Table:
    grid = Table.grid(padding=(0, 3))
    grid.add_column()
    for _ in range(2):
        grid.add_column(justify="right")
    grid.add_row(*(Text(word, style="dim") for word in ("findings by kind", "findings", "logs")))
    for severity, kind in tally.kinds:
        one = (severity, kind)
        style = "red" if severity == "fatal" else "dim"
        grid.add_row(
            Text.assemble((f"  {severity}", style), f"  {clean(kind)}"),
            f"{tally.findings[one]:,}",
            f"{tally.with_finding[one]:,}",
        )
        detail = tally.detail(one)
        if detail:
            grid.add_row(Text(f"         {detail}", style="dim"))
    for sweep, findings, logs in tally.of_several_kinds:
        grid.add_row(f"  any of {sweep}", f"{findings:,}", f"{logs:,}")
    return grid
