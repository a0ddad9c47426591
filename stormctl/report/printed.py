"""The tables that ``stormctl run`` prints at its end, as rows of text for the media that take every table: markdown and
the page. A terminal has its own layout of the same rows (:mod:`stormctl.report.tables`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from stormctl.report import replayed
from stormctl.report.facts import StormFacts
from stormctl.report.grids import PERCENTILES, Grid, number
from stormctl.report.load import Artefact
from stormctl.report.predicted import HEAD, predicted
from stormctl.report.tally import sides_text

#: what is said of the logs that a generation does not predict
_MOST_TEXT = 300


def printed(artefact: Artefact, facts: StormFacts) -> Iterator[Grid]:
    """Outcomes first; then old against new, findings, durations, work, and what other engines made of the logs.

    A table with nothing to tell has no rows.
    """
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
        about="logs whose printed divergence the generation that stands for their version predicts",
        more="; ".join(_shorten(text) for text in shares.texts),
    )
    yield Grid(
        "replayed",
        "Logs replayed by the real engine",
        ("scenario", "condition + generation", *replayed.HEAD),
        3,
        _rows((one.cell.scenario, artefact.arm(one.cell), *one.cells) for one in replayed.replayed(artefact.folder)),
        about="completed runs with flips, and with contradictions by log-order; corrupted runs that get the text that "
        "the SDK printed, completed ones that get their recorded output",
    )


def _rows(rows: Iterable[Sequence[object]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple(("", tuple(map(str, row))) for row in rows)


def _shorten(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 3] + "..."
