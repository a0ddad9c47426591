"""Drain traces by hand: a clean run of one event, and ways to change a trace in one place."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stormctl.sweeps.drain.base import faults
from stormctl.sweeps.drain.records import (
    Activate,
    Admit,
    Dispatch,
    DrainTrace,
    PassBegin,
    PassEnd,
    PassEntry,
    Record,
    Rest,
    Wave,
    What,
)

X = ("x", 2)


def trace(*whats: What | tuple[int, What] | tuple[int, int, What]) -> DrainTrace:
    """A trace of what happened; a pair has its tenure first, a triple its time and tenure. Else the tenure is 1."""
    records = []
    for n, one in enumerate(whats, 1):
        t, tenure, what = 0, 1, one
        if type(one) is tuple:
            *place, what = one
            t, tenure = place if len(place) == 2 else (0, place[0])
        records.append(Record(n, t, tenure, what))  # type: ignore[arg-type]
    return DrainTrace("by hand", tuple(records))


def entry(
    action: str, ident: tuple[str, int | None] = X, doc: str = "a", at: int = 0, view: object = "own"
) -> PassEntry:
    """What a pass did with an entry; the view shows it unless something else is given."""
    return PassEntry(doc, ident[0], ident[1], at, ident if view == "own" else view, action)  # type: ignore[arg-type]


def wave(seq: int, w: tuple[int, int], marks: Sequence[tuple[str, int, str, int | None]] = (), **more: object) -> Wave:
    """A commit that marks entries and has their effects."""
    effects = tuple((event_id, number) for _, _, event_id, number in marks)
    fields: dict[str, object] = {"exhausted": False, "content": len(marks), "effects": effects, **more}
    return Wave(seq, w[0], w[1], marks=tuple(marks), **fields)  # type: ignore[arg-type]


def one_event() -> list[What]:
    """x@2 is admitted, queued, run and committed."""
    return [
        Activate((), 1),
        Admit("a", "x", 2),
        PassBegin(1, 1, None),
        entry("queue"),
        PassEnd(1, None),
        Dispatch("x", 2),
        wave(3, (1, 2), [("a", 0, "x", 2)], sidecars=(("a", 2, (("x", 2, True),)),)),
        Rest(scan_owed=False, timer=False, feed=0, pending=()),
    ]


def changed(at: int, what: What) -> DrainTrace:
    """The run of one event with one record exchanged."""
    found = one_event()
    found[at] = what
    return trace(*found)


def seen(found: DrainTrace) -> set[str]:
    """The classes that the sweeps see."""
    return {f"{name}/{fault.kind}" for name, fault in faults(found)}


Maker = Callable[[], DrainTrace]
