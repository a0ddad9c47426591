"""Counter: the store's own count of a run's events agrees with the log.

A store that gives positions under a lock keeps the last one beside the log. After a crash the count may lie behind (the
event was published, the counter not written); ahead it promises an event that nobody has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stormctl.history import Capture, Facet
from stormctl.sweeps.base import sweep
from stormctl.sweeps.finding import Fault, Item, Unjudged

KINDS = ("counter-ahead", "counter-behind", "counter-last-id")
#: The key in a capture's ``data`` for the counter as it stood: ``{"seq": 17, "lastEventId": "evnt_..."}``.
COUNTER = "counter"


def _kept(capture: Capture) -> bool:
    return isinstance(capture.data.get(COUNTER), Mapping)


@sweep("counter", needs={Facet.POSITIONS}, kinds=KINDS, optional=True, where=_kept, evidence="the store's counter")
def counter(capture: Capture) -> Iterator[Item]:
    """Does the store's counter agree with the log?"""
    kept = capture.data[COUNTER]
    seq, last_id = kept.get("seq"), kept.get("lastEventId")
    placed = [(event.position, index) for index, event in enumerate(capture.log.events) if event.position is not None]
    if not isinstance(seq, int) or not placed:
        yield Unjudged("a counter that is a number" if placed else str(Facet.POSITIONS))
        return
    last, index = max(placed)
    run = capture.log.run_id
    if seq > last and not capture.evidence.truncated:
        yield Fault("counter-ahead", f"the store has counted to {seq} and the log ends at {last}", (index,), run)
    elif seq < last:
        yield Fault("counter-behind", f"the log ends at {last} and the store has counted to {seq}", (index,), run)
    elif seq == last and isinstance(last_id, str) and last_id != capture.log[index].event_id:
        text = f"the store takes {last_id} for the event at {last}, which is {capture.log[index].event_id}"
        yield Fault("counter-last-id", text, (index,), run)
