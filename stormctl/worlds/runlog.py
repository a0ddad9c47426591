"""The published events of runs, as one process has read them so far.

An event file never changes, so each is parsed once per process. The journal of a run says where to look; an event
counts from the moment its own file exists. The canonical order is that of the store: (created_at, event id) without
positions, by position with them; a cursor names the last event of a page and the next page begins behind it in that
order, which is how an event that becomes visible behind a reader's cursor is missed for ever.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import OrderedDict
from threading import Lock

import msgspec

from stormctl.errors import StoreFailure, UsageError
from stormctl.history import Event
from stormctl.worlds.base import Page
from stormctl.worlds.files import Files
from stormctl.worlds.layout import Layout
from stormctl.worlds.shapes import event_of, journal_of

_LAST = "\x7f"
Key = tuple[int, str]


class RunLog:
    """One run's events in canonical order."""

    def __init__(self, *, dense: bool) -> None:
        self.lock = Lock()
        self.offset = 0
        self.waiting: set[str] = set()
        self.known: set[str] = set()
        self._dense = dense
        self._order: list[tuple[Key, Event]] = []

    def add(self, event: Event) -> None:
        """Take an event in; one that is known already changes nothing."""
        event_id = event.event_id or ""
        if event_id in self.known:
            return
        self.known.add(event_id)
        self.waiting.discard(event_id)
        place = event.position if self._dense else event.created_at
        entry = ((place or 0, event_id), event)
        if not self._order or self._order[-1][0] < entry[0]:
            self._order.append(entry)
        else:
            insort(self._order, entry, key=lambda item: item[0])

    def events(self) -> tuple[Event, ...]:
        """All events in canonical order."""
        return tuple(event for _, event in self._order)

    def page(self, after: str | None) -> Page:
        """The events behind a cursor; UsageError when the cursor is not one of this store's."""
        start = 0
        if after is not None:
            start = bisect_right(self._order, self._key(after), key=lambda item: item[0])
        events = tuple(event for _, event in self._order[start:])
        return Page(events, self.cursor() if events else after)

    def cursor(self) -> str | None:
        """The cursor of the last event."""
        if not self._order:
            return None
        place, event_id = self._order[-1][0]
        return str(place) if self._dense else f"{place}|{event_id}"

    def _key(self, cursor: str) -> Key:
        try:
            if self._dense:
                return int(cursor), _LAST
            place, _, event_id = cursor.partition("|")
            return int(place), event_id
        except ValueError:
            raise UsageError(
                f"{cursor!r} is not a cursor of this store", remedy="Read the log from its beginning."
            ) from None


class RunLogs:
    """The logs of a store's runs. Methods make file calls, raise OSError, and may be called from several threads."""

    #: How many runs are kept parsed. A storm overlaps far fewer.
    KEPT = 64

    def __init__(self, files: Files, layout: Layout, *, dense: bool) -> None:
        self._files = files
        self._layout = layout
        self._dense = dense
        self._logs: OrderedDict[str, RunLog] = OrderedDict()
        self._lock = Lock()

    def note(self, event: Event) -> None:
        """An event that this process has just published."""
        log = self._log(event.run_id)
        with log.lock:
            log.add(event)

    def page(self, run_id: str, after: str | None) -> Page:
        """What is visible now behind a cursor."""
        log = self._log(run_id)
        with log.lock:
            self._refresh(run_id, log)
            return log.page(after)

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
                log = self._logs[run_id] = RunLog(dense=self._dense)
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
        for event_id in [*log.waiting, *candidates]:
            if event_id not in log.known:
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
