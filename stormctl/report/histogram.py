"""Durations and events per run by outcome: blocks in a terminal, pictures beside the logs. Outcomes share bins."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from stormctl.report.load import Artefact
from stormctl.report.style import LOOKS, Look, figure, label, look, styled
from stormctl.storm.attempt import Attempt

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TERMINAL_BINS, PICTURE_BINS = 10, 12
MOST_COLUMNS = 3


@dataclass(frozen=True, slots=True)
class Measure:
    """What a histogram counts attempts by: ``value`` of an attempt, None where it has none, and no bin narrower than
    ``least``."""

    head: str
    axis: str
    value: Callable[[Attempt], float | None]
    least: float = 1e-3


def _events(attempt: Attempt) -> float | None:
    """How many events the run's log held; None for an attempt that never became a run."""
    return None if attempt.run_id is None else attempt.events


SECONDS = Measure("seconds", "duration (s)", lambda attempt: attempt.duration_ms / 1000)
EVENTS = Measure("events", "events in the run's log", _events, least=1)


def bin_edges(values: Sequence[float], wanted: int, least: float = 1e-3) -> list[float]:
    """Round, evenly spaced edges around all values: near ``wanted`` bins, none narrower than ``least``. Empty without
    values."""
    if not values:
        return []
    low, high = min(values), max(values)
    rough = max((high - low) / wanted, high / 1000, least)
    unit = 10.0 ** math.floor(math.log10(rough))
    step = min((unit * factor for factor in (1, 2, 5, 10)), key=lambda one: abs(math.log(one / rough)))
    first = math.floor(low / step)
    last = max(math.floor(high / step) + 1, first + 1)
    return [round(index * step, 9) for index in range(first, last + 1)]


def counts(values: Iterable[float], edges: Sequence[float]) -> list[int]:
    """How many values lie in each bin; a bin holds its lower edge, and the last one both."""
    found = [0] * (len(edges) - 1)
    for value in values:
        for index, (low, high) in enumerate(pairwise(edges)):
            if low <= value < high or (index == len(found) - 1 and value == high):
                found[index] += 1
    return found


def terminal_histogram(attempts: Iterable[Attempt], width: int = 80, measure: Measure = SECONDS) -> Table | Text:
    """A column of bars per outcome, over the same bins."""
    grouped = _grouped(attempts, measure)
    if not grouped:
        return Text("no attempt has landed")
    edges = bin_edges([value for values in grouped.values() for value in values], TERMINAL_BINS, measure.least)
    by_word = {word: counts(values, edges) for word, values in grouped.items()}
    largest = max(max(found) for found in by_word.values())
    room = max(4, (width - 16) // len(by_word) - 2 - len(str(largest)) - 1)
    table = Table(box=SIMPLE_HEAD, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False)
    table.add_column(measure.head, justify="right", no_wrap=True)
    looks = [one for one in LOOKS if one.word in by_word]
    for one in looks:
        table.add_column(one.word, min_width=min(room, 12), no_wrap=True)
    digits = max(0, -math.floor(math.log10(edges[1] - edges[0])))
    for index, (low, high) in enumerate(pairwise(edges)):
        bars = [_bar(by_word[one.word][index], largest, room, one) for one in looks]
        table.add_row(f"{low:.{digits}f} to {high:.{digits}f}", *bars)
    return table


@styled
def histogram_figure(artefact: Artefact, measure: Measure = SECONDS) -> Figure:
    """A panel per scenario (down) and arm (across, where there are at most three), with shared axes."""
    from matplotlib.ticker import MaxNLocator

    scenarios = list(dict.fromkeys(cell.scenario for cell in artefact.cells)) or [""]
    arms: list[str | None] = list(artefact.arms) if 1 < len(artefact.arms) <= MOST_COLUMNS else [None]
    made, axes = figure(0.9 + 2.3 * len(scenarios), nrows=len(scenarios), ncols=len(arms), sharex=True, sharey=True)
    everything = [value for values in _grouped(artefact.attempts, measure).values() for value in values]
    edges = bin_edges(everything, PICTURE_BINS, measure.least)
    handles: dict[str, Any] = {}
    for down, scenario in enumerate(scenarios):
        for across, arm in enumerate(arms):
            panel = axes[down][across]
            mine = [
                attempt
                for attempt in artefact.attempts
                if attempt.cell.scenario == scenario and arm in (None, artefact.arm(attempt.cell))
            ]
            handles.update(_stack(panel, mine, edges, measure))
            panel.set_title(label(f"{scenario}\n{arm}" if arm else scenario, 72 // len(arms)))
            panel.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
            panel.grid(visible=False, axis="x")
            if down == len(scenarios) - 1:
                panel.set_xlabel(measure.axis)
            if across == 0:
                panel.set_ylabel("attempts")
    axes[0][0].set_ylim(0, axes[0][0].get_ylim()[1] * 1.08)
    shown = [one for one in LOOKS if one.word in handles]
    if shown:
        made.legend(
            [handles[one.word] for one in shown],
            [one.word for one in shown],
            loc="outside upper right",
            ncols=len(shown),
        )
    return made


def _grouped(attempts: Iterable[Attempt], measure: Measure) -> dict[str, list[float]]:
    """The values by shown outcome, in the order in which outcomes are shown, those without any left out."""
    grouped: dict[str, list[float]] = {one.word: [] for one in LOOKS}
    for attempt in attempts:
        value = measure.value(attempt)
        if value is not None:
            grouped[look(attempt.outcome).word].append(value)
    return {word: values for word, values in grouped.items() if values}


def _bar(count: int, largest: int, room: int, look: Look) -> Text:
    if not count:
        return Text("")
    length = max(1, round(count / largest * room)) if largest > room else count
    return Text.assemble((look.block * length, look.style), f" {count}")


def _stack(panel: Any, attempts: Iterable[Attempt], edges: Sequence[float], measure: Measure) -> dict[str, Any]:
    """Draw the outcomes of one panel on top of each other; the legend handle of each."""
    floor = [0] * (len(edges) - 1)
    handles = {}
    grouped = _grouped(attempts, measure)
    for one in LOOKS:
        if one.word not in grouped:
            continue
        found = counts(grouped[one.word], edges)
        handles[one.word] = panel.bar(
            edges[:-1], found, width=edges[1] - edges[0], align="edge", bottom=floor, label=one.word,
            color=one.colour, hatch=one.hatch, edgecolor="white", linewidth=0.8,
        )  # fmt: skip
        floor = [below + count for below, count in zip(floor, found, strict=True)]
    return handles
