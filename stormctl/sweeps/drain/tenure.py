"""A tenure that ended does nothing any more, and the next finds exactly what is pending."""

from __future__ import annotations

from collections.abc import Iterator

from stormctl.sweeps.drain import records
from stormctl.sweeps.drain.base import drain_sweep
from stormctl.sweeps.drain.fold import folded
from stormctl.sweeps.drain.records import (
    Activate,
    Dispatch,
    DrainTrace,
    Park,
    PassEnd,
    PassEntry,
    Timer,
    Wave,
    What,
    said,
)
from stormctl.sweeps.finding import Fault

KINDS = (
    "queued-after-park", "ran-after-park", "committed-after-park", "armed-after-park", "floor-after-park", "lost",
    "found-again",
)  # fmt: skip


@drain_sweep("drain-tenure", kinds=KINDS)
def tenure(trace: DrainTrace) -> Iterator[Fault]:
    """Does a parked tenure leave everything alone, and the next find what is pending?"""
    parked: dict[int, int] = {}
    for index, record, fold in folded(trace):
        what = record.what
        if isinstance(what, Park) and what.phase == "begin":
            parked[record.tenure] = index
        elif isinstance(what, Activate):
            found = {(doc, (event_id, seq)) for doc, event_id, seq in what.pending}
            wanted = set(fold.pending())
            for kind, verb, places in (
                ("lost", "is pending, and the new tenure does not find it", wanted - found),
                ("found-again", "is found pending by the new tenure though it is not", found - wanted),
            ):
                for _, ident in sorted(places, key=str):
                    yield Fault(kind, f"{said(ident)} {verb}", (index,), said(ident))
        elif record.tenure in parked:
            named = _done(what)
            if named is not None:
                kind, text = named
                yield Fault(kind, f"after its park began, the tenure {text}", (parked[record.tenure], index), text)


def _done(what: What) -> tuple[str, str] | None:
    """What a parked tenure must not do, if this is of the kind."""
    match what:
        case PassEntry() if what.action == records.QUEUE:
            return "queued-after-park", f"queues {said((what.event_id, what.seq))}"
        case Dispatch():
            return "ran-after-park", f"runs {said((what.event_id, what.seq))}"
        case Wave() if what.seq:
            return "committed-after-park", "commits a wave"
        case Timer() if what.phase == "arm":
            return "armed-after-park", "arms its timer"
        case PassEnd() if what.floor_after is not None:
            return "floor-after-park", "sets a floor"
    return None
