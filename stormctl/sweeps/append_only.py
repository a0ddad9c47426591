"""Append-only: an earlier capture of a run is the beginning of a later one.

What a reader has seen may not change behind it. An event that turns up between two that were already read is the trace
of a store that publishes late (vercel/workflow #2228): nobody who follows the log ever sees it, and whoever replays
from the start does. The sweep appears only where two captures of one run are given.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from stormctl.history import Capture, Event, EventLog, Facet
from stormctl.sweeps.base import sweep
from stormctl.sweeps.finding import Fault, Item, Noted, Unjudged
from stormctl.sweeps.witness import clean

KINDS = ("inserted", "lost", "changed", "moved")
_FIELDS = ("type", "correlation_id", "position", "created_at", "name", "resume_at")

Key = tuple[str, object, int]


@sweep("append-only", needs={Facet.EARLIER}, kinds=KINDS, optional=True)
def append_only(capture: Capture) -> Iterator[Item]:
    """Is the earlier capture the beginning of this one?"""
    earlier = capture.earlier
    assert earlier is not None
    before, after = earlier.log, capture.log
    if before.run_id != after.run_id:
        yield Unjudged(f"an earlier capture of this run (the one that was given is of {clean(before.run_id)})")
        return
    was, now = _keyed(before), _keyed(after)
    yield from _lost(before, was, now, capture)
    yield from _inserted(earlier, capture, was, now)
    last = -1
    for key, index in was.items():
        there = now.get(key)
        if there is None:
            continue
        if there < last:
            text = f"{_who(after[there])} was listed behind another event and is now listed before it"
            yield Fault("moved", text, (there,), _entity(after[there]), witness=(there, last))
        last = max(last, there)
        odd = changes(before[index], after[there])
        if odd:
            text = f"{_who(after[there])} is not what it was: {', '.join(odd)}"
            yield Fault("changed", text, (there,), _entity(after[there]))


def _lost(before: EventLog, was: dict[Key, int], now: dict[Key, int], capture: Capture) -> Iterator[Item]:
    gone = [index for key, index in was.items() if key not in now]
    if gone and capture.evidence.truncated:
        yield Noted(f"{len(gone)} events of the earlier capture, in a log that was not captured whole")
        return
    for index in gone:
        event = before[index]
        text = f"{_who(event)} was in the log and is no longer"
        place = f"was {before.place(index)} {clean(event.type)} {clean(event.correlation_id or '')}".rstrip()
        yield Fault("lost", text, (), _entity(event), witness=(place,))


def _inserted(earlier: Capture, capture: Capture, was: dict[Key, int], now: dict[Key, int]) -> Iterator[Item]:
    """Events that stand before one that was already there, and were not."""
    shared = [index for key, index in now.items() if key in was]
    if not shared:
        return
    if earlier.evidence.truncated:
        yield Noted("the whole of the earlier capture")
        return
    left_out = set(earlier.evidence.omitted)
    last = max(shared)
    for key, index in now.items():
        event = capture.log[index]
        if index < last and key not in was and event.position not in left_out:
            text = f"{_who(event)} has appeared before events that had been read already"
            yield Fault("inserted", text, (index,), _entity(event), witness=(index, last))


def changes(before: Event, after: Event) -> tuple[str, ...]:
    """The fields in which two captures of one event differ. A payload that is no longer there was purged, and one that
    was not captured says nothing."""
    odd = [name for name in _FIELDS if getattr(before, name) != getattr(after, name)]
    if before.payload is not None and after.payload is not None and before.payload.digest != after.payload.digest:
        odd.append("payload")
    return tuple(odd)


def _keyed(log: EventLog) -> dict[Key, int]:
    """The events by what names them: id, else position, else what they say and how often it was said before."""
    found: dict[Key, int] = {}
    seen: defaultdict[tuple[str, object], int] = defaultdict(int)
    for index, event in enumerate(log.events):
        name: tuple[str, object]
        if event.event_id:
            name = ("id", event.event_id)
        elif event.position is not None:
            name = ("position", event.position)
        else:
            name = ("content", (event.type, event.correlation_id, event.created_at))
        found[(*name, seen[name])] = index
        seen[name] += 1
    return found


def _who(event: Event) -> str:
    return " ".join(clean(part) for part in (event.type, event.correlation_id, event.event_id) if part)


def _entity(event: Event) -> str:
    return event.event_id or event.correlation_id or event.type
