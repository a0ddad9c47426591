"""The small sweeps: attributes, spec versions, the cap, the store's counter, the credit of writers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from stormctl.history import ids
from stormctl.sweeps import Severity, SweepPlan, SweepResult, Verdict, sweep_log
from stormctl.sweeps.cap import MAX_EVENTS
from stormctl.testing import LogBuilder

Judge = Callable[..., SweepResult]
FATAL, INERT, LEGAL = Severity.FATAL, Severity.INERT, Severity.LEGAL


def run(**how: bool) -> LogBuilder:
    return LogBuilder(**how).run_created().run_started()


def kinds_of(result: SweepResult) -> list[str]:
    return [finding.key.split("/")[1] for finding in result.findings]


class TestAttributes:
    @staticmethod
    def written(built: LogBuilder, step: int) -> LogBuilder:
        writer = {"type": "step", "stepId": built.id("step", step), "attempt": 1}
        return built.edited(lambda _events: None).event("attr_set", data={"changes": [], "writer": writer})

    def test_a_running_step_may_write(self, judge: Judge) -> None:
        built = self.written(run().step_created(0, "a").step_started(0), 0).step_completed(0).attr_set(1, phase="two")
        assert judge("attributes", built).verdict is Verdict.CLEAN

    @pytest.mark.parametrize(
        ("built", "kind"),
        [
            (run().step_created(0, "a"), "writer-not-running"),
            (run().step(0, "a"), "writer-not-running"),
            (run().step_created(0, "a").step_started(0).step_retrying(0), "writer-not-running"),
            (run(), "writer-unknown"),
        ],
        ids=["not started", "ended", "waiting for another attempt", "not there"],
    )
    def test_a_step_that_does_not_run_may_not(self, judge: Judge, built: LogBuilder, kind: str) -> None:
        for profile, severity in (("strict", FATAL), ("workflow@5", LEGAL), ("workflow@seq", FATAL)):
            (finding,) = judge("attributes", self.written(built, 0), profile=profile).findings
            assert (finding.key.split("/")[1], finding.severity) == (kind, severity)

    def test_the_workflow_writes_under_an_id(self, judge: Judge) -> None:
        built = run().event("attr_set", data={"writer": {"type": "workflow"}})
        assert kinds_of(judge("attributes", built)) == ["writer-without-id"]

    def test_a_log_that_was_cut_off_may_have_had_the_step(self, judge: Judge) -> None:
        assert judge("attributes", self.written(run(), 0), truncated=True).findings == ()

    def test_a_write_that_names_no_writer_is_not_judged(self, judge: Judge) -> None:
        assert judge("attributes", run().event("attr_set", 0)).findings == ()


class TestSpec:
    @staticmethod
    def under(*specs: int | None, **how: bool) -> LogBuilder:
        built = LogBuilder(**how)
        for version in specs:
            built.event("hook_received", 0, spec=version)
        return built

    def test_one_version_is_clean_and_what_says_none_is_nothing(self, judge: Judge) -> None:
        assert judge("spec", self.under(5, 5, None)).verdict is Verdict.CLEAN

    def test_two_versions_are_told_by_their_first_events(self, judge: Judge) -> None:
        result = judge("spec", self.under(3, 3, 5))
        (finding,) = result.findings
        assert finding.message == "events of the spec versions 3, 5 in one log"
        assert finding.positions == (1, 3)
        assert kinds_of(judge("spec", self.under(3, 5), profile="workflow@5")) == ["mixed-spec"]
        assert judge("spec", self.under(3, 5), profile="workflow@5").verdict is Verdict.CLEAN

    def test_slot_ids_came_with_version_6(self, judge: Judge) -> None:
        assert kinds_of(judge("spec", self.under(5, 5, slots=True))) == ["id-spec"]
        assert kinds_of(judge("spec", self.under(6, 6, slots=True))) == []

    @pytest.mark.parametrize(
        ("spec", "slot", "expected"),
        [(7, 2, []), (6, 2, ["noop-spec"]), (7, 3, ["noop-id"])],
        ids=["a sealed slot", "too early a version", "another slot"],
    )
    def test_a_noop_fills_its_own_slot(self, judge: Judge, spec: int, slot: int, expected: list[str]) -> None:
        built = LogBuilder(slots=True).event("run_created", spec=spec)
        built.event("noop", spec=spec, correlation_id=ids.slot_id(slot, "noop"))
        assert kinds_of(judge("spec", built)) == expected


def test_a_log_beyond_the_cap_is_told_and_one_at_the_cap_is_not(judge: Judge) -> None:
    built = LogBuilder(step_ms=0)
    event = run().events[1]
    built.events = [event] * MAX_EVENTS
    capture = built.capture()
    assert judge("cap", _numbered(built)).findings == ()
    built.events.append(event)
    (finding,) = judge("cap", _numbered(built)).findings
    assert finding.severity is INERT
    assert capture.log is not None


def _numbered(built: LogBuilder) -> LogBuilder:
    """Each event at a place of its own, for what was captured twice is taken once."""
    return built.edited(
        lambda events: events.__setitem__(
            slice(None), [replace(event, position=at, event_id=f"{at}") for at, event in enumerate(events, 1)]
        )
    )


class TestCounter:
    @staticmethod
    def kept(seq: object, last: str | None = None) -> dict[str, object]:
        return {"counter": {"seq": seq, "lastEventId": last}}

    def test_a_counter_at_the_end_of_the_log_is_clean(self, judge: Judge) -> None:
        built = run()
        assert judge("counter", built, data=self.kept(2, built.events[-1].event_id)).verdict is Verdict.CLEAN

    @pytest.mark.parametrize(("seq", "kind"), [(3, "counter-ahead"), (1, "counter-behind"), (2, "counter-last-id")])
    def test_one_that_says_otherwise_is_a_fault(self, judge: Judge, seq: int, kind: str) -> None:
        assert kinds_of(judge("counter", run(), data=self.kept(seq, "evnt_other"))) == [kind]

    def test_a_log_that_was_cut_off_is_not_behind_its_counter(self, judge: Judge) -> None:
        assert judge("counter", run(), data=self.kept(9), truncated=True).findings == ()

    def test_a_counter_that_is_no_number_is_unknown(self, judge: Judge) -> None:
        assert judge("counter", run(), data=self.kept("two")).verdict is Verdict.UNKNOWN

    def test_it_is_left_out_where_the_store_keeps_none(self) -> None:
        assert "counter" not in [one.sweep for one in sweep_log(run().capture(), SweepPlan()).sweeps]


class TestCredit:
    @staticmethod
    def told(built: LogBuilder, *writers: tuple[str, int | None]) -> SweepResult:
        records = [
            replace(record, writer=writer, snapshot=snapshot)
            for record, (writer, snapshot) in zip(built.published(), writers, strict=True)
        ]
        report = sweep_log(built.capture(audit=records), SweepPlan(profile="workflow@seq"))
        return next(one for one in report.sweeps if one.sweep == "credit")

    def test_a_decision_that_had_read_the_others_is_clean(self) -> None:
        built = run().step_created(0, "a").step_created(1, "b")
        assert self.told(built, ("a", None), ("a", None), ("a", 2), ("b", 3)).findings == ()

    def test_one_that_had_not_is_told_with_what_it_missed(self) -> None:
        built = run().step_created(0, "a").step_created(1, "b")
        (finding,) = self.told(built, ("a", None), ("a", None), ("a", 2), ("b", 2)).findings
        assert finding.key.startswith("credit/stale-decision/")
        assert finding.witness == ("3 step_created rank 0 step:a", "4 step_created rank 1 step:b")
        assert finding.severity is FATAL

    def test_a_writer_has_credit_for_its_own_decisions(self) -> None:
        built = run().step_created(0, "a").step_created(1, "b")
        assert self.told(built, ("a", None), ("a", None), ("a", 2), ("a", 2)).findings == ()

    def test_facts_are_no_decisions(self) -> None:
        built = run().hook_created(0).hook_received(0)
        assert self.told(built, ("a", None), ("a", None), ("a", 2), ("b", 2)).findings == ()

    def test_a_store_without_a_fence_is_allowed_it(self, judge: Judge) -> None:
        built = run().step_created(0, "a").step_created(1, "b")
        audit = [replace(one, writer=one.event_id or "", snapshot=2) for one in built.published()]
        (finding,) = judge("credit", built, audit=audit).findings
        assert finding.severity is LEGAL
