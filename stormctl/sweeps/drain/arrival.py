"""Arrival order, across streams: what came later is not consequenced sooner."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from stormctl.sweeps.drain import records
from stormctl.sweeps.drain.base import drain_sweep
from stormctl.sweeps.drain.fold import before, folded
from stormctl.sweeps.drain.records import DrainTrace, Ident, PassBegin, PassEntry, Wave, position, said
from stormctl.sweeps.finding import Fault

Place = tuple[str, Ident]


@drain_sweep("drain-arrival", kinds=("overtaken", "order-in-wave", "queued-behind", "inversion-by-requeue"))
def arrival(trace: DrainTrace) -> Iterator[Fault]:
    """Is every event consequenced no sooner than those that came before it?"""
    waiting: dict[Place, tuple[set[Place], int]] = {}  # what was pending before an entry when it was queued
    requeued: dict[Ident, int] = {}  # the last record that threw an entry back
    stopped: dict[int, int | None] = {}
    for index, record, fold in folded(trace):
        what = record.what
        if isinstance(what, PassBegin):
            stopped[record.tenure] = None
        elif isinstance(what, PassEntry):
            own = (what.doc, (what.event_id, what.seq))
            if what.action in records.DEFERRALS:
                stopped[record.tenure] = index
            elif what.action == records.QUEUE:
                stop = stopped.get(record.tenure)
                if stop is not None:
                    text = f"{said(own[1])} is queued in a pass that {_entry(trace, stop)} should have stopped"
                    yield Fault("queued-behind", text, (stop, index), said(own[1]))
                waiting[own] = {one for one in fold.pending() if before(one, own)}, index
        elif isinstance(what, Wave):
            requeued.update((ident, index) for ident in what.requeued)
            still = {
                (doc, (event_id, seq))
                for doc, _, entries in what.sidecars
                for event_id, seq, done in entries
                if not done and event_id
            }
            for doc, _, event_id, seq in what.marks:
                earlier, queued = waiting.pop((doc, (event_id, seq)), (set(), index))
                for place in sorted(earlier & still, key=lambda one: position(one[1], one[0])):
                    kind = "inversion-by-requeue" if requeued.get(place[1], -1) > queued else "overtaken"
                    text = (
                        f"{said((event_id, seq))} is consequenced while {said(place[1])}, which came before it, waits"
                    )
                    yield Fault(kind, text, (queued, index), said(place[1]))
            places: dict[Ident, str] = {(event_id, seq): doc for doc, _, event_id, seq in what.marks}
            behind = [
                other
                for one, other in pairwise(what.effects)
                if position(one, places.get(one, "")) > position(other, places.get(other, ""))
            ]
            if behind:
                kind = "inversion-by-requeue" if all(one in requeued for one in behind) else "order-in-wave"
                shown = " ".join(map(said, what.effects))
                yield Fault(kind, f"commit {what.seq} has its effects as {shown}", (index,), str(what.seq))


def _entry(trace: DrainTrace, index: int) -> str:
    what = trace.records[index].what
    assert isinstance(what, PassEntry)
    return f"the deferral of {said((what.event_id, what.seq))}"
