"""Events that tell the workflow nothing: they mark something as created, started or retried, or belong to the run.

The walk consumes such an event without queueing anything, so the pass over a prefix that ends before it and the pass
over one that ends behind it run alike to the last microtask. They differ in what was marked, in how far the walk came,
and in the clock, by which a wait that is drawn later is to end. One replay serves both, if its marks are taken back.

About half of a storm's events are of that kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stormctl.engine.context import Item
from stormctl.engine.door import AttributeHandling
from stormctl.engine.primitives import resume_at
from stormctl.history.kinds import STEP, STEP_CREATED, STEP_RETRYING, STEP_STARTED, WAIT, WAIT_CREATED

if TYPE_CHECKING:
    from stormctl.engine.context import Context

_MARKS = {STEP_CREATED: STEP, STEP_STARTED: STEP, STEP_RETRYING: STEP, WAIT_CREATED: WAIT}
_FIELDS = Item.__slots__


@dataclass(frozen=True, slots=True)
class Mark:
    """How things were before the event at ``index``: the run's clock, and the fields of the item that it marks."""

    index: int
    clock: int
    item: Item | None = None
    values: tuple[Any, ...] = ()


def ahead(context: Context) -> Mark | None:
    """How things are before the event that the walk is to look at next, if that event only marks; else None."""
    walk = context.walk
    index = walk.index
    if walk.parked or index >= len(walk.events):
        return None
    event = walk.events[index]
    if event.structural:
        parks = event.by_step and context.perturbation.attributes is AttributeHandling.PARKED
        return None if parks else Mark(index, context.clock)
    consumer = context.consumers.get(event.correlation_id)
    if consumer is None:
        return None
    item = consumer.item
    if _MARKS.get(event.type) != item.kind:
        return None
    if item.kind == STEP and event.name not in (None, item.name) and event.event.name != item.name:
        return None
    return Mark(index, context.clock, item, tuple([getattr(item, name) for name in _FIELDS]))


def take_back(context: Context, mark: Mark, clock: int, since: int) -> bool:
    """After the pass: make the items look as they would if the log had ended before the mark.

    ``clock`` is the run's at the end of the log, and ``since`` the rank of the first draw after it. False where it
    cannot be done: the workflow asked for the time, and would have been told another.
    """
    if mark.item is not None:
        for name, value in zip(_FIELDS, mark.values, strict=True):
            setattr(mark.item, name, value)
    if mark.clock == clock:
        return True
    # only what is consumed has moved it, so it stood still behind the end of the log
    for item in context.items.values():
        if item.kind == WAIT and item.rank >= since:
            item.resume_at = resume_at(mark.clock, item.arguments)
    return not context.clock_read
