"""Events that a capture holds twice: pages that overlap, a reader that began again (vercel/workflow #2179).

That is the capture's fault and not the store's, so the checks see each event once; ``id_order`` says how many there
were, and the log is not clean. Two events under one id that differ are the store's.
"""

from __future__ import annotations

from dataclasses import replace

from stormctl.history import Capture, Event, EventLog
from stormctl.sweeps.append_only import changes


def same_event(one: Event, other: Event) -> bool:
    """Whether two entries of a capture are one event. A payload that one of them lacks says nothing."""
    return not changes(one, other) and (one.event_id, one.token, one.data) == (other.event_id, other.token, other.data)


def taken_once(capture: Capture) -> Capture:
    """The capture with each event once, at its first place; the capture itself where that is so already.

    Events without an id and without a position cannot be told apart from others like them and stay.
    """
    events = capture.log.events
    named = [event.event_id for event in events]
    if None not in named and "" not in named and len(set(named)) == len(named):
        return capture  # as in nearly every log
    first: dict[str | int, int] = {}
    again: set[int] = set()
    for index, event in enumerate(events):
        key = event.event_id or event.position
        if key is None:
            continue
        before = first.setdefault(key, index)
        if before != index and same_event(events[before], event):
            again.add(index)
    if not again:
        return capture
    kept = [event for index, event in enumerate(events) if index not in again]
    return replace(capture, log=EventLog(kept, capture.log.run_id))
