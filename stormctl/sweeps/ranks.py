"""Ranks: the draws of a run come from one sequence, and no create lies far behind the draws of its time.

Creates need not rise: branches that run side by side write theirs in any order, and in sound logs nearly every second
create lies below one before it. But it can only lie as far below as there were draws under way at once. One that lies
deeper was drawn by a replay of another part of the log. The bound is taken from the log itself; of the completed
control runs of the real SDK none comes near it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from stormctl.history import Capture, Facet, ids, kinds
from stormctl.history.log import MAX_RANK
from stormctl.sweeps.base import sweep
from stormctl.sweeps.finding import Fault, Item

KINDS = ("time-part", "undrawn", "too-deep")
#: The bound is never smaller: a batch of a few branches says little of how many there can be.
LEAST_BOUND = 16
#: A branch draws a step and a wait for its race, so twice the entities that were open at once may be under way.
DRAWS_PER_BRANCH = 2
_BEGIN = kinds.CREATES | {kinds.HOOK_CONFLICT}
_END = kinds.STEP_TERMINAL | {kinds.WAIT_COMPLETED, kinds.HOOK_DISPOSED, kinds.HOOK_CONFLICT}


@sweep("ranks", needs={Facet.CORRELATION_IDS}, kinds=KINDS)
def ranks(capture: Capture) -> Iterator[Item]:
    """Do all draws come from one sequence, none far behind those of its time?"""
    log = capture.log
    drawn: dict[int, int] = {}
    foreign: list[int] = []
    deep: list[tuple[int, int, int]] = []
    live: set[str] = set()
    base: int | None = None
    peak = top = 0
    top_at = -1
    for index, event in enumerate(log.events):
        correlation_id, event_type = event.correlation_id, event.type
        if correlation_id is None:
            continue
        if event_type in _END:
            live.discard(correlation_id)
        if event_type not in _BEGIN:
            continue
        if event_type != kinds.HOOK_CONFLICT:
            live.add(correlation_id)
            if len(live) > peak:
                peak = len(live)
        value = ids.drawn(correlation_id.rpartition("_")[2])
        if value is None or value in drawn:
            continue
        if base is None:
            base = value
        elif value >> ids.RANDOM_BITS != base >> ids.RANDOM_BITS or abs(value - base) > MAX_RANK:
            foreign.append(index)
            continue
        drawn[value] = index
        if top_at < 0 or value > top:
            top, top_at = value, index
        elif top - value > LEAST_BOUND:
            deep.append((top - value, top_at, index))
    if foreign and drawn:
        text = f"{len(foreign)} ids are not of the sequence from which the run's first is drawn"
        first = next(iter(drawn.values()))
        yield Fault("time-part", text, tuple(foreign), log.run_id, witness=(first, foreign[0]))
    yield from _too_deep(capture, deep, max(LEAST_BOUND, DRAWS_PER_BRANCH * peak))
    yield from _undrawn(capture, drawn)


def _too_deep(capture: Capture, deep: list[tuple[int, int, int]], bound: int) -> Iterator[Fault]:
    beyond = [found for found in deep if found[0] > bound]
    if beyond:
        depth, ahead, late = max(beyond)
        text = (
            f"{len(beyond)} creates lie more than {bound} draws below the highest so far, the deepest by {depth}: "
            f"no more than {bound} can have been under way"
        )
        at = tuple(index for _, _, index in beyond)
        yield Fault("too-deep", text, at, capture.log.run_id, witness=(ahead, late))


def _undrawn(capture: Capture, drawn: dict[int, int]) -> Iterator[Fault]:
    if not drawn or capture.evidence.truncated:
        return
    least, most = min(drawn), max(drawn)
    absent = most - least + 1 - len(drawn)
    if absent:
        lower, upper = next(pair for pair in pairwise(sorted(drawn)) if pair[1] - pair[0] > 1)
        text = f"{absent} draws between the first and the last are not in the log"
        yield Fault("undrawn", text, (drawn[upper],), capture.log.run_id, witness=(drawn[lower], drawn[upper]))
