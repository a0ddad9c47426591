"""What a load returns, by the condition: everything visible, or a view that lags."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from stormctl.history import Event
from stormctl.worlds.base import Page
from stormctl.worlds.condition import Condition, Reads
from stormctl.worlds.runlog import RunLog


def starts_at(condition: Condition, after: str | None) -> str | None:
    """The cursor from which a store really reads, when the reader asks for what is behind ``after``."""
    return None if condition.reads is Reads.STRONG else after


def visible(condition: Condition, events: Sequence[Event], now: int) -> tuple[Event, ...]:
    """The events of a page that its reader is shown. ``now`` is the store's time in epoch milliseconds.

    Under lagging reads the page ends before the first event that is younger than the lag; under reads with holes
    those events are left out one by one, which is how a mint-ordered store served around a write in flight.
    """
    if condition.reads not in (Reads.LAGGING, Reads.HOLE) or condition.lag_ms <= 0:
        return tuple(events)
    latest = now - condition.lag_ms

    def old(event: Event) -> bool:
        return event.created_at is None or event.created_at <= latest

    kept = takewhile(old, events) if condition.reads is Reads.LAGGING else filter(old, events)
    return tuple(kept)


def page_of(condition: Condition, log: RunLog, after: str | None, now: int, in_band: int | None = None) -> Page:
    """The page that a load of a parsed log returns. ``in_band`` was read before the log, so that it can only lag."""
    page = log.page(starts_at(condition, after))
    shown = visible(condition, page.events, now)
    cursor = page.cursor if len(shown) == len(page.events) else (log.cursor_of(shown[-1]) if shown else after)
    return Page(shown, cursor, in_band)
