from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.stats import percentiles

seconds = st.floats(0, 1e6, allow_nan=False)


def test_the_percentiles_of_one_to_a_hundred() -> None:
    found = percentiles(range(100, 0, -1))
    assert (found.n, found.p50, found.max) == (100, 50.5, 100)
    assert found.p90 == pytest.approx(90.1)
    assert found.p99 == pytest.approx(99.01)


@given(st.lists(seconds, min_size=1, max_size=60))
def test_they_are_numpys(values: list[float]) -> None:
    found = percentiles(values)
    expected = np.percentile(np.array(values), [50, 90, 95, 99])
    assert (found.p50, found.p90, found.p95, found.p99) == pytest.approx(tuple(expected), rel=1e-9, abs=1e-9)
    assert found.max == max(values)


def test_no_durations_have_no_percentiles() -> None:
    found = percentiles([])
    assert found.n == 0
    assert math.isnan(found.p50)
    assert math.isnan(found.max)
