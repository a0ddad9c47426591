"""Reading a run's log: the order of its events, the cursors that name places in it, and pages.

The order is that of ``seq`` where the condition gives one, else that of the ids, byte by byte. A cursor is the seq of
the last event read, or its id. A reader can miss for ever what becomes visible behind its cursor: ids are given before
the commit.
"""

from __future__ import annotations

from collections.abc import Iterable

from stormctl.errors import UsageError
from stormctl.history import Event
from stormctl.worlds.base import Page
from stormctl.worlds.condition import Condition, Ids
from stormctl.worlds.postgres import cells, shapes
from stormctl.worlds.postgres import statements as sql
from stormctl.worlds.postgres.cells import Cell
from stormctl.worlds.postgres.pipe import Call, Rows
from stormctl.worlds.reads import starts_at, visible

MOST = 50_000
"""How many events one statement brings: twice what a run may hold. A longer log comes in several."""


class Reading:
    """How the logs of one store are read."""

    def __init__(self, condition: Condition, space: bytes) -> None:
        self._condition = condition
        self.space = space
        self._by_seq = condition.ids is Ids.ULID_SEQ

    def all_of(self, run_id: str) -> Call:
        """The statement that reads a whole log."""
        return self.after(run_id, None, MOST)

    def after(self, run_id: str, cursor: str | None, limit: int) -> Call:
        """The statement that reads behind a cursor; UsageError when that is not one of this store's."""
        run: tuple[Cell, Cell] = (cells.text(run_id), self.space)
        most = cells.int8(limit)
        if not self._by_seq:
            if cursor is None:
                return sql.BY_ID, (*run, most)
            if "_" not in cursor:
                raise _foreign(cursor)
            return sql.BY_ID_AFTER, (*run, cells.text(cursor), most)
        if cursor is None:
            return sql.BY_SEQ, (*run, most)
        if "_" in cursor:
            return sql.BY_SEQ_AFTER_ID, (*run, cells.text(cursor), most)
        if not cursor.isascii() or not cursor.isdecimal() or len(cursor) > 18:
            raise _foreign(cursor)
        return sql.BY_SEQ_AFTER, (*run, cells.int8(int(cursor)), most)

    def events(self, rows: Rows) -> Iterable[Event]:
        """The events of rows."""
        return map(shapes.event_of, rows)

    def cursor_of(self, event: Event) -> str:
        """The cursor that names an event as the last one read."""
        if self._by_seq and event.position is not None:
            return str(event.position)
        return event.event_id or ""

    def start(self, run_id: str, after: str | None) -> Call:
        """The statement of a load: from where the condition's reads really begin."""
        return self.after(run_id, starts_at(self._condition, after), MOST)

    def is_full(self, rows: Rows) -> bool:
        """Whether there may be more behind these."""
        return len(rows) >= MOST

    def on(self, run_id: str, last: Event) -> Call:
        """The statement that reads on behind an event."""
        return self.after(run_id, self.cursor_of(last), MOST)

    def page(self, events: tuple[Event, ...], after: str | None, now: int, in_band: int | None) -> Page:
        """The page that a load returns of what it has read. ``now`` is the store's time in epoch milliseconds."""
        shown = visible(self._condition, events, now)
        return Page(shown, self.cursor_of(shown[-1]) if shown else after, in_band)


def _foreign(cursor: str) -> UsageError:
    return UsageError(f"{cursor!r} is not a cursor of this store", remedy="Read the log from its beginning.")
