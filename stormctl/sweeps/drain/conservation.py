"""Nothing is lost, nothing made up; only consumed history is compacted; frontiers move by their rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from stormctl.sweeps.drain.base import drain_sweep
from stormctl.sweeps.drain.fold import Fold, Stored, folded
from stormctl.sweeps.drain.records import Compact, DrainTrace, Wave, said
from stormctl.sweeps.finding import Fault


@drain_sweep("drain-conservation", kinds=("missing", "unknown", "repeated", "compacted", "frontier"))
def conservation(trace: DrainTrace) -> Iterator[Fault]:
    """Is every admitted event pending or consequenced, and nothing else there?"""
    told: set[tuple[str, str]] = set()
    for index, record, fold in folded(trace):
        what = record.what
        if isinstance(what, Compact):
            done = {(event_id, seq) for event_id, seq, consumed in fold.docs.get(what.doc, ()) if consumed}
            for ident in what.removed:
                edge = fold.frontier.get(what.doc, 0)
                if ident not in done or (ident[1] is not None and ident[1] > edge):
                    text = f"{said(ident)} is compacted, and the frontier of {what.doc} is {edge}"
                    yield Fault("compacted", text, (index,), said(ident))
        elif isinstance(what, Wave) and what.seq:
            for kind, text, entity in _odd(what, fold):
                if (kind, entity) not in told:
                    told.add((kind, entity))
                    yield Fault(kind, text, (index,), entity)


def _odd(what: Wave, fold: Fold) -> Iterator[tuple[str, str, str]]:
    """What is wrong with the sidecars after a wave: kind, sentence, entity."""
    admitted = fold.admitted | {(doc, (event_id, what.seq)) for doc, event_id in what.emitted}
    counts = Counter(
        (doc, (event_id, seq)) for doc, _, entries in what.sidecars for event_id, seq, _ in entries if event_id
    )
    for doc, ident in sorted(admitted - fold.removed - counts.keys(), key=str):
        yield "missing", f"{said(ident)} of {doc} is gone", said(ident)
    for (doc, ident), count in counts.items():
        if (doc, ident) not in admitted:
            yield "unknown", f"{said(ident)} of {doc} was never admitted", said(ident)
        elif count > 1:
            yield "repeated", f"{said(ident)} stands in {doc} {count} times", said(ident)
    touched = {doc for doc, _, _, _ in what.marks} | {doc for doc, _ in what.emitted}
    for doc, edge, entries in what.sidecars:
        known = fold.frontier.get(doc, 0)
        wanted = _frontier(entries, known) if doc in touched else known
        if edge != wanted:
            yield "frontier", f"the frontier of {doc} is {edge} after commit {what.seq}, and should be {wanted}", doc


def _frontier(entries: Sequence[Stored], edge: int) -> int:
    """By the rule: over each seq all of whose entries are consequenced, up to the first that is not so."""
    waits = {seq for _, seq, done in entries if seq is not None and seq > edge and not done}
    passed = [seq for _, seq, _ in entries if seq is not None and seq > edge and not any(one <= seq for one in waits)]
    return max(passed, default=edge)
