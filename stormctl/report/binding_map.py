"""The heat map of a log: prefix by prefix, which call each rank of the run's id sequence is bound to.

A sound log under a sound engine is made of unbroken stripes. A stripe that changes its colour is a flip.
"""

from __future__ import annotations

from bisect import bisect_left
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stormctl.report.style import figure, save_as, styled
from stormctl.sweeps.bindings import BindingMap, Change, touched, window
from stormctl.sweeps.witness import clean

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

#: an image of more cells would be thinned out by the screen, and not by us
MOST_COLUMNS, MOST_ROWS = 680, 360
DETAIL_COLUMNS, DETAIL_ROWS = 44, 12
#: what a cell of the detail needs per letter, in columns
_LETTER = 0.42

#: Okabe and Ito's colours for steps, and neutral ones for the rest: colour-blind people tell them apart.
STEP_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
KIND_COLOURS = {"wait": "#C9C9C9", "hook": "#222222", "attr": "#8C8C8C"}
OTHERS = ("other steps", "#7A6A58")
MARK = "#B00020"


def colours(found: BindingMap) -> dict[str, tuple[str, str]]:
    """For each label the word of the legend and the colour.

    Steps have theirs by the alphabet, so that two engines' pictures of one log agree. Where there are more steps than
    colours, those that flip come first, then the frequent ones, and the rest share one.
    """
    moving = [label for change in found.changes for label in (change.was, change.now)]
    order = list(dict.fromkeys([*moving, *found.labels]))
    steps = [label for label in order if label not in KIND_COLOURS]
    everything = sorted({*steps, *found.steps})
    if len(everything) <= len(STEP_COLOURS):
        paint = dict(zip(everything, STEP_COLOURS, strict=False))
        known = {label: (_word(label), paint[label]) for label in sorted(steps)}
    else:
        own = len(STEP_COLOURS) if len(steps) <= len(STEP_COLOURS) else len(STEP_COLOURS) - 1
        known = {label: (_word(label), STEP_COLOURS[at]) for at, label in enumerate(sorted(steps[:own]))}
        known |= {label: (f"{OTHERS[0]} ({len(steps) - own})", OTHERS[1]) for label in steps[own:]}
    known |= {label: (label, KIND_COLOURS[label]) for label in order if label in KIND_COLOURS}
    return known


@styled
def binding_figure(found: BindingMap, source: str = "") -> Figure:
    """The whole log above, and below it what lies around the first flip or divergence."""
    known = colours(found)
    columns = window(found, columns=DETAIL_COLUMNS, before=10, after=8)
    rows = list(touched(found, columns, around=3, most=DETAIL_ROWS))
    ratios = [3.4, 0.6 + 0.2 * len(rows)] if rows else [3.4]
    made, axes = figure(1.2 + sum(ratios), nrows=len(ratios), gridspec_kw={"height_ratios": ratios})
    title = f"{found.engine}: what each {found.row} is bound to\n"
    made.suptitle(title + _facts(found, source), x=0.01, ha="left", fontsize=11)
    _overview(axes[0][0], found, known)
    if rows:
        _frame(axes[0][0], columns, rows)
        _detail(axes[1][0], found, known, columns, rows)
    axes[-1][0].set_xlabel("prefix (position of its last event)")
    _legend(made, found, known)
    return made


def write_picture(found: BindingMap, path: Path, source: str = "") -> Path:
    """Write the heat map as PNG or SVG, by the suffix; UsageError for another suffix or a place that takes no file."""
    return save_as(binding_figure(found, source), path)


def _overview(axes: Any, found: BindingMap, known: dict[str, tuple[str, str]]) -> None:
    from matplotlib.ticker import MaxNLocator

    height = max(found.rows, default=0) + 1
    width = max(1, len(found.prefixes))
    cells, palette = image(found, known)
    _paint(axes, cells, palette, (-0.5, width - 0.5, -0.5, height - 0.5))
    axes.set_ylabel(found.row)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.grid(visible=False)
    _name_columns(axes, found, range(width))
    _fade(axes, found, width)
    _mark(axes, found, found.changes, size=44)


