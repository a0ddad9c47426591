"""Stopping a storm once two of its arms are told apart: ``stormctl run --until-resolved A B``.

The driver asks after each landed attempt. Attempts are paired by number and scenario, and the pairs are taken in the
order in which they were planned, however they land: a corrupted run ends early, so the order of landing would favour
it. A pair whose attempt is infra says nothing and is passed over. Controls have no pairs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stormctl.errors import UnreadableInput, UsageError, suggest
from stormctl.stats.sequential import ALPHA, PairTest, Standing
from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.outcome import Counted, Outcome
from stormctl.storm.plan import AXES, Plan
from stormctl.workloads.registry import WORKLOADS

SCHEMA = "stormctl.until/1"
FILE = "until.json"
#: how often it is said where the test stands: about so many times in a storm
TOLD = 10


@dataclass(frozen=True, slots=True)
class Arms:
    """Two arms by the names that tables print, and what they are compared by."""

    first: str
    second: str
    counted: Counted = Counted.CORRUPTED
    alpha: float = ALPHA


def pair_name(cell: Cell) -> str:
    """``main + nets``: what most tables print for an arm."""
    return f"{cell.condition} + {cell.generation}"


def full_name(cells: Sequence[Cell], arm: str) -> str:
    """The name that tables print for an arm that is named by its condition or generation alone: ``main``.

    UsageError for a word that names none, or several.
    """
    if any(arm in (pair_name(cell), cell.arm) for cell in cells):
        return arm
    meant = list(dict.fromkeys(pair_name(cell) for cell in cells if arm in (cell.condition, cell.generation)))
    if len(meant) > 1:
        raise UsageError(f"{arm!r} is part of several arms", remedy=f"Name one whole: {', '.join(map(repr, meant))}.")
    return meant[0] if meant else pair_name(cells_of(cells, arm)[0])


def cells_of(cells: Sequence[Cell], arm: str) -> tuple[Cell, ...]:
    """The cells of an arm, which is named with its world (``local/main + nets``) or without. UsageError for none."""
    found = tuple(cell for cell in cells if arm in (pair_name(cell), cell.arm))
    if not found:
        names = dict.fromkeys(pair_name(cell) for cell in cells)
        raise UsageError(f"there is no arm {arm!r}", remedy=suggest(arm, names))
    return found


def narrowed(plan: Plan, arms: Arms) -> Plan:
    """The plan with the cells of the two arms alone, turn by turn. UsageError where they cannot be compared so."""
    if plan.target != "embedded":
        raise UsageError(
            f"the target {plan.target} runs cell after cell, and --until-resolved takes turns",
            remedy="Run the whole storm, and compare with stormctl diff.",
        )
    chosen = [cells_of(plan.cells, arm) for arm in (arms.first, arms.second)]
    if set(chosen[0]) & set(chosen[1]):
        raise UsageError(f"{arms.first!r} and {arms.second!r} share a cell", remedy="Name two different arms.")
    worlds = [tuple(dict.fromkeys(cell.world for cell in cells)) for cells in chosen]
    varied = AXES[2:] if worlds[0] == worlds[1] else AXES[1:]
    if varied == AXES[1:] and any(len(one) > 1 for one in worlds):
        raise UsageError(
            "one arm is on several worlds and the other is not", remedy="Name the world of both: local/main + nets."
        )
    pairs = tuple({axis: getattr(cells[0], axis) for axis in varied} for cells in chosen)
    scenarios = [{cell.scenario for cell in cells} for cells in chosen]
    axes = {
        "scenario": tuple(one for one in plan.scenarios if all(one in has for has in scenarios)),
        "world": worlds[0],
    }
    found = replace(plan, axes={axis: axes[axis] for axis in AXES if axis not in varied}, pairs=pairs)
    if not found.cells or set(found.cells) - set(plan.cells):
        raise UsageError(
            f"the plan does not run {arms.first!r} and {arms.second!r} in the same scenarios",
            remedy="Choose scenarios that it has for both: -P scenario=hook-storm.",
        )
    return found


#: each outcome as a participle
WORDS = {
    Counted.CORRUPTED: "corrupted",
    Counted.STUCK: "stuck",
    Counted.COMPLETED: "completed",
    Counted.ANY_FAILURE: "failed",
}


class Until:
    """The stopping rule of one storm whose plan has exactly the two arms' cells.

    ``earlier`` are the attempts of an earlier life of the storm.
    """

    def __init__(self, plan: Plan, arms: Arms, earlier: Sequence[Attempt] = ()) -> None:
        self.arms = arms
        first, second = (cells_of(plan.cells, arm) for arm in (arms.first, arms.second))
        self._pairs = list(_pairs(plan, first, second))
        if not self._pairs:
            raise UsageError("the plan has controls alone, which are not compared", remedy="Name another scenario.")
        self._test = PairTest(len(self._pairs), arms.alpha)
        self._hits: dict[tuple[Cell, int], bool | None] = {}
        self._next = self._left_out = 0
        self._told = 0
        for attempt in earlier:
            self.landed(attempt)

    @property
    def resolved(self) -> bool:
        """Whether the arms are told apart: no attempt need be started any more."""
        return self.standing.sign != 0

    @property
    def standing(self) -> Standing:
        """Where the test stands."""
        return self._test.standing

    def landed(self, attempt: Attempt) -> str | None:
        """Take in an attempt; a sentence when there is something to say."""
        was = self.resolved
        infra = attempt.outcome is Outcome.INFRA
        self._hits[attempt.cell, attempt.number] = None if infra else self.arms.counted.hit(attempt.outcome)
        while self._next < len(self._pairs) and not self.resolved:
            cells, number = self._pairs[self._next]
            slots = [(cell, number) for cell in cells]
            if not all(slot in self._hits for slot in slots):
                break
            self._next += 1
            first, second = (self._hits[slot] for slot in slots)
            if first is None or second is None:
                self._left_out += 1
            else:
                self._test.add(first, second)
        step = max(1, len(self._pairs) // TOLD)
        if self.resolved != was or (self._next // step > self._told and not self.resolved):
            self._told = self._next // step
            return self.conclusion if self.resolved else self.where
        return None

    @property
    def where(self) -> str:
        """Where the test stands, in words."""
        now = self.standing
        needed = f", {now.lead_needed} would tell them apart" if now.lead_needed is not None else ""
        return (
            f"pair {self._next} of {now.planned}: {self._split(now)}; "
            f"{'no lead' if not now.lead else f'a lead of {abs(now.lead)}'}{needed}"
        )

    @property
    def conclusion(self) -> str:
        """What the storm concluded, with the error rate that this has."""
        now, error = self.standing, f"{100 * self.arms.alpha:g} %"
        after = f"after {self._next} of {now.planned} pairs ({self._split(now)})"
        if self._left_out:
            after += f", {self._left_out} passed over as infra"
        if not now.sign:
            return f"not resolved {after}, at an error rate of {error}"
        more = self.arms.first if now.sign > 0 else self.arms.second
        return (
            f"resolved: {more} {verb(self.arms.counted, more=True)} {after}; "
            f"equal arms are called different in at most {error} of storms"
        )

    def row(self) -> dict[str, Any]:
        """What ``until.json`` keeps."""
        now = self.standing
        return {
            "schema": SCHEMA,
            "arms": [self.arms.first, self.arms.second],
            "outcome": str(self.arms.counted),
            "alpha": self.arms.alpha,
            "pairs": now.pairs,
            "planned": now.planned,
            "first_only": now.first_only,
            "second_only": now.second_only,
            "left_out": self._left_out,
            "more": {1: self.arms.first, -1: self.arms.second}.get(now.sign),
            "conclusion": self.conclusion,
        }

    def _split(self, now: Standing) -> str:
        word = WORDS[self.arms.counted]
        return f"{now.first_only} {word} under {self.arms.first} only, {now.second_only} under {self.arms.second} only"


def verb(counted: str, *, more: bool) -> str:
    """``corrupts more``, ``completes less often``: what an arm does."""
    word = "more" if more else "less"
    return {
        "corrupted": f"corrupts {word}",
        "stuck": f"gets stuck {word} often",
        "completed": f"completes {word} often",
        "any-failure": f"fails {word} often",
    }.get(counted, f"contradicts its log {word} often")


def read_until(folder: Path) -> Arms | None:
    """The arms that a storm was to tell apart, None when it was a plain one. UnreadableInput for a damaged file."""
    path = folder / FILE
    try:
        row = json.loads(path.read_text(encoding="utf-8"))
        if row["schema"] != SCHEMA:
            raise UnreadableInput(f"{path} has the schema {row['schema']!r}", remedy="Upgrade stormctl to read it.")
        first, second = row["arms"]
        return Arms(str(first), str(second), Counted(row["outcome"]), float(row["alpha"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        raise UnreadableInput(
            f"{path} is damaged", remedy="Remove it to go on to the end of the plan, without a stopping rule."
        ) from None


def conclusion_of(folder: Path) -> str:
    """What a storm's sequential test concluded when it was last heard of; empty for a plain storm or a damaged file."""
    try:
        said = json.loads((folder / FILE).read_text(encoding="utf-8"))["conclusion"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return said if isinstance(said, str) else ""


def _pairs(plan: Plan, first: Sequence[Cell], second: Sequence[Cell]) -> Iterator[tuple[tuple[Cell, Cell], int]]:
    """The pairs in the order in which turns are taken."""
    same_worlds = {cell.world for cell in first} == {cell.world for cell in second}
    partners = {(cell.scenario, cell.world if same_worlds else ""): cell for cell in second}
    matched = [
        (cell, partners[key])
        for cell in first
        for key in [(cell.scenario, cell.world if same_worlds else "")]
        if key in partners and not _is_control(cell.scenario)
    ]
    for number in range(1, plan.attempts + 1):
        for cells in matched:
            if number <= plan.attempts_of(cells[0]):
                yield cells, number


def _is_control(scenario: str) -> bool:
    known = WORKLOADS.get(scenario)
    return known is not None and known.control
