"""How many attempts a comparison needs.

For up to 200 attempts the power of Boschloo's test is summed over all tables; beyond, it is the textbook's (Fleiss,
Statistical Methods for Rates and Proportions 1981, 3.2, without the correction for continuity, which Boschloo's test
does not need).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

from stormctl.stats.exact import region_of_level

ALPHA, POWER = 0.05, 0.8
#: the largest number of attempts whose power is summed exactly
MOST_EXACT = 200
#: what is not worth planning: the largest number of attempts that a plan takes
MOST = 10_000


@dataclass(frozen=True, slots=True)
class Needed:
    """``n`` attempts in each arm find the difference with a chance of ``power``; ``exact`` when it was summed."""

    n: int
    power: float
    exact: bool


@lru_cache(maxsize=64)
def attempts_needed(p1: float, p2: float, power: float = POWER, alpha: float = ALPHA) -> Needed | None:
    """The attempts in each arm with which Boschloo's two-sided test at ``alpha`` tells p1 from p2.

    None when more than 10,000 would be needed, or the two are equal. ValueError for what is no probability, or a power
    that even no test at all would have.
    """
    if not (0 <= p1 <= 1 and 0 <= p2 <= 1):
        raise ValueError(f"{p1} and {p2} are not both rates from 0 to 1")
    if not 0 < alpha <= 0.5 or not alpha < power < 1:
        raise ValueError(f"a power of {power} at alpha {alpha} cannot be planned")
    if p1 == p2:
        return None
    high, low = max(p1, p2), min(p1, p2)
    about = _formula(high, low, power, alpha)
    if about > MOST:
        return None
    if about <= MOST_EXACT:
        found = _exact(high, low, power, alpha, about)
        if found is not None:
            return found
    return Needed(about, _normal_power(about, high, low, alpha), exact=False)


def power_of(n: int, p1: float, p2: float, alpha: float = ALPHA) -> float:
    """The chance that Boschloo's two-sided test at ``alpha`` finds the larger rate to be larger, with n in each arm."""
    if n > MOST_EXACT:
        return _normal_power(n, max(p1, p2), min(p1, p2), alpha)
    return region_of_level(n, n, alpha / 2).chance(max(p1, p2), min(p1, p2))


def _exact(high: float, low: float, power: float, alpha: float, about: int) -> Needed | None:
    """The smallest n from which on the power suffices: it does not grow with every single attempt."""
    n = about
    while n <= MOST_EXACT and (found := power_of(n, high, low, alpha)) < power:
        n += max(1, n // 20)
    if n > MOST_EXACT:
        return None
    while n > 1 and (fewer := power_of(n - 1, high, low, alpha)) >= power:
        n, found = n - 1, fewer
    return Needed(n, found, exact=True)


def _formula(high: float, low: float, power: float, alpha: float) -> int:
    normal = NormalDist()
    mean = (high + low) / 2
    under = normal.inv_cdf(1 - alpha / 2) * math.sqrt(2 * mean * (1 - mean))
    apart = normal.inv_cdf(power) * math.sqrt(high * (1 - high) + low * (1 - low))
    return max(1, math.ceil(((under + apart) / (high - low)) ** 2))


def _normal_power(n: int, high: float, low: float, alpha: float) -> float:
    normal = NormalDist()
    mean = (high + low) / 2
    under = normal.inv_cdf(1 - alpha / 2) * math.sqrt(2 * mean * (1 - mean))
    spread = math.sqrt(high * (1 - high) + low * (1 - low))
    gap = (high - low) * math.sqrt(n) - under
    return normal.cdf(gap / spread) if spread else float(gap > 0)
