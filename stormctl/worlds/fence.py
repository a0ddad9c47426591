"""The fence: which appends a store refuses because their writer had not read enough.

Rules after vercel/workflow #3269. A *decision* is an append that a replay derived from a prefix; a *fact* happened
outside and means the same whatever its writer had read. The fence of the final form refuses a decision when a foreign
decision lies beyond the writer's snapshot; the credit lets the siblings of an admitted write through, which the same
pass derived from the same snapshot.
"""

from __future__ import annotations

from dataclasses import replace

from stormctl.history import Event, kinds
from stormctl.worlds.base import AppendRequest, Snapshot
from stormctl.worlds.condition import Condition, Credit, Fence, Gate
from stormctl.worlds.store_ops import UNFENCED, Mark, Tail, fenced_by_type


def gated(condition: Condition, request: AppendRequest) -> Snapshot | None:
    """The snapshot that the append is judged by; None when it is not judged at all."""
    if condition.gate is Gate.DECISIONS and not kinds.is_decision(request.type, lazy_start=request.lazy):
        return None
    return request.snapshot


def admit(condition: Condition, tail: Tail, request: AppendRequest) -> Mark | None:
    """How the append is admitted, or None when the fence refuses it.

    An append without a snapshot is never refused and never moves the fence.
    """
    snapshot = gated(condition, request)
    if condition.fence is Fence.NONE or snapshot is None:
        return UNFENCED
    key = credit_key(condition, snapshot)
    current = tail.seq == snapshot.count if condition.fence is Fence.TAIL else tail.last_fenced <= snapshot.count
    sibling = key is not None and tail.credit_key == key and tail.credit_base == snapshot.count
    return Mark(fenced=True, key=key, base=snapshot.count) if current or sibling else None


def credit_key(condition: Condition, snapshot: Snapshot) -> str | None:
    """Whose credit an admitted append gives: its writer's where that is the rule and it is known, else its cursor's."""
    if condition.credit_key is Credit.WRITER and snapshot.writer is not None:
        return snapshot.writer
    return snapshot.cursor


def advance(tail: Tail, event: Event, mark: Mark) -> Tail:
    """The tail after the event was published."""
    seq = tail.seq + 1 if event.position is None else event.position
    tail = replace(tail, seq=seq, last_event_id=event.event_id, in_band=tail.in_band + mark.in_band)
    if mark.fenced:
        tail = replace(tail, last_fenced=seq, credit_key=mark.key, credit_base=mark.base)
    return tail


def guess(event: Event, before: Event | None) -> Mark:
    """The mark of an event of which no record is left: fenced when in doubt, which costs a writer a reload. ``before``
    is the event that precedes it in the log."""
    lazy_start = (
        event.type == kinds.STEP_STARTED
        and before is not None
        and before.type == kinds.STEP_CREATED
        and before.correlation_id == event.correlation_id
    )
    return Mark(fenced=True) if lazy_start or fenced_by_type(event) else UNFENCED
