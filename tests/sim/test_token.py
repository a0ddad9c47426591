"""Schedules as one word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.errors import UsageError
from stormctl.sim.token import MOST_CHARACTERS, Token

DIGEST = "0123456789abcdef"
TAPES = st.lists(st.one_of(st.just(0), st.integers(0, 300)), max_size=200)


@given(st.text(min_size=1, max_size=40).filter(lambda name: len(name.encode()) < 200), TAPES)
def test_a_token_is_read_as_it_was_written(name: str, tape: list[int]) -> None:
    token = Token.of(name, DIGEST, tape)
    again = Token.parse(str(token))
    assert again == token
    assert list(again.tape) == tape[: len(again.tape)]
    assert not any(tape[len(again.tape) :])


def test_a_long_schedule_with_few_deviations_is_short() -> None:
    tape = [0] * 400
    tape[17] = tape[230] = 1
    assert len(str(Token.of("in-flight-before-decision@mint-slot", DIGEST, tape))) <= 80


@given(st.data())
def test_a_damaged_character_is_told(data: st.DataObject) -> None:
    text = str(Token.of("in-flight@mint-slot", DIGEST, [0, 0, 1, 0, 2]))
    at = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.sampled_from("abcXYZ019-_ ").filter(lambda letter: letter != text[at]))
    broken = text[:at] + other + text[at + 1 :]
    if broken.strip() == text:
        return
    with pytest.raises(UsageError) as refused:
        Token.parse(broken)
    assert refused.value.remedy


@given(st.one_of(st.text(max_size=60), st.binary(max_size=40).map(lambda raw: "sw1-" + raw.hex())))
def test_what_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        Token.parse(text)


def test_one_beyond_all_measure_is_refused() -> None:
    with pytest.raises(UsageError):
        Token.parse("sw1-" + "A" * MOST_CHARACTERS)
