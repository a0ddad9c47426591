"""What a store accepts: the three measured decision tables (world-local 4.4.1 and 5.0.0-beta.46, world-postgres 4.3.7),
each with the lazy starts and attributes of 5.x.

``check`` only reads. Under a condition without a lock the world may change between this answer and the write that
relies on it; that is the point of such a condition. Under a run lock it cannot.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from stormctl.history import kinds
from stormctl.worlds.base import AppendRequest, Refusal, Refused
from stormctl.worlds.condition import Condition, Semantics
from stormctl.worlds.rows import Entity, Kind
from stormctl.worlds.store_ops import Clock, HasClaim, Once, ReadEntity, ReadRun, StoreOp

#: Types that the store accepts without looking at the run's row.
_BLIND = frozenset({kinds.STEP_COMPLETED, kinds.STEP_RETRYING, kinds.WAIT_COMPLETED, kinds.HOOK_RECEIVED})

#: Types that nothing but a run's row can refuse, by the tables that do so when there is no row.
_NEEDS_ROW = {
    Semantics.LOCAL4: frozenset(),
    Semantics.LOCAL5: frozenset({kinds.RUN_STARTED, kinds.RUN_FAILED}),
    Semantics.PG4: kinds.RUN_TERMINAL,
}


@dataclass(frozen=True, slots=True)
class Ghost:
    """The event lands and the writer is refused all the same: the store publishes before it writes the row."""

    refused: Refused


Verdict = Refused | Ghost | bool
Check = Generator[StoreOp, Any, Verdict]


def check(request: AppendRequest, condition: Condition) -> Check:
    """True when the append may go on, False when it succeeds without an event, or the refusal."""
    run_status: str | None = None
    if request.type not in _BLIND:
        run = yield ReadRun(request.run_id)
        run_status = None if run is None else run.status
        answer = _against_run(request, run_status, condition.semantics, ended=run is not None and run.ended)
        if answer is not True:
            return answer
    if request.correlation_id is None:
        return True
    if request.type in kinds.STEP_TYPES:
        return (yield from _step(request, run_status, condition.semantics))
    if request.type in kinds.WAIT_TYPES:
        return (yield from _wait(request))
    if request.type in kinds.HOOK_TYPES:
        return (yield from _hook(request, condition))
    return True


def _against_run(request: AppendRequest, status: str | None, semantics: Semantics, *, ended: bool) -> Refused | bool:
    kind = request.type
    if kind == kinds.RUN_CREATED:
        return True if status is None else _conflict(f"the run {request.run_id} exists already")
    if status is None and (kind == kinds.ATTR_SET or kind in _NEEDS_ROW[semantics]):
        return Refused(Refusal.NOT_FOUND, f"there is no run {request.run_id}")
    if kind == kinds.RUN_STARTED:
        if ended:
            return Refused(Refusal.EXPIRED, f"the run is {status} already")
        return status != "running"
    if kind in kinds.RUN_TERMINAL and ended:
        if kind == kinds.RUN_CANCELLED and status == "cancelled":
            return True  # cancelling twice is recorded twice
        return _conflict(f"the run is {status} already and cannot end again")
    if kind == kinds.ATTR_SET:
        return _conflict(f"the run is {status}: its attributes are final") if ended else True
    if ended and (kind in kinds.CREATES or request.lazy):
        return _conflict(f"the run is {status}: nothing new can begin in it")
    return True


def _step(request: AppendRequest, run_status: str | None, semantics: Semantics) -> Check:
    step: Entity | None = yield ReadEntity(Kind.STEP, request.run_id, request.correlation_id or "")
    if request.type == kinds.STEP_CREATED or request.lazy:
        return True if step is None else _conflict(f"the step {request.correlation_id} exists already")
    if step is None:
        return Refused(Refusal.NOT_FOUND, f"there is no step {request.correlation_id}")
    if step.ended:
        return _conflict(f"the step is {step.status} already")
    if run_status in ("completed", "failed", "cancelled") and _too_late(request.type, step.status, semantics):
        return Refused(Refusal.EXPIRED, f"the run is {run_status} and the step is {step.status}")
    if request.type == kinds.STEP_STARTED and step.retry_at is not None:
        early = step.retry_at - (yield Clock())
        if early > 0:
            return Refused(Refusal.TOO_EARLY, "the step's retry is not due yet", retry_after_ms=float(early))
    return True


def _too_late(type: str, step_status: str, semantics: Semantics) -> bool:
    """Whether an event of a step that has not ended comes too late for its run, which has."""
    if type == kinds.STEP_STARTED:
        return step_status != "running" or semantics is Semantics.LOCAL5
    return type == kinds.STEP_FAILED and step_status != "running" and semantics is not Semantics.PG4


def _wait(request: AppendRequest) -> Check:
    wait: Entity | None = yield ReadEntity(Kind.WAIT, request.run_id, request.correlation_id or "")
    if request.type == kinds.WAIT_CREATED:
        return True if wait is None else _conflict(f"the wait {request.correlation_id} exists already")
    if wait is None:
        return Refused(Refusal.NOT_FOUND, f"there is no wait {request.correlation_id}")
    return _conflict("the wait is completed already") if wait.ended else True


def _hook(request: AppendRequest, condition: Condition) -> Check:
    hook_id = request.correlation_id or ""
    hook: Entity | None = yield ReadEntity(Kind.HOOK, request.run_id, hook_id)
    if request.type == kinds.HOOK_CREATED:
        if hook is not None:
            return _conflict(f"the hook {hook_id} exists already")
        if (yield HasClaim(Kind.HOOK, request.run_id, hook_id, Once.DISPOSED)):
            refused = _conflict(f"the hook {hook_id} was given up and cannot be created again")
            return refused if condition.locks or condition.semantics is Semantics.PG4 else Ghost(refused)
        return True
    if hook is None:
        return Refused(Refusal.NOT_FOUND, f"there is no live hook {hook_id}")
    marked = condition.marks_end and request.type == kinds.HOOK_RECEIVED
    if marked and (yield HasClaim(Kind.RUN, request.run_id, request.run_id, Once.TERMINAL)):
        return Refused(Refusal.EXPIRED, "the run is ending")
    return True


def _conflict(reason: str) -> Refused:
    return Refused(Refusal.CONFLICT, reason)
