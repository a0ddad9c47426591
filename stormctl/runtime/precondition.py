"""Refused preconditions (412): what a delivery believes of a refusal, and what it makes of what it then reads.

Pure: ``runtime.restart`` asks the store. The protocol is that of vercel/workflow #2266, #3145 and #3267. A write that
was refused is never sent again; the workflow is replayed from scratch over a newer log. Which log: the cached one with
the events that came with the refusal, under narrow conditions, or one read anew without a cursor. A delivery whose full
read brought nothing new, or less than the store says it holds, would be refused again, so it stalls at once.

Both inputs of a guard (a time and a count) are blind to order: two views with the same events in different orders pass
alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeGuard

from stormctl.history import Event, ids
from stormctl.worlds import wire

MAX_DELTA = 25_000
"""A delta longer than a run may grow is no delta."""


class Site(StrEnum):
    """Where a delivery was refused: writing what a suspension asks for, claiming inline steps, or writing what the
    replay itself concludes (an elapsed wait, the end of the run)."""

    SUSPENSION_CREATE = "suspension-create"
    INLINE_CLAIM = "inline-claim"
    REPLAY_WRITE = "replay-write"


class Source(StrEnum):
    """Where the log of a restart came from."""

    INLINE_DELTA = "inline-delta"
    FULL_RELOAD = "full-reload"


class Change(StrEnum):
    """What became of the set of events. ``SHRANK`` (something known is gone) outranks ``GREW``, and is only told."""

    GREW = "grew"
    UNCHANGED = "unchanged"
    SHRANK = "shrank"


class Stall(StrEnum):
    """Why no further restart in this process can help. ``UNCHANGED`` outranks ``SHORT``."""

    UNCHANGED = "reload-unchanged"
    SHORT = "reload-short-of-recorded"


@dataclass(frozen=True, slots=True)
class Stale:
    """The refused writes of one view, when all its writes had settled.

    ``types`` are theirs, ``body`` is what the first of them carried, and ``sibling_claimed`` says whether an inline
    claim of the same batch was accepted.
    """

    site: Site
    types: tuple[str, ...]
    body: Mapping[str, Any]
    sibling_claimed: bool = False


@dataclass(frozen=True, slots=True)
class Counts:
    """``recorded`` events stand in the store at or below the time ``updated_at`` (epoch ms), so the refusal says."""

    recorded: int
    updated_at: int


@dataclass(frozen=True, slots=True)
class Judged:
    """What a restart brought. ``held`` is how many events of the log stand at or below the time of the counts, and
    ``satisfied`` whether those are enough; both are None where nothing was checked, which is not the same as False."""

    change: Change
    added: int
    dropped: int
    held: int | None = None
    satisfied: bool | None = None
    stalled: Stall | None = None


def accepted_delta(body: object, run_id: str) -> tuple[tuple[Event, ...], str | None] | None:
    """The events and the cursor of a refusal's body, or None when it has none or any of it is foreign or damaged.

    The events are the store's claim that nothing else stands up to the cursor, so one bad event refuses them all.
    """
    if not isinstance(body, Mapping):
        return None
    given, cursor = body.get(wire.EVENTS), body.get(wire.CURSOR)
    if (
        not isinstance(given, (list, tuple))
        or len(given) > MAX_DELTA
        or not (cursor is None or isinstance(cursor, str))
    ):
        return None
    try:
        return tuple(wire.event_from_wire(one, run_id) for one in given), cursor
    except ValueError:
        return None


def accepted_counts(body: object) -> Counts | None:
    """The pair of counts of a refusal's body, or None (unchecked) unless both are whole numbers from 0 on.

    They are read whatever the delta is worth.
    """
    if not isinstance(body, Mapping):
        return None
    recorded, updated_at = body.get(wire.RECORDED), body.get(wire.UPDATED)
    if _is_count(recorded) and _is_count(updated_at):
        return Counts(recorded, updated_at)
    return None


def may_use_delta(stale: Stale, restart: int, *, cached: bool) -> bool:
    """Whether the delta of a refusal, if it is sound, may stand in for a full read.

    Only at the first ``restart`` of a delivery, only on top of a ``cached`` log, and not when a sibling of a refused
    inline claim was accepted: the delta may be older than that.
    """
    return restart == 1 and cached and not (stale.site is Site.INLINE_CLAIM and stale.sibling_claimed)


def judge(before: Iterable[Event], after: Sequence[Event], source: Source, counts: Counts | None) -> Judged:
    """What changed between two views, and whether the delivery stalls. Only a full read can stall it."""
    old, new = {event.event_id for event in before}, {event.event_id for event in after}
    added, dropped = len(new - old), len(old - new)
    change = Change.SHRANK if dropped else Change.GREW if added else Change.UNCHANGED
    if source is Source.INLINE_DELTA:
        return Judged(change, added, dropped)
    held = None if counts is None else held_at_or_below(after, counts.updated_at)
    satisfied = None if counts is None or held is None else held >= counts.recorded
    stalled = Stall.UNCHANGED if change is Change.UNCHANGED else Stall.SHORT if satisfied is False else None
    return Judged(change, added, dropped, held, satisfied, stalled)


def held_at_or_below(events: Iterable[Event], ms: int) -> int:
    """How many events have ids minted at or before that time. An id that tells no time does not count."""
    times = (None if event.event_id is None else ids.ulid_ms(event.event_id) for event in events)
    return sum(1 for at in times if at is not None and at <= ms)


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
