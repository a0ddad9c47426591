"""What a delivery tells whoever counts: every note that it makes, and how notes are summed.

A note has a name and fields of JSON values. :func:`tally` turns one into counters, so that a storm sums them without
knowing the fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stormctl.history import kinds
from stormctl.runtime.ops import Note
from stormctl.runtime.precondition import Change, Counts, Judged, Source, Stale

PASS = "pass"
DIVERGENCE = "divergence"
BEHIND = "behind"
RESTART = "restart"
REINVOCATION = "reinvocation"
EXHAUSTED = "exhausted"
REREAD = "reread"
CONFLICT = "conflict"
REPORT = "report"


def passed(events: int, outcome: str) -> Note:
    """A replay of so many events ended."""
    return Note(PASS, {"events": events, "outcome": outcome})


def divergence(count: int, at: str, text: str) -> Note:
    """The ``count``-th divergence of the run in a row."""
    return Note(DIVERGENCE, {"count": count, "at": at, "text": text})


def behind(stale: Stale) -> Note:
    """Writes of one view were refused for what it lacked (412): ``types`` says of which types and how many, ``facts``
    how many of them were no decisions (a fence has no reason to refuse a fact)."""
    types: dict[str, int] = {}
    for type in stale.types:
        types[type] = types.get(type, 0) + 1
    facts = sum(not kinds.is_decision(type, lazy_start=True) for type in stale.types)
    return Note(BEHIND, {"site": str(stale.site), "writes": len(stale.types), "types": types, "facts": facts})


def restart(number: int, stale: Stale, source: Source, judged: Judged, counts: Counts | None, delta: str) -> Note:
    """The ``number``-th restart of this delivery, with what upstream logs of one.

    ``reason`` is where it was refused, ``source`` where the new log came from, ``outcome``, ``added`` and ``dropped``
    what that brought. ``recorded`` (told by the store) and ``held`` (of the new log) are compared in ``satisfied``;
    None is "unchecked". ``stalled`` is why there will be no further restart. ``delta`` is ``used``, ``none``,
    ``not-allowed`` or ``bad``. ``useless`` counts the refused writes when a full read brought nothing new.
    """
    useless = source is Source.FULL_RELOAD and judged.change is Change.UNCHANGED
    return Note(
        RESTART,
        {
            "restarts": number,
            "reason": str(stale.site),
            "source": str(source),
            "outcome": str(judged.change),
            "added": judged.added,
            "dropped": judged.dropped,
            "recorded": None if counts is None else counts.recorded,
            "held": judged.held,
            "satisfied": judged.satisfied,
            "stalled": None if judged.stalled is None else str(judged.stalled),
            "delta": delta,
            "useless": len(stale.types) if useless else 0,
        },
    )


def reinvocation(number: int, why: str) -> Note:
    """The delivery gives up and the run is invoked again later, for the ``number``-th time: ``why`` is ``budget`` or
    what stalled it."""
    return Note(REINVOCATION, {"reinvocations": number, "why": why})


def exhausted(number: int, why: str) -> Note:
    """The re-invocation of that number was not allowed any more; the run fails."""
    return Note(EXHAUSTED, {"reinvocations": number, "why": why})


def reread(number: int, gap: str, *, closed: bool) -> Note:
    """A log of slots with a gap was read again, for the ``number``-th time before this replay."""
    return Note(REREAD, {"reads": number, "gap": gap, "closed": closed})


def conflict(verdict: str, correlation_id: str | None) -> Note:
    """A create existed already and was looked at: ``verdict`` is ``same``, ``different``, ``unseen`` (claimed, and not
    in the log), ``ended`` (the run was) or ``refused`` (any conflict is a divergence)."""
    return Note(CONFLICT, {"verdict": verdict, "correlationId": correlation_id})


def report(events: int, *, truncated: bool) -> Note:
    """A store told of ``events`` skipped slots. A truncated report is thrown away."""
    return Note(REPORT, {"events": events, "truncated": truncated})


def tally(what: str, data: Mapping[str, Any]) -> dict[str, int]:
    """What a note adds to a storm's counters: one under its name, and what else of it can be summed.

    ``behind.writes``, ``behind.facts``, ``behind.type.<event type>``; ``restart.<outcome>``, ``restart.<source>``,
    ``restart.delta.<delta>``, ``restart.useless``, ``stalled``, ``stalled.<reason>``; ``reinvocation.<why>``;
    ``reread.closed``; ``conflict.<verdict>``; ``report.truncated``.
    """
    counted = {what: 1}
    match what:
        case "behind":
            counted["behind.writes"] = data["writes"]
            counted["behind.facts"] = data["facts"]
            counted.update({f"behind.type.{type}": count for type, count in data["types"].items()})
        case "restart":
            counted[f"restart.{data['outcome']}"] = 1
            counted[f"restart.{data['source']}"] = 1
            counted[f"restart.delta.{data['delta']}"] = 1
            counted["restart.useless"] = data["useless"]
            if data["stalled"] is not None:
                counted["stalled"] = 1
                counted[f"stalled.{data['stalled']}"] = 1
        case "reinvocation":
            counted[f"reinvocation.{data['why']}"] = 1
        case "reread":
            counted["reread.closed"] = int(data["closed"])
        case "conflict":
            counted[f"conflict.{data['verdict']}"] = 1
        case "report":
            counted["report.truncated"] = int(data["truncated"])
    return {name: count for name, count in counted.items() if count}
