"""Hook conflicts: a refusal needs an owner, and one that the run itself was about to give back is a race."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stormctl.sweeps import Severity, SweepResult, Verdict
from stormctl.testing import RUN_ID, LogBuilder

Judge = Callable[..., SweepResult]


def run() -> LogBuilder:
    return LogBuilder().run_created().run_started()


def refused(built: LogBuilder, rank: int, owner: str | None = None, token: str | None = "t") -> LogBuilder:
    return built.event("hook_conflict", rank, token=token, data={} if owner is None else {"conflictingRunId": owner})


def kinds_of(result: SweepResult) -> list[str]:
    return [finding.key.split("/")[1] for finding in result.findings]


def test_a_refusal_while_the_token_is_held_is_clean(judge: Judge) -> None:
    built = refused(run().hook_created(0, "t"), 1, RUN_ID).hook_received(0).hook_disposed(0)
    assert judge("hook-conflicts", built).verdict is Verdict.CLEAN


def test_a_refusal_that_the_disposal_follows_at_once_is_a_race(judge: Judge) -> None:
    result = judge("hook-conflicts", refused(run().hook_created(0, "t"), 1, RUN_ID).hook_disposed(0))
    (finding,) = result.findings
    assert finding.key.startswith("hook-conflicts/conflict-before-disposal/hook_")
    assert finding.message == "rank 1 was refused a token that rank 0 was giving back"
    assert finding.witness == ("4 hook_conflict rank 1 hook", "5 hook_disposed rank 0 hook")
    assert finding.severity is Severity.FATAL


def test_a_refusal_without_an_owner_in_the_run_that_it_names_is_told(judge: Judge) -> None:
    built = refused(run().hook_created(0, "t").hook_disposed(0), 1, RUN_ID)
    assert kinds_of(judge("hook-conflicts", built)) == ["unjustified-conflict"]


@pytest.mark.parametrize(("profile", "severity"), [("workflow@4.8", Severity.LEGAL), ("workflow@seq", Severity.FATAL)])
def test_released_stores_claim_a_token_before_its_event(judge: Judge, profile: str, severity: Severity) -> None:
    (finding,) = judge("hook-conflicts", refused(run(), 1, RUN_ID), profile=profile).findings
    assert finding.severity is severity


@pytest.mark.parametrize("owner", [None, "wrun_another"])
def test_an_owner_in_another_run_is_not_to_be_seen(judge: Judge, owner: str | None) -> None:
    assert judge("hook-conflicts", refused(run(), 1, owner)).findings == ()


def test_the_disposal_of_another_hook_says_nothing(judge: Judge) -> None:
    built = refused(run().hook_created(0, "t").hook_created(2, "u"), 1, RUN_ID).hook_disposed(2)
    assert judge("hook-conflicts", built).findings == ()


def test_a_log_that_was_cut_off_may_have_had_the_owner(judge: Judge) -> None:
    assert judge("hook-conflicts", refused(run(), 1, RUN_ID), truncated=True).findings == ()


def test_tokens_that_were_not_captured_are_noted(judge: Judge) -> None:
    result = judge("hook-conflicts", refused(run(), 1, token=None))
    assert (result.verdict, result.missing) == (Verdict.CLEAN, ("the tokens of 1 refused hooks",))
