"""How many attempts a comparison needs, and how long a plan takes for them: ``stormctl plan-size``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from stormctl.report.load import Artefact
from stormctl.stats import Expected, Needed, attempts_needed, expected
from stormctl.storm.attempt import Cell
from stormctl.storm.describe import clock
from stormctl.storm.outcome import Outcome
from stormctl.storm.plan import Plan
from stormctl.storm.planfile import format_duration

SCHEMA = "stormctl.plan-size/1"
#: a sequential test of as much power may need so many more pairs at most, and fewer on average
ROOM = 1.4
#: beyond this many pairs simulating the sequential test takes too long
MOST_SIMULATED = 300


@dataclass(frozen=True, slots=True)
class Duration:
    """How long a plan takes with the attempts needed. ``known`` cells' durations were measured by an earlier storm,
    the others' are their cap, which is the most that they can take."""

    ms: float
    cells: int
    known: int
    attempts: int
    budget_ms: float


@dataclass(frozen=True, slots=True)
class Size:
    """What a comparison of two rates needs. ``needed`` is None when it needs more than 10,000 attempts each.

    ``bound`` pairs are what to allow the sequential test, ``sequential`` what it then comes to in simulated storms.
    """

    first: float
    second: float
    power: float
    alpha: float
    needed: Needed | None
    bound: int | None = None
    sequential: Expected | None = None
    duration: Duration | None = None

    def lines(self) -> Iterator[str]:
        """The answer as plain text."""
        what = f"{_percent(self.first)} from {_percent(self.second)}"
        if self.needed is None:
            yield f"more than 10,000 attempts in each arm would be needed to tell {what}"
            return
        n, how = self.needed.n, "summed over all tables" if self.needed.exact else "by the normal formula"
        yield (
            f"{n} attempts in each arm ({2 * n} in all) tell {what} in {_percent(self.needed.power)} of storms, "
            f"at alpha {self.alpha:g} (Boschloo's exact test, two-sided; {how})"
        )
        if self.bound is not None and self.sequential is not None:
            yield (
                f"with run --until-resolved and attempts: {self.bound}, {_percent(self.sequential.resolved)} of "
                f"{self.sequential.storms} simulated storms told them apart, after {self.sequential.pairs:.0f} pairs "
                "on average"
            )
        if self.duration is not None:
            yield from _times(self.duration)

    def row(self) -> dict[str, Any]:
        """The answer as JSON values."""
        needed, seen, took = self.needed, self.sequential, self.duration
        return {
            "schema": SCHEMA,
            "from": self.first,
            "to": self.second,
            "power_wanted": self.power,
            "alpha": self.alpha,
            "attempts": None if needed is None else needed.n,
            "power": None if needed is None else needed.power,
            "exact": None if needed is None else needed.exact,
            "until_resolved": None
            if seen is None
            else {"attempts": self.bound, "resolved": seen.resolved, "mean_pairs": seen.pairs},
            "duration": None
            if took is None
            else {
                "ms": round(took.ms),
                "attempts": took.attempts,
                "cells": took.cells,
                "cells_measured": took.known,
                "beyond_budget": took.ms > took.budget_ms,
            },
        }


def plan_size(
    first: float, second: float, power: float, alpha: float, plan: Plan | None = None, earlier: Artefact | None = None
) -> Size:
    """How many attempts tell the two rates apart, and how long the plan takes for them."""
    needed = attempts_needed(first, second, power, alpha)
    if needed is None:
        return Size(first, second, power, alpha, None)
    bound = math.ceil(ROOM * needed.n)
    seen = expected(first, second, bound, alpha) if bound <= MOST_SIMULATED else None
    took = None if plan is None else _duration(plan, needed.n, earlier)
    return Size(first, second, power, alpha, needed, bound, seen, took)


def _duration(plan: Plan, attempts: int, earlier: Artefact | None) -> Duration:
    cap = plan.cap_ms * plan.time_scale
    known: dict[Cell, list[float]] = {}
    for one in () if earlier is None else earlier.attempts:
        if one.outcome is not Outcome.INFRA:
            known.setdefault(one.cell, []).append(one.duration_ms)
    total = sum(attempts * (fmean(known[cell]) if cell in known else cap) for cell in plan.cells)
    measured = sum(cell in known for cell in plan.cells)
    return Duration(total / plan.concurrency, len(plan.cells), measured, attempts * len(plan.cells), plan.budget_ms)


def _times(took: Duration) -> Iterator[str]:
    if took.known == took.cells:
        how = "by the durations of an earlier storm"
    elif took.known:
        how = f"{took.known} cells by an earlier storm, the others by their cap, at most"
    else:
        how = "at most, by the cap of each run: no earlier storm tells more"
    yield (
        f"the plan's {took.cells} cell{'s' if took.cells != 1 else ''} take {took.attempts} attempts: "
        f"about {clock(took.ms)} ({how})"
    )
    if took.ms > took.budget_ms:
        yield (
            f"its budget of {format_duration(took.budget_ms)} would end it before: "
            f"-P budget={math.ceil(1.2 * took.ms / 60_000)}m"
        )


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
