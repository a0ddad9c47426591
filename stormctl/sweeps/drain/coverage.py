"""The watermark covers only what was run.

What a view or a sync held back must never lie at or below W. What a pass did not come to is held back by what stopped
the pass: an entry that the view hid yesterday belongs to the class of what stops the pass before it today.

Three classes are known of the last generation and are told apart: an entry whose queueing threw, one that was parked by
the load of its stream, and one that a conflict threw back in the very wave that moved W.
"""

from __future__ import annotations

from collections.abc import Iterator

from stormctl.sweeps.drain import records
from stormctl.sweeps.drain.base import drain_sweep
from stormctl.sweeps.drain.fold import pending_in
from stormctl.sweeps.drain.records import DrainTrace, Ident, PassBegin, PassEntry, Wave, said
from stormctl.sweeps.finding import Fault

#: what held an entry back, and the class of its being covered all the same
_CLASSES = {
    records.DEFER_VIEW: "view",
    records.DEFER_SYNC: "sync",
    records.DEFER_QUEUE: "residual-queue",
    records.DEFER_LOADPARK: "residual-load",
    "requeue": "residual-requeue",
    "": "unscanned",
}
_WORDS = {
    "view": "the view did not show it",
    "sync": "its sidecar could not be synced",
    "residual-queue": "queueing threw",
    "residual-load": "the load of its stream parked it",
    "residual-requeue": "a conflict threw it back",
    "unscanned": "no pass has come to it",
    "unmarked": "it was queued, and no mark of it landed",
}


@drain_sweep("drain-coverage", kinds=(*_WORDS, "watermark-back", "exhausted-advance"))
def coverage(trace: DrainTrace) -> Iterator[Fault]:
    """Is everything at or below the watermark consequenced?"""
    last: dict[Ident, str] = {}  # what was done with each entry last
    latest: dict[Ident, str] = {}  # and in the last pass, or since
    stopper = ""
    seen: set[tuple[str, Ident]] = set()
    for index, record in enumerate(trace.records):
        what = record.what
        if isinstance(what, PassBegin):
            stopper, latest = "", {}
        elif isinstance(what, PassEntry):
            last[what.event_id, what.seq] = latest[what.event_id, what.seq] = what.action
            if what.action in records.DEFERRALS:
                stopper = stopper or what.action
        elif isinstance(what, Wave):
            if what.w_after < what.w_before:
                yield Fault(
                    "watermark-back", f"W falls from {what.w_before} to {what.w_after}", (index,), str(what.seq)
                )
            if what.exhausted and what.w_after != what.w_before:
                text = f"a wave that the deadline cut moves W to {what.w_after}"
                yield Fault("exhausted-advance", text, (index,), str(what.seq))
            latest.update((ident, "requeue") for ident in what.requeued)
            for doc, ident in pending_in(what.sidecars):
                if ident[1] is None or ident[1] > what.w_after or (doc, ident) in seen:
                    continue
                seen.add((doc, ident))
                kind = _CLASSES.get(latest.get(ident) or stopper or last.get(ident, ""), "unmarked")
                text = f"W={what.w_after} covers {said(ident)}, which is pending: {_WORDS[kind]}"
                yield Fault(kind, text, (index,), said(ident))
