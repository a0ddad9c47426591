"""Every event once: one mark, one completed run, and both in one commit."""

from __future__ import annotations

from collections.abc import Iterator

from stormctl.sweeps.drain.base import drain_sweep
from stormctl.sweeps.drain.records import Consequence, DrainTrace, Effects, Ident, Wave, said
from stormctl.sweeps.finding import Fault


@drain_sweep("drain-once", kinds=("double-mark", "double-effect", "effect-without-mark", "mark-without-effect"))
def once(trace: DrainTrace) -> Iterator[Fault]:
    """Does each event have its effects and its mark once, in one commit?"""
    marked: dict[Ident, list[int]] = {}
    ran: dict[Ident, list[int]] = {}
    for index, record in enumerate(trace.records):
        what = record.what
        if isinstance(what, Consequence):
            marked.setdefault((what.event_id, what.seq), []).append(index)
            ran.setdefault((what.event_id, what.seq), []).append(index)
        elif isinstance(what, Effects):
            ident: Ident = (what.event_id, what.event_seq)
            ran.setdefault(ident, []).append(index)
            text = f"the effects of {said(ident)} are committed without its mark"
            yield Fault("effect-without-mark", text, (index,), said(ident))
        elif isinstance(what, Wave):
            marks: set[Ident] = {(event_id, seq) for _, _, event_id, seq in what.marks}
            for ident in marks:
                marked.setdefault(ident, []).append(index)
            for ident in what.effects:
                ran.setdefault(ident, []).append(index)
                if ident not in marks:
                    text = f"commit {what.seq} has the effects of {said(ident)} without its mark"
                    yield Fault("effect-without-mark", text, (index,), said(ident))
            for ident in sorted(marks - {*what.effects, *what.skips}, key=said):
                text = f"commit {what.seq} marks {said(ident)} without its effects"
                yield Fault("mark-without-effect", text, (index,), said(ident))
    for kind, verb, found in (("double-mark", "is marked", marked), ("double-effect", "has its effects", ran)):
        for ident, at in found.items():
            if len(at) > 1:
                yield Fault(kind, f"{said(ident)} {verb} {len(at)} times", tuple(at), said(ident))
