"""Percentiles of durations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Percentiles:
    """The usual percentiles of n durations, in the unit that they were given in; NaN when n is 0."""

    n: int
    p50: float
    p90: float
    p95: float
    p99: float
    max: float


def percentile(ordered: Sequence[float], share: float) -> float:
    """The percentile of ascending values, by linear interpolation between the two nearest (numpy's default)."""
    if not ordered:
        return math.nan
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def percentiles(values: Iterable[float]) -> Percentiles:
    """p50, p90, p95, p99 and the maximum. With few values the high ones are close to the maximum, so n is kept."""
    ordered = sorted(values)
    p50, p90, p95, p99 = (percentile(ordered, share) for share in (0.50, 0.90, 0.95, 0.99))
    return Percentiles(len(ordered), p50, p90, p95, p99, ordered[-1] if ordered else math.nan)
