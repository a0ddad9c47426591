"""The tables of the page: the report's grids, and those that ``stormctl run`` prints, as cells that can be sorted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stormctl.report import replayed
from stormctl.report.facts import StormFacts
from stormctl.report.grids import PERCENTILES, Grid, grids, number
from stormctl.report.load import Artefact
from stormctl.report.predicted import HEAD, predicted
from stormctl.report.tally import sides_text

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


def tables(artefact: Artefact, facts: StormFacts) -> list[Table]:
    """Every table that has something to tell, in the order of the page."""
    return [table_of(grid) for grid in (*_printed(artefact, facts), *grids(facts)) if grid.rows]


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


def _printed(artefact: Artefact, facts: StormFacts) -> Iterator[Grid]:
    vacuous = any(row.vacuous for row in facts.outcomes)
    yield Grid(
        "outcomes",
        "Outcomes",
        ("scenario", "condition + generation", "n", "completed", *(("vacuous",) if vacuous else ()),
         "corrupted (95 %)", "stuck", "other", "infra"),
        2,
        _rows(
            (
                row.cell.scenario,
                row.arm + (" (environment)" if row.environment else ""),
                row.n,
                row.completed,
                *((row.vacuous,) if vacuous else ()),
                row.rate,
                row.stuck,
                row.other,
                row.infra,
            )
            for row in facts.outcomes
        ),
        about="n leaves out infra, which says nothing about the run; the interval is Wilson's at 95 %",
    )  # fmt: skip
    yield Grid(
        "comparisons",
        "Old against new",
        ("corrupted", "reading", "old", "new", "old - new (95 %)"),
        2,
        _rows((one.scenario, one.reading, one.old.rate, one.new.rate, one.difference) for one in facts.comparisons),
        about=sides_text(facts.outcomes) + "; the interval is Miettinen and Nurminen's" if facts.comparisons else "",
    )
    yield Grid(
        "sweeps",
        "Fatal findings by sweep",
        ("sweep", *artefact.arms),
        1,
        _rows((row.sweep, *row.cells) for row in facts.sweeps),
        about="how many, and in how many of the logs that could be judged",
    )
    yield Grid(
        "durations",
        "Durations in seconds",
        ("outcome", *PERCENTILES),
        1,
        _rows(
            (word, one.n, *map(number, (one.p50, one.p90, one.p95, one.p99, one.max)))
            for word, one in facts.durations.items()
        ),
    )
    yield Grid(
        "work",
        "What refusals and divergences cost",
        ("scenario", "condition + generation", "restarts/run", "412s (useless)", "reinvoked", "diverged", "re-read",
         "stuck"),
        2,
        _rows(
            (row.cell.scenario, row.arm, f"{row.restarts_per_run:.1f}", f"{row.refused} ({row.useless})",
             row.reinvocations, row.divergences, row.rereads, row.stuck)
            for row in facts.work
        ),
    )  # fmt: skip
    shares = predicted(artefact.folder)
    yield Grid(
        "predicted",
        "Corrupted logs that the generation of their version predicts",
        HEAD,
        2,
        _rows(row.cells for row in shares.rows),
        more="; ".join(shares.texts),
    )
    yield Grid(
        "replayed",
        "Logs replayed by the real engine",
        ("scenario", "condition + generation", *replayed.HEAD),
        3,
        _rows((one.cell.scenario, artefact.arm(one.cell), *one.cells) for one in replayed.replayed(artefact.folder)),
    )


def _rows(rows: Iterator[Sequence[object]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple(("", tuple(map(str, row))) for row in rows)
