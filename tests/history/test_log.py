"""Logs: how prefixes are named, and how ranks are counted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.history import Event, EventLog, ids
from stormctl.testing import RUN_ID, LogBuilder

OTHER_BASE = ids.ordinal("01HK153X00EXXPDD1E1FCD9YCV")


def with_positions(*positions: int | None) -> EventLog:
    return EventLog([Event("hook_received", position=position) for position in positions])


class TestPrefixes:
    def test_are_named_by_the_position_of_their_last_event(self) -> None:
        log = with_positions(3, 4, 5)
        assert [log.name_of_prefix(length) for length in range(4)] == [0, 3, 4, 5]
        assert [log.length_of_prefix(name) for name in (2, 3, 5, 9)] == [0, 1, 3, 3]

    def test_are_named_by_their_length_where_a_position_is_missing(self) -> None:
        log = with_positions(3, None, 5)
        assert [log.name_of_prefix(length) for length in range(4)] == [0, 1, 2, 3]
        assert [log.length_of_prefix(name) for name in (-1, 2, 9)] == [0, 2, 3]

    @given(st.lists(st.integers(1, 50), min_size=1, max_size=20, unique=True).map(sorted))
    def test_the_name_of_a_length_finds_the_length_again(self, positions: list[int]) -> None:
        log = with_positions(*positions)
        assert [log.length_of_prefix(log.name_of_prefix(n)) for n in range(len(log) + 1)] == list(range(len(log) + 1))

    def test_a_slice_is_a_log_of_the_same_run(self) -> None:
        log = LogBuilder().run_created().hook_created(0).hook_received(0).log()
        assert (log[:2].run_id, len(log[:2]), log[:2][1]) == (RUN_ID, 2, log[1])
        assert log[:3] == log


class TestRanks:
    def test_of_our_own_run_are_exact_although_the_first_draw_is_lost(self) -> None:
        log = LogBuilder().run_created().wait_created(4).step_created(2, "work").log()
        assert [log.rank(event) for event in log] == [None, 4, 2]

    def test_of_a_foreign_run_count_from_its_smallest_id(self) -> None:
        drawn = [Event("wait_created", "wrun_x", correlation_id=f"wait_{ids.body_of(OTHER_BASE + n)}") for n in (7, 5)]
        log = EventLog(drawn)
        assert log.base == OTHER_BASE + 5
        assert [log.rank(event) for event in log] == [2, 0]

    def test_show_a_hole_as_a_hole(self) -> None:
        log = LogBuilder().hook_created(0).wait_created(1).wait_created(5).log()
        assert [log.rank(event) for event in log] == [0, 1, 5]

    @pytest.mark.parametrize("correlation_id", [None, "step_not-a-body", "nonsense"])
    def test_are_none_where_nothing_was_drawn(self, correlation_id: str | None) -> None:
        log = EventLog([Event("step_created", RUN_ID, correlation_id=correlation_id)])
        assert log.rank(log[0]) is None


def test_a_log_has_ended_once_it_holds_the_end_of_its_run() -> None:
    running = LogBuilder().run_created().run_started()
    assert not running.log().ended
    assert running.run_completed().hook_received(0).log().ended
