"""The timeline of one run as a picture: writers as lanes, passes as bars, and what a read missed as holes in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stormctl.report.style import figure, label, styled
from stormctl.report.timeline import Mark, Pass, Timeline
from stormctl.sweeps.witness import clean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: commits of the detail: more, and their numbers touch
COLUMNS = 22
MOST_LANES = 12
#: missed events that a lane's name can carry
MOST_MISSED = 3
LATE = "#B00020"
BAR, BLIND = "#DCE6EF", "#F6D5D0"
#: marker and colour by kind of event; the shapes differ too
KINDS = {
    "step": ("s", "#0072B2"),
    "wait": ("^", "#CC79A7"),
    "hook": ("D", "#009E73"),
    "attr": ("P", "#8C8C8C"),
    "run": ("o", "#222222"),
}
_LANE = 0.44


@dataclass(frozen=True, slots=True)
class Lane:
    """A row of the detail: its name, and the marks and passes drawn in it."""

    name: str
    marks: tuple[Mark, ...]
    passes: tuple[Pass, ...]


@styled
def timeline_figure(found: Timeline, around: int | None = None, source: str = "") -> Figure:
    """The whole run above, as log numbers in the order of commits, and below it the writers around one column.

    ``around`` is the log number of an event to look at; None looks where the run first went on from a hole.
    """
    column = None if around is None else found.column_of(around)
    shown = window(found, found.focus() if column is None else column)
    rows, left_out = lanes(found, shown)
    ratios = [1.35, 0.85 + _LANE * max(1, len(rows))]
    made, axes = figure(1.25 + sum(ratios), nrows=2, gridspec_kw={"height_ratios": ratios})
    made.suptitle(f"Run {label(source or found.run_id, 80)}\n{_facts(found)}", x=0.01, ha="left", fontsize=11)
    _overview(axes[0][0], found, shown)
    _detail(axes[1][0], found, rows, shown)
    if left_out:
        who = "1 delivery that wrote nothing here is" if left_out == 1 else f"{left_out} deliveries are"
        note = {"ha": "right", "va": "bottom", "fontsize": 9, "color": "#555555"}
        axes[1][0].text(1, 1.0, f"{who} left out", transform=axes[1][0].transAxes, **note)
    _legend(made, found)
    return made


def window(found: Timeline, column: int) -> range:
    """The columns of the detail: a third of them before the one to look at."""
    size = len(found.marks)
    first = max(0, min(column - COLUMNS // 3, size - COLUMNS))
    return range(first, min(size, first + COLUMNS))


def lanes(found: Timeline, shown: range) -> tuple[list[Lane], int]:
    """The rows for the shown columns, and how many passes found no room.

    Who writes from outside has the first row. Deliveries follow by when they are first seen; those that wrote nothing
    here come only while there is room, those with holes before the others.
    """
    marks = [found.marks[column] for column in shown]
    readers = {one.writer for one in found.passes}
    seen = [one for one in found.passes if one.first < shown.stop and one.last >= shown.start - 0.5]
    by_writer: dict[str, list[Mark]] = {}
    for mark in marks:
        by_writer.setdefault(mark.writer, []).append(mark)
    outside = [name for name in by_writer if name not in readers and not _delivers(found, name)]
    writers = [name for name in by_writer if name not in outside]
    silent = {one.writer for one in seen} - set(writers)
    blind = sorted(silent, key=lambda name: not any(one.missed for one in seen if one.writer == name))
    room = max(0, MOST_LANES - len(outside) - len(writers))
    chosen = [*writers, *blind[:room]]
    chosen = chosen[: max(1, MOST_LANES - len(outside))]
    start = {name: _start(name, by_writer, seen) for name in chosen}
    order = [*outside, *sorted(chosen, key=lambda name: start[name])]
    numbers = {name: number for number, name in enumerate(_deliveries(found), start=1)}
    return [
        Lane(
            f"delivery {numbers[name]}" if name in numbers else clean(name),
            tuple(by_writer.get(name, ())),
            tuple(one for one in seen if one.writer == name),
        )
        for name in order
    ], len({one.writer for one in seen} | set(writers)) - len(chosen)


def _delivers(found: Timeline, name: str) -> bool:
    """Whether a writer without a recorded read is a delivery all the same: it wrote what only those write."""
    return found.audited and any(
        mark.writer == name and mark.type not in ("run_created", "hook_received") for mark in found.marks
    )


def _deliveries(found: Timeline) -> list[str]:
    """All deliveries, by when they are first seen."""
    if not found.audited:
        return []
    first: dict[str, float] = {}
    for one in found.passes:
        first[one.writer] = min(first.get(one.writer, one.first), one.first)
    for mark in found.marks:
        if mark.writer in first or _delivers(found, mark.writer):
            first.setdefault(mark.writer, mark.column)
    return sorted(first, key=lambda name: first[name])


def _start(name: str, by_writer: dict[str, list[Mark]], seen: Iterable[Pass]) -> float:
    starts = [one.first for one in seen if one.writer == name]
    return min([*starts, *(mark.column for mark in by_writer.get(name, ()))])


def _overview(axes: Any, found: Timeline, shown: range) -> None:
    from matplotlib.patches import Rectangle

    good = [mark for mark in found.marks if not mark.backwards]
    late = [mark for mark in found.marks if mark.backwards]
    axes.scatter([m.column + 1 for m in good], [m.place for m in good], s=7, color="#4C5B69", linewidths=0)
    axes.scatter([m.column + 1 for m in late], [m.place for m in late], s=15, color=LATE, marker="v", linewidths=0)
    if shown:
        places = [found.marks[column].place for column in shown]
        corner, size = (shown.start + 0.5, min(places) - 2), (len(shown), max(places) - min(places) + 4)
        axes.add_patch(Rectangle(corner, *size, fill=False, edgecolor="black", linewidth=1.1))
    axes.set_ylabel("number in\nthe log")
    axes.set_xlabel("order of commits" if found.exact else "order of the log (commit times are not known)", labelpad=1)


def _detail(axes: Any, found: Timeline, rows: Sequence[Lane], shown: range) -> None:
    for y, lane in enumerate(rows):
        axes.axhline(y, color="#EEEEEE", linewidth=0.8, zorder=0)
        for one in lane.passes:
            _bar(axes, y, one, found, shown)
        for mark in lane.marks:
            _mark(axes, y, mark)
    axes.set_xlim(shown.start - 0.9, shown.stop - 0.1)
    axes.set_ylim(max(0.6, len(rows) - 0.3), -0.75)
    axes.set_yticks(range(len(rows)), [_named(lane, found, shown) for lane in rows], fontsize=10, linespacing=1.05)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False)
    ticks = list(shown[::5]) if shown else []
    axes.set_xticks(ticks, [_when(found.marks[column]) for column in ticks])
    axes.set_xlabel("order of commits; below, milliseconds since the first" if found.exact else "order of the log")


def _named(lane: Lane, found: Timeline, shown: range) -> str:
    """A lane's name, and the missed events that lie outside the picture."""
    missed = dict.fromkeys(place for one in lane.passes for place in one.missed)
    outside = [place for place in missed if (column := found.column_of(place)) is None or column not in shown]
    if not outside:
        return lane.name
    more = f" +{len(outside) - MOST_MISSED}" if len(outside) > MOST_MISSED else ""
    return f"{lane.name}\nlacks {', '.join(map(str, outside[:MOST_MISSED]))}{more}"


