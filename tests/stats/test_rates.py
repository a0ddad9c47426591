from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.stats import Rate, wilson

rates = st.integers(0, 400).flatmap(lambda n: st.builds(Rate, st.integers(0, n), st.just(n)))


@pytest.mark.parametrize(
    ("k", "n", "text"),
    [
        (0, 6, "0/6 (0 %, 0 to 39)"),  # the limits that the harness's users quote
        (0, 24, "0/24 (0 %, 0 to 14)"),
        (8, 18, "8/18 (44 %, 25 to 66)"),
        (20, 24, "20/24 (83 %, 64 to 93)"),
        (583, 600, "583/600 (97 %, 96 to 98)"),
    ],
)
def test_a_rate_reads_with_its_interval(k: int, n: int, text: str) -> None:
    assert str(Rate(k, n)) == text


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    # Newcombe, Statistics in Medicine 1998, 17:857-872, table I, method 3.
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_the_interval_is_the_published_one(k: int, n: int, low: float, high: float) -> None:
    assert wilson(k, n) == pytest.approx((low, high), abs=6e-5)


@given(rates)
def test_the_interval_holds_the_share_and_stays_inside_zero_and_one(rate: Rate) -> None:
    assert 0 <= rate.lo <= (rate.share if rate.share is not None else 0.5) <= rate.hi <= 1
    assert rate.lo < rate.hi


@given(rates)
def test_successes_and_failures_mirror_each_other(rate: Rate) -> None:
    other = Rate(rate.n - rate.k, rate.n)
    assert (1 - other.hi, 1 - other.lo) == pytest.approx((rate.lo, rate.hi), abs=1e-12)


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.integers(2, 5))
def test_more_attempts_at_the_same_share_narrow_it(rate: tuple[int, int], times: int) -> None:
    k, n = rate
    few, many = Rate(k, n), Rate(k * times, n * times)
    assert many.hi - many.lo < few.hi - few.lo


def test_nothing_measured_says_so() -> None:
    assert str(Rate(0, 0)) == "0/0 (not measured)"
    assert (Rate(0, 0).lo, Rate(0, 0).hi) == (0.0, 1.0)


@pytest.mark.parametrize(("k", "n"), [(-1, 4), (5, 4), (1, 0)])
def test_more_than_all_is_no_rate(k: int, n: int) -> None:
    with pytest.raises(ValueError, match="is not a rate"):
        Rate(k, n)
