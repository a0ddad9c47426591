"""From what a driver saw of a run to its outcome, in upstream's order of evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stormctl.history import EventLog, RunRow, kinds
from stormctl.storm.outcome import BY_ERROR_CODE, Outcome
from stormctl.workloads.base import Pressure, Workload

PRESSURE_LOST = "pressure-lost"
VACUOUS = "vacuous"
#: a stuck run counts as slow while its log grew by itself within this share of the cap
RECENT_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome, its code and message, and what else follows from the run's value."""

    outcome: Outcome
    code: str | None = None
    message: str | None = None
    stragglers: int | None = None


def judge(row: RunRow, code: Workload, input: Any) -> Judgement:
    """The outcome of a run that has ended. Only the plaintext code of the run row is trusted."""
    if row.status == "failed":
        outcome = BY_ERROR_CODE.get(row.error_code or "", Outcome.OTHER)
        return Judgement(outcome, row.error_code, row.error_message)
    if row.status == "cancelled":
        return Judgement(Outcome.INFRA, "CANCELLED", "the run was cancelled")
    problem = code.check(row.output, input)
    if problem is not None:
        return Judgement(Outcome.OTHER, code.ledger_code, problem)
    environment = code.infra(row.output, input)
    if environment is not None:
        return Judgement(Outcome.INFRA, environment, "the run completed, but its environment failed it")
    return Judgement(Outcome.COMPLETED, stragglers=code.stragglers(row.output))


def judge_stuck(log: EventLog, now: int, cap_ms: float) -> tuple[Outcome, dict[str, Any]]:
    """Slow or dormant, by when the run last did something itself; what the pump sends it does not count."""
    own = [event for event in log if event.type not in (kinds.HOOK_RECEIVED, kinds.RUN_CREATED)]
    last = own[-1] if own else None
    quiet = None if last is None or last.created_at is None else max(0, now - last.created_at)
    outcome = Outcome.SLOW if quiet is not None and quiet <= cap_ms * RECENT_SHARE else Outcome.DORMANT
    return outcome, {"last_event": None if last is None else last.type, "quiet_ms": quiet}


def why_vacuous(
    row: RunRow | None, judgement: Judgement, code: Workload, input: Any, log: EventLog, pressure: Pressure
) -> str | None:
    """Why a completed run proves nothing, as its scenario sees it; None for any other run."""
    if row is None or judgement.outcome is not Outcome.COMPLETED:
        return None
    return code.vacuous(row.output, input, log, pressure)


def flags(outcome: Outcome, pressure: Pressure, vacuous: str | None) -> tuple[str, ...]:
    """Why a clean-looking run may prove nothing: the pump died or never pressed, or its scenario says so."""
    found = []
    if pressure.hook_missing or (pressure.resumes_sent == 0 and outcome is Outcome.COMPLETED):
        found.append(PRESSURE_LOST)
    if vacuous is not None:
        found.append(VACUOUS)
    return tuple(found)


def pressure_row(pressure: Pressure, stragglers: int | None, vacuous: str | None) -> Mapping[str, Any]:
    """The pressure columns of an attempt. ``details`` is what only its scenario counts, ``vacuous`` why it proves
    nothing."""
    return {
        "resumes_sent": pressure.resumes_sent,
        "resumes_failed": pressure.resumes_failed,
        "hook_missing": pressure.hook_missing,
        "stragglers": stragglers,
        **({"details": dict(pressure.details)} if pressure.details else {}),
        **({"vacuous": vacuous} if vacuous is not None else {}),
    }
