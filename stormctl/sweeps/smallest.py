"""The smallest perturbation that still does something: fewest knobs away from calm, then the smallest values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

from stormctl.engine.door import CALM, Perturbation
from stormctl.sweeps.ways import JITTERS, away, turned

#: replays that one search may cost
MOST_TRIES = 160
#: seeds that are tried for a smaller jitter, besides its own
_SEEDS = (0, 1, 2, 3)


class _Spent(Exception):
    """The search has used its replays up."""


class _Search:
    def __init__(self, does_it: Callable[[Perturbation], bool], start: Perturbation, most: int) -> None:
        self.best = start
        self.tries = 0
        self._does_it = does_it
        self._most = most

    def holds(self, candidate: Perturbation) -> bool:
        """Whether the candidate does it too; it is the best one then."""
        if self.tries >= self._most:
            raise _Spent
        self.tries += 1
        found = self._does_it(candidate)
        if found:
            self.best = candidate
        return found


def smallest(
    does_it: Callable[[Perturbation], bool], start: Perturbation, *, most: int = MOST_TRIES
) -> tuple[Perturbation, int]:
    """The smallest perturbation found, beginning at one that does it, and how many others were tried.

    Every set of its knobs is tried, small ones first; then each knob on its own is brought towards calm. When the tries
    run out the answer is the smallest so far.
    """
    search = _Search(does_it, start, most)
    try:
        _fewest_knobs(search)
        for knob in tuple(away(search.best)):
            _lower(search, knob)
    except _Spent:
        pass
    return search.best, search.tries


def _fewest_knobs(search: _Search) -> None:
    start = search.best
    knobs = away(start)
    for size in range(1, len(knobs)):
        for chosen in combinations(knobs, size):
            if search.holds(turned({knob: knobs[knob] for knob in chosen}, seed=start.seed)):
                return


def _lower(search: _Search, knob: str) -> None:
    """Bring one knob towards calm: the nearest of a few values that does it, then what lies just below that one."""
    failed = getattr(CALM, knob)
    for value in _nearer(knob, getattr(search.best, knob)):
        if _with(search, knob, value):
            break
        failed = value
    if not isinstance(failed, (int, float)):
        return
    while abs(getattr(search.best, knob) - failed) > 1 and knob != "hydration_hops":
        middle = type(failed)((failed + getattr(search.best, knob)) // 2)
        if not _with(search, knob, middle):
            failed = middle


def _with(search: _Search, knob: str, value: Any) -> bool:
    best = search.best
    seeds = dict.fromkeys((*_SEEDS, best.seed)) if knob in JITTERS else (best.seed,)
    return any(search.holds(replace(best, **{knob: value}, seed=seed)) for seed in seeds)


def _nearer(knob: str, value: Any) -> Iterator[Any]:
    """Values between calm and this one, nearest to calm first, and in the end the value itself for a jitter, whose seed
    may still become smaller."""
    calm = getattr(CALM, knob)
    if isinstance(calm, str):
        return
    steps: list[Any] = [1, 2]
    while steps[-1] < abs(value - calm):
        steps.append(steps[-1] + steps[-2])
    sides: tuple[int, ...] = (1,)
    if knob == "hydration_hops":  # the one that has two sides of calm; there are few values
        sides, steps = (-1, 1), list(range(1, abs(value - calm)))
    for step in steps:
        for side in sides:
            nearer = type(calm)(calm + side * step)
            if step < abs(value - calm) and nearer >= 1:
                yield nearer
    if knob in JITTERS:
        yield value
