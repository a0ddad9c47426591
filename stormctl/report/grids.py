"""The tables of a report beyond those that ``stormctl run`` prints, as rows of text: one definition for all media."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from stormctl.report.facts import APPEND_MS, SECONDS, LatencyRow, QuantityRow, StormFacts
from stormctl.report.histogram_of import EDGES
from stormctl.report.latency import LATENCIES
from stormctl.report.signature import positions_text
from stormctl.stats import Percentiles
from stormctl.storm.attempt import Cell

#: Rows of failures and of stuck runs that a table holds; the rest is counted.
MOST_SIGNATURES, MOST_STUCK, MOST_WARNED = 15, 10, 10
PERCENTILES = ("n", "p50", "p90", "p95", "p99", "max")


@dataclass(frozen=True, slots=True)
class Grid:
    """A table. ``key`` is its name for programs, ``head`` the columns, of which the first ``words`` are words and the
    others numbers. Rows of one ``group`` stand under that heading; an empty group has none. ``more`` is what the table
    leaves out, ``about`` what its numbers are."""

    key: str
    title: str
    head: tuple[str, ...]
    words: int
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    about: str = ""
    more: str = ""


def grids(facts: StormFacts) -> list[Grid]:
    """Every table that has something to tell, in the order of the report."""
    made = (
        _findings(facts),
        _worlds(facts),
        _signatures(facts),
        _warnings(facts),
        _warned(facts),
        _stuck(facts),
        _quantities(facts),
        _refusals(facts),
        _latencies(facts),
    )
    return [one for one in made if one is not None and one.rows]


def _findings(facts: StormFacts) -> Grid | None:
    rows = facts.findings_by_outcome
    if not rows:
        return None
    words = tuple(rows[0].cells)
    return Grid(
        "findings-by-outcome",
        "Logs with fatal findings, by how the run came out",
        ("sweep", *words),
        1,
        tuple(("", (row.sweep, *(str(row.cells[word]) for word in words))) for row in rows),
        about="logs with a finding / logs that could be judged",
    )


def _worlds(facts: StormFacts) -> Grid | None:
    rows = facts.findings_by_world
    worlds = tuple(rows[0].cells) if rows else ()
    if len(worlds) < 2:
        return None  # the table by arm says the same
    return Grid(
        "findings-by-world",
        "Fatal findings by world",
        ("sweep", *worlds),
        1,
        tuple(("", (row.sweep, *(str(row.cells[world]) for world in worlds))) for row in rows),
    )


def _signatures(facts: StormFacts) -> Grid | None:
    rows = facts.signatures
    shown = tuple(
        (
            row.signature.code or "no error code",
            (
                row.signature.text,
                row.signature.kind,
                row.signature.entity,
                positions_text(row.positions),
                row.example.run_id or "",
                str(row.count),
            ),
        )
        for row in rows[:MOST_SIGNATURES]
    )
    return Grid(
        "signatures",
        "What failures say",
        ("signature", "kind", "class", "position", "such as", "runs"),
        5,
        tuple(sorted(shown, key=lambda row: [code for code, _ in shown].index(row[0]))),
        more=f"and {len(rows) - MOST_SIGNATURES} more signatures" if len(rows) > MOST_SIGNATURES else "",
    )


def _warnings(facts: StormFacts) -> Grid | None:
    name = namer(facts)
    return Grid(
        "divergence-warnings",
        "Divergences, those that recovered among them",
        ("cell", "runs", "diverged", "recovered", "warnings", "most"),
        1,
        tuple(
            ("", (name(row.cell), *map(str, (row.told, row.warned, row.recovered, row.warnings, row.most))))
            for row in facts.warnings
        ),
        about="warnings are replays that diverged; most is the largest number in one run",
    )


def _warned(facts: StormFacts) -> Grid | None:
    rows = facts.warned
    name = namer(facts)
    return Grid(
        "divergences-by-run",
        "Runs that diverged most often",
        ("run", "cell", "outcome", "warnings"),
        3,
        tuple(
            ("", (row.attempt.run_id or "", name(row.attempt.cell), str(row.attempt.outcome), str(row.warnings)))
            for row in rows[:MOST_WARNED]
        ),
    )


def _stuck(facts: StormFacts) -> Grid | None:
    rows = sorted(facts.stuck, key=lambda row: row.slow)
    slow = sum(row.slow for row in rows)
    return Grid(
        "stuck",
        f"Stuck runs: {slow} slow, {len(rows) - slow} dormant",
        ("run", "outcome", "last event", "quiet", "events"),
        3,
        tuple(
            (
                f"{row.attempt.cell.scenario}, {row.attempt.cell.arm}",
                (
                    row.attempt.run_id or "",
                    "slow" if row.slow else "dormant",
                    row.last_event,
                    "" if row.quiet_ms is None else f"{row.quiet_ms / 1000:.1f} s",
                    str(row.events),
                ),
            )
            for row in rows[:MOST_STUCK]
        ),
        about="quiet is how long nothing had been written when it was given up",
        more=f"and {len(rows) - MOST_STUCK} more" if len(rows) > MOST_STUCK else "",
    )


def _quantities(facts: StormFacts) -> Grid | None:
    name = namer(facts)
    told = {row.quantity for row in facts.quantities if row.values.max > 0}
    return Grid(
        "quantities",
        "What runs took",
        ("cell", *PERCENTILES),
        1,
        tuple(
            (_unit(row), (name(row.cell), *_percentiles(row.values)))
            for row in facts.quantities
            if row.quantity in told
        ),
    )


def _unit(row: QuantityRow) -> str:
    return {SECONDS: "duration in seconds", APPEND_MS: "one append, in milliseconds"}.get(row.quantity, row.quantity)


def _refusals(facts: StormFacts) -> Grid | None:
    name = namer(facts)
    return Grid(
        "refusals",
        "Appends that the store refused, by reason",
        ("cell", "reasons"),
        2,
        tuple(
            ("", (name(row.cell), ", ".join(f"{reason} {count}" for reason, count in list(row.reasons.items())[:8])))
            for row in facts.refusals
        ),
    )


def _latencies(facts: StormFacts) -> Grid | None:
    name = namer(facts)
    first, last = _common(facts.latencies)
    low = "0" if first == 0 else size(EDGES[first - 1])
    high = size(EDGES[min(last, len(EDGES)) - 1])
    return Grid(
        "latencies",
        "The engine's own latencies, in milliseconds",
        ("cell", *PERCENTILES, f"{low} to {high}"),
        1,
        tuple(
            (row.latency, (name(row.cell), *_percentiles(row.values), row.histogram.strip[first:last]))
            for row in facts.latencies
        ),
        about="; ".join(
            f"{name}: {meaning}"
            for name, meaning in LATENCIES.items()
            if any(row.latency == name for row in facts.latencies)
        ),
    )


def namer(facts: StormFacts) -> Callable[[Cell], str]:
    """How rows name a cell: by what differs between the storm's cells, and by its scenario when nothing does."""
    cells = [row.cell for row in facts.outcomes]
    axes = ("scenario", "world", "condition", "generation")
    many = [axis for axis in axes if len({getattr(cell, axis) for cell in cells}) > 1]

    def name(cell: Cell) -> str:
        parts = [getattr(cell, axis) for axis in axes[:2] if axis in many]
        arm = [getattr(cell, axis) for axis in axes[2:] if axis in many]
        if arm:
            parts.append(" + ".join(arm))
        return ", ".join(parts) or cell.scenario

    return name


def _common(rows: Sequence[LatencyRow]) -> tuple[int, int]:
    """The bins that hold anything in any row: the first, and the one behind the last."""
    filled = [index for row in rows for index, count in enumerate(row.histogram.counts) if count]
    return (min(filled), max(filled) + 1) if filled else (0, 1)


def size(ms: float) -> str:
    """``20 ms``, ``5 s``: the end of a bin."""
    return f"{ms:.0f} ms" if ms < 1000 else f"{ms / 1000:.0f} s"


def _percentiles(values: Percentiles) -> tuple[str, ...]:
    return (str(values.n), *map(number, (values.p50, values.p90, values.p95, values.p99, values.max)))


def number(value: float) -> str:
    """``0``, ``3.4``, ``17``, ``1204``: what can be read of it and no more."""
    return f"{value:.0f}" if value == 0 or abs(value) >= 10 or value == round(value) else f"{value:.1f}"


def grouped(rows: Sequence[tuple[str, tuple[str, ...]]]) -> Iterator[tuple[str | None, tuple[str, ...]]]:
    """Each row, with its group before the first one of it, else None."""
    last = ""
    for group, cells in rows:
        yield (group if group != last else None), cells
        last = group
