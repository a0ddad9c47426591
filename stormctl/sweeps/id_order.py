"""Id order: the order of event ids is the order of positions.

A store that mints ids before it commits can publish a smaller id after a larger one. A reader that follows ids has
then already passed the place and never sees the event (vercel/workflow #2228). Where positions exist they are the
order, and ids must rise with them. Where they do not, the canonical order is made from the ids and times themselves, so
the ids can only be compared with the order of the list, and whether an event was published late stays unknown; the
append audit of our own worlds can tell (see ``commit_order``).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence

from stormctl.history import Capture, Event, Facet, ids
from stormctl.sweeps.base import sweep
from stormctl.sweeps.captured_twice import same_event
from stormctl.sweeps.finding import Fault, Item, Unjudged

KINDS = (
    "mixed-ids",
    "repeat-id",
    "slot-position",
    "id-behind",
    "listed-behind",
    "listed-out-of-order",
    "serial-behind",
)
#: The key of an event's data for the number that a table gave its row when it was inserted.
SERIAL = "serial"


@sweep("id-order", needs={Facet.EVENT_IDS}, kinds=KINDS, whole=True)
def id_order(capture: Capture) -> Iterator[Item]:
    """Do event ids rise with positions?"""
    events = capture.log.events
    named = [index for index, event in enumerate(events) if event.event_id]
    bare = len(events) - len(named)
    if bare:
        yield Unjudged(f"the ids of {bare} events")
    again = yield from _repeats(events, named)
    named = [index for index in named if index not in again]
    yield from _serials(events)
    schemes = {index: ids.scheme(events[index].event_id or "") for index in named}
    slots = {index: None for index, scheme in schemes.items() if scheme == ids.SLOT}
    if slots and len(slots) < len(named):
        odd = next(index for index in named if index not in slots)
        text = f"{len(slots)} events have slot ids and {len(named) - len(slots)} have others"
        yield Fault("mixed-ids", text, (next(iter(slots)), odd), capture.log.run_id)
        return
    if slots:
        yield from _slots(capture, slots)
        return
    unknown = [index for index, scheme in schemes.items() if scheme is None]
    if unknown and len(unknown) == len(named) and all((events[index].event_id or "").isdecimal() for index in named):
        yield from _numbers(events, named)
        return
    if unknown:
        yield Unjudged(f"an id scheme that is known ({events[unknown[0]].event_id} is neither a ULID nor a slot)")
        return
    placed = [index for index in named if events[index].position is not None]
    placed.sort(key=lambda index: events[index].position or 0)
    if placed:
        yield from _behind(events, placed, "id-behind", "has a smaller id than an event of a smaller position")
    else:
        yield from _listed(events, named)
        yield Unjudged(f"{Facet.POSITIONS} (whether an event was published late)")


def _repeats(events: Sequence[Event], named: Sequence[int]) -> Generator[Item, None, set[int]]:
    """Ids that came before; returns the places at which an event was captured once more."""
    first: dict[str, int] = {}
    again: set[int] = set()
    for index in named:
        event_id = events[index].event_id or ""
        before = first.setdefault(event_id, index)
        if before == index:
            continue
        if same_event(events[before], events[index]):
            # pages that overlap give one event twice; a store that repeats an id gives two events
            again.add(index)
            if len(again) == 1:
                yield Unjudged(f"a capture without repeats ({event_id} was captured twice)")
        else:
            yield Fault("repeat-id", f"{event_id} names two events", (before, index), event_id)
    return again


def _listed(events: Sequence[Event], named: Sequence[int]) -> Iterator[Fault]:
    """A store without positions lists by id, or by creation time and then id. What follows neither was mixed up."""
    faults = list(_behind(events, named, "listed-behind", "is listed after an event with a larger id"))
    if not faults:
        return
    before: tuple[int, str] | None = None
    for index in named:
        key = (events[index].created_at or 0, events[index].event_id or "")
        if before is not None and key < before:
            what = "is listed neither by its id nor by its creation time"
            yield from _behind(events, named, "listed-out-of-order", what)
            return
        before = key
    yield from faults


def _numbers(events: Sequence[Event], named: Sequence[int]) -> Iterator[Fault]:
    """Ids that are plain numbers, as a table's serial column gives them."""
    placed = [index for index in named if events[index].position is not None]
    order = sorted(placed, key=lambda index: events[index].position or 0) if placed else named
    kind = "id-behind" if placed else "listed-behind"
    yield from _falling(events, [(int((events[index].event_id or "0")[-40:]), index) for index in order], kind, "id")


def _serials(events: Sequence[Event]) -> Iterator[Fault]:
    """Row numbers that a table gave beside the ids, against positions."""
    numbered = [
        (event.position, serial, index)
        for index, event in enumerate(events)
        if event.position is not None and isinstance(serial := event.data.get(SERIAL), int)
    ]
    if numbered:
        order = [(serial, index) for _, serial, index in sorted(numbered)]
        yield from _falling(events, order, "serial-behind", "serial number")


def _falling(events: Sequence[Event], order: Sequence[tuple[int, int]], kind: str, what: str) -> Iterator[Fault]:
    """One fault for the whole log: the events whose number is smaller than one before it."""
    behind: list[int] = []
    worst: tuple[int, int, int] | None = None
    top, top_at = order[0]
    for number, index in order:
        if number >= top:
            top, top_at = number, index
            continue
        behind.append(index)
        if worst is None or top - number > worst[0]:
            worst = (top - number, top_at, index)
    if worst is not None:
        depth, ahead, late = worst
        text = f"{len(behind)} of {len(order)} events have a smaller {what} than one before them, by up to {depth}"
        yield Fault(kind, text, tuple(behind), events[late].run_id, witness=(ahead, late))


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
    highest = ""
    for index in order:
        key = (events[index].event_id or "").rpartition("_")[2]
        if top is None or key >= highest:
            top, highest = index, key
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
