"""What one delivery has read of a run's log, and the questions that it asks of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from stormctl.history import Event, EventLog, ids, kinds
from stormctl.worlds.base import Page, Snapshot


@dataclass(frozen=True, slots=True)
class View:
    """The events read so far, and the cursor behind which more will be asked for.

    They stand in the order in which they were read, save that the log of slots is kept in the order of its slots: there
    the id is the place. ``watermark`` is the latest ULID time among the ids, ``in_band`` the store's count of in-band
    events at the last read. ``fault`` says why a page cannot be what a sound store answers, or is None.
    """

    run_id: str
    events: tuple[Event, ...]
    cursor: str | None
    watermark: int | None = None
    in_band: int | None = None
    fault: str | None = None

    @classmethod
    def of(cls, run_id: str, page: Page) -> View:
        """The view of a full read."""
        return cls(run_id, (), None).plus(page)

    def plus(self, page: Page) -> View:
        """The view after an incremental read: appended where they are new. On an empty page the old cursor stays."""
        known = self.known
        fresh = tuple(event for event in page.events if event.event_id is None or event.event_id not in known)
        return View(
            self.run_id,
            _in_place(self.events + fresh),
            self.cursor if page.cursor is None else page.cursor,
            _later(self.watermark, watermark(fresh)),
            page.in_band,
            self.fault or _page_fault(self, page, fresh),
        )

    def merged(self, events: Sequence[Event], cursor: str | None = None) -> View:
        """The view with events that came with an answer, each in its place: by slot, by seq, else by id.

        Without a ``cursor`` the old one stays, so that the next read tells them again and more.
        """
        known = self.known
        fresh = tuple({event.event_id: event for event in events if event.event_id not in known}.values())
        together = tuple(sorted(self.events + fresh, key=_place)) if fresh else self.events
        return replace(
            self,
            events=together,
            cursor=self.cursor if cursor is None else cursor,
            watermark=_later(self.watermark, watermark(fresh)),
        )

    def snapshot(self, writer: str, in_band: int | None = None) -> Snapshot:
        """What a write derived from this view tells the store. In a log of slots the count is the highest slot held."""
        last = self.events[-1] if self.events else None
        slot = None if last is None or last.event_id is None else ids.slot_of(last.event_id)
        return Snapshot(len(self.events) if slot is None else slot, self.cursor, writer, self.watermark, in_band)

    @property
    def known(self) -> set[str]:
        """The ids of the events read."""
        return {event.event_id for event in self.events if event.event_id is not None}

    @property
    def log(self) -> EventLog:
        return EventLog(self.events, self.run_id)

    @property
    def ended(self) -> bool:
        return any(event.type in kinds.RUN_TERMINAL for event in self.events)

    def elapsed_waits(self, now: int) -> list[Event]:
        """The creates of waits that are due and not completed, the latest create of each wait."""
        open_waits: dict[str, Event] = {}
        for event in self.events:
            if event.correlation_id is None:
                continue
            if event.type == kinds.WAIT_CREATED:
                open_waits[event.correlation_id] = event
            elif event.type == kinds.WAIT_COMPLETED:
                open_waits.pop(event.correlation_id, None)
        return [event for event in open_waits.values() if event.resume_at is not None and event.resume_at <= now]

    def completed_waits(self) -> set[str | None]:
        return {event.correlation_id for event in self.events if event.type == kinds.WAIT_COMPLETED}

    def unfinished_steps(self) -> set[str]:
        """The ids of steps that were created and have no outcome."""
        steps: set[str] = set()
        for event in self.events:
            if event.correlation_id is None:
                continue
            if event.type == kinds.STEP_CREATED:
                steps.add(event.correlation_id)
            elif event.type in kinds.STEP_TERMINAL:
                steps.discard(event.correlation_id)
        return steps


def watermark(events: Iterable[Event]) -> int | None:
    """The latest ULID time among event ids, epoch milliseconds. Slot ids and ids that are no ULID tell none.

    ULIDs sort as text as they do as times, so that one of them needs to be decoded: a read of 800 events was 8 % of a
    storm's CPU without this.
    """
    bodies = [ids.split(event.event_id)[1] for event in events if event.event_id is not None]
    if not bodies:
        return None
    latest = ids.ulid_ms(max(bodies))
    if latest is not None:
        return latest
    return max((ms for body in bodies if (ms := ids.ulid_ms(body)) is not None), default=None)


def _later(one: int | None, other: int | None) -> int | None:
    return one if other is None else other if one is None else max(one, other)


def _place(event: Event) -> tuple[int, int, str]:
    """Where an event belongs. An adopted run's events without a position come before those with one."""
    return (0, 0, event.event_id or "") if event.position is None else (1, event.position, event.event_id or "")


def _in_place(events: tuple[Event, ...]) -> tuple[Event, ...]:
    """The same events, those of a slot log in the order of their slots (which is that of their ids)."""
    if not events or events[-1].event_id is None or ids.slot_of(events[-1].event_id) is None:
        return events
    return tuple(sorted(events, key=lambda event: event.event_id or ""))


def _page_fault(view: View, page: Page, fresh: Sequence[Event]) -> str | None:
    """Why a page breaks the contract of paging. A repeated cursor is a fault only where the page ends with something
    new: a store that reads strongly tells late events behind the cursor."""
    if not page.events:
        return None
    if any(event.run_id != view.run_id for event in page.events):
        return "a page holds another run's event"
    if len({event.event_id for event in page.events}) < len(page.events):
        return "a page holds one event twice"
    if page.cursor is None:
        return f"a page of {len(page.events)} events has no cursor"
    if page.cursor == view.cursor and fresh and page.events[-1] is fresh[-1]:
        return f"a page of {len(page.events)} events repeats the cursor that it was read from"
    return None
