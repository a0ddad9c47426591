"""Cursor skips: events that a delivery never saw, because its cursor had passed their place before they were published.

This is the hole that lets a run corrupt itself under ids minted before the write: the reader goes on from its cursor,
and what appears behind it stays behind it until somebody reads the whole log again. The audit says when each event
became readable, and the deliveries of our storms say what they read; the sweep appears only where a capture has both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from stormctl.history import Capture, Facet, ReadRecord
from stormctl.sweeps.base import sweep
from stormctl.sweeps.commit_order import publication_times
from stormctl.sweeps.finding import Fault, Item, Noted

KINDS = ("missed-event",)


@sweep("cursor-skip", needs={Facet.AUDIT, Facet.READS, Facet.EVENT_IDS}, kinds=KINDS, optional=True)
def cursor_skip(capture: Capture) -> Iterator[Item]:
    """Did every delivery see every event that lies before its cursor?"""
    published = publication_times(capture)
    place = {event.event_id: index for index, event in enumerate(capture.log)}
    readers: defaultdict[str, list[ReadRecord]] = defaultdict(list)
    for read in capture.reads or ():
        readers[read.reader].append(read)
    missed: dict[int, list[str]] = {}
    foreign = 0
    for reader, reads in readers.items():
        reads.sort(key=lambda read: read.returned)
        foreign += sum(1 for read in reads if read.last_event_id is not None and read.last_event_id not in place)
        for index in skipped(reads, place, published):
            missed.setdefault(index, []).append(reader)
    if foreign:
        yield Noted(f"the events at which {foreign} reads ended")
    if missed:
        pairs = sum(map(len, missed.values()))
        blind = len({reader for found in missed.values() for reader in found})
        first = min(missed)
        text = (
            f"{blind} of {len(readers)} deliveries went on without {len(missed)} events that were published behind "
            f"their cursors ({pairs} misses)"
        )
        yield Fault("missed-event", text, tuple(sorted(missed)), capture.log.run_id, witness=(first,))


def skipped(reads: list[ReadRecord], place: dict[str | None, int], published: list[int | None]) -> set[int]:
    """The indexes of the events that one reader's cursor passed before they were published, and that it then went on
    without: it read on behind its cursor, and never the whole log again."""
    lost: set[int] = set()
    passed: list[int | None] = [None] * len(published)  # when the cursor passed each event without showing it
    at = -1
    for read in reads:
        if read.full:
            at, passed = -1, [None] * len(published)
            lost.clear()
        lost |= {
            index
            for index, moment in enumerate(passed)
            if moment is not None and (when := published[index]) is not None and when < read.began
        }
        last = place.get(read.last_event_id, at) if read.last_event_id is not None else at
        for index in range(at + 1, last + 1):
            when = published[index]
            if when is not None and when > read.returned:
                passed[index] = read.returned
        at = max(at, last)
    return lost
