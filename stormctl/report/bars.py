"""Outcomes of every cell as one bar, with the corrupted rate and its interval written beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stormctl.report.load import Artefact
from stormctl.report.style import LOOKS, figure, label, styled
from stormctl.report.tally import outcome_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def outcome_figure(artefact: Artefact) -> Figure:
    """A bar per cell in plan order, from the top: its outcomes as shares of the attempts that landed."""
    from matplotlib.ticker import PercentFormatter

    rows = outcome_rows(artefact)
    made, axes = figure(1.3 + 0.55 * max(1, len(rows)))
    panel = axes[0][0]
    places = list(range(len(rows)))
    left = [0.0] * len(rows)
    for one in LOOKS:
        numbers = [getattr(row, one.word) for row in rows]
        if not any(numbers):
            continue
        shares = [number / max(1, row.landed) for number, row in zip(numbers, rows, strict=True)]
        panel.barh(
            places, shares, left=left, height=0.62, color=one.colour, hatch=one.hatch, edgecolor="white", label=one.word
        )
        for place, number, share, start in zip(places, numbers, shares, left, strict=True):
            if number:
                box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.9}
                panel.text(start + share / 2, place, str(number), ha="center", va="center", bbox=box, fontsize=10)
        left = [start + share for start, share in zip(left, shares, strict=True)]
    panel.set_yticks(places, [label(f"{row.cell.scenario}\n{row.arm}") for row in rows])
    panel.set_ylim(len(rows) - 0.45, -0.55)
    panel.set_xlim(0, 1)
    panel.xaxis.set_major_formatter(PercentFormatter(1.0))
    panel.grid(visible=False, axis="y")
    panel.set_xlabel("share of attempts")
    beside = panel.twinx()
    beside.set_ylim(panel.get_ylim())
    beside.set_yticks(places, [f"corrupted {row.rate.k}/{row.rate.n}\n{_interval(row.rate)}" for row in rows])
    beside.tick_params(length=0)
    beside.grid(visible=False)
    if panel.get_legend_handles_labels()[0]:
        made.legend(loc="outside upper left", ncols=len(LOOKS))
    return made


def _interval(rate: object) -> str:
    text = str(rate)
    return text[text.index("(") + 1 : -1]
