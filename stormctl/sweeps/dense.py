"""Dense positions: a run holds every position from 1 to its last exactly once.

A gap is a write that was promised and never published (a stager that was killed, an allocator that reserves before it
commits); a repeat is two writers that believed they held the same lock. Upstream calls the loud form
WORLD_CONTRACT_ERROR, as in "36 followed by 36" (vercel/workflow #3269, #3492). Positions that the capture declares to
have left out are no gaps: they are listed as missing. A log that was begun under a store without positions keeps its
first events without; the position of the next is then one more than their count.
"""

from __future__ import annotations

from collections.abc import Iterator

from stormctl.history import Capture, Facet
from stormctl.sweeps.base import sweep
from stormctl.sweeps.finding import Fault, Item, Noted, Unjudged

KINDS = ("gap", "open-gap", "repeat", "no-position", "bad-position", "out-of-order")


@sweep("dense", needs={Facet.POSITIONS}, kinds=KINDS)
def dense(capture: Capture) -> Iterator[Item]:
    """Does the log hold every position exactly once?"""
    omitted = set(capture.evidence.omitted)
    placed: list[tuple[int, int]] = []
    adopted = before = 0
    rising = True
    yield from map(Noted, capture.evidence.omitted)
    for index, event in enumerate(capture.log.events):
        position = event.position
        if position is None:
            if placed:
                yield Fault("no-position", f"{event.type} has no position", (index,), _entity(capture, index))
            else:
                adopted += 1
            continue
        if position < 1:
            text = f"{event.type} has the position {position}, and positions count from 1"
            yield Fault("bad-position", text, (index,), _entity(capture, index))
            continue
        if placed and position <= before:
            rising = False
            if position < before:
                text = f"position {position} is listed after {before}"
                yield Fault("out-of-order", text, (index,), str(position), witness=(placed[-1][1], index))
        placed.append((position, index))
        before = position
    if not placed:
        yield Unjudged(str(Facet.POSITIONS))
        return
    if adopted:
        yield Noted(f"the positions of the first {adopted} events")
    if rising and placed[0][0] == adopted + 1 and placed[-1][0] - adopted == len(placed):
        return  # every position once: the common case, told without another look at each
    gap = "open-gap" if capture.evidence.live else "gap"
    edge: tuple[int, int | None] = (adopted, None)
    for after, index in sorted(placed):
        before, last = edge
        shown = (index,) if last is None else (last, index)
        if after == before:
            yield Fault("repeat", f"position {after} is held by two events", shown, str(after))
        first, end = _between(before, after, omitted)
        if first <= end:
            yield Fault(gap, _gap_text(first, end, after), shown, str(first))
        edge = (after, index)


def _entity(capture: Capture, index: int) -> str:
    event = capture.log[index]
    return event.event_id or event.correlation_id or event.type


def _between(before: int, after: int, omitted: set[int]) -> tuple[int, int]:
    """The first and last position between two that is not declared left out; an empty range where there is none."""
    first, end = before + 1, after - 1
    while first <= end and first in omitted:
        first += 1
    while end >= first and end in omitted:
        end -= 1
    return first, end


def _gap_text(first: int, end: int, after: int) -> str:
    if first == end:
        return f"position {first} is missing before {after}"
    return f"positions {first} to {end} are missing before {after}"
