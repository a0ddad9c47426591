"""Findings crossed with what a person asks of them: which outcomes they go with, and on which worlds they appear."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stormctl.report.load import FATAL, Artefact, SweepResult, SweptLog
from stormctl.report.style import LOOKS, look
from stormctl.report.tally import SweepCell, results_of, sweep_cell
from stormctl.storm.attempt import Attempt


@dataclass(frozen=True, slots=True)
class FindingCell:
    """Of the logs of one outcome, how many a sweep could judge and in how many it found something fatal."""

    found: int
    judged: int

    def __str__(self) -> str:
        return f"{self.found}/{self.judged}" if self.judged else "unknown"


@dataclass(frozen=True, slots=True)
class FindingRow:
    """One sweep over the outcomes, by shown word (``completed``, ``corrupted``, ...). A finding that goes with
    corrupted runs and no completed one explains something; in completed runs it is silent corruption, or harmless."""

    sweep: str
    cells: Mapping[str, FindingCell]

    @property
    def total(self) -> int:
        """Logs in which it found anything, over all outcomes."""
        return sum(cell.found for cell in self.cells.values())


@dataclass(frozen=True, slots=True)
class WorldRow:
    """One sweep over the worlds of the storm."""

    sweep: str
    cells: Mapping[str, SweepCell]


def findings_by_outcome(artefact: Artefact) -> list[FindingRow]:
    """A row for every sweep that found something in any log, most logs first."""
    counts: dict[str, dict[str, list[int]]] = {}
    for one, log in _swept(artefact):
        for result in results_of(log):
            cell = counts.setdefault(result.sweep, {}).setdefault(look(one.outcome).word, [0, 0])
            cell[0] += bool(result.findings.get(FATAL))
            cell[1] += result.verdict != "unknown"
    words = [one.word for one in LOOKS if any(one.word in by_word for by_word in counts.values())]
    rows = [
        FindingRow(sweep, {word: FindingCell(*by_word.get(word, (0, 0))) for word in words})
        for sweep, by_word in counts.items()
    ]
    return sorted((row for row in rows if row.total), key=lambda row: -row.total)


def findings_by_world(artefact: Artefact) -> list[WorldRow]:
    """A row for every sweep that ran, in the order in which they ran; empty when nothing was swept."""
    worlds = tuple(dict.fromkeys(cell.world for cell in artefact.cells))
    by_sweep: dict[str, dict[str, list[SweepResult]]] = {}
    for one, log in _swept(artefact):
        for result in results_of(log):
            by_sweep.setdefault(result.sweep, {}).setdefault(one.cell.world, []).append(result)
    return [
        WorldRow(sweep, {world: sweep_cell(found.get(world, ())) for world in worlds})
        for sweep, found in by_sweep.items()
    ]


def _swept(artefact: Artefact) -> Iterator[tuple[Attempt, SweptLog]]:
    by_run = {one.run_id: one for one in artefact.attempts if one.run_id}
    for log in artefact.logs:
        if log.run_id in by_run:
            yield by_run[log.run_id], log
