"""A mark lands on its own entry, and nowhere else: no ghost, nothing moved."""

from __future__ import annotations

from collections.abc import Iterator

from stormctl.sweeps.drain.base import drain_sweep
from stormctl.sweeps.drain.fold import Fold, Stored, folded
from stormctl.sweeps.drain.records import DrainTrace, Wave, said
from stormctl.sweeps.finding import Fault


@drain_sweep("drain-own-index", kinds=("wrong-index", "ghost", "others-changed"))
def own_index(trace: DrainTrace) -> Iterator[Fault]:
    """Does each mark land on its own entry, and change nothing else?"""
    for index, record, fold in folded(trace):
        what = record.what
        if not isinstance(what, Wave) or not what.seq:
            continue
        for doc, at, event_id, seq in what.marks:
            there, ident = fold.at(doc, at), (event_id, seq)
            if there != ident:
                stands = "nothing stands" if there is None else f"{said(there)} stands"
                text = f"the mark of {said(ident)} lands at {doc}[{at}], where {stands}"
                yield Fault("wrong-index", text, (index,), said(ident))
        expected = _expected(fold, what)
        for doc, _, entries in what.sidecars:
            ghosts = sum(not event_id for event_id, _, _ in entries)
            old = sum(not event_id for event_id, _, _ in fold.docs.get(doc, ()))
            if ghosts > old:
                at = next(place for place, entry in enumerate(entries) if not entry[0])
                yield Fault(
                    "ghost", f"commit {what.seq} makes an element without an event at {doc}[{at}]", (index,), doc
                )
            elif list(entries) != expected.get(doc, []) and not ghosts:
                text = f"commit {what.seq} changes more of {doc} than the entries that it marks"
                yield Fault("others-changed", text, (index,), doc)


def _expected(fold: Fold, wave: Wave) -> dict[str, list[Stored]]:
    """The sidecars after a wave that does what it says."""
    found = {doc: list(entries) for doc, entries in fold.docs.items()}
    for doc, _, event_id, seq in wave.marks:
        found[doc] = [
            (one[0], one[1], True) if (one[0], one[1]) == (event_id, seq) else one for one in found.get(doc, ())
        ]
    for doc, event_id in wave.emitted:
        found.setdefault(doc, []).append((event_id, wave.seq, False))
    return found
