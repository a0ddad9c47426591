"""The data of the heat map: what a recorder keeps of the passes that it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.engine.door import Divergence, Draw, Outcome, Pass
from stormctl.sweeps.bindings import BindingMap, BindingRecorder, Change, Span, touched, window
from stormctl.testing import LogBuilder

Table = Sequence[tuple[int, str]]


def shown(table: Table | None, length: int, *, lost: int | None = None) -> Pass:
    draws: Any = None if table is None else tuple(Draw(rank, "step", name) for rank, name in table)
    if lost is None:
        return Pass(length, Outcome.SUSPENDED, draws)
    divergence = Divergence("name", length - 1, length, None, "step_created", lost, "step:x", "step:y", "no place")
    return Pass(length, Outcome.DIVERGED, draws, divergence=divergence)


def recorded(tables: Sequence[Table | None], lost: dict[int, int] | None = None) -> BindingMap:
    builder = LogBuilder()
    recorder = BindingRecorder()
    for length, table in enumerate(tables, start=1):
        builder.event("noop")
        recorder(length, shown(table, length, lost=(lost or {}).get(length)))
    return recorder.finish("nets", "made up", builder.log())


def test_a_rank_that_keeps_its_call_is_one_span() -> None:
    found = recorded([[], [(0, "a")], [(0, "a"), (1, "b")], [(0, "a"), (1, "b")]])
    assert found.prefixes == (1, 2, 3, 4)
    assert found.rows == {0: (Span(1, 3, "step:a"),), 1: (Span(2, 3, "step:b"),)}
    assert found.changes == ()
    assert found.diverges is None


def test_a_rank_that_changes_its_call_is_a_flip() -> None:
    found = recorded([[(0, "a"), (1, "a")], [(0, "a"), (1, "b")], [(0, "c"), (1, "b")]])
    assert found.changes == (Change(1, 1, "step:a", "step:b"), Change(2, 0, "step:a", "step:c"))


def test_a_rank_that_was_away_in_between_is_no_flip() -> None:
    found = recorded([[(0, "a")], [], [(0, "b")]])
    assert found.rows[0] == (Span(0, 0, "step:a"), Span(2, 2, "step:b"))
    assert found.changes == ()


def test_an_engine_that_tells_no_draws_leaves_the_columns_empty() -> None:
    found = recorded([[(0, "a")], None, None])
    assert found.rows == {0: (Span(0, 0, "step:a"),)}
    assert recorded([None, None]).rows == {}


def test_the_first_divergence_is_kept_with_what_the_log_has_there() -> None:
    found = recorded([[], [(0, "a")], [(0, "a")]], lost={2: 0, 3: 7})
    assert (found.diverges, found.lost, found.expected) == (1, 0, "step:x")


def test_one_pass_that_stands_for_several_prefixes_fills_their_columns() -> None:
    recorder, one = BindingRecorder(), shown([(0, "a")], 1)
    for length in (1, 2, 3):
        recorder(length, one)
    log = LogBuilder().event("noop").event("noop").event("noop").log()
    assert recorder.finish("nets", "", log).rows == {0: (Span(0, 2, "step:a"),)}


tables = st.lists(
    st.none() | st.dictionaries(st.integers(0, 5), st.sampled_from("abc"), max_size=5), min_size=1, max_size=8
)


@given(tables)
def test_a_map_says_of_every_rank_and_prefix_what_its_pass_said(rows: list[dict[int, str] | None]) -> None:
    found = recorded([None if row is None else sorted(row.items()) for row in rows])
    for column, row in enumerate(rows):
        for rank in range(6):
            name = (row or {}).get(rank)
            assert found.at(rank, column) == (None if name is None else f"step:{name}")


def test_where_ids_do_not_follow_the_ranks_a_row_is_an_id() -> None:
    def called(*names: str) -> Pass:
        return Pass(
            1, Outcome.SUSPENDED, tuple(Draw(at, "step", name, id=f"step_{name}") for at, name in enumerate(names))
        )

    recorder, log = BindingRecorder(), LogBuilder().event("noop").event("noop").event("noop").log()
    for length, one in enumerate((called("a"), called("a", "b"), called("c", "a", "b")), start=1):
        recorder(length, one)
    found = recorder.finish("nets", "", log)
    assert (found.row, found.changes) == ("id", ())
    assert found.rows == {0: (Span(0, 2, "step:a"),), 1: (Span(1, 2, "step:b"),), 2: (Span(2, 2, "step:c"),)}


class TestWindow:
    def test_lies_around_the_first_mark(self) -> None:
        found = BindingMap("nets", "", tuple(range(1, 101)), {0: (Span(0, 49, "a"), Span(50, 99, "b"))}, diverges=60)
        assert window(found, columns=40, before=8, after=8) == range(42, 69)
        assert window(found, columns=12, before=8, after=8) == range(42, 54)

    def test_lies_at_the_end_of_a_map_without_marks(self) -> None:
        found = BindingMap("nets", "", tuple(range(1, 101)), {0: (Span(0, 99, "a"),)})
        assert window(found, columns=40, before=8, after=8) == range(91, 100)

    def test_is_empty_without_prefixes(self) -> None:
        assert list(window(BindingMap("nets", "", (), {}), columns=40, before=8, after=8)) == []


@pytest.mark.parametrize(("most", "ranks"), [(9, [3, 4, 5, 8]), (2, [4, 8]), (0, [])])
def test_the_ranks_in_sight_are_those_marked_and_their_neighbours(most: int, ranks: list[int]) -> None:
    rows = {rank: (Span(0, 9, "a"),) for rank in (0, 1, 3, 5, 8)}
    rows[4] = (Span(0, 4, "a"), Span(5, 9, "b"))
    found = BindingMap("nets", "", tuple(range(1, 11)), rows, diverges=6, lost=8)
    assert list(touched(found, range(2, 8), around=1, most=most)) == ranks


def test_no_rank_is_in_sight_where_nothing_is_marked() -> None:
    found = BindingMap("nets", "", (1, 2), {0: (Span(0, 1, "a"),)})
    assert list(touched(found, range(2), around=3, most=9)) == []
