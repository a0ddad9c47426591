"""The difference of two rates, with its interval.

The interval is that of Miettinen and Nurminen (Statistics in Medicine 1985, 4:213-226): all differences that their
score test does not reject. It holds its level for the few attempts of a storm and at 0 of n, where the textbook
interval does not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from stormctl.stats.rates import Z95, Rate


@dataclass(frozen=True, slots=True)
class Difference:
    """``first`` minus ``second`` in shares (-1..1), with the 95 % interval ``lo`` to ``hi``.

    ``value`` is None, and the interval all of -1..1, when one of the two was not measured.
    """

    first: Rate
    second: Rate
    value: float | None
    lo: float
    hi: float

    @property
    def sign(self) -> int:
        """1 or -1 when the interval lies wholly on that side of zero, else 0: the two are not told apart."""
        return 1 if self.lo > 0 else -1 if self.hi < 0 else 0

    def __str__(self) -> str:
        """``+75 points (52 to 88)``, in whole percentage points."""
        if self.value is None:
            return "not measured"
        return f"{_points(self.value, sign=True)} points ({_points(self.lo)} to {_points(self.hi)})"


def difference(first: Rate, second: Rate, z: float = Z95) -> Difference:
    """How much larger the first rate is than the second."""
    if first.share is None or second.share is None:
        return Difference(first, second, None, -1.0, 1.0)
    value = first.share - second.share
    # The score falls as delta grows: +z is crossed below the estimate and -z above it.
    low = _crossing(first, second, z, -1.0, value)
    high = _crossing(first, second, -z, value, 1.0)
    return Difference(first, second, value, low, high)


def _points(share: float, *, sign: bool = False) -> str:
    whole = round(100 * share)
    return f"{whole:+d}" if sign else str(whole)


def _crossing(first: Rate, second: Rate, level: float, low: float, high: float) -> float:
    """Where the score passes ``level`` between low and high; the outer end when it never does."""
    if level > 0 and _score(first, second, low) <= level:
        return low
    if level < 0 and _score(first, second, high) >= level:
        return high
    for _ in range(60):
        middle = (low + high) / 2
        if _score(first, second, middle) > level:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _score(first: Rate, second: Rate, delta: float) -> float:
    """The score of the hypothesis that the shares differ by ``delta``."""
    total = first.n + second.n
    p1, p2 = restricted(first, second, delta)
    variance = (p1 * (1 - p1) / first.n + p2 * (1 - p2) / second.n) * total / (total - 1)
    gap = first.k / first.n - second.k / second.n - delta
    if variance <= 0:
        return 0.0 if abs(gap) < 1e-12 else math.copysign(math.inf, gap)
    return gap / math.sqrt(variance)


def restricted(first: Rate, second: Rate, delta: float) -> tuple[float, float]:
    """The likeliest two shares that differ by exactly ``delta``: a root of the likelihood's cubic (appendix I)."""
    n1, n2, k1, k2 = first.n, second.n, first.k, second.k
    total = n1 + n2
    a = float(total)
    b = (n1 + 2 * n2) * delta - total - (k1 + k2)
    c = (n2 * delta - total - 2 * k2) * delta + k1 + k2
    d = k2 * delta * (1 - delta)
    v = (b / (3 * a)) ** 3 - b * c / (6 * a * a) + d / (2 * a)
    u = math.copysign(math.sqrt(max((b / (3 * a)) ** 2 - c / (3 * a), 0.0)), v)
    cosine = max(-1.0, min(1.0, v / u**3)) if u else 0.0
    p2 = 2 * u * math.cos((math.pi + math.acos(cosine)) / 3) - b / (3 * a)
    p2 = max(0.0, -delta, min(1.0, 1.0 - delta, p2))
    return min(1.0, max(0.0, p2 + delta)), p2
