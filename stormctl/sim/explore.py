"""Trying many schedules of a model: how many, of how many classes, and what was found.

found = explore(Fork("mint"), "random", budget=Budget(runs=1_000), seed=7)
found.first.tape        # the first schedule that an oracle complained of
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from stormctl.errors import UsageError
from stormctl.sim.kernel import MOST_STEPS, Model
from stormctl.sim.pool import players
from stormctl.sim.strategies.base import Outcome, Strategy
from stormctl.sim.strategies.registry import strategy_for

#: schedules between two times that a strategy learns; equal however many processes there are
ROUND = 100


@dataclass(frozen=True, slots=True)
class Budget:
    """When to stop: after so many schedules, or after so many seconds. Only the first is the same on each machine."""

    runs: int | None = None
    seconds: float | None = None


@dataclass(slots=True)
class Violation:
    """What is wrong in one way: shown first by schedule number ``run`` (from 1), and by ``count`` of them.

    The tape and what is about it are of the schedule with the fewest preemptions and faults, then of the shortest; in
    ``Exploration.first`` of the first. ``model`` is an index into the models.
    """

    signature: str
    oracle: str
    text: str
    run: int
    model: int
    tape: tuple[int, ...]
    preemptions: int
    faults: int
    steps: int
    count: int = 1


@dataclass(slots=True)
class Counts:
    """What one strategy did: schedules, how many were the first of their class, and how many were abandoned."""

    runs: int = 0
    fresh: int = 0
    abandoned: int = 0

    @property
    def rate(self) -> float:
        """New classes per schedule."""
        return self.fresh / self.runs if self.runs else 0.0


@dataclass(slots=True)
class Exploration:
    """What came of it.

    ``choices`` is the highest number of choices in a schedule; ``exhausted`` says that there was nothing left to try;
    ``proved`` up to how many preemptions and faults every schedule was tried (-1: not even without any; None where the
    strategy does not go by them); ``stopped`` says why it ended: ``budget``, ``first``
    (violation), ``exhausted``, ``saturated`` (nothing new came any more) or ``done`` (all scripts were played).
    """

    models: list[str]
    strategy: str
    seed: int
    runs: int = 0
    steps: int = 0
    cut: int = 0
    choices: int = 0
    classes: int = 0
    violations: dict[str, Violation] = field(default_factory=dict)
    first: Violation | None = None
    by_strategy: dict[str, Counts] = field(default_factory=dict)
    exhausted: bool = False
    proved: int | None = None
    stopped: str = ""
    seconds: float = 0.0

    @property
    def verdict(self) -> str:
        """``violation``; ``vacuous`` where no schedule had a choice; ``inconclusive`` where one did not come to its end
        in as many turns as it may have; else ``pass``."""
        if self.violations:
            return "violation"
        if not self.choices:
            return "vacuous"
        return "inconclusive" if self.cut else "pass"

    @property
    def bad(self) -> int:
        """Schedules that something was wrong with, each counted once for each way."""
        return sum(violation.count for violation in self.violations.values())


def explore(
    model: Model | Sequence[Model],
    strategy: str | Strategy = "portfolio",
    *,
    budget: Budget,
    seed: int = 0,
    stop_at_first: bool = False,
    sought: str = "",
    jobs: int = 1,
    dask: str | None = None,
    most_steps: int = MOST_STEPS,
) -> Exploration:
    """Try schedules until the budget is used up or the strategy has none left.

    With a limit of schedules, the result for one seed is the same for any number of processes. Several models are
    explored by turns. ``stop_at_first`` stops at the first violation whose signature begins with ``sought``. UsageError
    for a strategy that there is none of, and for no limit at all where it is needed.
    """
    models = list(model) if isinstance(model, Sequence) else [model]
    if not models:
        raise UsageError("no model to explore", remedy="Name at least one scenario and one world.")
    if isinstance(strategy, str):
        strategy = strategy_for(strategy, seed=seed, models=len(models))
    found = Exploration([one.name for one in models], strategy.name, seed)
    if budget == Budget() and not hasattr(strategy, "exhausted"):
        raise UsageError(
            f"the strategy {strategy.name} never comes to an end", remedy="Give a number of schedules, or seconds."
        )
    began = time.monotonic()
    seen: set[tuple[int, int]] = set()  # asked for members only, never walked
    with players(models, most_steps, jobs, dask) as play:
        while not found.stopped:
            most = ROUND if budget.runs is None else min(ROUND, budget.runs - found.runs)
            if most <= 0:
                found.stopped = "budget"
                break
            tasks = strategy.ask(most)
            if not tasks:
                found.exhausted = bool(getattr(strategy, "exhausted", False))
                found.stopped = "exhausted" if found.exhausted else getattr(strategy, "ended", "saturated")
                break
            outcomes: list[Outcome] = []
            for outcome in play.play(tasks):
                outcomes.append(outcome)
                _count(found, outcome, seen)
                if stop_at_first and any(signature.startswith(sought) for signature in found.violations):
                    found.stopped = "first"
                    break
                if budget.seconds is not None and time.monotonic() - began >= budget.seconds:
                    found.stopped = "budget"
                    break
            strategy.learn(outcomes)
    found.classes = len(seen)
    found.proved = getattr(strategy, "proved", None)
    found.seconds = time.monotonic() - began
    return found


def _count(found: Exploration, outcome: Outcome, seen: set[tuple[int, int]]) -> None:
    counts = found.by_strategy.get(outcome.strategy)
    if counts is None:
        counts = found.by_strategy[outcome.strategy] = Counts()
    found.runs += 1
    counts.runs += 1
    if outcome.abandoned:
        counts.abandoned += 1
        return
    found.steps += outcome.steps
    found.cut += outcome.cut
    if outcome.choices > found.choices:
        found.choices = outcome.choices
    key = outcome.model, outcome.trace
    if key not in seen:
        seen.add(key)
        outcome.fresh = True
        counts.fresh += 1
    for signature, oracle, text in outcome.found:
        _violate(found, outcome, signature, oracle, text)


def _violate(found: Exploration, outcome: Outcome, signature: str, oracle: str, text: str) -> None:
    known = found.violations.get(signature)
    if known is None:
        known = found.violations[signature] = Violation(
            signature,
            oracle,
            text,
            found.runs,
            outcome.model,
            outcome.tape,
            outcome.preemptions,
            outcome.faults,
            outcome.steps,
        )
        if found.first is None:
            found.first = replace(known)
        return
    known.count += 1
    if _weight(outcome) < _weight(known):
        known.text, known.model, known.tape, known.steps = text, outcome.model, outcome.tape, outcome.steps
        known.preemptions, known.faults = outcome.preemptions, outcome.faults


def _weight(one: Outcome | Violation) -> tuple[int, int, tuple[int, ...]]:
    return one.preemptions + one.faults, one.steps, one.tape
