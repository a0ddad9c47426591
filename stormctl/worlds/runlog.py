"""The published events of runs, as one process has read them so far.

An event file never changes, so each is parsed once per process. The journal of a run says where to look; an event
counts from the moment its own file exists. The canonical order is that of the store: (created_at, event id) without
positions, by position with them (what was written before positions comes first, in the order of then); a cursor names
the last event of a page and the next page begins behind it in that order, which is how an event that becomes visible
behind a reader's cursor is missed for ever.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import TypeVar

import msgspec

from stormctl.errors import StoreFailure, UsageError
from stormctl.history import Event, ids
from stormctl.worlds.admission import is_outside
from stormctl.worlds.base import Page
from stormctl.worlds.files import Files
from stormctl.worlds.layout import Layout
from stormctl.worlds.shapes import event_of, journal_of
from stormctl.worlds.store_ops import Recorded

T = TypeVar("T")
_LAST = "\x7f"
Key = tuple[int, int, str]


class RunLog:
    """One run's events in canonical order."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.offset = 0
        self.waiting: set[str] = set()
        self.known: set[str] = set()
        self.by_ulid = False
        self.highest_slot = 0
        self._order: list[tuple[Key, Event]] = []

    def add(self, event: Event) -> None:
        """Take an event in; one that is known already changes nothing."""
        event_id = event.event_id or ""
        if event_id in self.known:
            return
        self.known.add(event_id)
        self.waiting.discard(event_id)
        slot = ids.slot_of(event_id)
        if slot is None:
            self.by_ulid = True
        else:
            self.highest_slot = max(self.highest_slot, slot)
        entry = (self._place(event), event)
        if not self._order or self._order[-1][0] < entry[0]:
            self._order.append(entry)
        else:
            insort(self._order, entry, key=lambda item: item[0])

    def forget(self, event: Event) -> None:
        """Take an event out again: its transaction was rolled back."""
        self.known.discard(event.event_id or "")
        self._order = [entry for entry in self._order if entry[1] is not event]

    def events(self) -> tuple[Event, ...]:
        """All events in canonical order."""
        return tuple(event for _, event in self._order)

    def page(self, after: str | None, limit: int | None = None) -> Page:
        """The events behind a cursor; UsageError when the cursor is not one of this store's."""
        start = 0
        if after is not None:
            start = bisect_right(self._order, self._key(after), key=lambda item: item[0])
        found = self._order[start:] if limit is None else self._order[start : start + limit]
        if not found:
            return Page((), after)
        return Page(tuple(event for _, event in found), self.cursor_of(found[-1][1]))

    def between(self, above: int, below: int) -> tuple[Event, ...]:
        """The events on positions above the one and below the other."""
        found = (event for _, event in self._order if event.position is not None)
        return tuple(event for event in found if above < (event.position or 0) < below)

    def recorded(self, watermark: int) -> Recorded:
        """What a guard asks: the time of the latest outside event, and how many events stand up to the watermark."""
        times = [(ids.ulid_ms(event.event_id or ""), event) for _, event in self._order]
        outside = [ms for ms, event in times if ms is not None and is_outside(event)]
        return Recorded(max(outside, default=None), sum(1 for ms, _ in times if ms is not None and ms <= watermark))

    def cursor_of(self, event: Event) -> str:
        """The cursor that names an event as the last one read."""
        position, created_at, event_id = self._place(event)
        return str(position) if position else f"{created_at}|{event_id}"

    def _place(self, event: Event) -> Key:
        if event.position is not None:
            return event.position, 0, ""
        return 0, event.created_at or 0, event.event_id or ""

    def _key(self, cursor: str) -> Key:
        try:
            if "|" not in cursor:
                return int(cursor), 0, _LAST
            place, _, event_id = cursor.partition("|")
            return 0, int(place), event_id
        except ValueError:
            raise UsageError(
                f"{cursor!r} is not a cursor of this store", remedy="Read the log from its beginning."
            ) from None


class RunLogs:
    """The logs of a store's runs. Methods make file calls, raise OSError, and may be called from several threads."""

    #: How many runs are kept parsed. A storm overlaps far fewer.
    KEPT = 64

    def __init__(self, files: Files, layout: Layout) -> None:
        self._files = files
        self._layout = layout
        self._logs: OrderedDict[str, RunLog] = OrderedDict()
        self._lock = Lock()

    def note(self, event: Event) -> None:
        """An event that this process has just published."""
        log = self._log(event.run_id)
        with log.lock:
            log.add(event)

    def page(self, run_id: str, after: str | None, limit: int | None = None) -> Page:
        """What is visible now behind a cursor."""
        return self.ask(run_id, lambda log: log.page(after, limit))

    def ask(self, run_id: str, question: Callable[[RunLog], T]) -> T:
        """The answer of the run's log as it is now."""
        log = self._log(run_id)
        with log.lock:
            self._refresh(run_id, log)
            return question(log)

    def remembered(self, run_id: str) -> tuple[bool, int]:
        """What this process has seen of the run without looking again: whether it is numbered by ULIDs, and its
        highest slot."""
        log = self._log(run_id)
        return log.by_ulid, log.highest_slot

    def events(self, run_id: str, *, list_folder: bool = False) -> tuple[Event, ...]:
        """What is visible now. ``list_folder`` looks at every file instead of trusting the journal."""
        log = self._log(run_id)
        with log.lock:
            self._refresh(run_id, log)
            if list_folder:
                self._list(run_id, log)
            return log.events()

    def _log(self, run_id: str) -> RunLog:
        with self._lock:
            log = self._logs.get(run_id)
            if log is None:
                log = self._logs[run_id] = RunLog()
                if len(self._logs) > self.KEPT:
                    self._logs.popitem(last=False)
            else:
                self._logs.move_to_end(run_id)
            return log

    def _refresh(self, run_id: str, log: RunLog) -> None:
        try:
            raw = self._files.read_from(self._layout.journal(run_id), log.offset)
        except FileNotFoundError:
            if not log.known and self._files.exists(self._layout.run(run_id)):
                self._list(run_id, log)
            return
        end = raw.rfind(b"\n") + 1
        log.offset += end
        candidates = [event_id for event_id, _ in journal_of(raw[:end])]
        before = len(log.known)
        for event_id in [*log.waiting, *candidates]:
            if event_id not in log.known:
                self._read(run_id, event_id, log)
        if log.waiting and len(log.known) > before:
            # One may have been published after it was missed and before a later one was found: that would be a hole.
            for event_id in [one for one in log.waiting if one not in log.known]:
                self._read(run_id, event_id, log)

    def _list(self, run_id: str, log: RunLog) -> None:
        for name in self._files.names(self._layout.events):
            event_id = self._layout.event_of(name, run_id)
            if event_id is not None and event_id not in log.known:
                self._read(run_id, event_id, log)

    def _read(self, run_id: str, event_id: str, log: RunLog) -> None:
        path = self._layout.event(run_id, event_id)
        try:
            raw = self._files.read(path)
        except FileNotFoundError:
            log.waiting.add(event_id)  # announced, and not (or never) published
            return
        try:
            log.add(event_of(raw))
        except (msgspec.DecodeError, ValueError, KeyError, TypeError):
            raise StoreFailure(
                f"the event file {path} is damaged",
                remedy="Something else wrote into the store: use another folder, and sweep this one's capture.",
            ) from None
