"""Lanes: one column for each actor, one row for each thing that happened, in the order in which it happened.

Rows are numbered in the order of the log, so that what overtook shows as numbers that count backwards (marked ``<``).
What a read did not see though it was there, or though its place was taken, is drawn as a hole ``( )``. The pair that
raced stands in brackets.

      #    H                O1
      .    mint 4
      1                     run_started
      5                     [wait_completed]
      .                     read 1-3 ( ) 5
      4 <  [hook_received]
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

#: characters in a line
WIDTH = 80
#: lines of a picture; what is in the middle of a longer one is left out, and said
MOST_LINES = 18
_LEAST = 6
_DELIVERY = re.compile(r"O\d+\Z")
_NUMBER = 7


@dataclass(frozen=True, slots=True)
class Row:
    """Something that an actor did. ``position`` is its place in the log, where it has one. ``saw`` are the positions
    that a read returned, ``missed`` those below its last that it did not. ``raced`` marks the two that raced,
    ``matters`` what a picture that has too many rows keeps before others."""

    lane: str
    text: str
    position: int | None = None
    saw: tuple[int, ...] = ()
    missed: tuple[int, ...] = ()
    raced: bool = False
    matters: bool = False

    @property
    def words(self) -> str:
        """The row's text, with what a read returned, and in brackets where it raced."""
        text = f"{self.text} {extent(self.saw, self.missed)}".rstrip() if self.saw or self.missed else self.text
        return f"[{text}]" if self.raced else text


@dataclass(frozen=True, slots=True)
class Lanes:
    """A schedule as a picture: its actors from left to right, what they did from top to bottom."""

    title: str
    names: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def overtaken(self) -> tuple[bool, ...]:
        """For each row, whether it stands in the log before something that was there sooner."""
        highest, found = 0, []
        for row in self.rows:
            found.append(row.position is not None and row.position < highest)
            highest = max(highest, row.position or 0)
        return tuple(found)


def extent(saw: Sequence[int], missed: Sequence[int]) -> str:
    """Positions as a person reads them: ``1-3 ( ) 5``, each hole a pair of brackets."""
    holes = frozenset(missed)
    parts: list[str] = []
    first: int | None = None
    places = sorted({*saw, *missed})
    for here, after in pairwise([*places, None]):
        assert here is not None
        if here in holes:
            parts.append("( )")
            continue
        first = here if first is None else first
        if after is None or after in holes or after != here + 1:
            parts.append(str(here) if first == here else f"{first}-{here}")
            first = None
    return " ".join(parts)


def drawn(lanes: Lanes, *, width: int = WIDTH, most: int = MOST_LINES) -> list[str]:
    """The picture as lines of at most ``width`` characters, without colour. Where rows are left out, so are the lanes
    that have none of those that are drawn."""
    kept = list(_kept(list(zip(lanes.rows, lanes.overtaken, strict=True)), most))
    if _too_wide(lanes.names, [entry[0] for entry in kept if not isinstance(entry, int)], width - _NUMBER):
        lanes = folded(lanes)
        kept = list(_kept(list(zip(lanes.rows, lanes.overtaken, strict=True)), most))
    shown = [entry[0] for entry in kept if not isinstance(entry, int)]
    names = lanes.names
    if len(shown) < len(lanes.rows):
        used = dict.fromkeys(row.lane for row in shown)
        names = tuple(name for name in names if name in used)
    columns = _widths(names, shown, width - _NUMBER)
    lines = [lanes.title] if lanes.title else []
    lines.append((" " * (_NUMBER - 4) + "#   " + _cells(names, columns, dict(enumerate(names)))).rstrip())
    for entry in kept:
        if isinstance(entry, int):
            lines.append(" " * (_NUMBER - 4) + f":   {entry} more")
            continue
        row, behind = entry
        number = "." if row.position is None else str(row.position)
        mark = "<" if behind else " "
        cells = _cells(names, columns, {names.index(row.lane): row.words})
        lines.append(f"{number:>{_NUMBER - 3}} {mark} {cells}".rstrip())
    return lines


def folded(lanes: Lanes) -> Lanes:
    """All deliveries of the run in one lane, and all steps in another, for a screen that is not as wide as many of
    them are; a row of a delivery then begins with its name."""
    many = sum(bool(_DELIVERY.match(name)) for name in lanes.names) > 1
    rows = []
    for row in lanes.rows:
        if _DELIVERY.match(row.lane):
            rows.append(replace(row, lane="O", text=f"{row.lane}: {row.text}" if many else row.text))
        elif row.lane.startswith("S:"):
            rows.append(replace(row, lane="S"))
        else:
            rows.append(row)
    return Lanes(lanes.title, tuple(dict.fromkeys(row.lane for row in rows)), tuple(rows))


def _too_wide(names: Sequence[str], rows: Sequence[Row], room: int) -> bool:
    """Whether the lanes that have something would have to be cut by more than a little."""
    used = [name for name in names if any(row.lane == name for row in rows)]
    return len(used) > 4 and sum(_needs(used, rows)) > room


def _needs(names: Sequence[str], rows: Sequence[Row]) -> list[int]:
    return [max([len(name), *(len(row.words) for row in rows if row.lane == name)]) + 2 for name in names]


def _widths(names: Sequence[str], rows: Sequence[Row], room: int) -> list[int]:
    """How wide each lane is: what it needs, and where all together need more than there is, in proportion."""
    needs = _needs(names, rows)
    while sum(needs) > room and max(needs) > _LEAST:
        needs[needs.index(max(needs))] -= 1
    return needs


def _cells(names: Sequence[str], columns: Sequence[int], texts: dict[int, str]) -> str:
    return "".join(_cut(texts.get(at, ""), columns[at]).ljust(columns[at]) for at in range(len(names)))


def _cut(text: str, width: int) -> str:
    if len(text) < width:
        return text
    return text[: max(0, width - 2)] + "~" if not text.endswith("]") else text[: max(0, width - 3)] + "~]"


def _kept(rows: list[tuple[Row, bool]], most: int) -> Iterator[tuple[Row, bool] | int]:
    """The rows to draw: all, or what matters (races, overtaking and holes, then the rest of it, then what is beside it
    in the same lanes) with how many rows were left out between."""
    if len(rows) <= most:
        yield from rows
        return
    raced = [at for at, (row, _) in enumerate(rows) if row.raced]
    marked = [at for at, (row, behind) in enumerate(rows) if row.missed or behind]
    matters = [at for at, (row, _) in enumerate(rows) if row.matters]
    every = sorted({*raced, *marked, *matters})
    used = {rows[at][0].lane for at in every}  # what is beside them does not bring lanes of its own
    beside = (at + reach for far in range(1, len(rows)) for reach in (-far, far) for at in every)
    fitting = [at for at in dict.fromkeys(beside) if 0 <= at < len(rows) and rows[at][0].lane in used]
    wanted: set[int] = set()
    for place in (*raced, *marked, *matters, *(fitting if raced or marked else range(len(rows)))):
        if place not in wanted and len(wanted) + 1 + _gaps({*wanted, place}, len(rows)) <= most:
            wanted.add(place)
    last = -1
    for at in sorted(wanted):
        if at > last + 1:
            yield at - last - 1
        yield rows[at]
        last = at
    if last < len(rows) - 1:
        yield len(rows) - 1 - last


def _gaps(wanted: set[int], rows: int) -> int:
    places = sorted(wanted)
    return sum(after > before + 1 for before, after in pairwise([-1, *places, rows]))
