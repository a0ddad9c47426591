"""One look for every picture and table: colours that colour-blind people tell apart, and marks that need no colour."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from stormctl.errors import UsageError
from stormctl.storm.outcome import Outcome
from stormctl.sweeps.witness import clean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Look:
    """How a group of outcomes is shown: its word, colour and hatch in pictures, and style and block in a terminal."""

    word: str
    colour: str
    hatch: str
    style: str
    block: str


#: The groups in which outcomes are shown, in their order. Colours are of the Okabe-Ito palette.
COMPLETED = Look("completed", "#009E73", "", "green", "█")
CORRUPTED = Look("corrupted", "#D55E00", "///", "red", "▓")
STUCK = Look("stuck", "#0072B2", "...", "blue", "▒")
OTHER = Look("other", "#E69F00", "xxx", "yellow", "░")
INFRA = Look("infra", "#999999", "", "dim", "·")
LOOKS = (COMPLETED, CORRUPTED, STUCK, OTHER, INFRA)


def look(outcome: Outcome) -> Look:
    """The group of an outcome. ``other`` takes every gating outcome without a column of its own."""
    if outcome is Outcome.COMPLETED:
        return COMPLETED
    if outcome is Outcome.CORRUPTED:
        return CORRUPTED
    if outcome.stuck:
        return STUCK
    return INFRA if outcome is Outcome.INFRA else OTHER


#: 8 inches at 100 dots: every word is legible at 800 pixels.
WIDTH, DPI = 8.0, 100
_RC: Any = {
    "figure.dpi": DPI,
    "savefig.dpi": DPI,
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#444444",
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.8,
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
    "svg.hashsalt": "stormctl",
    "svg.fonttype": "none",
    "text.parse_math": False,  # a name that holds two dollar signs is no formula
}


def styled(draw: Callable[P, T]) -> Callable[P, T]:
    """Run a function that draws under the house's settings, whatever those of the process are."""

    @wraps(draw)
    def with_style(*args: P.args, **kwargs: P.kwargs) -> T:
        from matplotlib import rc_context

        with rc_context(_RC):
            return draw(*args, **kwargs)

    return with_style


def label(text: str, most: int = 52) -> str:
    """A name as it fits beside or above a panel: each line at most so long, its middle left out where it is longer."""
    return "\n".join(_elided(clean(line), most) for line in text.split("\n"))


def _elided(line: str, most: int) -> str:
    tail = most // 2 - 1
    return line if len(line) <= most else f"{line[: most - tail - 3]}...{line[-tail:]}"


def figure(height: float, **subplots: Any) -> tuple[Figure, Any]:
    """A figure of the house's width, and its axes as an array. Needs no screen. Call it in a ``styled`` function."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(made)
    return made, made.subplots(squeeze=False, **subplots)


@styled
def save(made: Figure, stem: Path) -> tuple[Path, Path]:
    """Write ``stem.png`` and ``stem.svg``. The same figure gives the same bytes."""
    png, svg = stem.with_suffix(".png"), stem.with_suffix(".svg")
    made.savefig(png, metadata={"Software": None})
    made.savefig(svg, metadata={"Date": None, "Creator": None})
    return png, svg


#: the kinds of picture that can be asked for by a file's name
SUFFIXES = (".png", ".svg")


@styled
def save_as(made: Figure, path: Path) -> Path:
    """Write one picture, of the kind that its suffix names, over whatever lies there. UsageError when it cannot be."""
    options: dict[str, Any] = {"Software": None} if path.suffix == ".png" else {"Date": None, "Creator": None}
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path} names no kind of picture", remedy=f"End it with {' or '.join(SUFFIXES)}.")
    try:
        made.savefig(path, metadata=options)
    except OSError as error:
        raise UsageError(
            f"the picture {path} cannot be written: {error.strerror}", remedy="Name another file."
        ) from error
    return path
