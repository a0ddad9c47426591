"""From a wish to events: their fields, ids, times and positions, at the points at which a condition gives them."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Any

from stormctl.history import Event, Inline, ids, kinds
from stormctl.worlds.base import NO_PAYLOAD, AppendRequest
from stormctl.worlds.condition import Condition, Ids, SlotMode
from stormctl.worlds.store_ops import UNFENCED, Clock, Intent, Mark, Mint, ReadTail, ReserveSlots, StoreOp, Tail

SPEC = 5
"""The spec version that events carry: lazy starts and attributes."""

Steps = Generator[StoreOp, Any, None]


@dataclass(slots=True)
class Shared:
    """What the appends of one batch have in common: whose lock they hold, the tail as it moves, and how the first of
    them was admitted."""

    intent: Intent
    tail: Tail | None = None
    admitted: Mark | None = None


@dataclass(slots=True)
class Work:
    """What one append knows so far. ``dirty``: rows or claims were written that a refusal leaves behind."""

    request: AppendRequest
    condition: Condition
    shared: Shared
    planned: list[Event] = field(default_factory=list)
    mark: Mark = UNFENCED
    published: tuple[Event, ...] = ()
    dirty: bool = False


def is_create(request: AppendRequest) -> bool:
    """Whether the append makes a step, wait or hook."""
    return request.lazy or request.type in kinds.CREATES


def slots_at_publish(condition: Condition) -> bool:
    """Whether an event finds its slot only in the act of being published."""
    return condition.ids is Ids.SLOT and not condition.locks and condition.slot_mode is not SlotMode.RESERVE


def tail_of(work: Work) -> Generator[StoreOp, Any, Tail]:
    """The tail, read once."""
    if work.shared.tail is None:
        work.shared.tail = yield ReadTail(work.request.run_id, rescan=False)
    return work.shared.tail


def plan(work: Work) -> Steps:
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


def mint_early(work: Work) -> Steps:
    """Ids at entry: of the process's own ascending sequence, or from the run's counter of slots."""
    if work.condition.ids is not Ids.SLOT:
        yield from _mint(work)
    elif work.condition.slot_mode is SlotMode.RESERVE:
        yield from _reserve(work)


def allocate(work: Work) -> Steps:
    """Ids last thing before publication. Under the lock they follow the tail, and times and positions with them."""
    condition = work.condition
    minted = work.planned[0].event_id is not None
    if condition.locks or (condition.ids is Ids.ULID_SEQ and not minted):
        if minted:
            yield from _number(work)
        else:
            yield from _follow_tail(work)
    elif minted:
        if condition.ids is Ids.ULID_SEQ:
            yield from _number(work)
    elif condition.ids is Ids.SLOT:
        if condition.slot_mode is SlotMode.RESERVE:
            yield from _reserve(work)
    else:
        now: int = yield Clock()
        work.planned = [replace(event, created_at=now) for event in work.planned]
        yield from _mint(work)


def _mint(work: Work) -> Steps:
    for index, event in enumerate(work.planned):
        event_id: str = yield Mint(event.created_at or 0, monotonic=True)
        work.planned[index] = replace(event, event_id=event_id)


def _reserve(work: Work) -> Steps:
    slots: tuple[int, ...] = yield ReserveSlots(work.request.run_id, len(work.planned))
    work.planned = [
        replace(event, event_id=ids.slot_id(slot), position=slot)
        for event, slot in zip(work.planned, slots, strict=True)
    ]


def _follow_tail(work: Work) -> Steps:
    """Ids, times and positions that dominate the tail."""
    now: int = yield Clock()
    tail = yield from tail_of(work)
    slots = work.condition.ids is Ids.SLOT
    last = None if tail.last_event_id is None else ids.ulid_ms(tail.last_event_id)
    at = now if last is None else max(now, last + 1)
    for index, event in enumerate(work.planned):
        position = tail.seq + 1 + index
        event_id = ids.slot_id(position) if slots else (yield Mint(at + index, monotonic=False))
        work.planned[index] = replace(
            event,
            event_id=event_id,
            created_at=at + index,
            position=position if work.condition.dense else None,
        )


def _number(work: Work) -> Steps:
    """Positions for events whose ids were minted at entry."""
    if work.condition.ids is not Ids.ULID_SEQ:
        return
    tail = yield from tail_of(work)
    work.planned = [replace(event, position=tail.seq + 1 + index) for index, event in enumerate(work.planned)]
