"""One append, from the wish to the log: the only place that knows the order of things.

:func:`append` passes the points of :class:`~stormctl.worlds.condition.Point` in order and does at each what the
condition says. It performs nothing itself: it yields store operations and is sent their replies, so that a folder,
memory and a database, a storm and a simulator all run this same code. Between two points anything may happen in the
store unless a lock is held.

Where an injected delay goes: without a lock between mint and publication, which is the production defect (an id is
drawn, and becomes readable 31 ms later in the median); otherwise before the lock, so that the writer is slow to reach
the store but the time for which it holds the lock stays that of its own calls.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

from stormctl.errors import StoreFailure
from stormctl.history import Event, ids
from stormctl.worlds import admission, effects, fence, planning, rules
from stormctl.worlds.base import Appended, AppendRequest, Refusal, Refused
from stormctl.worlds.condition import Breaking, Condition, Point, PostReads, Rescan, Rollback, SlotMode, Staging
from stormctl.worlds.planning import SPEC, Shared, Work
from stormctl.worlds.repair import repair
from stormctl.worlds.store_ops import (
    AbandonLock,
    At,
    Begin,
    ConfirmLock,
    Delay,
    DrawSlot,
    End,
    Intent,
    Mint,
    OweRepair,
    Publish,
    ReadTail,
    ReleaseLock,
    Stage,
    StoreOp,
    TakeLock,
    TakeOwed,
    WriteTail,
)
from stormctl.worlds.telling import tell

__all__ = ["SPEC", "append", "append_batch"]

SLOT_TRIES = 40
"""How many taken slots an append meets before it gives up; every eighth time it looks at the whole run again."""

Answer = Appended | Refused
Steps = Generator[StoreOp, Any, None]
Answering = Generator[StoreOp, Any, Answer]


def append(request: AppendRequest, condition: Condition) -> Answering:
    """Append one event, or refuse it.

    A :class:`StoreFailure` thrown in by the interpreter leaves the rows to be repaired (at once without a lock, by the
    next holder with one, by the rollback where there is one) and is raised again unless the event had been published
    for good: what is in the log is acknowledged.
    """
    return (yield from append_batch((request,), condition))[0]


def append_batch(requests: Sequence[AppendRequest], condition: Condition) -> Generator[StoreOp, Any, list[Answer]]:
    """Append the writes of one suspension under one lock and one admission, in order; they belong to one run.

    A refused precondition refuses all of them, any other refusal only its own request. Several at once need a
    condition with a lock.
    """
    intent = Intent.of(*requests)
    shared = Shared(intent)
    works = [Work(request, condition, shared) for request in requests]
    yield At(Point.ENTER)
    yield At(Point.MINT_EARLY)
    if condition.mint_at is Point.MINT_EARLY:
        for work in works:
            yield from planning.plan(work)
            yield from planning.mint_early(work)
    if condition.locks:
        yield Delay(any(planning.is_create(request) for request in requests))
    yield At(Point.LOCK)
    left = yield from _enter(requests[0], condition, intent)
    try:
        if left:
            yield from _recover(works[0], left)
        answers = yield from _decide_all(works)
        if condition.post_reads is PostReads.INSIDE:
            yield At(Point.POST_READ)
            answers = yield from tell(works, answers)
        yield At(Point.UNLOCK)
        if condition.rollback is Rollback.FULL:
            answers, keep = _all_or_nothing(works, answers)
        else:
            keep = True
        yield from _leave(requests[0], condition, intent, keep=keep)
    except GeneratorExit:
        raise
    except BaseException as failure:
        yield from _give_up(requests[0], condition, intent, left)
        landed = any(work.published for work in works)
        if condition.rollback is Rollback.FULL or not (landed and isinstance(failure, StoreFailure)):
            raise
        return [Appended(work.published) if work.published else _unknown(failure) for work in works]
    if condition.post_reads is PostReads.OUTSIDE:
        yield At(Point.POST_READ)
        answers = yield from tell(works, answers)
    return answers


# -- before and after ------------------------------------------------------------------------------------------------


def _begins(request: AppendRequest, condition: Condition) -> bool:
    return request.type in condition.atomic


def _enter(request: AppendRequest, condition: Condition, intent: Intent) -> Generator[StoreOp, Any, tuple[Intent, ...]]:
    """Take the lock, or open the transaction, or neither. Replies what others left to be repaired."""
    if condition.locks:
        left: tuple[Intent, ...] = yield TakeLock(request.run_id, intent)
        return left
    left = yield TakeOwed(request.run_id)
    if _begins(request, condition):
        yield Begin(request.run_id)
    return left


def _leave(request: AppendRequest, condition: Condition, intent: Intent, *, keep: bool) -> Steps:
    if condition.locks:
        yield ReleaseLock(request.run_id, intent, keep)
    elif _begins(request, condition):
        yield End(request.run_id, keep)


def _recover(work: Work, left: tuple[Intent, ...]) -> Steps:
    """Somebody failed here before: mend the rows, derive the tail anew and keep it, whatever this append becomes."""
    run_id, condition = work.request.run_id, work.condition
    restores = condition.rescan is Rescan.RESTORES
    if restores:
        for intent in left:
            yield from repair(run_id, intent)
    if condition.keeps_tail:
        work.shared.tail = yield ReadTail(run_id, rescan=True, restore=restores)
        yield WriteTail(run_id, work.shared.tail)


def _give_up(request: AppendRequest, condition: Condition, intent: Intent, left: tuple[Intent, ...]) -> Steps:
    """After a failure: with a lock leave it to be broken and repaired (or rolled back), without one repair at once as
    far as it goes."""
    if condition.locks:
        yield AbandonLock(request.run_id, intent)
        return
    owed = (*left, intent)
    if _begins(request, condition):
        yield End(request.run_id, keep=False)
        if condition.rollback is Rollback.FULL:
            owed = left
    for one in owed:
        try:
            yield from repair(request.run_id, one)
        except StoreFailure:  # the store is still failing
            yield OweRepair(request.run_id, one)


def _all_or_nothing(works: list[Work], answers: list[Answer]) -> tuple[list[Answer], bool]:
    """In a store that rolls back, a refusal that came after effects takes back everything of its transaction."""
    for work, answer in zip(works, answers, strict=True):
        if work.dirty and isinstance(answer, Refused):
            return [answer] * len(answers), False
    return answers, True


def _unknown(failure: StoreFailure) -> Refused:
    """A later write of a batch whose store failed after an earlier one had landed: the next pass will ask again."""
    return Refused(Refusal.PRECONDITION, f"the store failed within the batch: {failure}")


# -- under the lock --------------------------------------------------------------------------------------------------


def _decide_all(works: list[Work]) -> Generator[StoreOp, Any, list[Answer]]:
    answers: list[Answer] = []
    for work in works:
        answer = yield from _decide(work)
        answers.append(answer)
        if isinstance(answer, Refused) and answer.refusal is Refusal.PRECONDITION and len(works) > 1:
            return [answer] * len(works)  # only the first of a batch can be refused so
    return answers


def _decide(work: Work) -> Answering:
    """Everything that the lock protects."""
    condition = work.condition
    yield At(Point.VALIDATE)
    verdict = yield from rules.check(work.request, condition)
    if isinstance(verdict, Refused):
        return verdict
    if verdict is False:
        return Appended(())
    ghost = verdict.refused if isinstance(verdict, rules.Ghost) else None
    if not work.planned:
        yield from planning.plan(work)
    yield At(Point.ADMIT)
    if condition.admit_at is Point.ADMIT and (refused := (yield from admission.admit(work))):
        return refused
    yield At(Point.EFFECTS)
    if ghost is None and (refused := (yield from effects.apply(work))):
        return refused
    yield At(Point.ADMIT_LATE)
    if condition.admit_at is Point.ADMIT_LATE and (refused := (yield from admission.admit(work))):
        return refused
    if refused := (yield from effects.end_run(work)):
        return refused
    yield At(Point.ALLOCATE)
    if not planning.slots_at_publish(condition):
        yield from planning.allocate(work)
    if not condition.locks:
        yield Delay(planning.is_create(work.request))
    if refused := (yield from _publish(work)):
        return refused
    yield At(Point.COUNTER)
    if condition.keeps_tail:
        tail = yield from planning.tail_of(work)
        for event in work.published:
            tail = fence.advance(tail, event, work.mark)
        work.shared.tail = tail
        yield WriteTail(work.request.run_id, tail)
    if ghost is not None:
        return ghost
    yield from effects.afterwards(work.request)
    return Appended(work.published)


def _publish(work: Work) -> Generator[StoreOp, Any, Refused | None]:
    if planning.slots_at_publish(work.condition):
        for event in work.planned:
            landed = yield from _into_slot(work, event)
            if landed is None:
                return Refused(Refusal.CONFLICT, f"the event {event.type} of {event.correlation_id} exists already")
            work.published += (landed,)
        return None
    yield At(Point.PUBLISH)
    if work.condition.locks and work.condition.breaking is Breaking.CAREFUL:
        yield ConfirmLock(work.request.run_id, work.shared.intent)
    events = tuple(work.planned)
    if not (yield Publish(events, work.mark)):
        return Refused(Refusal.CONFLICT, f"the event {events[0].event_id} exists already")
    work.published = events
    return None


def _into_slot(work: Work, event: Event) -> Generator[StoreOp, Any, Event | None]:
    """Publish one event on the next free slot; on the one after it when somebody was faster, and so on.

    Only a publication moves the highest slot, so that a writer that fails leaves no hole. A run that is numbered by
    ULIDs stays so. None when the id is taken that the event must have.
    """
    at_least = 1
    for attempt in range(SLOT_TRIES):
        remembered = work.condition.slot_mode is SlotMode.LINK and attempt % 8 != 7
        slot: int | None = yield DrawSlot(event.run_id, at_least, remembered)
        if slot is None:
            event_id: str = yield Mint(event.created_at or 0, monotonic=True)
            placed = replace(event, event_id=event_id)
        else:
            placed = replace(event, event_id=ids.slot_id(slot), position=slot)
            if work.condition.staging is Staging.SHARED and not (yield Stage(placed)):
                at_least = slot + 1
                continue
        yield At(Point.PUBLISH)
        if (yield Publish((placed,), work.mark)):
            return placed
        if slot is None:
            return None
        at_least = slot + 1
    raise StoreFailure(
        f"{SLOT_TRIES} slots of {event.run_id} were taken one after another",
        remedy="Lower the storm's concurrency: more writers press on one run than it can serve.",
    )
