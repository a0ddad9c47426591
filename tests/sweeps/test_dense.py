"""Dense: every position from 1 to the last, once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.history import Facet
from stormctl.sweeps import SweepResult, Verdict
from stormctl.sweeps.dense import dense
from stormctl.sweeps.finding import Fault
from stormctl.testing import LogBuilder

Judge = Callable[..., SweepResult]


def three() -> LogBuilder:
    return LogBuilder().run_created().run_started().hook_created(0)


def test_a_log_without_a_gap_is_clean(judge: Judge) -> None:
    assert judge("dense", three()).verdict is Verdict.CLEAN


def test_a_lost_event_leaves_a_gap(judge: Judge) -> None:
    (finding,) = judge("dense", three().without(2)).findings
    assert finding.message == "position 2 is missing before 3"
    assert finding.witness == ("1 run_created", "3 hook_created rank 0 hook")
    assert finding.key == "dense/gap/2"


def test_a_log_that_starts_late_has_a_gap_at_its_start(judge: Judge) -> None:
    (finding,) = judge("dense", three().without(1).without(1)).findings
    assert finding.message == "positions 1 to 2 are missing before 3"


def test_positions_declared_to_be_left_out_are_listed_and_no_gap(judge: Judge) -> None:
    result = judge("dense", three().without(1).without(1), omitted=(1, 2, 4))
    assert (result.verdict, result.findings, result.missing) == (Verdict.CLEAN, (), (1, 2, 4))


def test_a_declaration_does_not_excuse_another_gap(judge: Judge) -> None:
    result = judge("dense", three().without(2).without(1), omitted=(1,))
    assert [finding.message for finding in result.findings] == ["position 2 is missing before 3"]


def test_two_events_at_one_position_are_a_repeat(judge: Judge) -> None:
    result = judge("dense", three().changed(3, position=2))
    assert [finding.message for finding in result.findings] == ["position 2 is held by two events"]
    assert result.findings[0].positions == (2, 2)


def test_events_listed_against_their_positions_are_told(judge: Judge) -> None:
    result = judge("dense", three().edited(lambda events: events.reverse()))
    assert [finding.key for finding in result.findings] == ["dense/out-of-order/2", "dense/out-of-order/1"]


def test_one_event_without_position_is_a_fault(judge: Judge) -> None:
    (finding,) = judge("dense", three().changed(3, position=None)).findings
    assert finding.message == "hook_created has no position"


def test_a_log_that_was_begun_without_positions_counts_on_from_there(judge: Judge) -> None:
    """A run that a store with positions has adopted keeps its first events as they were."""
    adopted = three().changed(1, position=None).changed(2, position=None)
    result = judge("dense", adopted)
    assert (result.verdict, result.missing) == (Verdict.CLEAN, ("the positions of the first 2 events",))
    (finding,) = judge("dense", adopted.changed(3, position=5)).findings
    assert finding.message == "positions 3 to 4 are missing before 5"


@pytest.mark.parametrize("position", [0, -1])
def test_positions_count_from_one(judge: Judge, position: int) -> None:
    found = [finding.key.split("/")[1] for finding in judge("dense", three().changed(1, position=position)).findings]
    assert found == ["bad-position", "gap"]


def test_a_store_without_positions_is_unknown_and_not_clean(judge: Judge) -> None:
    result = judge("dense", LogBuilder(positions=False).run_created())
    assert (result.verdict, result.missing) == (Verdict.UNKNOWN, (str(Facet.POSITIONS),))


def test_a_gap_in_a_live_log_may_still_be_filled_on_5_x(judge: Judge) -> None:
    log = three().without(2)
    assert judge("dense", log, live=True, profile="workflow@5").verdict is Verdict.CLEAN
    assert judge("dense", log, live=True).verdict is Verdict.VIOLATED
    assert judge("dense", log, profile="workflow@5").verdict is Verdict.VIOLATED


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), st.sets(st.integers(1, 40), max_size=5))
def test_dense_agrees_with_its_definition(positions: list[int], omitted: set[int]) -> None:
    builder = LogBuilder()
    for position in sorted(positions):
        builder.event("noop", position=position)
    faults = [item for item in dense(builder.capture(omitted=tuple(omitted))) if isinstance(item, Fault)]
    wanted = set(range(1, max(positions) + 1)) - omitted
    lost = wanted - set(positions)
    assert any(fault.kind == "gap" for fault in faults) == bool(lost)
    assert sum(fault.kind == "repeat" for fault in faults) == len(positions) - len(set(positions))


def test_a_hostile_position_costs_no_memory(judge: Judge) -> None:
    log = three()
    for place in range(50):
        log.event("noop", position=(place + 1) << 56)
    assert len(judge("dense", log).findings) == 50


@pytest.mark.parametrize("place", [2, 10, 40])
def test_the_gap_keeps_its_key_when_the_log_grows(judge: Judge, storm: LogBuilder, place: int) -> None:
    short = storm.edited(lambda events: events.__delitem__(slice(50, None)))
    keys = [judge("dense", log.without(place)).findings[0].key for log in (short, storm)]
    assert keys == [f"dense/gap/{place}"] * 2
