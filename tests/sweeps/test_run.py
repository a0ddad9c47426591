"""A log's verdict from those of its sweeps, and the report."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.errors import UsageError
from stormctl.history import Capture, Event, EventLog, Evidence, Facet, kinds
from stormctl.readers import Unreadable, write_capture
from stormctl.readers.evidence import missing_from
from stormctl.sweeps import (
    PROFILES,
    SWEEPS,
    LogReport,
    Severity,
    SweepPlan,
    Verdict,
    profile_named,
    sweep_log,
    sweep_many,
    sweep_paths,
    sweep_report,
    worst,
)
from stormctl.sweeps.base import Sweep
from stormctl.testing import LogBuilder

WITH_NETS = SweepPlan(workload="step-storm", engines=("nets",))


class TestVerdict:
    def test_a_whole_run_without_a_fault_is_clean(self, storm: LogBuilder) -> None:
        report = sweep_log(storm.capture(), SweepPlan())
        assert (report.verdict, report.reasons) == (Verdict.CLEAN, ())

    def test_one_fatal_finding_makes_it_violated_whatever_is_unknown(self, storm: LogBuilder) -> None:
        report = sweep_log(storm.without(9).capture(missing=[Facet.EVENT_IDS]), SweepPlan())
        assert report.verdict is Verdict.VIOLATED
        assert report.unknown_sweeps == ("id-order",)
        assert report.reasons == ("id-order is unknown: it lacks event ids",)

    def test_missing_evidence_is_unknown_and_never_clean(self, storm: LogBuilder) -> None:
        report = sweep_log(storm.capture(missing=[Facet.EVENT_IDS]), SweepPlan())
        assert report.verdict is Verdict.UNKNOWN

    def test_a_failed_run_with_a_clean_log_makes_the_engine_suspect(self) -> None:
        report = sweep_log(LogBuilder().run_created("step-storm").run_started().run_failed().capture(), SweepPlan())
        assert report.verdict is Verdict.UNKNOWN
        assert report.reasons == (
            "engine suspect: the run failed with CORRUPTED_EVENT_LOG while no sweep found a fault in its log",
        )

    def test_a_failed_run_with_a_fault_in_its_log_does_not(self) -> None:
        broken = LogBuilder().run_created("step-storm").run_started().hook_created(0).run_failed().without(2)
        report = sweep_log(broken.capture(), SweepPlan())
        assert report.verdict is Verdict.VIOLATED
        assert report.reasons == ()

    def test_a_run_that_was_still_going_is_not_clean(self) -> None:
        report = sweep_log(LogBuilder().run_created("step-storm").capture(live=True), SweepPlan())
        assert (report.verdict, report.reasons) == (
            Verdict.UNKNOWN,
            ("the run was still going when it was captured",),
        )

    def test_a_truncated_log_is_not_clean(self, storm: LogBuilder) -> None:
        report = sweep_log(storm.until(9).capture(truncated=True), SweepPlan())
        assert (report.verdict, report.reasons) == (Verdict.UNKNOWN, ("the log was not captured to its end",))

    def test_an_empty_log_is_unknown(self) -> None:
        evidence = Evidence("x", missing_from([], has_rows=False, has_audit=False, has_result=False))
        report = sweep_log(Capture("x", EventLog([], "r"), evidence), WITH_NETS)
        assert report.verdict is Verdict.UNKNOWN

    @given(st.lists(st.sampled_from(Verdict)))
    def test_the_worst_of_several(self, verdicts: list[Verdict]) -> None:
        expected = (
            Verdict.VIOLATED
            if Verdict.VIOLATED in verdicts
            else Verdict.UNKNOWN
            if Verdict.UNKNOWN in verdicts
            else Verdict.CLEAN
        )
        assert worst(verdicts) is expected


class TestRegistry:
    def test_a_check_that_crashes_is_unknown_and_hides_nothing(
        self, storm: LogBuilder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def crash(_capture: Capture) -> Iterator[Any]:
            raise ZeroDivisionError("of \x1b[2J all things")
            yield

        monkeypatch.setitem(SWEEPS, "crash", Sweep("crash", "?", frozenset(), ("x",), crash))
        report = sweep_log(storm.capture(), SweepPlan())
        crashed = report.sweeps[-1]
        assert (crashed.sweep, crashed.verdict) == ("crash", Verdict.UNKNOWN)
        assert crashed.missing == ("the check itself failed: ZeroDivisionError: of \\x1b[2J all things",)
        assert all(result.verdict is Verdict.CLEAN for result in report.sweeps[:-1])

    @pytest.mark.parametrize("name", PROFILES)
    def test_profiles_speak_only_of_faults_that_sweeps_can_raise(self, name: str) -> None:
        raised = {(sweep.name, kind) for sweep in SWEEPS.values() for kind in sweep.kinds}
        assert set(PROFILES[name].severities) <= raised

    def test_what_a_profile_does_not_name_is_fatal(self) -> None:
        assert profile_named("strict").severity("dense", "gap") is Severity.FATAL

    def test_every_sweep_says_what_it_asks(self) -> None:
        assert all(sweep.question.endswith("?") for sweep in SWEEPS.values())

    def test_an_unknown_profile_names_the_known_ones(self, storm: LogBuilder) -> None:
        with pytest.raises(UsageError, match="no profile 'lax'") as refused:
            sweep_log(storm.capture(), SweepPlan(profile="lax"))
        assert "workflow@4.8" in refused.value.remedy


class TestWorkloads:
    def test_the_plan_names_the_workload_before_the_capture_does(self) -> None:
        capture = LogBuilder().run_created("step-storm", rounds=1).capture()
        (found,) = sweep_log(capture, SweepPlan(workload="hook-storm", engines=("nets",))).rebinding
        assert found.workload == "hook-storm"

    def test_the_capture_names_its_own(self, storm: LogBuilder) -> None:
        (found,) = sweep_log(storm.capture(), SweepPlan(engines=("nets",))).rebinding
        assert found.workload == "step-storm"

    def test_an_input_that_is_not_known_is_the_published_one(self) -> None:
        report = sweep_log(LogBuilder().run_created().capture(), WITH_NETS)
        assert report.rebinding[0].clean_through == 1


class TestReport:
    def test_the_keys_are_a_contract(self, storm: LogBuilder) -> None:
        place = next(at for at, event in enumerate(storm.events, 1) if event.name == "finalizeStep")
        logs = sweep_many([storm.changed(place, name="releaseStep").capture()], SweepPlan(engines=("nets",)))
        report = json.loads(json.dumps(sweep_report(list(logs), [Unreadable("a", "it is empty", "Capture it again.")])))
        assert list(report) == ["schema", "logs", "unreadable"]
        assert report["schema"] == "stormctl.sweep/1"
        assert report["unreadable"] == [{"source": "a", "error": "it is empty. Capture it again."}]
        (log,) = report["logs"]
        assert list(log) == [
            "source", "run_id", "events", "profile", "profile_from", "profile_told", "verdict", "reasons", "sweeps",
            "rebinding", "perturbation", "world",
        ]  # fmt: skip
        assert list(log["sweeps"][0]) == ["sweep", "verdict", "findings", "missing"]
        findings = [finding for sweep in log["sweeps"] for finding in sweep["findings"]]
        assert findings
        for finding in findings:
            assert list(finding) == ["severity", "positions", "message", "witness", "key"]
            assert len(finding["witness"]) <= 6
        (found,) = log["rebinding"]
        assert list(found) == [
            "engine", "workload", "prefixes", "clean_through", "flips", "swaps", "divergence", "whole",
        ]  # fmt: skip
        assert list(found["whole"]) == ["output", "event_id", "divergence"]
        assert list(found["divergence"]) == ["prefix", "position", "rank", "expected", "actual", "text"]

    def test_a_report_travels_between_processes(self, storm: LogBuilder) -> None:
        report = sweep_log(storm.without(5).capture(), SweepPlan(engines=("nets",)))
        assert pickle.loads(pickle.dumps(report)) == report
        plan = SweepPlan(engines=("nets",))
        assert pickle.loads(pickle.dumps(plan)) == plan

    def test_several_processes_give_the_same_answer_in_the_same_order(self, tmp_path: Path, storm: LogBuilder) -> None:
        for number in range(3):
            capture = storm.without(number + 3).capture()
            renamed = replace(capture, log=EventLog(capture.log.events, f"wrun_{number}"))
            write_capture(renamed, tmp_path)
        (tmp_path / "logs" / "wrun_1.ndjson").write_bytes(b"{")
        one, two = (list(sweep_paths([tmp_path], SweepPlan(), processes=count)) for count in (1, 2))
        assert one == two
        assert [type(item) for item in one] == [LogReport, Unreadable, LogReport]


# -- whatever a log holds, the answer is a report ----------------------------------------------------------------------

BODIES = st.sampled_from(
    ["step_" + "0" * 25 + "1", "wait_01KE0000000BQMXDCTBVSM4YSG", "step_01KE0000000BQMXDCTBVSM4YSG"]
)
EVENTS = st.builds(
    Event,
    type=st.sampled_from([*sorted(kinds.ALL_TYPES), "something_new", ""]),
    event_id=st.none() | st.sampled_from(["evnt_" + "0" * 25 + "2", "evnt_01KE0000000BQMXDCTBVSM4YSG", "x", ""]),
    correlation_id=st.none() | BODIES | st.text(max_size=4),
    position=st.none() | st.integers(0, 5) | st.just(1 << 62),
    created_at=st.none() | st.integers(0, 1 << 48),
    name=st.none() | st.text(max_size=4),
    token=st.none() | st.just("t"),
    resume_at=st.none() | st.integers(0, 1 << 48),
    data=st.dictionaries(st.sampled_from(["attempt", "resumeId"]), st.integers() | st.text(max_size=2), max_size=2),
)


@given(st.lists(EVENTS, max_size=12), st.sets(st.sampled_from(Facet)), st.booleans())
def test_no_log_crashes_a_sweep(events: list[Event], missing: set[Facet], live: bool) -> None:
    capture = Capture("x", EventLog(events, "wrun_x"), Evidence("x", frozenset(missing), live=live))
    report = sweep_log(capture, WITH_NETS)
    assert not any("check itself failed" in str(what) for result in report.sweeps for what in result.missing)
    assert json.dumps(report.to_json(), allow_nan=False)
