"""The matrix as a heat map: how often each cell was corrupted, and how sure that is."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any

from stormctl.report.load import Artefact
from stormctl.report.style import figure, label, styled
from stormctl.report.tally import OutcomeRow, outcome_rows
from stormctl.sweeps.witness import clean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: from nothing to everything corrupted; the middle of one hue, so that grey print and colour-blind eyes see the order
SHADES = ("#F7F4EF", "#F6C9A4", "#E8874A", "#B3470E", "#6B2300")
#: the height of a square in inches, and how many letters of a heading the whole width holds beside the names of rows
_HIGH, _LETTERS = 0.62, 62


def grid(artefact: Artefact) -> tuple[list[str], list[str], dict[tuple[str, str], OutcomeRow]]:
    """The rows (condition and generation), the columns (scenario, with the world where there are several) and the cell
    at each crossing that was planned."""
    several = len({cell.world for cell in artefact.cells}) > 1
    found: dict[tuple[str, str], OutcomeRow] = {}
    for row in outcome_rows(artefact):
        column = f"{row.cell.scenario}\n{row.cell.world}" if several else row.cell.scenario
        found[clean(f"{row.cell.condition} + {row.cell.generation}"), _lines(column)] = row
    return list(dict.fromkeys(down for down, _ in found)), list(dict.fromkeys(across for _, across in found)), found


@styled
def cells_figure(artefact: Artefact) -> Figure:
    """A square per cell: its corrupted share as a shade, k/n and the 95 % Wilson interval as words."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    down, across, found = grid(artefact)
    heads = [_wrapped(label(column, 60), _LETTERS // max(1, len(across)) - 1) for column in across]
    lines = max((head.count("\n") + 1 for head in heads), default=1)
    made, axes = figure(1.0 + 0.2 * lines + _HIGH * max(1, len(down)))
    panel = axes[0][0]
    shades = LinearSegmentedColormap.from_list("corrupted", SHADES)
    for y, arm in enumerate(down):
        for x, column in enumerate(across):
            row = found.get((arm, column))
            share = None if row is None else row.rate.share
            face = "white" if share is None else shades(share)
            square = Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=face, linewidth=2.0, edgecolor="white")
            if share is None:
                square.set(hatch="///", edgecolor="#CCCCCC")
            panel.add_patch(square)
            _words(panel, x, y, row, ink=_ink(face))
    panel.set_xlim(-0.5, max(0.5, len(across) - 0.5))
    panel.set_ylim(max(0.5, len(down) - 0.5), -0.5)
    panel.set_xticks(range(len(across)), heads)
    panel.set_yticks(range(len(down)), [label(_folded(arm), 36) for arm in down])
    panel.xaxis.tick_top()
    panel.tick_params(length=0)
    panel.grid(visible=False)
    for spine in panel.spines.values():
        spine.set_visible(False)
    _scale(made, panel, shades)
    return made


def _ink(face: Any) -> str:
    """Black or white, whichever stands out more on a colour (the contrast of WCAG 2)."""
    from matplotlib.colors import to_rgb

    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(face)]
    light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "black" if (light + 0.05) / 0.05 > 1.05 / (light + 0.05) else "white"


def _words(panel: Any, x: int, y: int, row: OutcomeRow | None, *, ink: str) -> None:
    if row is None:
        text, small = "not planned", ""
    elif row.rate.share is None:
        text, small = "nothing judged", ""
    else:
        rate = row.rate
        text = f"{rate.k}/{rate.n}" + (" *" if row.environment else "")
        small = f"{100 * rate.lo:.0f} to {100 * rate.hi:.0f} %"
    if not small:
        box = {"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": "none"}
        panel.text(x, y, text, ha="center", va="center", fontsize=9, color="#555555", bbox=box)
        return
    panel.text(x, y - 0.16, text, ha="center", va="center", fontsize=12, weight="bold", color=ink)
    panel.text(x, y + 0.22, small, ha="center", va="center", fontsize=9.5, color=ink)


def _scale(made: Any, panel: Any, shades: Any) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.ticker import PercentFormatter

    bar = made.colorbar(
        ScalarMappable(Normalize(0, 1), shades), ax=panel, location="bottom", fraction=0.06, aspect=46, pad=0.04
    )
    bar.ax.xaxis.set_major_formatter(PercentFormatter(1.0))
    bar.outline.set_visible(False)
    bar.set_label("corrupted, of the attempts that say something; below it the 95 % Wilson interval", fontsize=10)


def _folded(arm: str, most: int = 30) -> str:
    """A long name over two lines, parted where condition and generation meet."""
    return arm if len(arm) <= most else arm.replace(" + ", "\n+ ", 1)


def _wrapped(heading: str, most: int) -> str:
    """A heading whose lines are no longer than ``most`` letters, parted at blanks and hyphens where it can be."""
    return "\n".join(part for line in heading.split("\n") for part in wrap(line, max(6, most)))


def _lines(text: str) -> str:
    return "\n".join(map(clean, text.split("\n")))
