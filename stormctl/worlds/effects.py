"""What an append does beside the log: claims, rows, tokens, and what follows from the published event.

Rows are read again here, so that a race costs an event its order and not its fields.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

from stormctl.history import kinds
from stormctl.worlds.base import AppendRequest, Refusal, Refused
from stormctl.worlds.planning import Work, is_create
from stormctl.worlds.rows import Entity, Kind, RunEntity, evolve, evolve_run
from stormctl.worlds.store_ops import (
    ClaimOnce,
    ClaimToken,
    DropEntities,
    DropEntity,
    HasClaim,
    Once,
    PutEntity,
    PutRun,
    ReadEntity,
    ReadRun,
    ReleaseToken,
    StoreOp,
    TokenOwner,
)

Steps = Generator[StoreOp, Any, None]
MaybeRefused = Generator[StoreOp, Any, Refused | None]

_ONCE = {
    kinds.STEP_COMPLETED: Once.TERMINAL,
    kinds.STEP_FAILED: Once.TERMINAL,
    kinds.WAIT_COMPLETED: Once.COMPLETED,
    kinds.HOOK_DISPOSED: Once.DISPOSED,
}


def apply(work: Work) -> MaybeRefused:
    """Claims and rows of the append; a claim that another writer holds refuses it."""
    request, condition = work.request, work.condition
    run_id, corr = request.run_id, request.correlation_id
    if request.type in kinds.RUN_TERMINAL:
        if condition.marks_end:  # whether it stands there already is nobody's business, as upstream
            yield ClaimOnce(Kind.RUN, run_id, run_id, Once.TERMINAL)
            work.dirty = True
        return None
    if request.type in (kinds.RUN_CREATED, kinds.RUN_STARTED, kinds.ATTR_SET):
        written_by_replay = request.type == kinds.ATTR_SET and corr is not None
        if written_by_replay and not (yield ClaimOnce(Kind.ATTR, run_id, corr or "", Once.CREATED)):
            return _conflict(f"the attribute change {corr} exists already")
        work.dirty = True
        return (yield from _put_run(work))
    if corr is None:
        return None
    if request.type == kinds.HOOK_CREATED:
        return (yield from _claim_hook(work, corr))
    if request.lazy or (request.type in kinds.CREATES and condition.unique_creates):
        kind = Kind(kinds.kind_of_type(request.type))
        if not (yield ClaimOnce(kind, run_id, corr, Once.CREATED)):
            return _conflict(f"{corr} was claimed by another writer")
    work.dirty = True
    if is_create(request):
        row: Entity | None = None
        for event in work.planned:
            row = evolve(row, event)
        if row is not None:
            yield PutEntity(row)
        return None
    once = _ONCE.get(request.type)
    if once is not None:
        kind = Kind(kinds.kind_of_type(request.type))
        if not (yield ClaimOnce(kind, run_id, corr, once)):
            return _conflict(f"another writer's {request.type} of {corr} came first")
    if request.type in kinds.STEP_TYPES or request.type == kinds.WAIT_COMPLETED:
        kind = Kind(kinds.kind_of_type(request.type))
        after = evolve((yield ReadEntity(kind, run_id, corr)), work.planned[0])
        if after is not None:
            yield PutEntity(after)
    return None


def end_run(work: Work) -> MaybeRefused:
    """The row of a run that ends: written last, just before the event."""
    if work.request.type not in kinds.RUN_TERMINAL:
        return None
    return (yield from _put_run(work, unless_ended=work.condition.unique_ends))


def _put_run(work: Work, *, unless_ended: bool = False) -> MaybeRefused:
    run_id = work.request.run_id
    before: RunEntity | None = yield ReadRun(run_id)
    run = evolve_run(before, work.planned[0])
    if before is not None and before.status == "cancelled":
        unless_ended = False  # the rules let a cancelled run be cancelled again
    if run is not None and not (yield PutRun(run, unless_ended)):
        return _conflict(f"another writer ended the run {run_id} first")
    return None


def _claim_hook(work: Work, hook_id: str) -> MaybeRefused:
    """Claim the token, or turn the create into a ``hook_conflict``."""
    event = work.planned[0]
    token = work.request.token or ""
    exclusive = work.condition.unique_tokens
    mine = TokenOwner(event.run_id, hook_id, event.event_id)
    owner: TokenOwner = yield ClaimToken(token, mine, exclusive)
    if not _same(owner, mine) and (yield from _given_up(owner)):
        yield ReleaseToken(token, owner)
        owner = yield ClaimToken(token, mine, exclusive)
    if not _same(owner, mine):
        work.planned = [replace(event, type=kinds.HOOK_CONFLICT, payload=None, data={"conflictingRunId": owner.run_id})]
        return None
    work.dirty = True
    if event.event_id is not None and owner.event_id is not None and owner.event_id != mine.event_id:
        # Another writer of this very hook claimed first: take its id, so that only one of the two can publish.
        work.planned = [replace(event, event_id=owner.event_id)]
    row = evolve(None, event)
    if row is not None:
        yield PutEntity(row)
    return None


def _same(one: TokenOwner, other: TokenOwner) -> bool:
    return (one.run_id, one.hook_id) == (other.run_id, other.hook_id)


def _given_up(owner: TokenOwner) -> Generator[StoreOp, Any, bool]:
    """Whether a claim on a token outlived its hook: its run is gone or ended, or the hook was disposed of."""
    run = yield ReadRun(owner.run_id)
    if run is None or run.ended:
        return True
    return bool((yield HasClaim(Kind.HOOK, owner.run_id, owner.hook_id, Once.DISPOSED)))


def afterwards(request: AppendRequest) -> Steps:
    """What follows from the published event: never before it, so that a crash can only leave too much behind."""
    if request.type in kinds.RUN_TERMINAL:
        yield DropEntities(request.run_id)
    elif request.type == kinds.HOOK_DISPOSED:
        hook_id = request.correlation_id or ""
        hook: Entity | None = yield ReadEntity(Kind.HOOK, request.run_id, hook_id)
        if hook is not None:
            yield DropEntity(Kind.HOOK, request.run_id, hook_id)
            if hook.token is not None:
                yield ReleaseToken(hook.token, TokenOwner(request.run_id, hook_id))


def _conflict(reason: str) -> Refused:
    return Refused(Refusal.CONFLICT, reason)
