"""Claims: the lock files of a local store and its log tell of the same events.

A writer of a local world takes a file before it writes, and the file stays: ``steps/<id>.created``, ``.terminal``,
``waits/<id>.completed``. A claim without its event is the trace of a writer that died between the two, or was refused
late; the entity can then never be created. What was staged and not published, and a lock that nobody gave back, are
traces of the same kind.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from stormctl.history import Capture, Facet, kinds
from stormctl.sweeps.base import sweep
from stormctl.sweeps.finding import Fault, Item, Noted

KINDS = ("claim-without-event", "event-without-claim", "staged-left", "lock-left", "claimed-event-absent")
#: Keys of a capture's ``data``: the names of claim files below ``.locks``, of files that lie staged, and what the token
#: and resume claims name (``[{"claim": "token", "hookId": "...", "eventId": "..."}]``).
CLAIMS, STAGED, CLAIMED = "claims", "staged", "claimed_events"
APPEND_LOCK = "append.lock"

#: What each kind of claim is taken for.
_EVENTS: Mapping[tuple[str, str], frozenset[str]] = {
    ("steps", "created"): frozenset({kinds.STEP_CREATED}),
    ("steps", "terminal"): kinds.STEP_TERMINAL,
    ("waits", "created"): frozenset({kinds.WAIT_CREATED}),
    ("waits", "completed"): frozenset({kinds.WAIT_COMPLETED}),
    ("attributes", "created"): frozenset({kinds.ATTR_SET}),
    ("hooks", "disposed"): frozenset({kinds.HOOK_DISPOSED}),
}


def _kept(capture: Capture) -> bool:
    return any(capture.data.get(key) for key in (CLAIMS, STAGED, CLAIMED))


@sweep(
    "claims",
    needs={Facet.CORRELATION_IDS},
    kinds=KINDS,
    optional=True,
    where=_kept,
    evidence="the lock files of a local store",
)
def claims(capture: Capture) -> Iterator[Item]:
    """Does every claim of the store have its event, and every event its claim?"""
    log, run = capture.log, capture.log.run_id
    held: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for name in _texts(capture, CLAIMS):
        kind, _, rest = name.partition("/")
        entity, _, what = rest.partition(".") if kind != "runs" else ("", "", rest)
        if kind == "runs" and what == APPEND_LOCK:
            yield Fault("lock-left", "the lock for appending was never given back", (), run, witness=(name,))
        held[kind, what].add(entity)
    if capture.evidence.live or capture.evidence.truncated:
        yield Noted("a run at rest: its claims are taken before their events")
    else:
        yield from _without_event(capture, held)
        staged = _texts(capture, STAGED)
        if staged:
            text = f"{len(staged)} events were staged and never published; the first is {staged[0]}"
            yield Fault("staged-left", text, (), run, witness=staged[:3])
    for (kind, what), types in _EVENTS.items():
        entities = held.get((kind, what))
        if not entities:
            continue  # this release takes no such claims
        for index, event in enumerate(log.events):
            if event.type in types and event.correlation_id is not None and event.correlation_id not in entities:
                text = f"{event.type} of {event.correlation_id} was published without its claim"
                yield Fault("event-without-claim", text, (index,), f"{event.correlation_id}.{what}")
    yield from _claimed(capture)


def _without_event(capture: Capture, held: Mapping[tuple[str, str], set[str]]) -> Iterator[Fault]:
    said: defaultdict[str, set[str]] = defaultdict(set)
    for event in capture.log.events:
        said[event.type].add(event.correlation_id or "")
    for claim, types in _EVENTS.items():
        there = set().union(*(said[event_type] for event_type in types))
        for entity in sorted(held.get(claim, set()) - there):
            name = f"{claim[0]}/{entity}.{claim[1]}"
            text = f"{entity} was claimed as {claim[1]} and the log has no such event"
            yield Fault("claim-without-event", text, (), f"{entity}.{claim[1]}", witness=(name,))
    if held.get(("runs", "terminal")) and not capture.log.ended:
        text = "the end of the run was claimed and the log has none"
        yield Fault("claim-without-event", text, (), capture.log.run_id, witness=("runs/terminal",))


def _claimed(capture: Capture) -> Iterator[Item]:
    """The events that claims on tokens and resumes name are there, and are of that hook."""
    claimed = capture.data.get(CLAIMED)
    if not isinstance(claimed, Sequence) or capture.evidence.live or capture.evidence.truncated:
        return
    hooks = {event.event_id: event.correlation_id for event in capture.log.events}
    for one in claimed:
        if not isinstance(one, Mapping) or not isinstance(one.get("eventId"), str):
            continue
        event_id, hook = one["eventId"], one.get("hookId")
        if event_id not in hooks or (hook is not None and hooks[event_id] != hook):
            text = f"a {one.get('claim', 'hook')} claim of {hook} names {event_id}, which is no event of that hook"
            yield Fault("claimed-event-absent", text, (), event_id)


def _texts(capture: Capture, key: str) -> tuple[str, ...]:
    found = capture.data.get(key)
    return tuple(one for one in found if isinstance(one, str)) if isinstance(found, (list, tuple)) else ()
