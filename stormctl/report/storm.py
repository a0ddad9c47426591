"""Everything a storm has to say for itself at its end, in a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.text import Text

from stormctl.report import tally
from stormctl.report.harmless import plain
from stormctl.report.histogram import terminal_histogram
from stormctl.report.load import Artefact
from stormctl.report.predicted import predicted
from stormctl.report.replayed import replayed
from stormctl.report.tables import (
    comparison_table,
    duration_table,
    outcome_table,
    predicted_table,
    replayed_table,
    sweep_table,
    work_table,
)
from stormctl.report.work import faults_text, work_rows
from stormctl.storm.until import conclusion_of

#: Why a storm ended early.
REASONS = {
    "budget": ", the launch budget ran out",
    "interrupted": ", interrupted",
    "failed": ", a store or worker failed",
    "resolved": ", its arms were told apart",
}


def render_storm(artefact: Artefact, console: Console, more: Iterable[RenderableType] = ()) -> None:
    """Print the verdict, outcomes with intervals, old against new, findings per sweep, durations, what ``more`` there
    is, the folder, and at the end what the sequential test concluded where there was one."""
    rows = tally.outcome_rows(artefact)
    _say(console, head(artefact), style="bold")
    _say(console, tally.verdict_line(artefact))
    console.print()
    console.print(outcome_table(rows))
    concluded = plain(conclusion_of(artefact.folder))
    for text in remarks(artefact):
        if text != concluded:
            console.print(Text(text))
    compared = tally.comparisons(rows)
    if compared:
        console.print()
        _say(console, tally.sides_text(rows))
        console.print(comparison_table(compared))
    work = work_rows(artefact)
    if work:
        console.print()
        console.print(work_table(work))
    swept = tally.sweep_rows(artefact)
    if swept:
        console.print()
        console.print(sweep_table(swept, artefact.arms))
    shares = predicted(artefact.folder)
    if shares.rows:
        console.print()
        console.print(predicted_table(shares.rows))
    again = replayed(artefact.folder)
    if again:
        console.print()
        console.print(replayed_table(again))
    console.print()
    console.print(terminal_histogram(artefact.attempts, console.width))
    console.print()
    console.print(duration_table(tally.durations(artefact)))
    console.print()
    for part in more:
        console.print(part)
    for note in artefact.notes:
        _say(console, f"note: {plain(note)}")
    _say(console, f"artefact: {artefact.folder}", style="bold")
    if concluded:
        _say(console, concluded)


def head(artefact: Artefact) -> str:
    """``storm, seed 7: 32 of 32 attempts landed``, and why it ended when that was early."""
    seed = f", seed {artefact.plan.seed}" if artefact.plan else ""
    planned = f" of {artefact.planned}" if artefact.planned is not None else ""
    why = REASONS.get(artefact.reason or "", "")
    return f"{artefact.name}{seed}: {len(artefact.attempts)}{planned} attempts landed{why}"


def remarks(artefact: Artefact) -> list[str]:
    """What the outcome table alone would hide: what the sequential test concluded where there was one, the split of
    stuck, lost pressure, a suspect environment, the faults that fired, unreadable logs."""
    found = [plain(conclusion_of(artefact.folder)), tally.stuck_text(tally.outcome_rows(artefact))]
    found += tally.flag_texts(artefact)
    found += [tally.environment_text(artefact), faults_text(artefact.fired)]
    if artefact.unreadable:
        found.append(f"unreadable: {len(artefact.unreadable)} logs, such as {artefact.unreadable[0]}")
    return [text for text in found if text]


def _say(console: Console, text: str, style: str = "") -> None:
    """Text as it is: no markup, no highlighting, and a long path is not broken."""
    console.print(Text(text, style=style), soft_wrap=True)
