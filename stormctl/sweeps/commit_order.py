"""Commit order: events become visible in the order in which the log lists them.

An event that is published after a later one can slip behind a reader's cursor for good; runs corrupt because of it
(vercel/workflow #3147). Only the append audit of our worlds and a server that keeps commit times know when each event
became visible. Where a capture has neither, the question stays open for a store that has no positions; for one that
has, the sweep is left out. The times of files do not count: they follow the publication by as long as its writer took
to tidy up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stormctl.history import COMMIT_CLOCK, COMMIT_TIMES, AuditRecord, Capture, Event, Facet
from stormctl.sweeps.base import lacking, sweep
from stormctl.sweeps.finding import Fault, Item, Noted, Unjudged

KINDS = ("late-publish", "late-position")
#: who gave the commit times of a capture, when they are exact
SERVER = "server"
_MS = 1_000_000
_US = 1_000


NEEDS = frozenset({Facet.COMMIT_STAMPS})


def _asked(capture: Capture) -> bool:
    return not capture.log.has_positions or not lacking(capture, NEEDS)


@sweep("commit-order", needs=NEEDS, kinds=KINDS, where=_asked)
def commit_order(capture: Capture) -> Iterator[Item]:
    """Was every event published before the events that follow it in the log?"""
    times = publication_times(capture)
    known = [(time, index) for index, time in enumerate(times) if time is not None]
    if len(known) < len(times):
        # a world writes some events for itself (the first half of a lazy start), and these have no record of their own
        item = Noted if known else Unjudged
        what = "commit times" if capture.audit is None else "audit records"
        yield item(f"{what} of {len(times) - len(known)} events")
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
    """When each event of the log became readable, in nanoseconds: of the machine's monotonic clock where the capture
    has an audit, else of the epoch. None where neither tells."""
    if capture.audit is None and capture.data.get(COMMIT_CLOCK) == SERVER:
        committed = capture.data.get(COMMIT_TIMES)
        stamps = committed if isinstance(committed, Mapping) else {}
        found = (stamps.get(event.event_id) for event in capture.log)
        return [stamp * _US if isinstance(stamp, int) else None for stamp in found]
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
