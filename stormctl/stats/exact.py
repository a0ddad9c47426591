"""Exact tests that two rates are equal.

* :func:`boschloo` for one table (Boschloo, Statistica Neerlandica 1970, 24:1-9): Fisher's one-sided p orders the
  tables, and the p is the largest probability, over every rate that both could share, of a table that is as extreme.
  It is never above Fisher's. The two-sided p is twice the smaller one, as scipy's.
* :func:`stratified` for several tables (Gart, Biometrika 1970, 57:471-475): the sum of the first column's hits, given
  the margins of each table. Rates may differ from table to table; the hypothesis is that each table's two are equal.

scipy has the first, and takes 25 s for two arms of 600 (a search whose every step sums all tables); here Fisher's order
makes each row's extreme tables one tail, so that it takes 0.3 s. The tests hold the two equal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from stormctl.stats.rates import Rate

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    Floats = NDArray[float64]

#: shared rates that are tried first, and then around the worst of them
_GRID, _FINER = 401, 41
#: tables so close to the observed one in Fisher's p are as extreme: mirrored ones differ in the last digits
_TIE = 1 + 1e-7
#: beyond this many tables Fisher's order needs too much memory; the conditional test is then as good
MOST_TABLES = 4_000_000


def boschloo(first: Rate, second: Rate) -> float | None:
    """The two-sided p that the two rates are equal; None when one was not measured.

    With more than four million possible tables (2,000 attempts each) it is Fisher's, which hardly differs there.
    """
    if not first.n or not second.n:
        return None
    if (first.n + 1) * (second.n + 1) > MOST_TABLES:
        return stratified([(first, second)])
    return min(1.0, 2 * min(one_sided(first, second), one_sided(second, first)))


def one_sided(first: Rate, second: Rate) -> float:
    """Boschloo's p against the alternative that the first rate is the larger one."""
    fisher = _fisher(first.n, second.n)
    return Region(first.n, second.n, float(fisher[first.k, second.k]) * _TIE).size()


class Region:
    """The tables of n1 and n2 whose one-sided Fisher p (the first rate is larger) is at most ``limit``."""

    def __init__(self, n1: int, n2: int, limit: float) -> None:
        import numpy as np

        self._n1, self._n2 = n1, n2
        # Fisher's p grows with k2 in a row of k1, so the row's tables are those below an end: counted, never listed.
        self._ends = np.sum(_fisher(n1, n2) <= limit, axis=1)

    def size(self) -> float:
        """The largest probability of the region when both rates are equal."""
        import numpy as np

        angles = np.linspace(0.0, math.pi / 2, _GRID)
        chances = self._chances(angles)
        best = int(np.argmax(chances))
        low, high = angles[max(best - 1, 0)], angles[min(best + 1, _GRID - 1)]
        return float(max(chances[best], self._chances(np.linspace(low, high, _FINER)).max()))

    def chance(self, p1: float, p2: float) -> float:
        """The probability of the region when the rates are p1 and p2: the power of the test that rejects there."""
        import numpy as np

        rows = _binomial(self._n1, np.array([p1]))
        below = np.cumsum(_binomial(self._n2, np.array([p2])), axis=1)
        return float(self._sum(rows, below)[0])

    def _chances(self, angles: Floats) -> Floats:
        import numpy as np

        shares = np.sin(angles) ** 2  # evenly spaced where a rate's spread is even
        rows = _binomial(self._n1, shares)
        below = np.cumsum(rows if self._n1 == self._n2 else _binomial(self._n2, shares), axis=1)
        return self._sum(rows, below)

    def _sum(self, rows: Floats, below: Floats) -> Floats:
        import numpy as np

        tails = np.hstack([np.zeros((len(below), 1)), below])[:, self._ends]
        return np.asarray(np.minimum(np.sum(rows * tails, axis=1), 1.0))


def region_of_level(n1: int, n2: int, level: float) -> Region:
    """The largest region of one-sided Boschloo whose size is at most ``level``."""
    import numpy as np

    limits = np.unique(_fisher(n1, n2))
    low, high = -1, len(limits)  # limits[low] keeps the level, limits[high] does not
    while high - low > 1:
        middle = (low + high) // 2
        if Region(n1, n2, float(limits[middle]) * _TIE).size() <= level:
            low = middle
        else:
            high = middle
    return Region(n1, n2, float(limits[low]) * _TIE if low >= 0 else -1.0)


def stratified(pairs: Iterable[tuple[Rate, Rate]]) -> float | None:
    """The two-sided p that in every pair the two rates are equal, by the hits of all first ones together.

    One pair: Fisher's exact test. None when no pair was measured on both sides. Two-sided: every sum that is no
    likelier than the observed one.
    """
    import numpy as np

    measured = [(first, second) for first, second in pairs if first.n and second.n]
    if not measured:
        return None
    chances, observed = np.ones(1), 0
    for first, second in measured:
        low, given = _hypergeometric(first, second)
        chances = np.convolve(chances, given)
        observed += first.k - low
    return float(min(1.0, chances[chances <= chances[observed] * _TIE].sum()))


def holm(values: Sequence[float | None]) -> list[float | None]:
    """The p values, adjusted for there being several (Holm, Scandinavian Journal of Statistics 1979, 6:65-70).

    Rejecting where the adjusted one is at most alpha keeps the chance of any false rejection at alpha. None stays.
    """
    known = sorted((value, index) for index, value in enumerate(values) if value is not None)
    adjusted: list[float | None] = [None] * len(values)
    worst = 0.0
    for rank, (value, index) in enumerate(known):
        worst = max(worst, min(1.0, (len(known) - rank) * value))
        adjusted[index] = worst
    return adjusted


def _hypergeometric(first: Rate, second: Rate) -> tuple[int, Any]:
    """The fewest hits that the first can have given the margins, and the probability of each number from there on."""
    import numpy as np

    hits = first.k + second.k
    low, high = max(0, hits - second.n), min(first.n, hits)
    logs = np.array([_log_choose(first.n, k) + _log_choose(second.n, hits - k) for k in range(low, high + 1)])
    weights = np.exp(logs - logs.max())
    return low, weights / weights.sum()


@lru_cache(maxsize=4)
def _fisher(n1: int, n2: int) -> Floats:
    """Fisher's one-sided p (the first rate is larger) of every table, by its hits k1 and k2."""
    import numpy as np

    hits = np.add.outer(np.arange(n1 + 1), np.arange(n2 + 1))
    found = np.exp(np.add.outer(_log_chooses(n1), _log_chooses(n2)) - _log_chooses(n1 + n2)[hits])
    for k1 in range(n1 - 1, -1, -1):  # with the same margins, and one hit more in the first
        found[k1, 1:] += found[k1 + 1, :-1]
    return np.asarray(found)


def _binomial(n: int, shares: Floats) -> Floats:
    """A row per share: the probability of each number of hits in n."""
    import numpy as np

    k = np.arange(n + 1)
    inside = np.clip(shares, 1e-300, 1 - 1e-16)[:, None]
    found = np.exp(_log_chooses(n) + k * np.log(inside) + (n - k) * np.log1p(-inside))
    found[shares <= 0.0] = k == 0
    found[shares >= 1.0] = k == n
    return np.asarray(found)


def _log_chooses(n: int) -> Floats:
    import numpy as np

    return np.array([_log_choose(n, k) for k in range(n + 1)])


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