def _frame(axes: Any, columns: range, rows: list[int]) -> None:
    """Show in the overview where the detail lies."""
    from matplotlib.patches import Rectangle

    corner, size = (columns.start - 0.5, rows[0] - 0.5), (len(columns), rows[-1] - rows[0] + 1)
    axes.add_patch(Rectangle(corner, *size, fill=False, edgecolor="black", linewidth=1.0, zorder=4, clip_on=False))


def _detail(axes: Any, found: BindingMap, known: dict[str, tuple[str, str]], columns: range, rows: list[int]) -> None:
    from matplotlib.patches import Rectangle

    turns = {(change.rank, change.column) for change in found.changes}
    for y, rank in enumerate(rows):
        for span in found.rows[rank]:
            first, last = max(span.first, columns.start), min(span.last, columns.stop - 1)
            if first > last:
                continue
            colour = known[span.label][1]
            wide = last - first + 1
            axes.add_patch(Rectangle((first - 0.5, y - 0.42), wide, 0.84, facecolor=colour, edgecolor="white"))
            word = _word(span.label)
            if len(word) * _LETTER * len(columns) / DETAIL_COLUMNS <= wide:
                ink = "white" if _dark(colour) else "black"
                inset = 0.022 * len(columns) if (rank, first) in turns else 0.008 * len(columns)
                axes.text(first - 0.5 + inset, y, word, color=ink, fontsize=9, va="center", ha="left", clip_on=True)
    axes.set_xlim(columns.start - 0.5, columns.stop - 0.5)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_yticks(range(len(rows)), [str(rank) for rank in rows])
    axes.set_ylabel(found.row)
    axes.grid(visible=False)
    _name_columns(axes, found, columns)
    _fade(axes, found, columns.stop, text=False)
    place = {rank: y for y, rank in enumerate(rows)}
    shown = [change for change in found.changes if change.column in columns and change.rank in place]
    _mark(axes, found, shown, size=46, place=place)
    if found.diverges is not None and found.diverges in columns and found.lost in place and found.expected:
        axes.text(
            found.diverges + 0.02 * len(columns), place[found.lost], f"log: {_word(found.expected)}", color=MARK,
            fontsize=9, va="center", zorder=6, clip_on=True,
        )  # fmt: skip


def _mark(axes: Any, found: BindingMap, changes: Any, *, size: int, place: dict[int, int] | None = None) -> None:
    """A ring at every flip, between the two prefixes, and a cross where the workflow diverges."""
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=3.4, foreground="white")]
    at = [(change.column - 0.5, _place(change.rank, place)) for change in changes]
    if at:
        axes.scatter(
            *zip(*at, strict=True), s=size, facecolors="none", edgecolors="black", linewidths=1.6, zorder=5,
            path_effects=halo, clip_on=False,
        )  # fmt: skip
    if found.diverges is not None and found.lost is not None and (place is None or found.lost in place):
        axes.scatter(
            [found.diverges], [_place(found.lost, place)], s=size, marker="x", color=MARK, linewidths=2.2, zorder=6,
            path_effects=halo, clip_on=True,
        )  # fmt: skip


def _place(rank: int, place: dict[int, int] | None) -> int:
    return rank if place is None else place[rank]


def _fade(axes: Any, found: BindingMap, end: int, *, text: bool = True) -> None:
    """Behind the first divergence a table says little: it is drawn pale."""
    if found.diverges is None or found.diverges >= end:
        return
    axes.axvspan(found.diverges - 0.5, end - 0.5, color="white", alpha=0.6, linewidth=0, zorder=3)
    axes.axvline(found.diverges - 0.5, color=MARK, linewidth=1.4, linestyle=(0, (4, 2)), zorder=4)
    if text:
        left = found.diverges > end / 2
        axes.text(
            found.diverges - 0.5, axes.get_ylim()[1], f"diverges at {found.prefixes[found.diverges]} ",
            color=MARK, ha="right" if left else "left", va="bottom", fontsize=10,
        )  # fmt: skip


