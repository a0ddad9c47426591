"""The heat map in a terminal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stormctl.report.binding_strip import binding_strip, letters_for
from stormctl.sweeps.bindings import BindingMap, Span
from tests.report.test_binding_map import many, storm


def lines(found: BindingMap, width: int = 78) -> list[str]:
    return [line.plain for line in binding_strip(found, width)]


def test_a_flip_is_a_capital_and_a_divergence_has_an_arrow() -> None:
    assert lines(storm()) == [
        "  rank  604   610       620       630",
        "   197  .rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr",
        "   198  ..ffffffRrrrrrrrrrrrrrrrrrrrrrrrrrr",
        "                                  ^",
        "        f finalizeStep   r releaseStep   a capital: it flips there",
        "        ^ diverges: the log has finalizeStep",
    ]


def test_ranks_that_are_left_out_leave_a_gap() -> None:
    rows = {rank: (Span(0, 3, "wait"),) for rank in range(20)}
    for rank in (2, 15):
        rows[rank] = (Span(0, 1, "wait"), Span(2, 3, "hook"))
    found = lines(BindingMap("nets", "", (1, 2, 3, 4), rows))
    assert [line[:8].strip() for line in found[1:8]] == ["1", "2", "3", "..", "14", "15", "16"]
    assert found[2] == "     2  wwHh"


def test_nothing_is_shown_where_nothing_flips_or_diverges() -> None:
    assert lines(BindingMap("nets", "", (1, 2), {0: (Span(0, 1, "hook"),)})) == []


def test_flips_beyond_the_strip_are_counted() -> None:
    rows = {0: (Span(0, 9, "a"), Span(10, 899, "b"), Span(900, 999, "a"))}
    assert lines(BindingMap("nets", "", tuple(range(1, 1001)), rows))[-1].strip().endswith("1 more flip outside")


def test_every_binding_has_its_own_letter() -> None:
    labels = [f"step:settle{number}" for number in range(40)]
    rows = {rank: (Span(0, 1, label),) for rank, label in enumerate(labels)}
    letters = letters_for(BindingMap("nets", "", (1, 2), rows), list(rows), range(2))
    assert letters["step:settle0"] == "s"
    assert letters["step:settle1"] == "e"
    own = [letter for letter in letters.values() if letter != "*"]
    assert len(own) == len(set(own)) == 36


@given(st.integers(20, 120), st.integers(2, 400), st.integers(1, 40))
def test_it_keeps_to_its_width(width: int, columns: int, ranks: int) -> None:
    for line in lines(many(max(columns, 2 * ranks), ranks), width):
        assert len(line) <= max(width, 50)
