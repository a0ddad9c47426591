"""Durations by outcome: blocks in a terminal, PNG and SVG beside the logs. All outcomes share their bins."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from stormctl.report.load import Artefact
from stormctl.report.style import LOOKS, Look, figure, save, styled
from stormctl.report.tally import grouped_seconds
from stormctl.storm.attempt import Attempt

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TERMINAL_BINS, PICTURE_BINS = 10, 12
MOST_COLUMNS = 3


def bin_edges(values: Sequence[float], wanted: int) -> list[float]:
    """Round, evenly spaced edges around all values: near ``wanted`` bins. Empty without values."""
    if not values:
        return []
    low, high = min(values), max(values)
    rough = max((high - low) / wanted, high / 1000, 1e-3)
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


def terminal_histogram(attempts: Iterable[Attempt], width: int = 80) -> Table | Text:
    """A column of bars per outcome, over the same bins."""
    grouped = grouped_seconds(attempts)
    if not grouped:
        return Text("no attempt has landed")
    edges = bin_edges([value for values in grouped.values() for value in values], TERMINAL_BINS)
    by_word = {word: counts(values, edges) for word, values in grouped.items()}
    largest = max(max(found) for found in by_word.values())
    room = max(4, (width - 16) // len(by_word) - 2 - len(str(largest)) - 1)
    table = Table(box=SIMPLE_HEAD, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("seconds", justify="right", no_wrap=True)
    looks = [one for one in LOOKS if one.word in by_word]
    for one in looks:
        table.add_column(one.word, min_width=min(room, 12), no_wrap=True)
    digits = max(0, -math.floor(math.log10(edges[1] - edges[0])))
    for index, (low, high) in enumerate(pairwise(edges)):
        bars = [_bar(by_word[one.word][index], largest, room, one) for one in looks]
        table.add_row(f"{low:.{digits}f} to {high:.{digits}f}", *bars)
    return table


@styled
def histogram_figure(artefact: Artefact) -> Figure:
    """A panel per scenario (down) and arm (across, where there are at most three), with shared axes."""
    from matplotlib.ticker import MaxNLocator

    scenarios = list(dict.fromkeys(cell.scenario for cell in artefact.cells)) or [""]
    arms: list[str | None] = list(artefact.arms) if 1 < len(artefact.arms) <= MOST_COLUMNS else [None]
    made, axes = figure(0.9 + 2.3 * len(scenarios), nrows=len(scenarios), ncols=len(arms), sharex=True, sharey=True)
    edges = bin_edges([attempt.duration_ms / 1000 for attempt in artefact.attempts], PICTURE_BINS)
    handles: dict[str, Any] = {}
    for down, scenario in enumerate(scenarios):
        for across, arm in enumerate(arms):
            panel = axes[down][across]
            mine = [
                attempt
                for attempt in artefact.attempts
                if attempt.cell.scenario == scenario and arm in (None, artefact.arm(attempt.cell))
            ]
            handles.update(_stack(panel, mine, edges))
            panel.set_title(f"{scenario}\n{arm}" if arm else scenario)
            panel.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
            panel.grid(visible=False, axis="x")
            if down == len(scenarios) - 1:
                panel.set_xlabel("duration (s)")
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


def write_plots(artefact: Artefact) -> tuple[Path, ...]:
    """``plots/durations`` and ``plots/outcomes`` as PNG and SVG, in the artefact's folder."""
    from stormctl.report.bars import outcome_figure

    folder = artefact.folder / "plots"
    folder.mkdir(exist_ok=True)
    pictures = {"durations": histogram_figure(artefact), "outcomes": outcome_figure(artefact)}
    return tuple(path for name, made in pictures.items() for path in save(made, folder / name))


def _bar(count: int, largest: int, room: int, look: Look) -> Text:
    if not count:
        return Text("")
    length = max(1, round(count / largest * room)) if largest > room else count
    return Text.assemble((look.block * length, look.style), f" {count}")


def _stack(panel: Any, attempts: Iterable[Attempt], edges: Sequence[float]) -> dict[str, Any]:
    """Draw the outcomes of one panel on top of each other; the legend handle of each."""
    floor = [0] * (len(edges) - 1)
    handles = {}
    grouped = grouped_seconds(attempts)
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
