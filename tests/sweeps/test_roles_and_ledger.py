"""Role counts and the ledger, on a small storm of ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from stormctl.history import Capture, Event, Facet, RunRow
from stormctl.sweeps import SweepPlan, SweepResult, Verdict, sweep_log
from stormctl.testing import LogBuilder

Judge = Callable[..., SweepResult]


def place_of(storm: LogBuilder, event_type: str, name: str, nth: int = -1) -> int:
    return [at for at, event in enumerate(storm.events, 1) if (event.type, event.name) == (event_type, name)][nth]


def output(storm: LogBuilder) -> Any:
    assert storm.capture().run is not None
    return storm.capture().run.output  # type: ignore[union-attr]


def with_output(storm: LogBuilder, value: Any) -> Capture:
    row = storm.capture().run
    assert row is not None
    return storm.capture(run=replace(row, output=value))


def twice(storm: LogBuilder) -> LogBuilder:
    """The last finalization created once more under an id of its own, as two writers of one decision would."""
    place = place_of(storm, "step_created", "finalizeStep")
    return storm.repeated(place, correlation_id=storm.id("step", 900))


class TestRoles:
    def test_a_run_that_plays_each_role_as_often_as_it_should_is_clean(self, judge: Judge, storm: LogBuilder) -> None:
        assert judge("roles", storm).verdict is Verdict.CLEAN

    def test_a_role_played_twice_under_two_ids_is_found(self, judge: Judge, storm: LogBuilder) -> None:
        result = judge("roles", twice(storm))
        assert [finding.key.rpartition("/")[0] for finding in result.findings] == [
            "roles/excess/finalizeStep",
            "roles/count",
        ]
        assert "finalizeStep is created 7 times where 6 are allowed" in result.findings[0].message
        assert result.findings[0].positions == (len(storm.events) + 1,)
        assert result.findings[0].witness[-1].endswith("step_created rank 900 step:finalizeStep")

    def test_only_roles_sees_it(self, storm: LogBuilder) -> None:
        unfinished = storm.until(len(storm.events) - 1)
        report = sweep_log(twice(unfinished).capture(), SweepPlan())
        assert list(report.fatal_by_sweep()) == ["roles"]

    def test_a_second_create_of_one_entity_is_not_a_second_role(self, judge: Judge, storm: LogBuilder) -> None:
        again = storm.repeated(place_of(storm, "step_created", "finalizeStep"))
        assert judge("roles", again).verdict is Verdict.CLEAN
        assert judge("lifecycle", again).verdict is Verdict.VIOLATED

    def test_a_completed_run_that_lacks_a_role_is_found(self, judge: Judge, storm: LogBuilder) -> None:
        victim = storm.events[place_of(storm, "step_created", "releaseStep") - 1].correlation_id

        def forget(events: list[Event]) -> None:
            events[:] = [event for event in events if event.correlation_id != victim]

        (finding,) = judge("roles", storm.edited(forget)).findings
        assert finding.message == "a completed run holds 6 of releaseStep and this one 5"

    def test_a_log_that_stops_before_its_run_is_not_counted(self, judge: Judge, storm: LogBuilder) -> None:
        short = storm.edited(lambda events: events.__delitem__(slice(20, None)))
        for result in (judge("roles", short), judge("roles", storm, truncated=True)):
            assert (result.verdict, result.missing) == (Verdict.UNKNOWN, ("the log up to the run's end",))

    def test_without_a_workload_it_is_unknown(self, judge: Judge) -> None:
        result = judge("roles", LogBuilder().run_created().step(0, "a"))
        assert (result.verdict, result.missing) == (Verdict.UNKNOWN, ("a workload (name it with --workload)",))

    def test_an_unknown_workload_is_named(self, judge: Judge) -> None:
        result = judge("roles", LogBuilder().run_created("order\x1b[31m"))
        assert result.verdict is Verdict.UNKNOWN
        assert result.missing == (r"a workload named 'order\\x1b[31m'",)

    def test_an_input_that_the_workload_does_not_take_is_unknown(self, judge: Judge) -> None:
        result = judge("roles", LogBuilder().run_created("step-storm", rounds="many"))
        assert result.verdict is Verdict.UNKNOWN
        assert "input 'rounds' of step-storm is 'many'" in str(result.missing[0])


class TestLedger:
    def test_a_ledger_that_adds_up_is_clean(self, judge: Judge, storm: LogBuilder) -> None:
        assert judge("ledger", storm).verdict is Verdict.CLEAN

    def test_a_ledger_that_contradicts_itself_is_found(self, judge: Judge, storm: LogBuilder) -> None:
        rounds = [dict(record) for record in output(storm)["ledger"]]
        rounds[1]["stragglers"] += 1
        result = judge("ledger", with_output(storm, {**output(storm), "ledger": rounds}))
        (finding,) = result.findings
        assert finding.message == "round 1: 0 branches straggled and the record says 1"
        assert finding.witness == (f"{len(storm.events)} run_completed",)

    def test_a_value_that_is_no_ledger_is_found_and_not_counted(self, judge: Judge, storm: LogBuilder) -> None:
        wrong = with_output(storm, "done")
        assert judge("ledger", wrong).findings[0].message == "the run returned no object"
        assert judge("roles", wrong).verdict is Verdict.CLEAN

    def test_a_run_that_did_not_complete_has_no_ledger(self, judge: Judge) -> None:
        assert judge("ledger", LogBuilder().run_created("step-storm").run_failed()).verdict is Verdict.CLEAN

    def test_without_the_returned_value_it_is_unknown(self, judge: Judge, storm: LogBuilder) -> None:
        assert judge("ledger", storm, missing=[Facet.RESULT]).missing == ("the run's returned value",)
        assert judge("ledger", storm.capture(run=RunRow("completed", "step-storm"))).verdict is Verdict.VIOLATED
