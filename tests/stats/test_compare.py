from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormctl.stats import Rate, difference

measured = st.integers(1, 120).flatmap(lambda n: st.builds(Rate, st.integers(0, n), st.just(n)))


@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    # Newcombe, Statistics in Medicine 1998, 17:873-890, table II, method 6 (Miettinen-Nurminen).
    [
        ((56, 70), (48, 80), 0.0528, 0.3382),
        ((9, 10), (3, 10), 0.1700, 0.8406),
        ((6, 7), (2, 7), 0.0342, 0.8534),
        ((5, 56), (0, 29), -0.0326, 0.1933),
        ((0, 10), (0, 20), -0.1658, 0.2844),
        ((0, 10), (0, 10), -0.2879, 0.2879),
        ((10, 10), (0, 20), 0.7156, 1.0),
    ],
)
def test_the_interval_is_the_published_one(
    first: tuple[int, int], second: tuple[int, int], low: float, high: float
) -> None:
    found = difference(Rate(*first), Rate(*second))
    assert (found.lo, found.hi) == pytest.approx((low, high), abs=6e-5)


def test_a_storm_of_eight_tells_the_two_pairs_apart() -> None:
    found = difference(Rate(6, 8), Rate(0, 8))
    assert str(found) == "+75 points (31 to 93)"
    assert found.sign == 1
    assert difference(Rate(0, 8), Rate(6, 8)).sign == -1
    assert difference(Rate(2, 8), Rate(1, 8)).sign == 0


@given(measured, measured)
@settings(max_examples=60)
def test_swapping_the_two_mirrors_the_interval(first: Rate, second: Rate) -> None:
    there, back = difference(first, second), difference(second, first)
    assert (-back.hi, -back.lo) == pytest.approx((there.lo, there.hi), abs=1e-9)


@given(measured, measured)
@settings(max_examples=60)
def test_the_interval_holds_the_difference(first: Rate, second: Rate) -> None:
    found = difference(first, second)
    assert found.value is not None
    assert -1 <= found.lo <= found.value <= found.hi <= 1
    assert found.lo < found.hi


@given(measured)
@settings(max_examples=40)
def test_a_rate_is_not_told_apart_from_itself(rate: Rate) -> None:
    assert difference(rate, rate).sign == 0


def test_nothing_measured_compares_with_nothing() -> None:
    found = difference(Rate(3, 8), Rate(0, 0))
    assert found.value is None
    assert found.sign == 0
    assert str(found) == "not measured"
