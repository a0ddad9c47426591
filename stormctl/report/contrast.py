"""Two arms, or two storms, compared: ``stormctl diff``. Counted once for the terminal, for markdown and for JSON.

The verdict is that of the pooled test over all cells; a cell alone can only make it worse. What decides is the exact
p; the interval says how large the difference is. docs/statistics.md says why each test and interval was taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from stormctl.report.plan_diff import plan_differences
from stormctl.report.sides import Pairing, Sides
from stormctl.stats import (
    Difference,
    Halves,
    Needed,
    Rate,
    attempts_needed,
    boschloo,
    difference,
    halves,
    holm,
    stratified,
    stratified_difference,
)
from stormctl.stats.power import MOST
from stormctl.storm.outcome import Counted
from stormctl.storm.until import FILE, conclusion_of, verb

ALPHA = 0.05
SUSPECT = "environment suspect"
NOTHING = "nothing was judged"


class Verdict(StrEnum):
    """What the comparison says of the new side."""

    BETTER = "better"
    WORSE = "worse"
    UNRESOLVED = "unresolved"


@dataclass(frozen=True, slots=True)
class CellContrast:
    """One cell compared. ``adjusted`` is p after Holm over all cells that decide; ``excluded`` says why it does not."""

    pairing: Pairing
    difference: Difference
    p: float | None
    adjusted: float | None = None
    excluded: str | None = None
    needed: Needed | None = None

    @property
    def where(self) -> str:
        """``hook-storm, postgres``."""
        return f"{self.pairing.scenario}, {self.pairing.world}"


@dataclass(frozen=True, slots=True)
class Pooled:
    """All cells that decide, together: sums, the stratified difference, and the stratified exact p."""

    difference: Difference
    p: float | None
    needed: Needed | None = None


@dataclass(frozen=True, slots=True)
class Drift:
    """The halves of one arm, in one cell or (``where`` is None) in all of them, disagree."""

    arm: str
    where: str | None
    halves: Halves
    p: float

    def __str__(self) -> str:
        where = f" in {self.where}" if self.where else ""
        return (
            f"drift: {self.arm}{where} had {_short(self.halves.earlier)} in its first half and "
            f"{_short(self.halves.later)} in its second (p {p_text(self.p)}): chance alone does not explain it, "
            "and no interval here allows for it"
        )


@dataclass(frozen=True, slots=True)
class Contrast:
    """The whole comparison."""

    sides: Sides
    outcome: str
    cells: tuple[CellContrast, ...]
    pooled: Pooled
    drifts: tuple[Drift, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Worse when the pooled test or any cell says so; else what the pooled test says."""
        signs = [self.sign_of(one) for one in self.cells]
        pooled = _sign(self.pooled.difference, self.pooled.p)
        if self.outcome == Counted.COMPLETED:
            signs, pooled = [-sign for sign in signs], -pooled
        if pooled < 0 or -1 in signs:
            return Verdict.WORSE
        return Verdict.BETTER if pooled > 0 else Verdict.UNRESOLVED

    def sign_of(self, cell: CellContrast) -> int:
        """1 when the old side has more of the outcome in this cell, -1 when the new one has, 0 when it is not told."""
        return 0 if cell.excluded or cell.pairing.control else _sign(cell.difference, cell.adjusted)

    @property
    def sentence(self) -> str:
        """The one sentence that a person needs."""
        return sentence(self.outcome, self.sides.names[1], self.pooled.difference, self.pooled.p, self.pooled.needed)

    def cell_sentence(self, cell: CellContrast) -> str:
        """The same for one cell."""
        if cell.excluded:
            return f"{cell.excluded}: not compared"
        if cell.pairing.control:
            return f"a control, {_short(cell.difference.first)} and {_short(cell.difference.second)}: not compared"
        new = self.sides.names[1]
        return sentence(self.outcome, new, cell.difference, cell.adjusted, cell.needed, " by Holm")


def contrast(sides: Sides, outcome: str) -> Contrast:
    """Compare the two sides by an outcome (one of ``sides.OUTCOMES``)."""
    cells = [_cell(one) for one in sides.pairings]
    deciding = [index for index, one in enumerate(cells) if not one.excluded and not one.pairing.control]
    adjusted = dict(zip(deciding, holm([cells[index].p for index in deciding]), strict=True))
    done = tuple(
        CellContrast(
            one.pairing,
            one.difference,
            one.p,
            adjusted.get(index),
            one.excluded,
            _needed(one.difference, adjusted.get(index), alpha=ALPHA / max(1, len(deciding))),
        )
        for index, one in enumerate(cells)
    )
    rates = [(cells[index].pairing.old.rate, cells[index].pairing.new.rate) for index in deciding]
    # one table has the stronger test; several tables with rates of their own have only the conditional one
    pooled_p = boschloo(*rates[0]) if len(rates) == 1 else stratified(rates)
    pooled = stratified_difference(rates)
    return Contrast(
        sides,
        outcome,
        done,
        Pooled(pooled, pooled_p, _needed(pooled, pooled_p, cells=len(rates))),
        tuple(_drifts(sides)),
        tuple(_warnings(sides)),
    )


