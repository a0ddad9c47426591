"""JSON listings of the Workflow SDK's objects: events, runs, steps, waits and hooks, in whatever a tool wrapped them.

A file is one array or several, pages (``{"data": [...], "cursor": ..., "hasMore": true}``), an object with the run row
beside its events (``{"run": {...}, "events": [...]}``), or one object per line. Objects are told apart by their fields.
Events are taken in the order of the file, which is the store's when whoever captured them asked for it; a listing that
runs backwards, as ``workflow inspect`` prints it, is put into the store's order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from stormctl.errors import StormctlError
from stormctl.history import Capture, Event, kinds
from stormctl.readers.assemble import ENTITY, EVENT, RUN, Assembly, Parts
from stormctl.readers.fields import optional, required, shown
from stormctl.readers.json_stream import Around, Item, documents
from stormctl.readers.sdk_events import event_of, in_order
from stormctl.readers.text import damaged
from stormctl.readers.unreadable import Unreadable
from stormctl.times import us_of

LISTS = ("events", "data")
#: How many events ``workflow inspect`` shows when nobody says how many.
SHOWN_BY_DEFAULT = 20
COMMITTED = "_committedAt"
_ENTITY_IDS = {"stepId": "step", "hookId": "hook", "waitId": "wait"}
_SECRET = frozenset({"input", "output", "error", "metadata", "token", "eventData"})
_HOLDS_MORE = "hasMore"


def read_listing(
    path: Path, origin: str, *, backwards: bool = False, beside: Iterable[Path] = (), empty: bool = False
) -> Iterator[Capture | Unreadable]:
    """The runs of a listing.

    ``backwards`` says that it is a listing of ``workflow inspect``: it shows the newest first, and a number that
    somebody chose. ``beside`` are further listings of the same runs. UnreadableInput when there is nothing in it,
    unless it may be ``empty``.
    """
    with Assembly(str(path), path.name) as assembly:
        listing = _Listing(assembly, backwards=backwards)
        listing.take(path)
        for other in beside:
            try:
                listing.take(other, only_known=True)
            except StormctlError as error:
                assembly.broken.add(error)
        if not listing.runs and not assembly.broken and not (empty and listing.items == 0):
            raise damaged(path.name, "holds no events", remedy="Capture the run again.")
        yield from assembly.captures(origin, _event, listing.ordered, _entity)


class _Listing:
    """Objects as they come out of a file, each put where it belongs."""

    def __init__(self, assembly: Assembly, *, backwards: bool) -> None:
        self.runs: set[str] = set()
        self._assembly = assembly
        self._backwards = backwards
        self._goes_on = False
        self.items = 0

    def take(self, path: Path, *, only_known: bool = False) -> None:
        """All objects of a file; of known runs only, where it lies beside another."""
        for piece in documents(path, LISTS, junk=self._backwards):
            if isinstance(piece, Item):
                self.items += 1
                try:
                    self._object(piece, only_known=only_known)
                except StormctlError as error:
                    self._assembly.broken.add(error)
            else:
                self._around(piece, only_known=only_known)

    def _around(self, piece: Around, *, only_known: bool) -> None:
        row = piece.fields.get("run")
        if row is None and "workflowName" in piece.fields:
            row = piece.fields  # the run row itself, with its events inside
        if isinstance(row, dict):
            try:
                self._row(row, piece.where)
            except StormctlError as error:
                self._assembly.broken.add(error)
        if _HOLDS_MORE in piece.fields and not only_known:
            self._goes_on = piece.fields[_HOLDS_MORE] is True

    def _object(self, item: Item, *, only_known: bool) -> None:
        body = item.value
        if not isinstance(body, dict):
            raise damaged(item.where, f"is {shown(body)}, not an object")
        inner = next((body[key] for key in LISTS if isinstance(body.get(key), list)), None)
        if inner is not None and "eventType" not in body:
            self._page(item, inner, only_known=only_known)
            return
        if not body.keys() & {"eventType", "runId", "eventId"}:
            raise damaged(item.where, "is no event of the Workflow SDK, nor a run, step, wait or hook of it")
        run_id = required(body, "runId", str, item.where)
        if only_known and run_id not in self.runs:
            return
        if _is_event(body):
            self.runs.add(run_id)
            page = 0 if item.bare else item.document
            self._assembly.add(EVENT, run_id, body, item.size, where=item.where, page=page)
        elif entity_id(body) is not None:
            self.runs.add(run_id)
            self._assembly.add(ENTITY, run_id, _public(body), item.size, where=item.where)
        elif "status" in body or "workflowName" in body:
            self._row(body, item.where)
        elif "streamId" in body:
            self.runs.add(run_id)
        else:
            raise damaged(item.where, "is no event of the Workflow SDK, nor a run, step, wait or hook of it")

    def _page(self, item: Item, inner: Sequence[Any], *, only_known: bool) -> None:
        """A page inside an array of pages."""
        for body in inner:
            self._object(Item(item.where, item.document, body, item.size // len(inner)), only_known=only_known)
        around = {key: value for key, value in item.value.items() if key not in LISTS}
        self._around(Around(item.where, item.document, around), only_known=only_known)

    def _row(self, row: Mapping[str, Any], where: str) -> None:
        """A run row; one without an id is that of the only run in the file."""
        run_id = optional(row, "runId", str, where)
        known = [run_id] if run_id is not None else list(self.runs) if len(self.runs) == 1 else []
        for one in known:
            if isinstance(row.get("status"), str):
                self.runs.add(one)
                self._assembly.add(RUN, one, dict(row), len(str(row.get("input"))), where=where)

    def ordered(self, parts: Parts) -> Sequence[Event]:
        """The run's events in the store's order, and in ``parts`` what there is to say of how many there are."""
        events = parts.events
        if self._backwards or _run_backwards(events):
            ordered = in_order(events)
            if events and ordered != events:
                parts.notes.append("the listing shows the newest first, and was put into the store's order")
            events = ordered
        begun = any(event.type == kinds.RUN_CREATED for event in events)
        from_behind = bool(events) and events != parts.events
        if self._goes_on:
            parts.notes.append("its last page says that there are more events")
        elif events and not begun and (self._backwards or from_behind):
            parts.notes.append("it does not begin with the run's first event, as a listing of the newest does")
        elif events and _looks_cut(events):
            parts.notes.append(
                f"it holds {len(events)} events and no end of the run: `workflow inspect` shows {SHOWN_BY_DEFAULT} "
                "unless --limit asks for more"
            )
        else:
            return events
        parts.partial = True
        return events


def entity_id(body: Mapping[str, Any]) -> str | None:
    """The id of the step, hook or wait that an object describes; None when it describes none."""
    for key in _ENTITY_IDS:
        if isinstance(body.get(key), str):
            run_id = body.get("runId")
            return str(body[key]).removeprefix(f"{run_id}-")
    if "resumeAt" in body and isinstance(body.get("correlationId"), str):
        return str(body["correlationId"])  # a line of `inspect sleeps`
    return None


def _is_event(body: Mapping[str, Any]) -> bool:
    return "eventType" in body or ("eventId" in body and entity_id(body) is None)


def _public(body: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in _SECRET}


def _entity(body: Mapping[str, Any]) -> tuple[str, Any]:
    found = entity_id(body)
    assert found is not None
    return found, {key: value for key, value in body.items() if key not in ("runId", *_ENTITY_IDS)}


def _event(body: Mapping[str, Any], where: str, parts: Parts) -> Event:
    event = event_of({key: value for key, value in body.items() if key != COMMITTED}, where)
    stamp = optional(body, COMMITTED, str, where)
    if stamp is not None and event.event_id is not None:
        parts.committed[event.event_id] = _us(stamp, where)
    return event


def _us(stamp: str, where: str) -> int:
    try:
        return us_of(stamp)
    except (ValueError, TypeError, OverflowError):
        raise damaged(where, f"has no time in {COMMITTED!r}") from None


def _run_backwards(events: Sequence[Event]) -> bool:
    """Whether the events stand from the newest to the oldest, every one of them."""
    ordered = in_order(events)
    return len(events) > 1 and ordered != events and ordered == list(reversed(events))


def _looks_cut(events: Sequence[Event]) -> bool:
    return len(events) == SHOWN_BY_DEFAULT and not any(event.is_terminal for event in events)


__all__ = ["COMMITTED", "LISTS", "SHOWN_BY_DEFAULT", "entity_id", "read_listing"]
