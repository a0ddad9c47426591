"""The gate before every replay: a log that the store numbers densely must be dense.

A log of seqs that is not was written by two holders of one lock, or badly served, and no later read will mend it: the
store broke its contract (vercel/workflow #3269: "36 followed by 36"). A gap between slots may be an event that is still
on its way, so the log is read again a few times first; a gap that stays is a position whose writer died, and the run's
log is corrupted.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from stormctl.history import Event, ids
from stormctl.runtime import notes, ops
from stormctl.runtime.ops import Op
from stormctl.runtime.rules import Rules
from stormctl.runtime.view import View

WORLD_CONTRACT_ERROR = "WORLD_CONTRACT_ERROR"
CORRUPTED_EVENT_LOG = "CORRUPTED_EVENT_LOG"


@dataclass(frozen=True, slots=True)
class Broken:
    """A log that is not to be replayed: the run ends with this error code and message."""

    code: str
    message: str


def contract_problem(view: View) -> Broken | None:
    """Why the log cannot be what a dense store holds, or was not served as one serves it; None when nothing is wrong.

    A gap between slots is not looked for here (:func:`slot_gap`). A log without positions promises nothing.
    """
    if view.fault is not None:
        return Broken(WORLD_CONTRACT_ERROR, f"the log cannot be read: {view.fault}")
    problem = _slot_problem(view.events) if _has_slots(view.events) else seq_problem(view.events)
    return None if problem is None else Broken(WORLD_CONTRACT_ERROR, f"the log is not dense: {problem}")


def seq_problem(events: Sequence[Event]) -> str | None:
    """What is wrong with the seqs of a log.

    An adopted run's first m events, written before the store counted, have none; then seqs go m + 1, m + 2, ...
    """
    before = 0
    counted = False
    for event in events:
        if event.position is None:
            if counted:
                return f"{before} followed by an event without seq"
            before += 1
        else:
            if event.position != before + 1:
                return f"{before} followed by {event.position}" if before else f"it starts at {event.position}"
            before, counted = event.position, True
    return None


def slot_gap(events: Sequence[Event]) -> str | None:
    """The first gap below the highest slot of a log of slots, or None. Slot 1 may be missing."""
    if not _has_slots(events):
        return None
    held = sorted({slot for event in events if (slot := _slot(event)) is not None})
    if held and held[0] > 2:
        return f"it starts at {held[0]}"
    return next((f"{one} followed by {other}" for one, other in pairwise(held) if other != one + 1), None)


def gate(view: View, rules: Rules) -> Generator[Op, Any, View | Broken]:
    """The view to replay: the same one, or what was read when a gap between slots had closed. Else what is broken."""
    for attempt in range(rules.slot_gap_reads):
        gap = slot_gap(view.events) if rules.slot_gap_check else None
        if gap is None or contract_problem(view) is not None:
            break
        yield ops.Sleep(rules.slot_gap_ms * 2**attempt, "slot gap")
        view = View.of(view.run_id, (yield ops.Load(view.run_id)))
        yield notes.reread(attempt + 1, gap, closed=slot_gap(view.events) is None)
    if (broken := contract_problem(view)) is not None:
        return broken
    if rules.slot_gap_check and (gap := slot_gap(view.events)) is not None:
        return Broken(CORRUPTED_EVENT_LOG, f"the log still has a gap after {rules.slot_gap_reads} more reads: {gap}")
    return view


def _slot(event: Event) -> int | None:
    return None if event.event_id is None else ids.slot_of(event.event_id)


def _has_slots(events: Sequence[Event]) -> bool:
    """Whether a log is one of slots: told by its ends, because a run is numbered one way for life."""
    return any(_slot(event) is not None for event in (*events[:1], *events[-1:]))


def _slot_problem(events: Sequence[Event]) -> str | None:
    """Every event has a slot, and no two share one."""
    before: int | None = None
    for event in events:
        slot = _slot(event)
        if slot is None:
            return f"the event {event.event_id} has no slot"
        if slot == before:
            return f"{before} followed by {slot}"
        before = slot
    return None
