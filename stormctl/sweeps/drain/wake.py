"""Nobody sleeps on a pending event: a scan is owed, or a timer is armed, or input is there."""

from __future__ import annotations

from collections.abc import Iterator

from stormctl.sweeps.drain.base import drain_sweep
from stormctl.sweeps.drain.fold import folded
from stormctl.sweeps.drain.records import (
    Admit,
    Apply,
    Compact,
    Consequence,
    Counters,
    DrainTrace,
    Rest,
    Timer,
    said,
)
from stormctl.sweeps.finding import Fault

#: the backstop: a deferred event is looked at again within that many ms
BACKSTOP_MS = 250


@drain_sweep("drain-wake", kinds=("stuck", "left", "late"))
def wake(trace: DrainTrace) -> Iterator[Fault]:
    """Does something wake the loop for every event that waits?"""
    armed: dict[int, tuple[int, int]] = {}  # by tenure: when the timer was armed, and by which record
    resting: int | None = None  # the last rest, while nothing but admissions and frames came behind it
    told = False
    for index, record, fold in folded(trace):
        what = record.what
        if isinstance(what, Rest):
            resting = index
        elif isinstance(what, Counters):
            left = sorted(said(ident) for _, ident in fold.pending())
            if resting is not None and left and not armed and not told:
                names = " ".join(left)
                yield Fault("left", f"the run is over, the loop rests, and {names} is left", (resting, index), names)
        elif not isinstance(what, Admit | Apply | Compact | Consequence | Timer):
            resting = None
        if isinstance(what, Rest) and what.pending and not (what.scan_owed or what.timer or what.feed):
            told = True
            names = " ".join(said((event_id, seq)) for _, event_id, seq in what.pending)
            yield Fault("stuck", f"the loop rests while {names} is pending, and nothing will wake it", (index,), names)
        elif isinstance(what, Timer):
            if what.phase == "arm":
                armed[record.tenure] = record.t, index
            elif record.tenure in armed:
                since, at = armed.pop(record.tenure)
                if what.phase == "fire" and record.t > since + BACKSTOP_MS:
                    text = f"the timer goes off {record.t - since} ms after it was armed"
                    yield Fault("late", text, (at, index), str(trace.records[at].n))
