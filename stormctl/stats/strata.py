"""The difference of two rates over several cells, each of which may have rates of its own.

The cells' differences are weighted by n1 n2 / (n1 + n2), as Mantel and Haenszel do, and the interval holds all
differences that the score test of Miettinen and Nurminen (1985) with these weights does not reject. Sums over the cells
would mix what the arms do with how many attempts each cell happened to get (Simpson's paradox).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from stormctl.stats.compare import Difference, restricted
from stormctl.stats.rates import Z95, Rate


def stratified_difference(pairs: Sequence[tuple[Rate, Rate]], z: float = Z95) -> Difference:
    """How much larger the first rates are than the second. ``first`` and ``second`` of it are the sums.

    Pairs that were not measured on both sides are left out; with none left the value is None. One pair gives the same
    as :func:`stormctl.stats.compare.difference`.
    """
    used = [(first, second) for first, second in pairs if first.n and second.n]
    sums = tuple(Rate(sum(rate.k for rate in side), sum(rate.n for rate in side)) for side in zip(*used, strict=True))
    if not used:
        return Difference(Rate(0, 0), Rate(0, 0), None, -1.0, 1.0)
    weights = [first.n * second.n / (first.n + second.n) for first, second in used]
    total = math.fsum(weights)
    shares = [
        weight * (first.k / first.n - second.k / second.n)
        for weight, (first, second) in zip(weights, used, strict=True)
    ]
    value = min(1.0, max(-1.0, math.fsum(shares) / total))

    def score(delta: float) -> float:
        variance = math.fsum(
            weight * weight * _variance(first, second, delta)
            for weight, (first, second) in zip(weights, used, strict=True)
        )
        gap = (value - delta) * total
        if variance <= 0:
            return 0.0 if abs(gap) < 1e-12 else math.copysign(math.inf, gap)
        return gap / math.sqrt(variance)

    def crossing(level: float, low: float, high: float) -> float:
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if score(middle) > level else (low, middle)
        return (low + high) / 2

    low = -1.0 if score(-1.0) <= z else crossing(z, -1.0, value)
    high = 1.0 if score(1.0) >= -z else crossing(-z, value, 1.0)
    return Difference(sums[0], sums[1], value, low, high)


def _variance(first: Rate, second: Rate, delta: float) -> float:
    """Of a cell's difference, were its true one ``delta``."""
    total = first.n + second.n
    p1, p2 = restricted(first, second, delta)
    return (p1 * (1 - p1) / first.n + p2 * (1 - p2) / second.n) * total / (total - 1)
