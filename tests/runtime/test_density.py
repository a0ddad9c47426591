"""The gate before every replay: dense logs pass it, broken ones end their run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.engine.generations import DISPENSER
from stormctl.history import Event, kinds
from stormctl.runtime import ops
from stormctl.runtime.delivery import Ending
from stormctl.runtime.density import contract_problem, seq_problem, slot_gap
from stormctl.runtime.rules import Rules
from stormctl.runtime.view import View
from stormctl.worlds.base import AppendRequest, Page
from tests.runtime import bodies
from tests.runtime.bodies import scenario
from tests.runtime.driving import RUN, Stage
from tests.runtime.eventful import plain, seqs, slots


class TestSeqs:
    @pytest.mark.parametrize(
        "positions",
        [(), (1, 2, 3), (None, None, 3, 4), (None, None)],
        ids=["empty", "from one", "an adopted run", "a store without seqs"],
    )
    def test_that_are_dense_pass(self, positions: tuple[int | None, ...]) -> None:
        assert seq_problem(seqs(*positions)) is None

    @pytest.mark.parametrize(
        ("positions", "problem"),
        [
            ((*range(1, 37), 36), "36 followed by 36"),
            ((1, 2, 4), "2 followed by 4"),
            ((1, 3, 2), "1 followed by 3"),
            ((2, 3), "it starts at 2"),
            ((None, None, 4), "2 followed by 4"),
            ((None, None, 2), "2 followed by 2"),
            ((1, 2, None), "2 followed by an event without seq"),
            ((None, 2, None, 3), "2 followed by an event without seq"),
        ],
    )
    def test_that_are_not_dense_are_a_broken_contract(self, positions: tuple[int | None, ...], problem: str) -> None:
        assert seq_problem(seqs(*positions)) == problem

    @given(st.integers(0, 8), st.integers(1, 12), st.data())
    def test_with_any_one_event_missing_or_twice_are_found_out(
        self, plain: int, counted: int, data: st.DataObject
    ) -> None:
        whole = [None] * plain + list(range(plain + 1, plain + counted + 1))
        assert seq_problem(seqs(*whole)) is None
        at = data.draw(st.integers(plain, len(whole) - 1))
        assert seq_problem(seqs(*whole[: at + 1], *whole[at:])) is not None
        if at + 1 < len(whole):
            assert seq_problem(seqs(*whole[:at], *whole[at + 1 :])) is not None


class TestSlots:
    @pytest.mark.parametrize("held", [(), (1, 2, 3), (2, 3, 4), (1,), (2,)])
    def test_that_are_dense_from_one_or_two_have_no_gap(self, held: tuple[int, ...]) -> None:
        assert slot_gap(slots(*held)) is None

    @pytest.mark.parametrize(
        ("held", "gap"), [((1, 3), "1 followed by 3"), ((3, 4), "it starts at 3"), ((2, 3, 6), "3 followed by 6")]
    )
    def test_with_a_gap_below_the_highest(self, held: tuple[int, ...], gap: str) -> None:
        assert slot_gap(slots(*held)) == gap

    def test_are_not_looked_for_in_a_log_of_seqs_or_of_ulids(self) -> None:
        assert slot_gap(seqs(1, 3)) is None
        assert slot_gap((plain(1), plain(5))) is None

    def test_that_are_missing_on_an_event_break_the_contract(self) -> None:
        broken = contract_problem(View(RUN, (*slots(1), plain(5), *slots(2)), "c"))
        assert broken is not None
        assert broken.code == "WORLD_CONTRACT_ERROR"
        assert "has no slot" in broken.message

    def test_that_repeat_break_the_contract(self) -> None:
        broken = contract_problem(View(RUN, slots(1, 2, 2), "c"))
        assert broken is not None
        assert "2 followed by 2" in broken.message


# -- in a delivery --------------------------------------------------------------------------------------------------


def slot_stage(**changes: object) -> Stage:
    rules = replace(Rules(generation=DISPENSER), **changes)  # type: ignore[arg-type]
    stage = Stage(scenario(bodies.five_steps), slots=True, rules=rules)
    stage.deliver()
    stage.asked.clear()
    return stage


def hidden_for(stage: Stage, reads: int, hidden: int = 4) -> None:
    """One event is not served to the first so many reads."""
    served = [0]

    def bend(page: Page) -> Page:
        served[0] += 1
        if served[0] > reads:
            return page
        return replace(page, events=tuple(event for event in page.events if event.position != hidden))

    stage.bend = bend


def error_of(stage: Stage) -> tuple[str, str]:
    end: Event = stage.events[-1]
    assert end.type == kinds.RUN_FAILED
    assert end.payload is not None
    return end.data["errorCode"], end.payload.load()


class TestAGapBetweenSlots:
    @pytest.mark.parametrize(("reads", "pauses"), [(1, [25]), (2, [25, 50]), (3, [25, 50, 100])])
    def test_that_closes_costs_so_many_more_reads(self, reads: int, pauses: list[int]) -> None:
        stage = slot_stage()
        hidden_for(stage, reads)
        assert stage.deliver().ending is Ending.PARKED
        assert [op.ms for op in stage.asked if isinstance(op, ops.Sleep) and op.reason == "slot gap"] == pauses
        assert [note["closed"] for note in stage.notes("reread")] == [False] * (reads - 1) + [True]
        assert (stage.counted["reread"], stage.counted["reread.closed"]) == (reads, 1)

    def test_that_stays_is_a_corrupted_log(self) -> None:
        stage = slot_stage()
        hidden_for(stage, 4)
        assert stage.deliver().ending is Ending.FAILED
        code, message = error_of(stage)
        assert (code, "3 followed by 5" in message) == ("CORRUPTED_EVENT_LOG", True)
        assert not stage.notes("pass")

    def test_is_not_looked_for_when_the_rules_say_so(self) -> None:
        stage = slot_stage(slot_gap_check=False)
        hidden_for(stage, 1_000, hidden=len(stage.events) - 1)
        stage.deliver()
        assert stage.notes("pass")
        assert not stage.notes("reread")

    def test_of_slot_one_is_none(self) -> None:
        stage = slot_stage()
        hidden_for(stage, 1_000, hidden=1)
        stage.deliver()
        assert not stage.notes("reread")

    def test_is_waited_for_at_the_pace_of_the_storm(self) -> None:
        assert Rules().scaled(0.1).slot_gap_ms == 2.5

    def test_that_closes_with_the_end_of_the_run_ends_the_delivery(self) -> None:
        stage = slot_stage()
        stage.land(AppendRequest(RUN, kinds.RUN_CANCELLED, "somebody"))
        stage.land(AppendRequest(RUN, kinds.RUN_STARTED, "somebody"))
        hidden_for(stage, 1, hidden=len(stage.events) - 1)
        assert stage.deliver().ending is Ending.ENDED
        assert not stage.notes("pass")


class TestASeqThatWasGivenTwice:
    def test_ends_the_run_before_anything_is_replayed_or_written(self) -> None:
        stage = Stage(scenario(bodies.five_steps))
        stage.deliver()
        twice = stage.events[-1].position
        stage.events.append(replace(stage.events[-1], event_id="evnt_" + "0" * 9 + "Z" * 17))
        stage.asked.clear()
        stage.answer = lambda request: None
        stage.deliver()
        code, message = error_of(stage)
        assert (code, f"{twice} followed by {twice}" in message) == ("WORLD_CONTRACT_ERROR", True)
        assert not stage.notes("pass")

    def test_is_no_gap_that_might_close(self) -> None:
        stage = Stage(scenario(bodies.five_steps))
        stage.deliver()
        del stage.events[4]
        stage.asked.clear()
        stage.deliver()
        assert error_of(stage)[0] == "WORLD_CONTRACT_ERROR"
        assert not stage.notes("reread")


class TestAnAdoptedRun:
    def test_is_brought_on_over_the_prefix_that_has_no_seq(self) -> None:
        stage = Stage(scenario(bodies.five_steps))
        stage.deliver()
        stage.events[:3] = [replace(event, position=None) for event in stage.events[:3]]
        assert stage.deliver().ending is Ending.PARKED

    def test_and_its_twin_with_a_hole_behind_the_prefix_is_not(self) -> None:
        stage = Stage(scenario(bodies.five_steps))
        stage.deliver()
        stage.events[:3] = [replace(event, position=None) for event in stage.events[:3]]
        del stage.events[3]
        assert stage.deliver().ending is Ending.FAILED
        assert "3 followed by 5" in error_of(stage)[1]


class TestABrokenPage:
    def test_ends_the_run(self) -> None:
        stage = Stage(scenario(bodies.five_steps))
        stage.bend = lambda page: replace(page, cursor=None)
        assert stage.deliver().ending is Ending.FAILED
        code, message = error_of(stage)
        assert (code, "no cursor" in message) == ("WORLD_CONTRACT_ERROR", True)
