"""The tables of a storm for a terminal: they fit 80 columns and lose nothing without colour."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from stormctl.report import replayed
from stormctl.report.predicted import HEAD, PredictedRow
from stormctl.report.replayed import ReplayedRow
from stormctl.report.sections import Sections
from stormctl.report.style import COMPLETED, CORRUPTED, INFRA, OTHER, STUCK, Look
from stormctl.report.tally import Comparison, OutcomeRow, SweepCell, SweepRow
from stormctl.report.work import WorkRow
from stormctl.stats import Percentiles
from stormctl.storm.attempt import Cell

_Row = TypeVar("_Row", OutcomeRow, WorkRow, ReplayedRow)


def outcome_table(rows: Iterable[OutcomeRow]) -> Sections:
    """One line per cell under scenario and world: n, outcomes, and the corrupted rate with its 95 % Wilson interval.

    ``n`` leaves out infra, which says nothing about the run. Completed attempts that prove nothing have a column when
    there are any, and a cell whose control failed is marked.
    """
    rows = list(rows)
    vacuous = any(row.vacuous for row in rows)
    crowded = vacuous and not any(row.other or row.infra for row in rows)  # names need the room of two empty columns
    shown = ("n", "completed", *(("vacuous",) if vacuous else ()), "corrupted (95 %)", "stuck")
    shown += () if crowded else ("other", "infra")

    def cells(row: OutcomeRow) -> dict[str, Text]:
        return {
            "n": Text(str(row.n)),
            "completed": _count(row.completed, COMPLETED),
            "vacuous": _count(row.vacuous, OTHER),
            "corrupted (95 %)": _coloured(str(row.rate), CORRUPTED, row.corrupted),
            "stuck": _count(row.stuck, STUCK),
            "other": _count(row.other, OTHER),
            "infra": _count(row.infra, INFRA),
        }

    return Sections(
        ("condition + generation", *shown),
        (
            (
                heading,
                Text(_pair(row.cell) + (" (environment)" if row.environment else "")),
                [cells(row)[head] for head in shown],
            )
            for heading, row in _under_headings(rows)
        ),
    )


def comparison_table(comparisons: Iterable[Comparison]) -> Table:
    """Old against new, scenario by scenario, with the 95 % Miettinen-Nurminen interval of the difference."""
    table = head_table()
    table.add_column("corrupted", overflow="fold", ratio=1)
    for header in ("old", "new"):
        table.add_column(header, justify="right")
    table.add_column("old - new (95 %)", justify="right", no_wrap=True)
    table.add_column("reading")
    for one in comparisons:
        rates = [f"{row.rate.k}/{row.rate.n}" for row in (one.old, one.new)]
        sign = one.difference.sign
        table.add_row(
            Text(one.scenario), *rates, str(one.difference), Text(one.reading, style="bold" if sign else "dim")
        )
    return table


def sweep_table(rows: Iterable[SweepRow], arms: Iterable[str]) -> Table:
    """Fatal findings per sweep: how many, in how many of the logs that could be judged."""
    rows, arms = list(rows), list(arms)
    table = head_table()
    if len(arms) <= 2 and sum(map(len, arms)) <= 60:  # longer ones would leave no room for the sweeps
        table.add_column("findings by sweep", overflow="fold", ratio=1)
        for arm in arms:
            table.add_column(Text(arm), justify="right")
        for row in rows:
            table.add_row(row.sweep, *(_coloured(str(cell), CORRUPTED, cell.findings) for cell in row.cells))
        return table
    table.add_column("findings by sweep")
    table.add_column("condition + generation", ratio=1)
    table.add_column("findings", justify="right")
    for row in rows:
        for index, (arm, text, findings) in enumerate(_told(row, arms)):
            table.add_row("" if index else row.sweep, Text(arm), _coloured(text, CORRUPTED, findings))
    return table


def _told(row: SweepRow, arms: Sequence[str]) -> Iterator[tuple[str, str, int]]:
    """An arm with findings each by itself, then those without, together where there are several."""
    quiet: dict[str, list[str]] = {}
    others = "arms"
    for arm, cell in zip(arms, row.cells, strict=True):
        if cell.findings or cell.violated:
            yield arm, str(cell), cell.findings
            others = "others"
        else:
            quiet.setdefault(_without_count(cell), []).append(arm)
    for word, names in quiet.items():
        one = names[0] if len(names) == 1 else "all" if len(names) == len(arms) else f"{len(names)} {others}"
        yield one, word, 0
        others = "others"


def _without_count(cell: SweepCell) -> str:
    """What arms without findings have in common, whatever their number of logs."""
    if not cell.logs:
        return "no logs"
    return "unknown" if cell.unknown == cell.logs else "none, some unknown" if cell.unknown else "none"


def work_table(rows: Iterable[WorkRow]) -> Sections:
    """What refused preconditions and divergences cost, one line per cell: totals, but for the restarts."""
    return Sections(
        ("work", "restarts/run", "412s (useless)", "again", "diverged", "re-read", "stuck"),
        (
            (
                heading,
                Text(_pair(row.cell)),
                [
                    Text(f"{row.restarts_per_run:.1f}"),
                    Text(f"{row.refused} ({row.useless})"),
                    *(Text(str(count)) for count in (row.reinvocations, row.divergences, row.rereads)),
                    _count(row.stuck, STUCK),
                ],
            )
            for heading, row in _under_headings(rows)
        ),
    )


def predicted_table(rows: Iterable[PredictedRow]) -> Table:
    """Of each version's corrupted logs, how many the generation that stands for it predicts."""
    table = head_table()
    table.add_column(HEAD[0], overflow="fold", ratio=1)
    table.add_column(HEAD[1])
    for header in HEAD[2:]:
        table.add_column(header, justify="right")
    for row in rows:
        table.add_row(*map(Text, row.cells))
    return table


