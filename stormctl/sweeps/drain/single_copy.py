"""One copy of an event is under way at most, until the store has spoken."""

from __future__ import annotations

from collections.abc import Iterator

from stormctl.sweeps.drain import records
from stormctl.sweeps.drain.base import drain_sweep
from stormctl.sweeps.drain.records import DrainTrace, Ident, Park, PassEntry, Wave, said
from stormctl.sweeps.finding import Fault


@drain_sweep("drain-single-copy", kinds=("second-copy",))
def single_copy(trace: DrainTrace) -> Iterator[Fault]:
    """Is an event queued again only when the outcome of its first copy is known?"""
    under_way: dict[Ident, tuple[int, int]] = {}  # the tenure, and the record that queued it
    for index, record in enumerate(trace.records):
        what = record.what
        if isinstance(what, PassEntry) and what.action == records.QUEUE:
            ident: Ident = (what.event_id, what.seq)
            if ident in under_way:
                text = f"{said(ident)} is queued again while a copy of it is under way"
                yield Fault("second-copy", text, (under_way[ident][1], index), said(ident))
            under_way[ident] = record.tenure, index
        elif isinstance(what, Wave):
            for ident in (*what.effects, *what.skips, *what.requeued):
                under_way.pop(ident, None)
        elif isinstance(what, Park) and what.phase == "begin":
            under_way = {ident: one for ident, one in under_way.items() if one[0] != record.tenure}
