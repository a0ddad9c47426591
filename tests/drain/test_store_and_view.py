"""The store, the view and the way between them, by hand and by chance."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stormctl.drain.engine import GHOST, Engine, Entry, Mark, find, frontier
from stormctl.drain.transport import Transport
from stormctl.drain.view import View


def admitted(*events: tuple[str, str]) -> Engine:
    engine = Engine()
    engine.commit()
    for doc, event_id in events:
        engine.admit(doc, event_id)
    return engine


class TestTheStore:
    def test_gives_each_commit_one_more_than_the_last(self) -> None:
        engine = admitted(("a", "x"), ("b", "y"))
        assert [entry.seq for doc in "ab" for entry in engine.entries(doc)] == [2, 3]

    def test_refuses_a_duplicate_above_the_frontier_and_admits_one_at_or_below_it(self) -> None:
        engine = admitted(("a", "x"))
        assert engine.admit("a", "x") is None
        engine.apply([Mark("a", 0, ("x", 2), 2)], (), engine.commit())
        assert engine.frontier["a"] == 2
        assert engine.admit("a", "x") == 4

    def test_takes_a_legacy_entry_for_a_duplicate_only_while_it_is_pending(self) -> None:
        engine = admitted(("a", "x"))
        engine.apply([Mark("a", 0, ("x", 2), 2)], (), engine.commit())
        engine.strip("a")
        assert engine.entries("a") == (Entry("x", None, consequenced=True),)
        assert not engine.duplicate("a", "x")

    def test_finds_an_absent_seq_only_by_an_absent_seq(self) -> None:
        entries = (Entry("x", None), Entry("x", 5))
        assert find(entries, ("x", 5)) == 1
        assert find(entries, ("x", None)) == 0
        assert find(entries, ("x", 4)) is None

    def test_a_mark_that_the_view_had_no_element_for_makes_a_ghost_and_moves_what_stood_there(self) -> None:
        engine = admitted(("a", "x"), ("a", "y"))
        engine.apply([Mark("a", 1, ("y", 3), 3, add=True)], (), engine.commit())
        assert engine.entries("a") == (Entry("x", 2), GHOST, Entry("y", 3))
        assert ("a", Entry("y", 3)) in engine.pending()

    def test_a_compaction_behind_the_basis_conflicts_and_an_append_does_not(self) -> None:
        engine = admitted(("a", "x"), ("a", "y"))
        engine.apply([Mark("a", 0, ("x", 2), 3)], (), engine.commit())
        mark = Mark("a", 1, ("y", 3), engine.head)
        engine.admit("a", "z")
        assert not engine.conflicts(mark)
        assert engine.compact("a") == (("x", 2),)
        assert engine.conflicts(mark)

    def test_a_consequence_of_the_same_entry_conflicts_and_of_another_does_not(self) -> None:
        engine = admitted(("a", "x"), ("a", "y"))
        marks = [Mark("a", 0, ("x", 2), engine.head), Mark("a", 1, ("y", 3), engine.head)]
        engine.consequence("a", ("x", 2))
        assert [engine.conflicts(mark) for mark in marks] == [True, False]

    def test_compacts_consumed_history_at_or_below_the_frontier_only(self) -> None:
        engine = admitted(("a", "x"), ("a", "y"))
        engine.apply([Mark("a", 1, ("y", 3), 3)], (), engine.commit())
        assert engine.frontier["a"] == 0  # x is first, and waits
        assert engine.compact("a") == ()

    @given(st.lists(st.tuples(st.one_of(st.none(), st.integers(1, 9)), st.booleans()), max_size=8), st.integers(0, 9))
    def test_a_frontier_is_never_lowered_and_covers_no_pending_seq(
        self, shape: list[tuple[int | None, bool]], stored: int
    ) -> None:
        entries = [Entry(f"e{at}", seq, done) for at, (seq, done) in enumerate(shape)]
        found = frontier(entries, stored)
        assert found >= stored
        assert not any(one.seq is not None and stored < one.seq <= found and not one.consequenced for one in entries)
        assert found == stored or any(one.seq == found for one in entries)


class TestTheView:
    def test_lags_until_a_frame_arrives(self) -> None:
        engine, view = admitted(("a", "x")), View()
        transport = Transport(engine, view)
        transport.touch("a")
        assert view.at("a", 0) is None
        transport.flush()
        assert view.at("a", 0) is None
        transport.receive()
        assert view.at("a", 0) == Entry("x", 2)

    def test_a_response_arrives_behind_what_was_flushed_and_brings_nothing_that_was_not(self) -> None:
        engine, view = admitted(("a", "x"), ("b", "y")), View()
        transport = Transport(engine, view)
        transport.touch("a")
        transport.flush()
        transport.touch("b")
        number = transport.pull()
        transport.receive()
        assert transport.answered < number
        transport.receive()
        assert transport.answered == number
        assert (view.at("a", 0), view.at("b", 0)) == (Entry("x", 2), None)

    def test_a_frame_under_a_sealed_write_is_shadowed_until_that_is_withdrawn(self) -> None:
        flips: list[int] = []
        view = View(lambda: flips.append(1))
        view.seal("a", "me", ())
        view.apply("a", (Entry("x", 2),), 2, own=False)
        assert view.at("a", 0) is None
        assert view.shadow_floor == 2
        view.release("me")
        assert view.at("a", 0) == Entry("x", 2)
        assert (view.shadow_floor, flips) == (None, [1])

    def test_an_own_echo_and_what_is_not_newer_are_no_shadows(self) -> None:
        view = View()
        view.apply("a", (Entry("x", 2),), 2, own=False)
        view.seal("a", "me", ())
        view.apply("a", (Entry("x", 2),), 2, own=False)
        view.apply("a", (Entry("x", 2, consequenced=True),), 3, own=True)
        assert view.shadow_floor is None

    def test_a_shadowed_removal_counts_as_the_lowest(self) -> None:
        view = View()
        view.seal("a", "me", (Entry("x", 2),))
        view.apply("a", (), 7, own=False)
        assert view.shadow_floor == 1

    def test_a_frame_that_is_older_than_what_is_confirmed_changes_nothing(self) -> None:
        view = View()
        view.apply("a", (Entry("x", 2), Entry("y", 3)), 3, own=False)
        view.apply("a", (Entry("x", 2),), 2, own=False)
        assert view.at("a", 1) == Entry("y", 3)

    def test_an_accepted_mark_stays_where_the_same_entry_stands_and_nowhere_else(self) -> None:
        view = View()
        view.apply("a", (Entry("x", 2), Entry("y", 3)), 3, own=False)
        view.promote("a", 0, Entry("x", 2))
        view.promote("a", 0, Entry("y", 3))
        assert view.read("a") == (Entry("x", 2, consequenced=True), Entry("y", 3))