def sentence(outcome: str, new: str, found: Difference, p: float | None, needed: Needed | None, how: str = "") -> str:
    """``B corrupts less: 20/24 -> 2/24, difference 75 points (52 to 88)``, or what would resolve it."""
    if found.value is None or p is None:
        return f"{NOTHING} on at least one side: there is nothing to compare"
    first, second = _short(found.first), _short(found.second)
    sign = _sign(found, p)
    if sign:
        points = found if sign > 0 else _mirrored(found)
        return (
            f"{new} {verb(outcome, more=sign < 0)}: {first} -> {second}, "
            f"difference {str(points).removeprefix('+')}, exact p {p_text(p)}{how}"
        )
    what = f"not resolved: {first} against {second}"
    if needed is not None:
        return f"{what} needs about {needed.n} attempts each, if the rates are what they look like"
    if found.first.share != found.second.share:
        return f"{what} would need more than {MOST:,} attempts each"
    return f"{what} look equal, and may differ by {_points(found.lo)} to {_points(found.hi)} points"


def p_text(p: float | None) -> str:
    """``0.031``, ``<0.001``, or a dash for none."""
    if p is None:
        return "-"
    return "<0.001" if p < 0.001 else f"{p:.3f}" if p < 0.0995 else f"{p:.2f}"


def _cell(one: Pairing) -> CellContrast:
    excluded = SUSPECT if one.old.suspect or one.new.suspect else None
    if excluded is None and not (one.old.hits and one.new.hits):
        excluded = NOTHING
    p = None if excluded == NOTHING else boschloo(one.old.rate, one.new.rate)
    return CellContrast(one, difference(one.old.rate, one.new.rate), p, excluded=excluded)


def _sign(found: Difference, p: float | None) -> int:
    if p is None or p > ALPHA or not found.value:
        return 0
    return 1 if found.value > 0 else -1


def _needed(found: Difference, p: float | None, cells: int = 1, alpha: float = ALPHA) -> Needed | None:
    """What would resolve it; None when it is resolved, hopeless, or cannot be guessed at all."""
    first, second = found.first.share, found.second.share
    if first is None or second is None or p is None or p <= ALPHA or first == second:
        return None
    needed = attempts_needed(first, second, alpha=alpha)
    if needed is None or cells == 1:
        return needed
    return Needed(-(-needed.n // cells) * cells, needed.power, needed.exact)


def _drifts(sides: Sides) -> Iterator[Drift]:
    """Each arm's cells, and its cells together, with Holm over all of them: in 5 % of steady storms one is told."""
    found: list[tuple[str, str | None, Halves]] = []
    seen = set()
    for letter, pick in (("A", 0), ("B", 1)):
        by_arm: dict[str, list[Halves]] = {}
        for one in sides.pairings:
            side = (one.old, one.new)[pick]
            if (letter if not sides.one else "", side.cell) in seen:
                continue
            seen.add((letter if not sides.one else "", side.cell))
            cut = halves(side.hits)
            if cut is not None:
                arm = one.arms[pick] if sides.one else f"{letter}, {one.arms[pick]},"
                found.append((arm, f"{one.scenario}, {side.cell.world},", cut))
                by_arm.setdefault(arm, []).append(cut)
        for arm, cuts in by_arm.items():
            if len(cuts) > 1:
                found.append((arm, None, _together(cuts)))
    for (arm, where, cut), adjusted in zip(found, holm([cut.p for _, _, cut in found]), strict=True):
        if adjusted is not None and adjusted <= ALPHA:
            yield Drift(arm, where, cut, adjusted)


def _together(cuts: Sequence[Halves]) -> Halves:
    p = stratified([(one.earlier, one.later) for one in cuts])
    earlier, later = (
        Rate(sum(rate.k for rate in side), sum(rate.n for rate in side))
        for side in ([one.earlier for one in cuts], [one.later for one in cuts])
    )
    return Halves(earlier, later, 1.0 if p is None else p)


def _warnings(sides: Sides) -> Iterator[str]:
    if not sides.one:
        yield (
            "two storms, run apart: what changed between them (the machine's load, the hour) is in the difference too; "
            "arms of one storm take turns"
        )
        apart = list(plan_differences(sides))
        if apart:
            yield "not the same storm: " + "; ".join(apart)
    elif not sides.took_turns:
        yield (
            "this storm ran cell after cell: what changed meanwhile (the machine's load, the hour) is in the "
            "difference too"
        )
    for artefact in dict.fromkeys((sides.old.folder, sides.new.folder)):
        if (artefact / FILE).exists():
            yield (
                "stopped early, or could have been (--until-resolved): the p and the intervals here do not allow for "
                f"that, the sequential test's own conclusion does ({conclusion_of(artefact) or FILE})"
            )
            break
    suspect = [one.cell.label for pair in sides.pairings for one in (pair.old, pair.new) if one.suspect]
    if suspect:
        yield f"{SUSPECT}, a control failed: {', '.join(dict.fromkeys(suspect))} left out"
    for what, word in (
        ("infra", "infra attempts are left out"),
        ("unjudged", "attempts are left out: no sweep could judge them"),
        ("flagged", "completed attempts without pressure, or vacuous, are counted as they came out"),
    ):
        counts = [sum(getattr(side, what) for side in sides_of) for sides_of in _columns(sides)]
        if any(counts):
            yield f"{counts[0]} + {counts[1]} {word} (old + new)"
    yield from sides.left


def _columns(sides: Sides) -> tuple[list[Any], list[Any]]:
    return [one.old for one in sides.pairings], [one.new for one in sides.pairings]


def _mirrored(one: Difference) -> Difference:
    value = None if one.value is None else -one.value
    return Difference(one.second, one.first, value, -one.hi, -one.lo)


def _short(rate: Rate) -> str:
    return f"{rate.k}/{rate.n}"


def _points(share: float) -> str:
    return str(round(100 * share))
