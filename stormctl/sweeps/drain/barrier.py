"""The barrier: once in a pass, flush before pull, and nothing is queued that the view does not show."""

from __future__ import annotations

from collections.abc import Iterator

from stormctl.sweeps.drain import records
from stormctl.sweeps.drain.base import drain_sweep
from stormctl.sweeps.drain.records import DrainTrace, Flush, PassBegin, PassEntry, Pull, said
from stormctl.sweeps.finding import Fault


@drain_sweep("drain-barrier", kinds=("second-flush", "second-pull", "pull-first", "unseen", "other-seq"))
def barrier(trace: DrainTrace) -> Iterator[Fault]:
    """Is every event that is queued seen at its index, behind one flush and one pull at most?"""
    counts: dict[int, list[int]] = {}  # of each tenure's pass: flushes, flushes that ended well, pulls
    for index, record in enumerate(trace.records):
        what = record.what
        count = counts.setdefault(record.tenure, [0, 0, 0])
        if isinstance(what, PassBegin):
            counts[record.tenure] = [0, 0, 0]
        elif isinstance(what, Flush):
            count[0] += what.phase == "begin"
            count[1] += what.phase == "end"
            if what.phase == "begin" and count[0] > 1:
                yield Fault("second-flush", "the pass flushes once more", (index,), str(record.n))
        elif isinstance(what, Pull) and what.phase == "begin":
            count[2] += 1
            if count[2] > 1:
                yield Fault("second-pull", "the pass pulls once more", (index,), str(record.n))
            if not count[1]:
                yield Fault("pull-first", "the pass pulls what nobody flushed", (index,), str(record.n))
        elif isinstance(what, PassEntry) and what.action == records.QUEUE:
            ident = (what.event_id, what.seq)
            if what.view != ident:
                same = what.view is not None and what.view[0] == what.event_id
                shows = "nothing" if what.view is None else said(what.view)
                text = f"{said(ident)} is queued while the view shows {shows} at {what.doc}[{what.stored_i}]"
                yield Fault("other-seq" if same else "unseen", text, (index,), said(ident))
