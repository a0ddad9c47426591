"""Admission: whether a store lets an append in, by its writer's snapshot.

A fence judges the snapshot against the tail (``worlds.fence``); a guard judges it against what was recorded, or against
a count that only decisions move.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from stormctl.history import Event, kinds
from stormctl.worlds import fence
from stormctl.worlds.base import Refusal, Refused, Snapshot
from stormctl.worlds.condition import Condition, Fence, Guard
from stormctl.worlds.planning import Work, tail_of
from stormctl.worlds.store_ops import Mark, ReadGuard, Recorded, StoreOp

MaybeRefused = Generator[StoreOp, Any, Refused | None]


def admit(work: Work) -> MaybeRefused:
    """None when the append may go on (``work.mark`` then says how), or the refused precondition.

    The later appends of a batch go in as its first one did.
    """
    condition = work.condition
    if condition.fence is Fence.NONE and condition.guard is Guard.NONE:
        return None
    snapshot = fence.gated(condition, work.request)
    if snapshot is None:
        return None  # never refused, and moves neither fence nor count
    if work.shared.admitted is not None:
        work.mark = work.shared.admitted
        return None
    refused = yield from _guard(work, snapshot)
    if refused is None and condition.fence is not Fence.NONE:
        refused = yield from _fence(work, snapshot)
    if refused is None:
        work.shared.admitted = work.mark
    return refused


def _fence(work: Work, snapshot: Snapshot) -> MaybeRefused:
    tail = yield from tail_of(work)
    mark = fence.admit(work.condition, tail, work.request)
    if mark is None:
        where = tail.seq if work.condition.fence is Fence.TAIL else tail.last_fenced
        return _refuse(f"the writer had read {snapshot.count} events and another writer's decision is at {where}")
    work.mark = mark
    return None


def _guard(work: Work, snapshot: Snapshot) -> MaybeRefused:
    guard = work.condition.guard
    if guard is Guard.IN_BAND:
        if snapshot.in_band is None or not kinds.is_decision(work.request.type, lazy_start=work.request.lazy):
            return None
        tail = yield from tail_of(work)
        if snapshot.in_band != tail.in_band:
            return _refuse(f"the writer counts {snapshot.in_band} in-band events and the log holds {tail.in_band}")
        work.mark = Mark(in_band=True)
        return None
    if guard is Guard.NONE or snapshot.watermark is None:
        return None  # what cannot be compared passes, as upstream's guard fails open
    found: Recorded = yield ReadGuard(work.request.run_id, snapshot.watermark)
    if found.marker is not None and found.marker > snapshot.watermark:
        return _refuse(f"an outside event is {found.marker - snapshot.watermark} ms newer than all that was read")
    if guard is Guard.WATERMARK_COUNT and found.at_or_below > snapshot.count:
        return _refuse(f"the writer had read {snapshot.count} of the {found.at_or_below} events up to its watermark")
    return None


def _refuse(reason: str) -> Refused:
    return Refused(Refusal.PRECONDITION, reason)


def is_outside(event: Event) -> bool:
    """Whether an event moves the guard's marker: it happened outside of any replay, and is not the end of a wait
    (guarded, and does not move the marker: the comments to vercel/workflow #3145)."""
    return event.type in _OUTSIDE


_OUTSIDE = frozenset({kinds.HOOK_RECEIVED, kinds.STEP_RETRYING, *kinds.STEP_TERMINAL})


def counts_in_band(condition: Condition) -> bool:
    """Whether the store counts in-band events, and tells its readers."""
    return condition.guard is Guard.IN_BAND