def _bar(axes: Any, y: int, one: Pass, found: Timeline, shown: range) -> None:
    """A pass: pale where it read everything, reddish and with holes where it did not."""
    from matplotlib.patches import FancyBboxPatch

    first, last = max(one.first, shown.start - 0.85), min(one.last + 0.45, shown.stop - 0.2)
    holes = [
        (column, place) for place in one.missed if (column := found.column_of(place)) is not None and column in shown
    ]
    if last > first:
        axes.add_patch(
            FancyBboxPatch(
                (first, y - 0.3),
                max(0.25, last - first),
                0.6,
                boxstyle="round,pad=0,rounding_size=0.12",
                linewidth=0.8,
                facecolor=BLIND if one.missed else BAR,
                edgecolor="#C98B82" if one.missed else "#9FB3C4",
                zorder=1,
            )
        )
    if holes and max(holes)[0] > last:
        axes.plot([last, max(holes)[0]], [y, y], color=LATE, linewidth=1.0, linestyle=(0, (2, 2)), zorder=1)
    for column, place in holes:
        size = 170 if place < 100 else 280
        axes.scatter(
            [column], [y], s=size, facecolors="white", edgecolors=LATE, linewidths=1.2, zorder=2, linestyle=":"
        )
        axes.text(column, y, str(place), ha="center", va="center_baseline", fontsize=7.5, color=LATE, zorder=4)


