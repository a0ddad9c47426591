"""One body, one entity: an id of the run's sequence stands for one step, one wait or one hook, and for one name.

All ids of a run are drawn from one sequence, so a body that carries two kinds was drawn by two replays that saw
different prefixes, and each bound the same ordinal to its own call (vercel/workflow #3696, #3179).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from stormctl.history import Capture, Event, Facet, ids, kinds
from stormctl.sweeps.base import sweep
from stormctl.sweeps.finding import Fault, Item, Noted
from stormctl.sweeps.witness import ranked

KINDS = ("two-kinds", "two-names", "wrong-kind")
#: The kinds that a drawn id names. An id of a driver's own making (``stepd_7``) claims nothing.
_KINDS = frozenset({kinds.STEP, kinds.WAIT, kinds.HOOK, kinds.ATTR})


@dataclass(slots=True)
class _Meanings:
    """The first event of each kind and name under one body."""

    by_kind: dict[str, int] = field(default_factory=dict)
    by_name: dict[str, int] = field(default_factory=dict)


@sweep("one-body", needs={Facet.CORRELATION_IDS}, kinds=KINDS)
def one_body(capture: Capture) -> Iterator[Item]:
    """Does every drawn id stand for one entity, of one kind and one name?"""
    log = capture.log
    bodies: dict[str, _Meanings] = {}
    if Facet.NAMES in capture.evidence.missing:
        yield Noted(str(Facet.NAMES))
    seen: set[tuple[str, str, str | None]] = set()
    kind_of = kinds.KIND_OF
    for index, event in enumerate(log.events):
        correlation_id, event_type = event.correlation_id, event.type
        if correlation_id is None:
            continue
        spoken = kind_of.get(event_type)
        if spoken is None:
            continue  # of the run
        said = (correlation_id, spoken, event.name)
        if said in seen:
            continue  # nothing that this id has not said before
        kind, body = ids.split(correlation_id)
        if _foreign(event, kind):
            continue
        seen.add(said)
        if kind != spoken and (kind in _KINDS or ids.is_body(body)):
            text = f"{event_type} speaks of {correlation_id}, which is the id of a {kind or 'thing without kind'}"
            yield Fault("wrong-kind", text, (index,), correlation_id)
        meanings = bodies.setdefault(_scope(kind, body), _Meanings())
        meanings.by_kind.setdefault(kind, index)
        if event.name is not None:
            meanings.by_name.setdefault(event.name, index)
    for meanings in bodies.values():
        if len(meanings.by_kind) > 1 or len(meanings.by_name) > 1:
            yield from _clashes(capture, meanings)


def _foreign(event: Event, kind: str) -> bool:
    """An attribute that a step body wrote may carry the id of its run or of the step."""
    return event.type == kinds.ATTR_SET and kind != kinds.ATTR


def _scope(kind: str, body: str) -> str:
    """Ids counted from 1 per kind (all digits) may share a body across kinds; drawn ones may not."""
    return body if ids.is_drawn(body) else f"{kind}_{body}"


def _clashes(capture: Capture, meanings: _Meanings) -> Iterator[Fault]:
    for kind, found in (("two-kinds", meanings.by_kind), ("two-names", meanings.by_name)):
        if len(found) > 1:
            at = tuple(found.values())
            event = capture.log[at[0]]
            what = " and ".join(name.rpartition("//")[2] for name in found)
            who = ranked(capture.log, event)
            noun = "entities" if kind == "two-kinds" else "names"
            yield Fault(kind, f"{who} is bound to {len(found)} {noun}: {what}", at, event.body or "")
