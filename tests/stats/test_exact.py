"""Exact tests, against published values, scipy's own, and sums over all tables."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binom, boschloo_exact, fisher_exact, hypergeom

from stormctl.stats import Rate, boschloo, holm, stratified
from stormctl.stats.exact import one_sided, region_of_level

small = st.integers(1, 14).flatmap(lambda n: st.builds(Rate, st.integers(0, n), st.just(n)))
measured = st.integers(1, 60).flatmap(lambda n: st.builds(Rate, st.integers(0, n), st.just(n)))


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [
        # Mehta and Senchaudhuri, Conditional versus unconditional exact tests for comparing two binomials, 2003
        (Rate(12, 15), Rate(7, 15), 0.0341),
        # the example of scipy.stats.boschloo_exact
        (Rate(74, 117), Rate(31, 63), 0.0356),
    ],
)
def test_the_one_sided_p_is_the_published_one(first: Rate, second: Rate, p: float) -> None:
    assert one_sided(first, second) == pytest.approx(p, abs=5e-5)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Rate(20, 24), Rate(2, 24)),
        (Rate(3, 14), Rate(5, 14)),
        (Rate(0, 8), Rate(6, 8)),
        (Rate(0, 10), Rate(10, 10)),
        (Rate(5, 56), Rate(0, 29)),
        (Rate(8, 18), Rate(0, 18)),
        (Rate(1, 3), Rate(40, 60)),
        (Rate(24, 24), Rate(24, 24)),
        (Rate(0, 7), Rate(0, 19)),
    ],
)
def test_it_is_scipys(first: Rate, second: Rate) -> None:
    table = [[first.k, second.k], [first.n - first.k, second.n - second.k]]
    assert boschloo(first, second) == pytest.approx(boschloo_exact(table, n=64).pvalue, rel=2e-4, abs=1e-12)


def by_all_tables(first: Rate, second: Rate) -> float:
    """Boschloo's one-sided p as its definition has it: Fisher's p of every table, and a fine grid of shared rates."""

    def fisher(k1: int, k2: int) -> float:
        return float(hypergeom.sf(k1 - 1, first.n + second.n, k1 + k2, first.n))

    limit = fisher(first.k, second.k) * (1 + 1e-9)
    extreme = [(k1, k2) for k1, k2 in product(range(first.n + 1), range(second.n + 1)) if fisher(k1, k2) <= limit]
    shares = np.linspace(0, 1, 2001)
    rows = binom.pmf(np.arange(first.n + 1)[:, None], first.n, shares)
    columns = binom.pmf(np.arange(second.n + 1)[:, None], second.n, shares)
    return float(sum(rows[k1] * columns[k2] for k1, k2 in extreme).max())


@given(small, small)
@settings(max_examples=25, deadline=None)
def test_it_is_the_sum_over_all_tables_as_extreme(first: Rate, second: Rate) -> None:
    assert one_sided(first, second) == pytest.approx(by_all_tables(first, second), rel=1e-4)


@given(measured, measured)
@settings(max_examples=40, deadline=None)
def test_it_rejects_whatever_fisher_rejects(first: Rate, second: Rate) -> None:
    table = [[first.k, second.k], [first.n - first.k, second.n - second.k]]
    assert one_sided(first, second) <= fisher_exact(table, alternative="greater").pvalue * (1 + 1e-6)


@given(measured, measured)
@settings(max_examples=40, deadline=None)
def test_neither_the_order_of_the_arms_nor_what_is_counted_changes_it(first: Rate, second: Rate) -> None:
    p = boschloo(first, second)
    assert p is not None
    assert boschloo(second, first) == pytest.approx(p, rel=1e-6)
    others = (Rate(first.n - first.k, first.n), Rate(second.n - second.k, second.n))
    assert boschloo(*others) == pytest.approx(p, rel=1e-3)


@given(measured, measured)
@settings(max_examples=40, deadline=None)
def test_a_wider_gap_is_never_less_sure(first: Rate, second: Rate) -> None:
    assume(first.k < first.n)
    wider = Rate(first.k + 1, first.n)
    assert one_sided(wider, second) <= one_sided(first, second) * (1 + 1e-6)


@pytest.mark.parametrize(("n1", "n2"), [(8, 8), (24, 24), (6, 18)])
def test_equal_arms_are_called_different_in_at_most_five_percent_of_storms(n1: int, n2: int) -> None:
    """Summed over all tables, for every shared rate: no simulation, no exception."""
    rejected = np.array(
        [[(boschloo(Rate(k1, n1), Rate(k2, n2)) or 0) <= 0.05 for k2 in range(n2 + 1)] for k1 in range(n1 + 1)]
    )
    worst = 0.0
    for share in np.linspace(0.01, 0.99, 99):
        chances = np.outer(binom.pmf(range(n1 + 1), n1, share), binom.pmf(range(n2 + 1), n2, share))
        worst = max(worst, float(chances[rejected].sum()))
    assert 0.02 < worst <= 0.05


def test_two_arms_of_six_hundred_take_no_half_minute() -> None:
    assert boschloo(Rate(323, 600), Rate(167, 600)) == pytest.approx(1.1e-19, rel=0.2)
    assert boschloo(Rate(180, 600), Rate(216, 600)) == pytest.approx(0.028208, rel=1e-4)


def test_thousands_of_attempts_are_judged_by_fishers_test() -> None:
    first, second = Rate(1200, 3000), Rate(1290, 3000)
    table = [[1200, 1290], [1800, 1710]]
    assert boschloo(first, second) == pytest.approx(fisher_exact(table).pvalue, rel=1e-6)


def test_a_level_that_no_table_keeps_rejects_nothing() -> None:
    assert region_of_level(2, 2, 0.025).chance(1.0, 0.0) == 0.0
    assert region_of_level(3, 3, 0.025).chance(1.0, 0.0) == 1.0


def test_nothing_measured_has_no_p() -> None:
    assert boschloo(Rate(0, 0), Rate(3, 8)) is None
    assert stratified([(Rate(0, 0), Rate(3, 8))]) is None
    assert stratified([]) is None


class TestSeveralTables:
    def test_the_rabbits_of_the_textbooks(self) -> None:
        """Mantel and Haenszel's penicillin data: R's mantelhaen.test(Rabbits, exact=TRUE) gives S = 16, p = 0.03994."""
        none = [Rate(0, 6), Rate(3, 6), Rate(6, 6), Rate(5, 6), Rate(2, 2)]
        late = [Rate(0, 5), Rate(0, 6), Rate(2, 6), Rate(6, 6), Rate(5, 5)]
        assert stratified(zip(none, late, strict=True)) == pytest.approx(0.03994, abs=5e-6)

    @given(small, small)
    @settings(max_examples=40, deadline=None)
    def test_one_table_is_fishers(self, first: Rate, second: Rate) -> None:
        table = [[first.k, second.k], [first.n - first.k, second.n - second.k]]
        assert stratified([(first, second)]) == pytest.approx(fisher_exact(table).pvalue, rel=1e-6)

    @given(st.lists(st.tuples(small, small), min_size=2, max_size=3))
    @settings(max_examples=25, deadline=None)
    def test_it_is_the_sum_over_all_ways_with_these_margins(self, pairs: list[tuple[Rate, Rate]]) -> None:
        spread = []
        for first, second in pairs:
            hits = first.k + second.k
            low, high = max(0, hits - second.n), min(first.n, hits)
            ways = [math.comb(first.n, k) * math.comb(second.n, hits - k) for k in range(low, high + 1)]
            spread.append({low + index: way for index, way in enumerate(ways)})
        sums: dict[int, int] = {}
        for combined in product(*(one.items() for one in spread)):
            total = sum(k for k, _ in combined)
            sums[total] = sums.get(total, 0) + math.prod(way for _, way in combined)
        seen = sums[sum(first.k for first, _ in pairs)]
        expected = sum(way for way in sums.values() if way <= seen) / sum(sums.values())
        assert stratified(pairs) == pytest.approx(expected, rel=1e-6)

    def test_cells_with_rates_of_their_own_do_not_mislead_it(self) -> None:
        """Simpson: the arms are equal in each cell, and one arm has more attempts where everything is corrupted."""
        pairs = [(Rate(36, 40), Rate(9, 10)), (Rate(1, 10), Rate(4, 40))]
        assert stratified(pairs) == pytest.approx(1.0)
        assert boschloo(Rate(37, 50), Rate(13, 50)) == pytest.approx(0.0, abs=1e-5)


class TestHolm:
    def test_the_textbook_example(self) -> None:
        assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])

    def test_what_was_not_tested_is_not_counted(self) -> None:
        assert holm([None, 0.02, None]) == [None, 0.02, None]
        assert holm([]) == []

    @given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
    def test_it_never_lowers_a_p_nor_changes_their_order_and_is_at_most_bonferronis(self, values: list[float]) -> None:
        adjusted = holm(values)
        for value, after in zip(values, adjusted, strict=True):
            assert after is not None
            assert value <= after <= min(1.0, len(values) * value)
        order = sorted(range(len(values)), key=lambda index: values[index])
        kept = [adjusted[index] for index in order]
        assert kept == sorted(one for one in kept if one is not None)
