"""Id order: the order of event ids is the order of positions.

A store that mints ids before it commits can publish a smaller id after a larger one. A reader that follows ids has
then already passed the place and never sees the event (vercel/workflow #2228). Where positions exist they are the
order, and ids must rise with them. Where they do not, the canonical order is made from the ids and times themselves, so
the ids can only be compared with the order of the list, and whether an event was published late stays unknown; the
append audit of our own worlds can tell (see ``commit_order``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from stormctl.history import Capture, Event, Facet, ids
from stormctl.sweeps.base import sweep
from stormctl.sweeps.finding import Fault, Item, Unjudged

KINDS = ("mixed-ids", "repeat-id", "slot-position", "id-behind", "listed-behind")


@sweep("id-order", needs={Facet.EVENT_IDS}, kinds=KINDS)
def id_order(capture: Capture) -> Iterator[Item]:
    """Do event ids rise with positions?"""
    events = capture.log.events
    named = [index for index, event in enumerate(events) if event.event_id]
    if len(named) < len(events):
        yield Unjudged(f"the ids of {len(events) - len(named)} events")
    yield from _repeats(events, named)
    slots = {index: None for index in named if ids.slot_of(events[index].event_id or "") is not None}
    if slots and len(slots) < len(named):
        odd = next(index for index in named if index not in slots)
        text = f"{len(slots)} events have slot ids and {len(named) - len(slots)} have others"
        yield Fault("mixed-ids", text, (next(iter(slots)), odd), capture.log.run_id)
        return
    if slots:
        yield from _slots(capture, slots)
        return
    unknown = [index for index in named if ids.ulid_ms(events[index].event_id or "") is None]
    if unknown:
        yield Unjudged(f"an id scheme that is known ({events[unknown[0]].event_id} is neither a ULID nor a slot)")
        return
    placed = [index for index in named if events[index].position is not None]
    placed.sort(key=lambda index: events[index].position or 0)
    if placed:
        yield from _behind(events, placed, "id-behind", "has a smaller id than an event of a smaller position")
    else:
        yield from _behind(events, named, "listed-behind", "is listed after an event with a larger id")
        yield Unjudged(f"{Facet.POSITIONS} (whether an event was published late)")


def _repeats(events: Sequence[Event], named: Sequence[int]) -> Iterator[Item]:
    first: dict[str, int] = {}
    for index in named:
        event_id = events[index].event_id or ""
        before = first.setdefault(event_id, index)
        if before == index:
            continue
        if events[before] == events[index]:
            # pages that overlap give one event twice; a store that repeats an id gives two events
            yield Unjudged(f"a capture without repeats ({event_id} was captured twice)")
        else:
            yield Fault("repeat-id", f"{event_id} names two events", (before, index), event_id)


def _slots(capture: Capture, slots: Iterable[int]) -> Iterator[Fault]:
    for index in slots:
        event = capture.log[index]
        slot, place = ids.slot_of(event.event_id or ""), capture.log.place(index)
        if event.position is not None and slot != place:
            text = f"the event at position {place} has the id of slot {slot}"
            yield Fault("slot-position", text, (index,), event.event_id or "")


def _behind(events: Sequence[Event], order: Sequence[int], kind: str, what: str) -> Iterator[Fault]:
    """One fault for the whole log: how many events lie behind a larger id, and the worst of them."""
    behind: list[int] = []
    worst: tuple[int, int, int] | None = None
    top: int | None = None
    for index in order:
        key = ids.split(events[index].event_id or "")[1]
        if top is None or key >= ids.split(events[top].event_id or "")[1]:
            top = index
            continue
        behind.append(index)
        depth = _ms(events[top]) - _ms(events[index])
        if worst is None or depth > worst[0]:
            worst = (depth, top, index)
    if worst is not None:
        depth, ahead, late = worst
        text = f"{len(behind)} of {len(order)} events: each {what}; the farthest by {depth} ms"
        yield Fault(kind, text, tuple(behind), events[late].run_id, witness=(ahead, late))


def _ms(event: Event) -> int:
    return ids.ulid_ms(event.event_id or "") or 0
