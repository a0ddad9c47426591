"""A record as a short line: ``14 pass.entry A@2 at a[0] sees nothing: defer_view``."""

from __future__ import annotations

from stormctl.sweeps.drain.records import (
    NAMES,
    Activate,
    Admit,
    Apply,
    Compact,
    Consequence,
    Counters,
    Dispatch,
    Effects,
    Floor,
    Flush,
    Ident,
    Park,
    PassBegin,
    PassEnd,
    PassEntry,
    Pull,
    Record,
    Rest,
    Timer,
    Wave,
    What,
    said,
)


def line(record: Record) -> str:
    """See the module."""
    return f"{record.n} {text(record.what)}"


def text(what: What) -> str:
    """What happened, without its number."""
    name = NAMES[type(what)]
    match what:
        case Flush() | Pull() | Timer() | Park():
            return f"{name}.{what.phase}"
        case Admit():
            entry = said((what.event_id, what.seq))
            return (
                f"admit {what.event_id} to {what.doc}: a duplicate" if what.deduped else f"admit {entry} to {what.doc}"
            )
        case Compact():
            return f"compact {what.doc}: {_list(what.removed)} removed"
        case Consequence():
            return f"consequence of {said((what.event_id, what.seq))} by another writer"
        case Apply():
            return f"apply {what.doc} as of {what.version_seq}"
        case PassBegin():
            return f"pass.begin {what.scan} pending, W={what.w}, floor {_or_none(what.floor_before)}"
        case PassEntry():
            seen = "nothing" if what.view is None else said(what.view)
            where = f"{what.doc}[{what.stored_i}]" if what.stored_i >= 0 else what.doc
            return f"pass.entry {said((what.event_id, what.seq))} at {where}, view shows {seen}: {what.action}"
        case PassEnd():
            how = "cancelled" if what.queued is None else f"{what.queued} queued"
            return f"pass.end {how}, floor {_or_none(what.floor_after)}"
        case Dispatch():
            return f"dispatch {said((what.event_id, what.seq))}"
        case Wave():
            return _wave(what)
        case Effects():
            return f"effects of {said((what.event_id, what.event_seq))} in commit {what.seq}, without a mark"
        case Activate():
            return f"activate, W={what.w}, pending {_list(tuple(one[1:] for one in what.pending))}"
        case Floor():
            return f"floor {_or_none(what.floor)}"
        case Rest():
            wakes = [
                word for word, there in (("scan", what.scan_owed), ("timer", what.timer), ("feed", what.feed)) if there
            ]
            waits = _list(tuple(one[1:] for one in what.pending))
            return f"rest, to be woken by {' or '.join(wakes) or 'input alone'}, pending {waits}"
        case Counters():
            return "counters " + " ".join(f"{name}={value}" for name, value in what.values if value)


def _wave(what: Wave) -> str:
    if not what.seq:
        return f"no commit, {_list(what.requeued)} thrown back"
    parts = [f"wave {what.seq} W {what.w_before}->{what.w_after}"]
    if what.marks:
        parts.append("marks " + " ".join(f"{said((event, seq))}={doc}[{at}]" for doc, at, event, seq in what.marks))
    if what.requeued:
        parts.append(f"throws back {_list(what.requeued)}")
    return ", ".join(parts)


def _list(idents: tuple[Ident, ...]) -> str:
    return " ".join(map(said, idents)) or "none"


def _or_none(value: int | None) -> str:
    return "none" if value is None else str(value)
