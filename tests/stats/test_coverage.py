"""How often the printed interval holds the true rate, and the interval of a difference the true difference."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from stormctl.stats import Rate, difference, stratified_difference, wilson

STORMS, N = 10_000, 24
SHARES = np.round(np.arange(0.05, 0.951, 0.01), 2)


def test_the_printed_interval_holds_the_rate_in_95_percent_of_storms_on_average() -> None:
    """10,000 simulated storms of 24 attempts at each rate, and the same summed exactly."""
    draw = np.random.default_rng(24)
    ends = np.array([wilson(k, N) for k in range(N + 1)])
    simulated, summed = [], []
    for share in SHARES:
        held = (ends[:, 0] <= share) & (share <= ends[:, 1])
        simulated.append(held[draw.binomial(N, share, STORMS)].mean())
        summed.append(binom.pmf(np.arange(N + 1), N, share)[held].sum())
    assert 0.945 <= np.mean(simulated) <= 0.96
    assert 0.945 <= np.mean(summed) <= 0.96
    assert np.abs(np.array(simulated) - np.array(summed)).max() < 5 * np.sqrt(0.05 * 0.95 / STORMS)
    assert min(summed) > 0.90  # at its worst rate


def test_the_textbook_interval_would_not() -> None:
    """The twin: Wald's interval, which most tools print, holds the rate far less often."""
    shares = np.arange(N + 1) / N
    half = 1.96 * np.sqrt(shares * (1 - shares) / N)
    held = [
        binom.pmf(np.arange(N + 1), N, share)[(shares - half <= share) & (share <= shares + half)].sum()
        for share in SHARES
    ]
    assert np.mean(held) < 0.945
    assert min(held) < 0.75


@pytest.mark.parametrize(("n1", "n2"), [(12, 12), (8, 16)])
def test_the_interval_of_a_difference_holds_it_in_95_percent_of_storms_on_average(n1: int, n2: int) -> None:
    ends = {(k1, k2): difference(Rate(k1, n1), Rate(k2, n2)) for k1 in range(n1 + 1) for k2 in range(n2 + 1)}
    lows = np.array([[ends[k1, k2].lo for k2 in range(n2 + 1)] for k1 in range(n1 + 1)])
    highs = np.array([[ends[k1, k2].hi for k2 in range(n2 + 1)] for k1 in range(n1 + 1)])
    covered = []
    for p1 in np.linspace(0.05, 0.95, 13):
        for p2 in np.linspace(0.05, 0.95, 13):
            chances = np.outer(binom.pmf(range(n1 + 1), n1, p1), binom.pmf(range(n2 + 1), n2, p2))
            covered.append(chances[(lows <= p1 - p2 + 1e-12) & (p1 - p2 <= highs + 1e-12)].sum())
    assert 0.94 <= np.mean(covered) <= 0.97
    assert min(covered) > 0.88


def test_the_interval_over_cells_holds_the_common_difference() -> None:
    """Two cells whose rates are far apart and whose arms differ by 20 points in both: 500 simulated storms."""
    draw = np.random.default_rng(8)
    held = 0
    for _ in range(500):
        k = draw.binomial([16, 10, 12, 18], [0.9, 0.7, 0.3, 0.1])
        found = stratified_difference(
            [(Rate(int(k[0]), 16), Rate(int(k[1]), 10)), (Rate(int(k[2]), 12), Rate(int(k[3]), 18))]
        )
        held += found.lo <= 0.2 <= found.hi
    assert 0.92 <= held / 500 <= 0.98
