"""Runs put together from the rows of a file, or of several that lie side by side: events, run rows, entity rows.

A reader adds rows as it meets them, each under its run and with what kind of row it is; when all are read, each run
becomes a capture. What order its events have, and how a row becomes an event, is the reader's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stormctl.errors import StormctlError
from stormctl.history import Capture, Event, Facet
from stormctl.readers.broken import Broken
from stormctl.readers.by_run import ByRun
from stormctl.readers.sdk_capture import Found, capture_of
from stormctl.readers.text import damaged
from stormctl.readers.unreadable import UNFORESEEN, Unreadable

EVENT, RUN, ENTITY = "event", "run", "entity"


@dataclass(slots=True)
class Parts:
    """What was found of one run. ``rows`` are its entity rows by entity id; ``committed`` as in ``Found``."""

    run_id: str
    events: list[Event] = field(default_factory=list)
    row: Mapping[str, Any] | None = None
    rows: dict[str, Any] = field(default_factory=dict)
    committed: dict[str, int] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    partial: bool = False
    copies: int = 0


class Assembly:
    """The rows of one input, run by run. A context manager."""

    def __init__(self, source: str, name: str) -> None:
        self.source = source
        self.name = name
        self.broken = Broken(source)
        self._rows = ByRun()

    def __enter__(self) -> Assembly:
        self._rows.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._rows.__exit__(*error)

    def __bool__(self) -> bool:
        return len(self._rows) > 0

    def add(self, kind: str, run_id: str, body: Any, size: int, *, where: str = "", page: int = 0) -> None:
        """Keep a row of a run. ``page`` numbers the listings of one file: an event that two of them hold is one."""
        self._rows.add(run_id, [kind, page, where, body], size)

    def captures(
        self,
        origin: str,
        event_of: Callable[[Any, str, Parts], Event],
        ordered: Callable[[Parts], Sequence[Event]],
        entity_of: Callable[[Any], tuple[str, Any]],
    ) -> Iterator[Capture | Unreadable]:
        """Every run as a capture, then what is broken.

        ``event_of`` makes the event of a row and may note a commit time in the parts; ``ordered`` brings the events
        into the store's order and may say what it thinks is missing; ``entity_of`` gives an entity row and its id.
        """
        for run_id, rows in self._rows.runs():
            parts = self._parts(run_id, rows, event_of, entity_of)
            if not parts.events and parts.row is None and not parts.rows:
                continue  # all of it is broken, and told of as such
            yield from self._capture(parts, origin, ordered)
        lost = self._rows.left_out.get("", 0)
        if lost:
            text = f"{self.name} holds more runs than are read at once; {lost} rows of further runs were not read"
            yield Unreadable(self.source, text, "Split the file by run.")
        yield from self.broken.told()

    def _parts(
        self,
        run_id: str,
        rows: Sequence[Any],
        event_of: Callable[[Any, str, Parts], Event],
        entity_of: Callable[[Any], tuple[str, Any]],
    ) -> Parts:
        parts = Parts(run_id)
        seen: dict[str, tuple[int, Any]] = {}
        for kind, page, where, body in rows:
            try:
                if kind == EVENT:
                    event = event_of(body, where, parts)
                    if not _is_copy(event, page, body, seen):
                        parts.events.append(event)
                    else:
                        parts.copies += 1
                elif kind == RUN:
                    parts.row = body
                else:
                    entity, found = entity_of(body)
                    parts.rows[entity] = found
            except StormctlError as error:
                self.broken.add(error, run_id)
            except Exception as error:  # in one row of many, it must not hide the others
                what = f"cannot be read: {type(error).__name__} {UNFORESEEN}"
                self.broken.add(damaged(where or self.name, what), run_id)
        return parts

    def _capture(
        self, parts: Parts, origin: str, ordered: Callable[[Parts], Sequence[Event]]
    ) -> Iterator[Capture | Unreadable]:
        events = ordered(parts)
        left_out = self._rows.left_out.get(parts.run_id, 0)
        notes = [*parts.notes, *self.broken.notes(parts.run_id)]
        if left_out:
            notes.append(f"{left_out} of its rows were not read: there are more than stormctl reads of one run")
        if parts.copies:
            notes.append(f"{parts.copies} events stand on two pages of the file, and are read once")
        if not events:
            notes.append("its events were not captured")
        partial = parts.partial or bool(left_out) or self.broken.of(parts.run_id) > 0 or not events
        about = {**parts.about, **({"rows": parts.rows} if parts.rows else {})}
        try:
            found = capture_of(
                Found(
                    source=self.source,
                    run_id=parts.run_id,
                    events=events,
                    origin=origin,
                    row=parts.row,
                    committed=parts.committed,
                    about=about,
                    notes=notes,
                    partial=partial,
                )
            )
        except StormctlError as error:
            yield Unreadable.of(self.source, error)
            return
        yield found if events else _without_a_log(found)


def _without_a_log(capture: Capture) -> Capture:
    """A capture of a run's rows alone. What an empty list of events does not say, it lacks."""
    told = frozenset({Facet.ROWS, Facet.RESULT}) - capture.evidence.missing
    return replace(capture, evidence=replace(capture.evidence, missing=frozenset(Facet) - told))


def _is_copy(event: Event, page: int, body: Any, seen: dict[str, tuple[int, Any]]) -> bool:
    """Whether another page held the same event. Twice on one page is something else: the log itself holds it twice."""
    if not page or event.event_id is None:
        return False
    before = seen.setdefault(event.event_id, (page, body))
    return before[0] != page and before[1] == body


__all__ = ["ENTITY", "EVENT", "RUN", "Assembly", "Parts"]