def _paint(axes: Any, cells: NDArray[Any], palette: list[str], extent: tuple[float, float, float, float]) -> None:
    from matplotlib.colors import ListedColormap

    axes.imshow(
        cells, cmap=ListedColormap(palette), vmin=0, vmax=max(1, len(palette) - 1), extent=extent, origin="lower",
        aspect="auto", interpolation="nearest",
    )  # fmt: skip


def image(found: BindingMap, known: dict[str, tuple[str, str]]) -> tuple[NDArray[Any], list[str]]:
    """The map as numbers of a palette, 0 for not drawn, with no more cells than can be seen.

    A cell that stands for several prefixes shows the binding that lasted shortest, and a row that stands for several
    ranks the one that changed most: what is rare is not lost.
    """
    import numpy

    height, width = max(found.rows, default=0) + 1, max(len(found.prefixes), 1)
    across, down = -(-width // MOST_COLUMNS), -(-height // MOST_ROWS)
    palette = ["white", *dict.fromkeys(colour for _, colour in known.values())]
    cells = numpy.zeros((-(-height // down), -(-width // across)), dtype=numpy.int16)
    for y in range(cells.shape[0]):
        ranks = [rank for rank in range(y * down, (y + 1) * down) if rank in found.rows]
        if not ranks:
            continue
        spans = found.rows[max(ranks, key=lambda rank: len(found.rows[rank]))]
        for span in sorted(spans, key=lambda one: one.first - one.last):
            cells[y, span.first // across : span.last // across + 1] = palette.index(known[span.label][1])
    return cells, palette


def _name_columns(axes: Any, found: BindingMap, columns: range) -> None:
    """Ticks at round prefix names, whatever column they fall into."""
    names = found.prefixes[columns.start : columns.stop]
    if not names:
        return
    rough = max(1, (names[-1] - names[0]) / 8)
    step = next(unit for unit in _units() if unit >= rough)
    ticks = []
    for name in range(-(-names[0] // step) * step, names[-1] + 1, step):
        at = bisect_left(names, name)
        if names[at] == name:
            ticks.append((columns.start + at, str(name)))
    if not ticks:
        ticks = [(columns.start, str(names[0])), (columns.stop - 1, str(names[-1]))]
    axes.set_xticks([at for at, _ in ticks], [name for _, name in ticks])


def _units() -> Any:
    size = 1
    while True:
        yield from (size, 2 * size, 5 * size)
        size *= 10


def _legend(made: Figure, found: BindingMap, known: dict[str, tuple[str, str]]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    words = dict(dict.fromkeys(known.values()))
    handles: list[Any] = [Patch(facecolor=colour, label=word) for word, colour in words]
    if found.changes:
        ring = Line2D([], [], linestyle="none", marker="o", markerfacecolor="none", markeredgecolor="black")
        ring.set(label="flip", markersize=7, markeredgewidth=1.6)
        handles.append(ring)
    if found.diverges is not None:
        handles.append(Line2D([], [], color=MARK, linestyle=(0, (4, 2)), marker="x", label="divergence"))
    made.legend(handles=handles, loc="outside lower left", ncols=5, fontsize=10, columnspacing=1.4, handlelength=1.6)


def _facts(found: BindingMap, source: str) -> str:
    flips = found.changes
    parts = [clean(source)] if source else []
    parts.append(f"{len(found.prefixes)} prefixes")
    parts.append(_flips(flips))
    if found.diverges is not None:
        parts.append(f"diverges at {found.prefixes[found.diverges]}")
    return ", ".join(parts)


def _flips(flips: tuple[Change, ...]) -> str:
    return f"{len(flips) or 'no'} flip{'' if len(flips) == 1 else 's'}"


def _word(label: str) -> str:
    return clean(label.removeprefix("step:"))


def _dark(colour: str) -> bool:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue < 140
