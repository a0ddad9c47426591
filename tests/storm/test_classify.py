"""Outcomes, in upstream's order of evaluation: what a driver saw of a run -> one word."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stormctl.history import Event, EventLog, RunRow
from stormctl.storm.classify import flags, judge, judge_stuck, why_vacuous
from stormctl.storm.outcome import Outcome
from stormctl.workloads.base import Pressure
from stormctl.workloads.step_storm import STEP_STORM, Input

INPUT = Input(rounds=1, width=2, reconcile_base=1)


def ledger(*winners: str) -> dict[str, object]:
    late = winners.count("watchdog")
    branches = [{"round": 0, "index": index, "winner": winner} for index, winner in enumerate(winners)]
    return {"ledger": [{"round": 0, "branches": branches, "stragglers": late, "reconciled": 1 + late}]}


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("CORRUPTED_EVENT_LOG", Outcome.CORRUPTED),
        ("USER_ERROR", Outcome.USER_ERROR),
        ("RUNTIME_ERROR", Outcome.RUNTIME_ERROR),
        ("WORLD_CONTRACT_ERROR", Outcome.CONTRACT_ERROR),
        ("REPLAY_TIMEOUT", Outcome.OTHER),
        (None, Outcome.OTHER),
    ],
)
def test_a_failed_run_is_classified_by_its_plaintext_code(code: str | None, outcome: Outcome) -> None:
    judged = judge(RunRow("failed", error_code=code, error_message="said so"), STEP_STORM, INPUT)
    assert (judged.outcome, judged.code, judged.message) == (outcome, code, "said so")


def test_a_completed_run_with_a_sound_ledger_is_completed_and_its_stragglers_are_counted() -> None:
    judged = judge(RunRow("completed", output=ledger("settled", "watchdog")), STEP_STORM, INPUT)
    assert (judged.outcome, judged.stragglers) == (Outcome.COMPLETED, 1)


def test_a_completed_run_whose_ledger_contradicts_itself_gates_as_other() -> None:
    value = ledger("settled", "watchdog")
    value["ledger"][0]["reconciled"] = 1  # type: ignore[index]
    judged = judge(RunRow("completed", output=value), STEP_STORM, INPUT)
    assert (judged.outcome, judged.code) == (Outcome.OTHER, STEP_STORM.ledger_code)
    assert judged.message == "round 0: 1 steps reconciled where 1 + 1 should have"


def test_a_cancelled_run_says_nothing_about_the_condition() -> None:
    assert judge(RunRow("cancelled"), STEP_STORM, INPUT).outcome is Outcome.INFRA


@pytest.mark.parametrize(("quiet", "outcome"), [(1_000, Outcome.SLOW), (3_000, Outcome.DORMANT)])
def test_a_stuck_run_is_slow_while_it_still_writes_and_dormant_once_it_does_not(quiet: int, outcome: Outcome) -> None:
    log = EventLog([Event("step_completed", created_at=100_000), Event("hook_received", created_at=109_999)])
    found, progress = judge_stuck(log, now=100_000 + quiet, cap_ms=8_000)
    assert found is outcome
    assert progress == {"last_event": "step_completed", "quiet_ms": quiet}


def test_a_run_of_which_only_the_pump_was_heard_is_dormant() -> None:
    found, progress = judge_stuck(EventLog([Event("hook_received", created_at=5)]), now=6, cap_ms=1_000)
    assert (found, progress["last_event"]) == (Outcome.DORMANT, None)


def test_a_control_whose_environment_failed_it_is_infra_and_not_a_fault_of_the_software() -> None:
    code = replace(STEP_STORM, infra=lambda _value, _input: "NO_WAKE_BRANCH")
    judged = judge(RunRow("completed", output=ledger("settled", "watchdog")), code, INPUT)
    assert (judged.outcome, judged.code) == (Outcome.INFRA, "NO_WAKE_BRANCH")


def test_calibration_losses_are_flagged_and_a_normal_run_is_not() -> None:
    sent = Pressure(resumes_sent=9)
    assert flags(Outcome.COMPLETED, sent, None) == ()
    assert flags(Outcome.COMPLETED, sent, "nobody straggled") == ("vacuous",)
    assert flags(Outcome.COMPLETED, Pressure(), None) == ("pressure-lost",)
    assert flags(Outcome.CORRUPTED, Pressure(hook_missing=True), None) == ("pressure-lost",)


@pytest.mark.parametrize(
    ("winners", "empty"),
    [(("settled", "settled"), True), (("watchdog", "watchdog"), True), (("settled", "watchdog"), False)],
)
def test_a_run_in_which_every_branch_went_the_same_way_is_vacuous(winners: tuple[str, ...], empty: bool) -> None:
    row = RunRow("completed", output=ledger(*winners))
    why = why_vacuous(row, judge(row, STEP_STORM, INPUT), STEP_STORM, INPUT, EventLog([]), Pressure(resumes_sent=1))
    assert (why is not None) == empty


def test_only_a_completed_run_can_be_vacuous() -> None:
    row = RunRow("failed", error_code="CORRUPTED_EVENT_LOG", output=ledger("settled", "settled"))
    judged = judge(row, STEP_STORM, INPUT)
    assert why_vacuous(row, judged, STEP_STORM, INPUT, EventLog([]), Pressure()) is None
