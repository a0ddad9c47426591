"""Rows and lock files against the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from stormctl.history import Facet, RunRow
from stormctl.sweeps import Severity, SweepPlan, SweepResult, Verdict, sweep_log
from stormctl.testing import LogBuilder

Judge = Callable[..., SweepResult]


def log() -> LogBuilder:
    built = LogBuilder().run_created().run_started().step(0, "a").wait_created(1).wait_completed(1).hook_created(2)
    return built.hook_disposed(2).run_completed()


STEP, WAIT, HOOK = (log().id(kind, rank) for kind, rank in (("step", 0), ("wait", 1), ("hook", 2)))


def kinds_of(result: SweepResult) -> list[str]:
    return [finding.key.split("/")[1] for finding in result.findings]


class TestRunRow:
    def test_a_row_that_agrees_is_clean(self, judge: Judge) -> None:
        assert judge("rows", log()).verdict is Verdict.CLEAN

    @pytest.mark.parametrize(
        ("built", "status", "kind"),
        [
            (log().without(10), "completed", "run-row-ended"),
            (log(), "running", "run-row-open"),
            (log(), "failed", "run-row-status"),
        ],
    )
    def test_one_that_does_not_is_a_fault(self, judge: Judge, built: LogBuilder, status: str, kind: str) -> None:
        (finding,) = judge("rows", built, run=RunRow(status), profile="workflow@seq").findings
        assert (finding.key.split("/")[1], finding.severity) == (kind, Severity.FATAL)

    def test_a_run_with_two_ends_agrees_with_either(self, judge: Judge) -> None:
        assert judge("rows", log().run_failed(), run=RunRow("completed")).findings == ()

    def test_a_log_that_was_cut_off_lacks_its_end(self, judge: Judge) -> None:
        assert judge("rows", log().without(10), run=RunRow("completed"), truncated=True).findings == ()

    @pytest.mark.parametrize("profile", ["strict", "workflow@4.8", "workflow@5-local"])
    def test_a_release_that_allows_it_does_not_make_the_log_clean(self, profile: str) -> None:
        built = log().without(10)
        report = sweep_log(built.capture(run=RunRow("completed")), SweepPlan(profile=profile))
        assert report.verdict is Verdict.UNKNOWN
        assert "the run's row says completed and the log has no end" in report.reasons

    def test_without_rows_it_is_left_out(self) -> None:
        report = sweep_log(log().capture(missing=[Facet.ROWS]), SweepPlan())
        assert "rows" not in [one.sweep for one in report.sweeps]


ROWS: dict[str, dict[str, Any]] = {
    STEP: {"status": "completed", "attempt": 1},
    WAIT: {"status": "completed"},
}


def changed(entity: str, **fields: Any) -> dict[str, dict[str, Any]]:
    return {**ROWS, entity: {**ROWS.get(entity, {}), **fields}}


class TestEntityRows:
    def test_rows_that_agree_are_clean(self, judge: Judge) -> None:
        assert judge("rows", log(), data={"rows": ROWS}).findings == ()

    @pytest.mark.parametrize(
        ("rows", "kind"),
        [
            (changed(STEP, status="running"), "row-status"),
            (changed(STEP, status="failed"), "row-status"),
            (changed(WAIT, status="waiting"), "row-status"),
            (changed(STEP, attempt=2), "row-attempt"),
            (changed(log().id("step", 9), status="pending"), "row-without-create"),
            ({log().id("step", 9): {}, WAIT: ROWS[WAIT]}, "create-without-row"),
        ],
    )
    def test_rows_that_do_not_are_faults(self, judge: Judge, rows: Mapping[str, Any], kind: str) -> None:
        found = kinds_of(judge("rows", log(), data={"rows": rows}))
        assert kind in found
        assert set(found) <= {kind, "row-without-create"}

    def test_a_row_that_ended_without_its_event_is_a_writer_that_died(self, judge: Judge) -> None:
        built = log().without(5)
        for profile, severity in (("strict", Severity.FATAL), ("workflow@5-local", Severity.LEGAL)):
            (finding,) = judge("rows", built, data={"rows": ROWS}, profile=profile).findings
            assert finding.message == f"the row of {STEP} says completed and the log does not end it"
            assert finding.severity is severity

    def test_rows_of_hooks_and_waits_go_with_their_use(self, judge: Judge) -> None:
        assert judge("rows", log(), data={"rows": {STEP: ROWS[STEP]}}).findings == ()

    def test_the_rows_of_a_live_run_are_of_another_moment(self, judge: Judge) -> None:
        built = log().without(10)
        result = judge("rows", built, data={"rows": changed(STEP, attempt=7)}, run=RunRow("running"), live=True)
        assert (result.findings, result.missing) == ((), ("the rows of a run at rest",))


CLAIMS = [
    f"steps/{STEP}.created",
    f"steps/{STEP}.terminal",
    f"waits/{WAIT}.created",
    f"waits/{WAIT}.completed",
    f"hooks/{HOOK}.disposed",
    "runs/terminal",
]


class TestClaims:
    def test_claims_with_their_events_are_clean(self, judge: Judge) -> None:
        assert judge("claims", log(), data={"claims": CLAIMS}).verdict is Verdict.CLEAN

    @pytest.mark.parametrize(
        ("place", "claim"),
        [(3, STEP), (5, STEP), (6, WAIT), (7, WAIT), (9, HOOK), (10, "runs/terminal")],
    )
    def test_a_claim_without_its_event_is_a_writer_that_died(self, judge: Judge, place: int, claim: str) -> None:
        (finding,) = judge("claims", log().without(place), data={"claims": CLAIMS}).findings
        assert finding.key.startswith("claims/claim-without-event/")
        assert any(claim in line for line in finding.witness)

    @pytest.mark.parametrize("place", range(5))
    def test_an_event_without_its_claim_is_told_where_others_have_one(self, judge: Judge, place: int) -> None:
        kept = [
            *CLAIMS[:place],
            *CLAIMS[place + 1 :],
            f"{CLAIMS[place].partition('/')[0]}/x.{CLAIMS[place].rpartition('.')[2]}",
        ]
        found = kinds_of(judge("claims", log(), data={"claims": kept}))
        assert sorted(found) == ["claim-without-event", "event-without-claim"]

    def test_a_release_that_takes_no_claims_of_a_kind_is_not_blamed(self, judge: Judge) -> None:
        older = [claim for claim in CLAIMS if not claim.endswith(".created")]
        assert judge("claims", log(), data={"claims": older}).findings == ()

    def test_what_lies_staged_and_a_lock_that_was_kept_are_told(self, judge: Judge) -> None:
        left = {"claims": [*CLAIMS, "runs/append.lock"], "staged": ["evnt_x.01.json"]}
        assert kinds_of(judge("claims", log(), data=left)) == ["lock-left", "staged-left"]

    def test_token_and_resume_claims_name_events_of_their_hook(self, judge: Judge) -> None:
        built = log()
        created = next(event.event_id for event in built.events if event.type == "hook_created")
        claim = {"claim": "token", "hookId": HOOK, "eventId": created}
        assert judge("claims", built, data={"claimed_events": [claim]}).findings == ()
        for odd in ({**claim, "eventId": "evnt_gone"}, {**claim, "hookId": "hook_other"}):
            assert kinds_of(judge("claims", built, data={"claimed_events": [odd]})) == ["claimed-event-absent"]

    def test_a_live_run_has_claims_before_events(self, judge: Judge) -> None:
        result = judge("claims", log().without(10), data={"claims": CLAIMS}, live=True, run=RunRow("running"))
        assert result.findings == ()

    def test_it_is_left_out_where_there_are_none(self) -> None:
        assert "claims" not in [one.sweep for one in sweep_log(log().capture(), SweepPlan()).sweeps]
