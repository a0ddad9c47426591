"""Acknowledged events: what a store said it had appended is in the log.

The promise that a store may break under a kill, a broken lock or a lost connection. The audit holds every answer that a
writer was given; the capture says when its log was read, and only answers from before that are held against it. The
sweep appears only where a capture has both.
"""

from __future__ import annotations

from collections.abc import Iterator

from stormctl.history import LOG_READ_AT, Capture, Facet
from stormctl.sweeps.base import sweep
from stormctl.sweeps.finding import Fault, Item, Unjudged

KINDS = ("lost-event",)


@sweep("acknowledged", needs={Facet.AUDIT, Facet.READS, Facet.EVENT_IDS}, kinds=KINDS, optional=True)
def acknowledged(capture: Capture) -> Iterator[Item]:
    """Is every event that the store acknowledged in the log?"""
    read_at = capture.data.get(LOG_READ_AT)
    if not isinstance(read_at, int):
        yield Unjudged("the time at which the log was read")
        return
    held = {event.event_id for event in capture.log}
    lost = [
        record
        for record in capture.audit or ()
        if record.admitted and record.event_id is not None and record.returned < read_at and record.event_id not in held
    ]
    if lost:
        first = lost[0]
        text = (
            f"{len(lost)} events were acknowledged and are not in the log; the first is {first.type} "
            f"{first.event_id or ''}, told to {first.writer}"
        )
        yield Fault("lost-event", text, (), capture.log.run_id)
