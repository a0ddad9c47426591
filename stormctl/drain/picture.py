"""A drain as lanes: the store, the view and the loop, with each mark drawn at the index where it landed."""

from __future__ import annotations

from collections.abc import Iterator

from stormctl.sim.show.lanes import Lanes, Row
from stormctl.sweeps.drain.fold import Fold, folded
from stormctl.sweeps.drain.records import (
    DEFERRALS,
    VANISHED,
    Activate,
    Admit,
    Apply,
    Compact,
    Consequence,
    Dispatch,
    DrainTrace,
    Effects,
    Flush,
    Park,
    PassEnd,
    PassEntry,
    Pull,
    Record,
    Timer,
    Wave,
    said,
)

STORE, VIEW, LOOP = "store", "view", "loop"


def lanes(trace: DrainTrace, *, title: str | None = None, raced: frozenset[int] = frozenset()) -> Lanes:
    """The picture of a trace. ``raced`` are the numbers of records to put in brackets."""
    rows = tuple(
        Row(lane, text, position, raced=record.n in raced, matters=record.n in raced or matters)
        for record, lane, text, position, matters in _rows(trace)
    )
    return Lanes(trace.name if title is None else title, (STORE, VIEW, LOOP), rows)


def _rows(trace: DrainTrace) -> Iterator[tuple[Record, str, str, int | None, bool]]:
    """Each thing that is drawn: its record, lane, text, seq, and whether it matters more than others."""
    for _, record, fold in folded(trace):
        match record.what:
            case Admit() as what if not what.deduped:
                where = f"{what.doc}[{len(fold.docs.get(what.doc, ()))}]"
                yield record, STORE, f"{where}={said((what.event_id, what.seq))}", what.seq, True
            case Compact() as what:
                gone = " ".join(map(said, what.removed))
                yield record, STORE, f"{what.doc} without {gone}", None, True
            case Consequence() as what:
                yield record, STORE, f"other marks {said((what.event_id, what.seq))}", None, True
            case Wave() as what if what.seq:
                yield record, STORE, _wave(what, fold), what.seq, True
            case Wave() as what:
                yield record, STORE, f"no commit, back: {' '.join(map(said, what.requeued))}", None, True
            case Effects() as what:
                yield record, STORE, f"{said((what.event_id, what.event_seq))} runs unmarked", what.seq, True
            case Apply() as what:
                yield record, VIEW, f"{what.doc} as of {what.version_seq}", None, False
            case PassEntry() as what if what.action in DEFERRALS or what.action == VANISHED:
                yield record, LOOP, f"{said((what.event_id, what.seq))}: {what.action}", None, True
            case PassEntry() as what:
                at = f"{what.doc}[{what.stored_i}]"
                yield record, LOOP, f"{said((what.event_id, what.seq))} at {at}: {what.action}", None, False
            case Dispatch() as what:
                yield record, LOOP, f"run {said((what.event_id, what.seq))}", None, False
            case Flush(phase="begin" | "fail") as what:
                yield record, LOOP, "flush" if what.phase == "begin" else "flush fails", None, False
            case Pull(phase="end" | "fail") as what:
                yield record, LOOP, "pulled" if what.phase == "end" else "pull fails", None, False
            case Timer() as what:
                yield record, LOOP, f"timer: {what.phase}", None, what.phase != "clear"
            case Park() as what:
                yield record, LOOP, f"park {what.phase}s", None, what.phase == "begin"
            case Activate() if record.tenure > 1:
                yield record, LOOP, f"tenure {record.tenure} begins", None, True
            case PassEnd(queued=None):
                yield record, LOOP, "the pass is abandoned", None, True
            case _:
                pass


def _wave(what: Wave, fold: Fold) -> str:
    """A commit: each mark at its index, with what stood there where it is not its own entry, and the watermark."""
    parts = []
    for doc, index, event_id, seq in what.marks:
        there = fold.at(doc, index)
        own = there == (event_id, seq)
        stands = "" if own else "!ghost" if there is None else f"!{said(there)}"
        parts.append(f"{doc}[{index}]+{stands}")
    move = f"W={what.w_after}" if what.w_after != what.w_before else ""
    back = f"back: {' '.join(map(said, what.requeued))}" if what.requeued else ""
    return " ".join(filter(None, (*parts, move, back))) or "commit"
