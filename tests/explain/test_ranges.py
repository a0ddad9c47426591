"""Sets of prefix lengths behave like sets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stormctl.explain.ranges import Ranges

members = st.sets(st.integers(0, 60), max_size=30)


def test_neighbours_are_one_range() -> None:
    assert Ranges.of([5, 3, 4, 9]).ranges == ((3, 5), (9, 9))


@given(members)
def test_a_set_holds_what_it_was_made_of(values: set[int]) -> None:
    made = Ranges.of(values)
    assert list(made) == sorted(values)
    assert len(made) == len(values)
    assert bool(made) == bool(values)
    assert {value for value in range(-2, 64) if value in made} == values
    assert (made.first, made.last) == ((min(values), max(values)) if values else (None, None))


@given(members, members)
def test_what_two_sets_share_is_their_intersection(one: set[int], other: set[int]) -> None:
    assert set(Ranges.of(one) & Ranges.of(other)) == one & other


@given(members, st.integers(0, 40))
def test_the_newest_are_the_largest(values: set[int], count: int) -> None:
    assert Ranges.of(values).newest(count) == sorted(values, reverse=True)[:count]
