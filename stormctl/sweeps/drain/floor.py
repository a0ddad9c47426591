"""The floor: the seq of the first entry that a view or a sync held back, and W stays below it."""

from __future__ import annotations

from collections.abc import Iterator

from stormctl.sweeps.drain import records
from stormctl.sweeps.drain.base import drain_sweep
from stormctl.sweeps.drain.records import DrainTrace, Floor, Park, PassBegin, PassEnd, PassEntry, Wave, said
from stormctl.sweeps.finding import Fault

_SETS = (records.DEFER_VIEW, records.DEFER_SYNC)


@drain_sweep("drain-floor", kinds=("missing", "stale", "passed", "settled-past"))
def floor(trace: DrainTrace) -> Iterator[Fault]:
    """Does what was held back hold the watermark down until a scan has taken it?"""
    floors: dict[int, tuple[int | None, int]] = {}
    stops: dict[int, tuple[PassEntry, int] | None] = {}
    parked: set[int] = set()
    for index, record in enumerate(trace.records):
        what, tenure = record.what, record.tenure
        if isinstance(what, Park) and what.phase == "begin":
            parked.add(tenure)
            floors.pop(tenure, None)
        elif isinstance(what, PassBegin):
            floors.pop(tenure, None)
            stops[tenure] = None
        elif isinstance(what, Floor):
            floors.pop(tenure, None)
        elif isinstance(what, PassEntry) and what.action in records.DEFERRALS:
            stops[tenure] = stops.get(tenure) or (what, index)
        elif isinstance(what, PassEnd) and tenure not in parked:
            stop = stops.get(tenure)
            yield from _ended(what, index, stop)
            if what.floor_after is not None:
                floors[tenure] = what.floor_after, index
            elif stop is not None and stop[0].action in _SETS:
                floors[tenure] = (1 if stop[0].seq is None else stop[0].seq), index
        elif isinstance(what, Wave) and tenure in floors and what.seq:
            held, since = floors[tenure]
            if held is not None and what.w_after > max(what.w_before, held - 1):
                kind = "settled-past" if what.settled else "passed"
                text = f"W goes to {what.w_after} while {held} is held back"
                yield Fault(kind, text, (since, index), str(held))


def _ended(what: PassEnd, index: int, stop: tuple[PassEntry, int] | None) -> Iterator[Fault]:
    """What the floor should be at the end of a pass, by what stopped it."""
    if stop is None:
        if what.floor_after is not None:
            yield Fault("stale", f"the floor is {what.floor_after} though nothing was held back", (index,), "pass")
        return
    entry, at = stop
    wanted = 1 if entry.seq is None else entry.seq
    name = said((entry.event_id, entry.seq))
    if entry.action in _SETS and what.floor_after != wanted:
        yield Fault("missing", f"{name} is held back and the floor is {what.floor_after}", (at, index), name)
    elif entry.action not in _SETS and what.floor_after not in (None, wanted):
        yield Fault("stale", f"the floor is {what.floor_after}, and {name} stopped the pass", (at, index), name)