def _mark(axes: Any, y: int, mark: Mark) -> None:
    shape, colour = KINDS.get(mark.type.partition("_")[0], KINDS["run"])
    face = colour if not mark.type.endswith(("_created", "_started")) or mark.type.startswith("run") else "white"
    axes.scatter(
        [mark.column], [y + 0.06], s=34, marker=shape, facecolors=face, edgecolors=colour, linewidths=1.4, zorder=3
    )
    weight, ink = ("bold", LATE) if mark.backwards else ("normal", "black")
    axes.text(mark.column, y - 0.31, str(mark.place), ha="center", va="bottom", fontsize=8.5, color=ink, weight=weight)


def _when(mark: Mark) -> str:
    if mark.at_ms is None:
        return str(mark.column + 1)
    return f"{mark.column + 1}\n{mark.at_ms:,.0f}"


def _legend(made: Figure, found: Timeline) -> None:
    from matplotlib import rc_context
    from matplotlib.lines import Line2D
    from matplotlib.markers import MarkerStyle
    from matplotlib.patches import Patch

    with rc_context({"text.parse_math": True}):  # how a number becomes a marker
        twelve = MarkerStyle("$12$")
    handles: list[Any] = [
        Line2D([], [], linestyle="none", marker=shape, color=colour, markersize=6, label=kind)
        for kind, (shape, colour) in KINDS.items()
        if any(mark.type.startswith(kind) for mark in found.marks)
    ]
    handles.append(
        Line2D(
            [],
            [],
            linestyle="none",
            marker="s",
            markerfacecolor="white",
            color="#444444",
            markersize=6,
            label="created, started",
        )
    )
    if found.passes:
        handles.append(Patch(facecolor=BAR, edgecolor="#9FB3C4", label="pass"))
    if found.blind:
        handles.append(Patch(facecolor=BLIND, edgecolor="#C98B82", label="pass after a read with holes"))
        handles.append(
            Line2D(
                [],
                [],
                linestyle="none",
                marker="o",
                markerfacecolor="white",
                color=LATE,
                markersize=8,
                label="missed by the read",
            )
        )
    if found.backwards:
        handles.append(
            Line2D(
                [], [], linestyle="none", marker=twelve, color=LATE, markersize=10, label="overtaken: counts backwards"
            )
        )
    made.legend(handles=handles, loc="outside lower left", ncols=4, fontsize=9.5, columnspacing=1.4, handlelength=1.4)


def _facts(found: Timeline) -> str:
    parts = [f"{len(found.marks)} events"]
    if not found.exact:
        return f"{parts[0]}, without commit times: nothing is known of overtaking"
    parts.append(f"{found.backwards or 'none'} overtaken")
    if found.passes:
        parts.append(f"{found.blind} of {len(found.passes)} reads with holes")
    else:
        parts.append("no reads are recorded")
    if found.unknown:
        parts.append(f"{found.unknown} left out, of unknown commit time")
    return ", ".join(parts)
