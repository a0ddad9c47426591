"""A rate, never without its interval.

The interval is Wilson's score interval (Wilson 1927; recommended for small n by Brown, Cai and DasGupta 2001): it stays
inside 0..1 and says something at 0 of n, where the usual one has no width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

#: The two-sided 95 % quantile of the normal distribution.
Z95 = 1.959963984540054


def wilson(k: int, n: int, z: float = Z95) -> tuple[float, float]:
    """The Wilson interval of k of n. With n = 0 nothing is known: 0 to 1."""
    if not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is not a rate")
    if n == 0:
        return 0.0, 1.0
    share, weight = k / n, z * z / n
    centre = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * math.sqrt(share * (1 - share) / n + weight / (4 * n))
    low = 0.0 if k == 0 else max(0.0, centre - half)
    high = 1.0 if k == n else min(1.0, centre + half)
    return low, high


@dataclass(frozen=True, slots=True)
class Rate:
    """``k`` of ``n``. ValueError when k is not in 0..n."""

    k: int
    n: int

    def __post_init__(self) -> None:
        wilson(self.k, self.n)

    @property
    def share(self) -> float | None:
        """k / n, or None when nothing was measured."""
        return self.k / self.n if self.n else None

    @property
    def lo(self) -> float:
        """The lower end of the 95 % Wilson interval."""
        return wilson(self.k, self.n)[0]

    @property
    def hi(self) -> float:
        """The upper end of the 95 % Wilson interval."""
        return wilson(self.k, self.n)[1]

    def __str__(self) -> str:
        """``20/24 (83 %, 64 to 93)``: the share and its interval in whole percent."""
        if self.share is None:
            return "0/0 (not measured)"
        return f"{self.k}/{self.n} ({100 * self.share:.0f} %, {100 * self.lo:.0f} to {100 * self.hi:.0f})"
