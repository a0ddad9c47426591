"""Event ids, correlation ids and ranks: exact on big integers, holes visible."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.history import ids

#: Literal bodies of one run's first draws, as the SDK's own tests list them: the last character wraps at Z.
CONSECUTIVE = [f"01HK153X00EXXPDD1E1FCD{tail}" for tail in ("9YCV", "9YCW", "9YCX", "9YCY", "9YCZ", "9YD0", "9YD1")]

below_the_limit = st.integers(0, (1 << 130) - 1)


def test_consecutive_draws_have_consecutive_ordinals_across_a_wrap() -> None:
    first = ids.ordinal(CONSECUTIVE[0])
    assert [ids.ordinal(body) - first for body in CONSECUTIVE] == list(range(7))


@given(below_the_limit)
def test_a_body_and_its_ordinal_are_each_others_inverse(value: int) -> None:
    body = ids.body_of(value)
    assert ids.is_body(body)
    assert ids.ordinal(body) == value


@given(below_the_limit, below_the_limit)
def test_bodies_sort_as_their_ordinals_do(one: int, other: int) -> None:
    assert (ids.body_of(one) < ids.body_of(other)) == (one < other)


@pytest.mark.parametrize("text", ["", "01HK", "01HK153X00EXXPDD1E1FCD9YCI", "01hk153x00exxpdd1e1fcd9ycv", "ü" * 26])
def test_what_is_no_body_is_refused(text: str) -> None:
    assert not ids.is_body(text)
    with pytest.raises(ValueError, match=r"base-32|characters"):
        ids.ordinal(text)


@pytest.mark.parametrize("value", [-1, 1 << 130])
def test_an_integer_beyond_26_characters_has_no_body(value: int) -> None:
    with pytest.raises(ValueError, match=r"2\*\*130"):
        ids.body_of(value)


def test_a_production_id_whose_time_is_no_plausible_date_is_not_refused() -> None:
    assert ids.is_body("41KZYJ92TP0000000000000000")
    assert ids.ordinal("41KZYJ92TP0000000000000000") > ids.ordinal(CONSECUTIVE[0])


def test_a_slot_id_carries_its_position_and_no_time() -> None:
    made = ids.slot_id(652)
    assert made == "evnt_00000000000000000000000652"
    assert ids.slot_of(made) == 652
    assert ids.ulid_ms(made) is None


@given(st.integers(0, (1 << 48) - 1), st.integers(0, (1 << 80) - 1))
def test_a_ulid_carries_its_time_and_no_slot(ms: int, noise: int) -> None:
    event_id = f"evnt_{ids.compose(ms, noise)}"
    if ids.slot_of(event_id) is None:
        assert ids.ulid_ms(event_id) == ms


@pytest.mark.parametrize(
    ("correlation_id", "parts"),
    [("step_01X", ("step", "01X")), ("a_b_01X", ("a_b", "01X")), ("bare", ("", "bare"))],
)
def test_an_id_is_split_at_its_last_underscore(correlation_id: str, parts: tuple[str, str]) -> None:
    assert ids.split(correlation_id) == parts


@given(below_the_limit)
def test_the_seeded_base_keeps_the_runs_time_and_leaves_room_for_every_draw(value: int) -> None:
    run = f"wrun_{ids.body_of(value)}"
    base = ids.seeded_base(run)
    assert base >> ids.RANDOM_BITS == value >> ids.RANDOM_BITS
    assert base & (1 << ids.RANDOM_BITS) - 1 < 1 << (ids.RANDOM_BITS - 1)
    assert ids.seeded_base(run) == base
