"""The difference over several cells: one cell, mirrored arms, and an interval computed another way."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import binom

from stormctl.stats import Rate, difference, stratified_difference

Z2 = 1.959963984540054**2
measured = st.integers(2, 60).flatmap(lambda n: st.builds(Rate, st.integers(0, n), st.just(n)))
tables = st.lists(st.tuples(measured, measured), min_size=1, max_size=4)


def variance(first: Rate, second: Rate, delta: float) -> float:
    """With the likeliest shares that differ by delta, found by search and not by the cubic's formula."""
    low, high = max(0.0, -delta), min(1.0, 1.0 - delta)

    def unlikely(p2: float) -> float:
        p1 = min(1.0, max(0.0, p2 + delta))
        return -float(binom.logpmf(first.k, first.n, p1) + binom.logpmf(second.k, second.n, p2))

    p2 = minimize_scalar(unlikely, bounds=(low, high), method="bounded", options={"xatol": 1e-12}).x
    p1 = p2 + delta
    total = first.n + second.n
    return float((p1 * (1 - p1) / first.n + p2 * (1 - p2) / second.n) * total / (total - 1))


def searched(pairs: list[tuple[Rate, Rate]], side: int) -> float:
    """An end of the interval: where the squared score passes the chi-square quantile."""
    weights = [first.n * second.n / (first.n + second.n) for first, second in pairs]
    value = sum(w * (a.k / a.n - b.k / b.n) for w, (a, b) in zip(weights, pairs, strict=True)) / sum(weights)

    def beyond(delta: float) -> float:
        spread = sum(w * w * variance(a, b, delta) for w, (a, b) in zip(weights, pairs, strict=True))
        return float(((value - delta) * sum(weights)) ** 2 - Z2 * spread)

    outer, inner = side * (1 - 1e-9), min(1 - 1e-6, max(1e-6 - 1, value))
    return float(outer if beyond(outer) < 0 else brentq(beyond, outer, inner, xtol=1e-10))


@pytest.mark.parametrize(
    "pairs",
    [
        [(Rate(20, 24), Rate(2, 24)), (Rate(3, 14), Rate(5, 14))],
        [(Rate(16, 30), Rate(5, 11)), (Rate(1, 40), Rate(7, 9)), (Rate(2, 8), Rate(3, 50))],
        [(Rate(4, 9), Rate(2, 31))],
    ],
)
def test_both_ends_are_those_that_a_search_finds(pairs: list[tuple[Rate, Rate]]) -> None:
    found = stratified_difference(pairs)
    assert (found.lo, found.hi) == pytest.approx((searched(pairs, -1), searched(pairs, 1)), abs=2e-6)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Rate(0, 8), Rate(0, 8)),
        (Rate(0, 8), Rate(0, 80)),
        (Rate(8, 8), Rate(8, 8)),
        (Rate(8, 8), Rate(0, 8)),
        (Rate(0, 3), Rate(50, 50)),
        (Rate(1, 1), Rate(0, 1)),
        (Rate(7, 8), Rate(0, 60)),
    ],
)
def test_tables_at_the_edge_have_both_ends_too(first: Rate, second: Rate) -> None:
    """The plain difference, at 0 of n and n of n, against the same search."""
    found = difference(first, second)
    ends = (searched([(first, second)], -1), searched([(first, second)], 1))
    assert (found.lo, found.hi) == pytest.approx(ends, abs=2e-5)
    assert found.lo < found.hi


def test_nothing_of_n_on_both_sides_has_the_closed_form() -> None:
    """At 0 of n twice the score is -delta sqrt(n (2n - 1) / (2n delta (1 - delta))): solved for delta by hand."""
    for n in (5, 8, 24, 200):
        bound = Z2 / (Z2 + (2 * n - 1) / 2)
        found = difference(Rate(0, n), Rate(0, n))
        assert (found.lo, found.hi) == pytest.approx((-bound, bound), abs=1e-9)


@given(measured, measured)
@settings(max_examples=60)
def test_one_cell_is_the_plain_difference(first: Rate, second: Rate) -> None:
    plain, found = difference(first, second), stratified_difference([(first, second)])
    assert (found.value, found.lo, found.hi) == pytest.approx((plain.value, plain.lo, plain.hi), abs=1e-9)


@given(tables)
@settings(max_examples=60)
def test_swapping_the_arms_mirrors_it_and_the_interval_holds_the_value(pairs: list[tuple[Rate, Rate]]) -> None:
    there = stratified_difference(pairs)
    back = stratified_difference([(second, first) for first, second in pairs])
    assert there.value is not None
    assert (-back.hi, -back.lo) == pytest.approx((there.lo, there.hi), abs=1e-9)
    assert -1 <= there.lo <= there.value <= there.hi <= 1


@given(tables)
@settings(max_examples=40)
def test_the_same_cells_again_narrow_it(pairs: list[tuple[Rate, Rate]]) -> None:
    once, thrice = stratified_difference(pairs), stratified_difference(pairs * 3)
    assert thrice.value == pytest.approx(once.value)
    assert thrice.hi - thrice.lo < once.hi - once.lo


def test_cells_of_uneven_size_do_not_make_a_difference() -> None:
    found = stratified_difference([(Rate(36, 40), Rate(9, 10)), (Rate(1, 10), Rate(4, 40))])
    assert found.value == pytest.approx(0.0)
    assert found.sign == 0
    assert (str(found.first), str(found.second)) == ("37/50 (74 %, 60 to 84)", "13/50 (26 %, 16 to 40)")


def test_what_was_not_measured_on_both_sides_is_left_out() -> None:
    whole = (Rate(5, 8), Rate(1, 8))
    assert stratified_difference([whole, (Rate(3, 3), Rate(0, 0))]) == stratified_difference([whole])
    assert stratified_difference([(Rate(0, 0), Rate(0, 0))]).value is None
    assert stratified_difference([]).value is None
