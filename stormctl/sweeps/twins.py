"""Twins: one logical step that was created twice, under two ids, while the first was still going.

Two replays that had drawn a different number of ids before it each bind the same call to an id of their own, and both
are executed (vercel/workflow #3543). A body may well ask for one step twice with the same input, so a single pair
proves nothing. Several different steps that are all doubled at the same distance are another matter: that distance is
by how many draws the two replays differed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from stormctl.history import Capture, EventLog, Facet, ids, kinds
from stormctl.sweeps.base import sweep
from stormctl.sweeps.finding import Fault, Item
from stormctl.sweeps.witness import label, ranked

KINDS = ("same-step", "skewed-batch")
#: How many events may lie between the two creates of a pair.
WINDOW = 16
#: How many steps must be doubled at one distance before that is more than a body's own doing.
FEWEST = 2


@dataclass(frozen=True, slots=True)
class _Pair:
    first: int
    second: int
    skew: int
    what: tuple[str, str]


@sweep("twins", needs={Facet.CORRELATION_IDS, Facet.NAMES, Facet.INPUTS}, kinds=KINDS, optional=True)
def twins(capture: Capture) -> Iterator[Item]:
    """Was a step created twice under two ids, and executed twice?"""
    pairs = _pairs(capture.log)
    by_skew: defaultdict[int, list[_Pair]] = defaultdict(list)
    for pair in pairs:
        by_skew[pair.skew].append(pair)
    for skew, alike in by_skew.items():
        if skew and len({pair.what for pair in alike}) >= FEWEST:
            at = tuple(index for pair in alike for index in (pair.first, pair.second))
            text = f"{len(alike)} steps were each created and executed twice with one input, {abs(skew)} draws apart"
            yield Fault("skewed-batch", text, at, str(skew))
            continue
        for pair in alike:
            event = capture.log[pair.second]
            text = f"{label(event)} was created twice with one input, as {ranked(capture.log, capture.log[pair.first])}"
            text += f" and {ranked(capture.log, event)}, and executed twice"
            yield Fault("same-step", text, (pair.first, pair.second), event.correlation_id or "")


def _pairs(log: EventLog) -> list[_Pair]:
    """Creates of one name and input under two ids, close together, both executed, the first not yet ended."""
    last: dict[tuple[str, str], int] = {}
    ended: set[str] = set()
    started: set[str] = set()
    found: list[tuple[int, int, tuple[str, str]]] = []
    for index, event in enumerate(log.events):
        correlation_id = event.correlation_id
        if correlation_id is None:
            continue
        if event.type == kinds.STEP_STARTED:
            started.add(correlation_id)
        elif event.type in kinds.STEP_TERMINAL:
            ended.add(correlation_id)
        elif event.type == kinds.STEP_CREATED and event.name is not None and event.payload is not None:
            what = (event.name, event.payload.digest)
            before = last.get(what)
            if before is not None and index - before <= WINDOW:
                other = log[before].correlation_id
                if other is not None and other != correlation_id and other not in ended:
                    found.append((before, index, what))
            last[what] = index
    return [
        _Pair(first, second, _skew(log, first, second), what)
        for first, second, what in found
        if log[first].correlation_id in started and log[second].correlation_id in started
    ]


def _skew(log: EventLog, first: int, second: int) -> int:
    """By how many draws the two lie apart; 0 where their ids do not tell."""
    bodies = (log[first].body or "", log[second].body or "")
    if not all(ids.is_body(body) for body in bodies):
        return 0
    return ids.ordinal(bodies[1]) - ids.ordinal(bodies[0])
