"""Commit order: events become visible in the order in which the log lists them.

An event that is published after a later one can slip behind a reader's cursor for good; runs corrupt because of it
(vercel/workflow #3147). Only the append audit knows when each event became visible, so this sweep appears only where a
capture has one.
"""

from __future__ import annotations

from collections.abc import Iterator

from stormctl.history import AuditRecord, Capture, Event, Facet
from stormctl.sweeps.base import sweep
from stormctl.sweeps.finding import Fault, Item, Noted, Unjudged

KINDS = ("late-publish", "late-position")
_MS = 1_000_000


@sweep("commit-order", needs={Facet.AUDIT}, kinds=KINDS, optional=True)
def commit_order(capture: Capture) -> Iterator[Item]:
    """Was every event published before the events that follow it in the log?"""
    times = publication_times(capture)
    known = [(time, index) for index, time in enumerate(times) if time is not None]
    if len(known) < len(times):
        # a world writes some events for itself (the first half of a lazy start), and these have no record of their own
        item = Noted if known else Unjudged
        yield item(f"audit records of {len(times) - len(known)} events")
    behind: list[int] = []
    worst: tuple[int, int, int] | None = None
    top = (0, 0)
    for time, index in known:
        if time >= top[0]:
            top = (time, index)
            continue
        behind.append(top[1])
        late = top[0] - time
        if worst is None or late > worst[0]:
            worst = (late, top[1], index)
    if worst is not None:
        late, first, second = worst
        at = tuple(dict.fromkeys(behind))
        text = (
            f"{len(at)} of {len(known)} events were published after one that follows them, by up to {late / _MS:.1f} ms"
        )
        kind = "late-position" if capture.log.has_positions else "late-publish"
        yield Fault(kind, text, at, capture.log.run_id, witness=(first, second))


def publication_times(capture: Capture) -> list[int | None]:
    """When each event of the log became readable, in nanoseconds of the machine's monotonic clock; None where the audit
    does not tell."""
    published = _published(capture.audit or ())
    return [_time_of(event, published) for event in capture.log]


def _published(audit: tuple[AuditRecord, ...]) -> dict[str | int, int]:
    """Publication time by event id, and by position where the store has them."""
    times: dict[str | int, int] = {}
    for record in audit:
        if record.admitted and record.published:
            for name in (record.event_id, record.position):
                if name is not None:
                    times[name] = record.published
    return times


def _time_of(event: Event, published: dict[str | int, int]) -> int | None:
    if event.event_id in published:
        return published[event.event_id]
    return None if event.position is None else published.get(event.position)
