"""How many attempts a comparison needs: exact sums, simulation, and the textbook's formula for large numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, boschloo_exact

from stormctl.stats import Rate, attempts_needed, boschloo, halves, power_of


def by_scipy(n: int, p1: float, p2: float) -> float:
    """The power of scipy's Boschloo test: its p for every table with the first rate the larger one."""
    rejected = [
        (k1, k2)
        for k1 in range(n + 1)
        for k2 in range(k1)
        if boschloo_exact([[k1, k2], [n - k1, n - k2]]).pvalue <= 0.05
    ]
    return float(sum(binom.pmf(k1, n, p1) * binom.pmf(k2, n, p2) for k1, k2 in rejected))


@pytest.mark.parametrize(("n", "p1", "p2"), [(6, 0.9, 0.1), (10, 0.8, 0.2)])
def test_the_power_is_the_sum_over_all_tables_that_are_rejected(n: int, p1: float, p2: float) -> None:
    assert power_of(n, p1, p2) == pytest.approx(by_scipy(n, p1, p2), abs=1e-9)


def test_eighty_percent_against_twenty_needs_ten_each() -> None:
    needed = attempts_needed(0.8, 0.2)
    assert needed is not None
    assert (needed.n, needed.exact) == (10, True)
    assert needed.power == pytest.approx(0.805, abs=5e-4)
    assert power_of(9, 0.8, 0.2) < 0.8


def test_storms_with_that_many_attempts_find_it_that_often() -> None:
    draw = np.random.default_rng(8)
    needed = attempts_needed(0.7, 0.3)
    assert needed is not None
    n = needed.n
    told = np.array(
        [[a > b and (boschloo(Rate(a, n), Rate(b, n)) or 0) <= 0.05 for b in range(n + 1)] for a in range(n + 1)]
    )
    found = told[draw.binomial(n, 0.7, 20_000), draw.binomial(n, 0.3, 20_000)].mean()
    assert found == pytest.approx(needed.power, abs=0.01)
    assert 0.8 <= needed.power < 0.85


def test_large_numbers_are_the_textbooks() -> None:
    """Fleiss 1981, without his correction: 0.02 against 0.05 takes 588 each; 0.25 against 0.20 takes 1,094."""
    small, large = attempts_needed(0.05, 0.02), attempts_needed(0.25, 0.20)
    assert small is not None
    assert large is not None
    assert (small.n, small.exact) == (588, False)
    assert (large.n, large.exact) == (1094, False)
    assert small.power == pytest.approx(0.8, abs=0.002)


def test_the_formula_goes_on_where_the_sums_end() -> None:
    below, above = attempts_needed(0.5, 0.355), attempts_needed(0.5, 0.36)
    assert below is not None
    assert above is not None
    assert below.exact
    assert not above.exact
    assert below.n <= above.n <= 1.15 * below.n


def test_what_takes_more_than_a_plan_can_hold_is_none() -> None:
    assert attempts_needed(0.2, 0.21) is None
    assert attempts_needed(0.3, 0.3) is None


@given(st.floats(0.0, 0.7), st.floats(0.25, 0.6), st.sampled_from([0.5, 0.8, 0.9]))
@settings(max_examples=12, deadline=None)
def test_the_direction_does_not_matter_and_a_wider_gap_needs_no_more(low: float, gap: float, power: float) -> None:
    high = min(1.0, low + gap)
    needed, back = attempts_needed(low, high, power), attempts_needed(high, low, power)
    mirrored = attempts_needed(1 - low, 1 - high, power)
    assert needed is not None
    assert back == needed
    assert mirrored is not None
    assert abs(mirrored.n - needed.n) <= 1
    wider = attempts_needed(low, min(1.0, high + 0.1), power)
    assert wider is not None
    assert wider.n <= needed.n
    assert needed.power >= power


@pytest.mark.parametrize(
    ("p1", "p2", "power", "alpha"),
    [(1.2, 0.1, 0.8, 0.05), (0.5, 0.1, 1.0, 0.05), (0.5, 0.1, 0.03, 0.05), (0.5, 0.1, 0.8, 0.0)],
)
def test_what_cannot_be_planned_is_refused(p1: float, p2: float, power: float, alpha: float) -> None:
    with pytest.raises(ValueError):
        attempts_needed(p1, p2, power, alpha)


class TestDrift:
    def test_a_rate_that_fell_while_the_storm_ran_disagrees_with_itself(self) -> None:
        cut = halves([True] * 10 + [False] * 2 + [False] * 11 + [True])
        assert cut is not None
        assert (str(cut.earlier), str(cut.later)) == ("10/12 (83 %, 55 to 95)", "1/12 (8 %, 1 to 35)")
        assert cut.p == pytest.approx(boschloo_exact([[10, 1], [2, 11]]).pvalue, rel=1e-4)

    def test_the_same_attempts_evenly_spread_do_not(self) -> None:
        cut = halves([True, False] * 12)
        assert cut is not None
        assert cut.p > 0.9

    def test_the_middle_one_of_an_odd_number_is_a_later_one(self) -> None:
        cut = halves([True] * 3 + [False] * 4)
        assert cut is not None
        assert (cut.earlier.n, cut.later.n) == (3, 4)

    def test_a_handful_says_nothing(self) -> None:
        assert halves([True] * 5) is None
        assert halves([]) is None
