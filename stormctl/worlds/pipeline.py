"""One append, from the wish to the log: the only place that knows the rules.

:func:`append` passes the points of :class:`~stormctl.worlds.condition.Point` in order and does at each what the
condition says. It performs nothing itself: it yields store operations and is sent their replies, so that a folder,
memory and a database, a storm and a simulator all run this same code. Between two points anything may happen in the
store unless a lock is held.

Where an injected delay goes: under early minting between the effects and the publication, which is the production
defect (an id is drawn, and becomes readable 31 ms later in the median); otherwise before the lock, so that the writer
is slow to reach the store but the time for which it holds the lock stays that of its own file calls.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Any

from stormctl.errors import StoreFailure
from stormctl.history import Event, Inline, ids, kinds
from stormctl.worlds import fence, rules
from stormctl.worlds.base import NO_PAYLOAD, Appended, AppendRequest, Refusal, Refused
from stormctl.worlds.condition import Condition, Fence, Lock, Point
from stormctl.worlds.repair import repair
from stormctl.worlds.rows import Entity, Kind, evolve, evolve_run
from stormctl.worlds.store_ops import (
    UNFENCED,
    AbandonLock,
    At,
    ClaimOnce,
    ClaimToken,
    Clock,
    ConfirmLock,
    Delay,
    DropEntities,
    DropEntity,
    HasClaim,
    Intent,
    Mark,
    Mint,
    Once,
    OweRepair,
    Publish,
    PutEntity,
    PutRun,
    ReadEntity,
    ReadRun,
    ReadTail,
    ReleaseLock,
    ReleaseToken,
    StoreOp,
    Tail,
    TakeLock,
    TakeOwed,
    TokenOwner,
    WriteTail,
)

SPEC = 5
"""The spec version that events carry: lazy starts and attributes, ULID ids."""

Steps = Generator[StoreOp, Any, None]
MaybeRefused = Generator[StoreOp, Any, Refused | None]


@dataclass(slots=True)
class _Work:
    """What one append knows so far."""

    request: AppendRequest
    condition: Condition
    planned: list[Event] = field(default_factory=list)
    tail: Tail | None = None
    mark: Mark = UNFENCED
    left: tuple[Intent, ...] = ()
    published: tuple[Event, ...] = ()

    @property
    def keeps_tail(self) -> bool:
        return self.condition.dense or self.condition.fence is not Fence.NONE

    @property
    def early(self) -> bool:
        return self.condition.mint_at is Point.MINT_EARLY


def append(request: AppendRequest, condition: Condition) -> Generator[StoreOp, Any, Appended | Refused]:
    """Append one event, or refuse it.

    A :class:`StoreFailure` thrown in by the interpreter leaves the rows to be repaired (at once without a lock, by the
    next holder with one) and is raised again unless the event had been published: what is in the log is acknowledged.
    """
    work = _Work(request, condition)
    run_id = request.run_id
    locked = condition.lock is Lock.RUN
    yield At(Point.ENTER)
    yield At(Point.MINT_EARLY)
    if work.early:
        yield from _plan(work)
        yield from _mint(work)
    else:
        yield Delay(_is_create(request))
    yield At(Point.LOCK)
    work.left = (yield TakeLock(run_id, Intent.of(request))) if locked else (yield TakeOwed(run_id))
    try:
        if work.left:
            yield from _recover(work)
        answer = yield from _decide(work)
        yield At(Point.UNLOCK)
    except GeneratorExit:
        raise
    except BaseException as failure:
        yield from _give_up(work)
        if not (work.published and isinstance(failure, StoreFailure)):
            raise
        return Appended(work.published)
    if locked:
        yield ReleaseLock(run_id)
    yield At(Point.POST_READ)
    return answer


def _recover(work: _Work) -> Steps:
    """Somebody failed here before: mend the rows, derive the tail anew and keep it, whatever this append becomes."""
    run_id = work.request.run_id
    for intent in work.left:
        yield from repair(run_id, intent)
    if work.keeps_tail:
        work.tail = yield ReadTail(run_id, rescan=True)
        yield WriteTail(run_id, work.tail)


def _decide(work: _Work) -> Generator[StoreOp, Any, Appended | Refused]:
    """Everything that the lock protects."""
    request, condition = work.request, work.condition
    yield At(Point.VALIDATE)
    answer = yield from rules.check(request)
    if isinstance(answer, Refused):
        return answer
    if answer is False:
        return Appended(())
    if not work.planned:
        yield from _plan(work)
    yield At(Point.ADMIT)
    if condition.admit_at is Point.ADMIT and (refused := (yield from _admit(work))):
        return refused
    yield At(Point.EFFECTS)
    if refused := (yield from _effects(work)):
        return refused
    yield At(Point.ADMIT_LATE)
    if condition.admit_at is Point.ADMIT_LATE and (refused := (yield from _admit(work))):
        return refused
    yield At(Point.ALLOCATE)
    if work.early:
        yield Delay(_is_create(request))
    else:
        yield from _mint(work)
    yield At(Point.PUBLISH)
    if condition.lock is Lock.RUN:
        yield ConfirmLock(request.run_id)
    if condition.dense and work.early:
        yield from _number(work)
    events = tuple(work.planned)
    if not (yield Publish(events, work.mark)):
        return Refused(Refusal.CONFLICT, f"the event {events[0].event_id} exists already")
    work.published = events
    yield At(Point.COUNTER)
    if work.keeps_tail:
        tail = yield from _tail(work)
        for event in events:
            tail = fence.advance(tail, event, work.mark)
        yield WriteTail(request.run_id, tail)
    yield from _afterwards(request)
    return Appended(events)


# -- what is to be written --------------------------------------------------------------------------------------------


def _is_create(request: AppendRequest) -> bool:
    return request.lazy or request.type in kinds.CREATES


def _plan(work: _Work) -> Steps:
    """The events that the request asks for, with their time and without id."""
    request = work.request
    now: int = yield Clock()
    event = Event(
        type=request.type,
        run_id=request.run_id,
        correlation_id=request.correlation_id,
        created_at=now,
        name=request.name,
        token=request.token,
        resume_at=request.resume_at,
        spec=SPEC,
        payload=None if request.payload is NO_PAYLOAD else Inline(request.payload),
        data=dict(request.data),
    )
    if request.lazy:
        created = replace(event, type=kinds.STEP_CREATED, data={})
        work.planned = [created, replace(event, payload=None)]
    else:
        work.planned = [event]


def _mint(work: _Work) -> Steps:
    """Give the planned events their ids; under the lock also times and positions that dominate the tail."""
    if work.early:
        for index, event in enumerate(work.planned):
            event_id: str = yield Mint(event.created_at or 0, monotonic=True)
            work.planned[index] = replace(event, event_id=event_id)
        return
    now: int = yield Clock()
    tail = yield from _tail(work)
    last = None if tail.last_event_id is None else ids.ulid_ms(tail.last_event_id)
    at = now if last is None else max(now, last + 1)
    for index, event in enumerate(work.planned):
        event_id = yield Mint(at + index, monotonic=False)
        position = tail.seq + 1 + index if work.condition.dense else None
        work.planned[index] = replace(event, event_id=event_id, created_at=at + index, position=position)


def _number(work: _Work) -> Steps:
    """Positions for events whose ids were minted at entry."""
    tail = yield from _tail(work)
    work.planned = [replace(event, position=tail.seq + 1 + index) for index, event in enumerate(work.planned)]


# -- admission --------------------------------------------------------------------------------------------------------


def _tail(work: _Work) -> Generator[StoreOp, Any, Tail]:
    """The tail, read once per append."""
    if work.tail is None:
        work.tail = yield ReadTail(work.request.run_id, rescan=False)
    return work.tail


def _admit(work: _Work) -> MaybeRefused:
    if work.condition.fence is Fence.NONE:
        return None
    tail = yield from _tail(work)
    mark = fence.admit(work.condition, tail, work.request)
    if mark is None:
        count = work.request.snapshot.count if work.request.snapshot else 0
        where = tail.seq if work.condition.fence is Fence.TAIL else tail.last_fenced
        return Refused(
            Refusal.PRECONDITION,
            f"the writer had read {count} events and another writer's decision is at position {where}",
        )
    work.mark = mark
    return None


# -- effects ----------------------------------------------------------------------------------------------------------


def _effects(work: _Work) -> MaybeRefused:
    """Claims and rows. Rows are read again here, so that a race costs an event its order and not its fields."""
    request, condition = work.request, work.condition
    run_id, corr = request.run_id, request.correlation_id
    if request.type in kinds.RUN_TERMINAL or request.type in (kinds.RUN_CREATED, kinds.RUN_STARTED, kinds.ATTR_SET):
        written_by_replay = request.type == kinds.ATTR_SET and corr is not None
        if written_by_replay and not (yield ClaimOnce(Kind.ATTR, run_id, corr or "", Once.CREATED)):
            return Refused(Refusal.CONFLICT, f"the attribute change {corr} exists already")
        run = evolve_run((yield ReadRun(run_id)), work.planned[0])
        if run is not None:
            yield PutRun(run)
        return None
    if corr is None:
        return None
    if request.type == kinds.HOOK_CREATED:
        return (yield from _claim_hook(work, corr))
    if request.lazy or (request.type in kinds.CREATES and condition.unique_creates):
        kind = Kind(kinds.kind_of_type(request.type))
        if not (yield ClaimOnce(kind, run_id, corr, Once.CREATED)):
            return Refused(Refusal.CONFLICT, f"{corr} was claimed by another writer")
    if request.lazy or request.type in kinds.CREATES:
        row: Entity | None = None
        for event in work.planned:
            row = evolve(row, event)
        if row is not None:
            yield PutEntity(row)
        return None
    once = _ONCE.get(request.type)
    if once is not None and not (yield ClaimOnce(*_claimed(request, once))):
        return Refused(Refusal.CONFLICT, f"another writer's {request.type} of {corr} came first")
    if request.type in kinds.STEP_TYPES or request.type == kinds.WAIT_COMPLETED:
        kind = Kind(kinds.kind_of_type(request.type))
        after = evolve((yield ReadEntity(kind, run_id, corr)), work.planned[0])
        if after is not None:
            yield PutEntity(after)
    return None


_ONCE = {
    kinds.STEP_COMPLETED: Once.TERMINAL,
    kinds.STEP_FAILED: Once.TERMINAL,
    kinds.WAIT_COMPLETED: Once.COMPLETED,
    kinds.HOOK_DISPOSED: Once.DISPOSED,
}


def _claimed(request: AppendRequest, once: Once) -> tuple[Kind, str, str, Once]:
    return Kind(kinds.kind_of_type(request.type)), request.run_id, request.correlation_id or "", once


def _claim_hook(work: _Work, hook_id: str) -> MaybeRefused:
    """Claim the token, or turn the create into a ``hook_conflict``."""
    event = work.planned[0]
    token = work.request.token or ""
    mine = TokenOwner(event.run_id, hook_id, event.event_id)
    owner: TokenOwner = yield ClaimToken(token, mine)
    if (owner.run_id, owner.hook_id) != (mine.run_id, mine.hook_id) and (yield from _given_up(owner)):
        yield ReleaseToken(token, owner)
        owner = yield ClaimToken(token, mine)
    if (owner.run_id, owner.hook_id) != (mine.run_id, mine.hook_id):
        work.planned = [replace(event, type=kinds.HOOK_CONFLICT, payload=None, data={"conflictingRunId": owner.run_id})]
        return None
    if work.early and owner.event_id is not None and owner.event_id != mine.event_id:
        # Another writer of this very hook claimed first: take its id, so that only one of the two can publish.
        work.planned = [replace(event, event_id=owner.event_id)]
    row = evolve(None, event)
    if row is not None:
        yield PutEntity(row)
    return None


def _given_up(owner: TokenOwner) -> Generator[StoreOp, Any, bool]:
    """Whether a claim on a token outlived its hook: its run is gone or ended, or the hook was disposed of."""
    run = yield ReadRun(owner.run_id)
    if run is None or run.ended:
        return True
    return bool((yield HasClaim(Kind.HOOK, owner.run_id, owner.hook_id, Once.DISPOSED)))


def _afterwards(request: AppendRequest) -> Steps:
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


def _give_up(work: _Work) -> Steps:
    """After a failure: with a lock leave it to be broken and repaired, without one repair at once as far as it goes."""
    if work.condition.lock is Lock.RUN:
        yield AbandonLock(work.request.run_id)
        return
    for intent in (*work.left, Intent.of(work.request)):
        try:
            yield from repair(work.request.run_id, intent)
        except StoreFailure:  # the store is still failing
            yield OweRepair(work.request.run_id, intent)
