"""The lag of commit behind mint as a picture: a strip for each type of event, and below it what was overtaken."""

from __future__ import annotations

import random
from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from stormctl.report.lag import ArmLag, StormLag, thinned
from stormctl.report.style import CORRUPTED, STUCK, figure, label, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: dots of one strip: more only make it darker
MOST_DOTS = 400
#: types of events that are shown, the slowest first
MOST_TYPES = 12
_ROW = 0.34
#: the green of completed runs, dark enough for words
_SOUND = "#00694D"


@styled
def lag_figure(found: StormLag) -> Figure:
    """Above: milliseconds from mint to commit, a dot per event and a bar at the median, by type. Below: how long each
    overtaken event could be missed, by arm."""
    kinds = list(found.lags)[:MOST_TYPES]
    arms = list(found.arms)
    ratios = [0.7 + _ROW * max(1, len(kinds)), 0.7 + 0.42 * max(1, len(arms))]
    made, axes = figure(0.75 + sum(ratios), nrows=2, gridspec_kw={"height_ratios": ratios})
    above, below = axes[0][0], axes[1][0]
    made.suptitle(_facts(found), x=0.01, ha="left", fontsize=11)
    draw = random.Random(7)
    for y, kind in enumerate(kinds):
        _strip(above, y, found.lags[kind], STUCK.colour, draw)
    _name_rows(
        above, kinds, [f"p50 {_ms(median(found.lags[kind]))}\nmax {_ms(max(found.lags[kind]))}" for kind in kinds]
    )
    above.set_title("from mint to commit")
    for y, arm in enumerate(arms):
        _strip(below, y, found.arms[arm].overtaken, CORRUPTED.colour, draw)
        if not found.arms[arm].overtaken:
            nothing = "nothing overtaken" if found.arms[arm].events else "no commit times"
            colour = _SOUND if found.arms[arm].events else "#555555"
            below.text(0.01, y, nothing, transform=below.get_yaxis_transform(), va="center", fontsize=10, color=colour)
    _name_rows(below, [_folded(arm) for arm in arms], [_share(found.arms[arm]) for arm in arms])
    below.set_title("overtaken by a later event: how long it could be missed")
    for panel in (above, below):
        _scale(panel)
    below.set_xlabel("time (logarithmic)")
    return made


def _strip(panel: Any, y: int, values: Sequence[float], colour: str, draw: random.Random) -> None:
    """One row of dots, spread a little so that they do not cover each other, and the median as a bar."""
    if not values:
        return
    shown = [max(value, 0.1) for value in thinned(values, MOST_DOTS)]
    places = [y + draw.uniform(-0.26, 0.26) for _ in shown]
    panel.scatter(shown, places, s=9, color=colour, alpha=0.35, linewidths=0, rasterized=True)
    middle = max(median(values), 0.1)
    panel.plot([middle, middle], [y - 0.36, y + 0.36], color="black", linewidth=2.2, solid_capstyle="butt")


def _name_rows(panel: Any, names: Sequence[str], beside: Sequence[str]) -> None:
    """The rows' names on the left, their numbers on the right."""
    panel.set_ylim(max(0.5, len(names) - 0.4), -0.6)
    panel.set_yticks(range(len(names)), [label(name, 36) for name in names])
    panel.grid(visible=False, axis="y")
    right = panel.twinx()
    right.set_ylim(panel.get_ylim())
    right.set_yticks(range(len(beside)), beside, fontsize=9, linespacing=1.1)
    right.tick_params(length=0)
    right.grid(visible=False)


def _scale(panel: Any) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    panel.set_xscale("log")
    low, high = panel.get_xlim()
    if high / low < 20:
        panel.set_xlim(low / 3, high * 3)
    panel.xaxis.set_major_locator(LogLocator(numticks=9))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))
    panel.xaxis.set_minor_formatter(NullFormatter())


def _facts(found: StormLag) -> str:
    share = f"{found.overtaken:,} of {found.events:,} events were overtaken"
    logs = f"{found.read} of {found.logs} logs" if found.read < found.logs else f"{found.read} logs"
    lacking = f", {found.unknown} of them without commit times" if found.unknown else ""
    return f"Commit behind mint: {share}\n{logs}{lacking}"


def _share(arm: ArmLag) -> str:
    if not arm.events:
        return f"{arm.runs} runs"
    mean = "" if arm.mean is None else f", mean {_ms(arm.mean)}"
    return f"{len(arm.overtaken):,} of {arm.events:,}{mean}\nin {arm.hit} of {arm.runs} runs"


def _ms(value: float) -> str:
    """Milliseconds as a person says them."""
    if value >= 10_000:
        return f"{value / 1000:.0f} s"
    if value >= 1000:
        return f"{value / 1000:.1f} s"
    return f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"


def _tick(value: float) -> str:
    return f"{value / 1000:g} s" if value >= 1000 else f"{value:g} ms"


def _folded(arm: str, most: int = 24) -> str:
    return arm if len(arm) <= most else arm.replace(" + ", "\n+ ", 1)
