"""Time order: creation times rise along the log, and each id was minted when its event was created.

Most stores stamp an event before they give it its place, so its time may lie behind that of an earlier one; how often
and how far is a measure of the store, and a fault only where the order is made from the times, or where they are
stamped under the lock that gives the places. A ULID holds a time of its own: an event that was created long after its
id was minted waited in a transaction, one created before it shows two clocks.
"""

from __future__ import annotations

from collections.abc import Iterator

from stormctl.history import Capture, Facet, ids
from stormctl.sweeps.base import sweep
from stormctl.sweeps.finding import Fault, Item, Noted

KINDS = ("created-behind", "id-time-apart")
#: How far the time in an id may lie from the event's own before it is worth a word, in milliseconds.
APART_MS = 1000


@sweep("time-order", needs={Facet.TIMES}, kinds=KINDS, optional=True)
def time_order(capture: Capture) -> Iterator[Item]:
    """Do creation times rise along the log?"""
    behind: list[int] = []
    apart: list[int] = []
    least = most = untimed = 0
    deepest: tuple[int, int, int] | None = None
    before: int | None = None
    top, top_at = 0, -1
    for index, event in enumerate(capture.log.events):
        time = event.created_at
        if time is None:
            untimed += 1
            continue
        if before is not None and time < before:
            behind.append(index)
            if deepest is None or top - time > deepest[0]:
                deepest = (top - time, top_at, index)
        if top_at < 0 or time >= top:
            top, top_at = time, index
        before = time
        minted = ids.ulid_ms(event.event_id) if event.event_id else None
        if minted is not None and not -APART_MS <= time - minted <= APART_MS:
            apart.append(index)
            least, most = min(least, time - minted), max(most, time - minted)
    if untimed:
        yield Noted(f"the times of {untimed} events")
    if deepest is not None:
        depth, ahead, late = deepest
        text = (
            f"{len(behind)} of {len(capture.log)} events were created before the event that precedes them; "
            f"the farthest lies {depth} ms behind"
        )
        yield Fault("created-behind", text, tuple(behind), capture.log.run_id, witness=(ahead, late))
    if apart:
        how = _range(least, most)
        text = f"{len(apart)} events were created more than {APART_MS} ms from when their ids were minted: {how}"
        yield Fault("id-time-apart", text, tuple(apart), capture.log.run_id, witness=(apart[0],))


def _range(least: int, most: int) -> str:
    parts = ([f"up to {most} ms after"] if most else []) + ([f"up to {-least} ms before"] if least else [])
    return " and ".join(parts)