def replayed_table(rows: Iterable[ReplayedRow]) -> Table:
    """What the real engine made of each cell's logs: flips and contradictions of completed runs, and whether both ends
    came out as they were recorded."""
    table = head_table()
    table.add_column(replayed.HEAD[0], overflow="fold", ratio=1)
    for header in replayed.HEAD[1:]:
        table.add_column(header, justify="right", no_wrap=True)
    last = None
    for heading, row in _under_headings(rows):
        if heading is not None:
            table.add_row(heading)
        if row.cell != last:
            table.add_row(Text(f"  {_pair(row.cell)}"))
        last = row.cell
        name, *counts = row.cells
        table.add_row(Text(f"    {name}"), *map(Text, counts))
    return table


def duration_table(durations: dict[str, Percentiles]) -> Table:
    """Percentiles of the durations in seconds, by outcome."""
    table = head_table()
    table.add_column("seconds", ratio=1)
    for header in ("n", "p50", "p90", "p95", "p99", "max"):
        table.add_column(header, justify="right")
    for word, one in durations.items():
        values = (one.p50, one.p90, one.p95, one.p99, one.max)
        table.add_row(word, str(one.n), *(f"{value:.1f}" for value in values))
    return table


def _under_headings(rows: Iterable[_Row]) -> Iterator[tuple[Text | None, _Row]]:
    """Each row, with its scenario (and world, where there are several) before the first one of it."""
    rows = list(rows)
    several = len({row.cell.world for row in rows}) > 1
    last = None
    for row in rows:
        text = f"{row.cell.scenario}, {row.cell.world}" if several else row.cell.scenario
        yield (None if text == last else Text(text, style="bold")), row
        last = text


def _pair(cell: Cell) -> str:
    return f"{cell.condition} + {cell.generation}"


def head_table() -> Table:
    """An empty table in the house's look: a line under its head, as wide as there is room."""
    return Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, expand=True, show_edge=False)


def _count(number: int, look: Look) -> Text:
    return _coloured(str(number), look, number)


def _coloured(text: str, look: Look, number: int) -> Text:
    return Text(text, style=look.style if number else "dim")
