"""A table and its map as captures: one per run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from stormctl.history import COMMIT_CLOCK, COMMIT_TIMES, Capture, Event, EventLog, Evidence, Facet, Sealed, kinds
from stormctl.readers.by_run import ByRun
from stormctl.readers.evidence import missing_from
from stormctl.readers.tables.maps import ANY, Columns, TableMap, Word, failed
from stormctl.readers.tables.paths import Column, Row
from stormctl.readers.tables.sources import Table, open_table
from stormctl.readers.tables.values import number_of, payload_of, text_of, time_of, ulid_of
from stormctl.readers.text import damaged
from stormctl.readers.unpack import bare_name

_SERVER = "server"
_US = 1000


def read_table(path: Path, table_map: TableMap) -> Iterator[Capture]:
    """The captures of a table, its runs in the order in which they first appear, however it mixes them; in bounded
    memory. UnreadableInput, in one sentence, where table and map do not fit each other."""
    table = open_table(path, table_map.rows)
    if table.columns is not None:
        _check_columns(table.columns, table_map.columns, table_map, path)
    with ByRun() as rows:
        for run_id, cells in _events(table, table_map, path):
            rows.add(run_id, cells, _size(cells))
        if not len(rows):
            raise damaged(path.name, "holds no events", remedy="Export the table again, with its rows.")
        for run_id, found in rows.runs():
            yield _capture(path, run_id, [Cells(*cells) for cells in found], table_map, rows.left_out.get(run_id, 0))


def _size(cells: Sequence[Any]) -> int:
    return 64 + sum(len(cell) for cell in cells if isinstance(cell, str))


def _check_columns(names: frozenset[str], columns: Columns, table_map: TableMap, path: Path) -> None:
    for field, named in columns.items():
        if not any(column.optional or column.is_in(names) for column in named):
            raise _no_column(named[0], field, names, table_map, path)


def _no_column(column: Column, field: str, columns: frozenset[str], table_map: TableMap, path: Path) -> Exception:
    from stormctl.errors import suggest

    return damaged(
        path.name,
        f"has no column {column.head!r}, which the map {table_map.name} names for {field}",
        remedy=f"{suggest(column.head, columns)} A column that may be absent is written with (optional) behind it.",
    )


def _events(table: Table, table_map: TableMap, path: Path) -> Iterator[tuple[str, Cells]]:
    """Every event with its run."""
    mapper = _Mapper(table_map, bare_name(path).partition(".")[0])
    seen: set[str] = set(table.columns or ())
    for row in table.rows:
        if table.columns is None and len(seen) < _MOST_NAMES:
            seen.update(row.cells)
        yield from mapper.events(row)
    names = frozenset(seen)
    for columns in (table_map.columns, *(word.columns for word in mapper.used.values())) if names else ():
        _check_columns(names, columns, table_map, path)


#: How many columns of rows that each have their own are remembered, to tell that one is nowhere.
_MOST_NAMES = 10_000


class Cells(NamedTuple):
    """An event of a run as it waits for the run's others; JSON can hold it. ``number`` is its number in its store,
    ``committed`` in microseconds of the epoch."""

    type: str
    event_id: str | None
    correlation_id: str | None
    number: int | None
    created_at: int | None
    name: str | None
    token: str | None
    resume_at: int | None
    digest: str | None
    data: dict[str, int]
    generation: str | None
    committed: int | None


class _Mapper:
    """Turns rows into events."""

    def __init__(self, table_map: TableMap, run_id: str) -> None:
        self._map = table_map
        self._run_id = run_id
        self._as_columns = _words_as_columns(table_map)
        self._skips = tuple(table_map.skip.items())
        self._merged: dict[int, Columns] = {}
        self.used: dict[str, Word] = {}

    def events(self, row: Row) -> Iterator[tuple[str, Cells]]:
        """The events of one row, with its run; none where the map skips it."""
        if self._skips and any(str(row.cells.get(column)) in words for column, words in self._skips):
            return
        text, word = self._word(row)
        columns = self._columns_of(word)
        run = self._one(row, "run", columns)
        run_id = self._run_id if run is None else self._id(run, row, "run")
        for cells in self._typed(row, text, word, columns):
            yield run_id, cells

    def _typed(self, row: Row, text: str, word: Word, columns: Columns) -> Iterator[Cells]:
        """One event for each type that the word stands for, or one of its own type."""
        fault = self._one(row, "error", columns) is not None
        start, end = self._time(row, "time", columns), self._time(row, "end_time", columns)
        committed = self._time(row, "committed", columns)
        event_id = self._one(row, "id", columns)
        name, about = self._text(row, "name", columns), self._text(row, "entity", columns)
        number, generation = self._number(row, columns), self._text(row, "generation", columns)
        types = word.types or (f"{self._map.prefix}:{text}",)
        for place, event_type in enumerate(types):
            kind = kinds.kind_of_type(event_type)
            own = bool(word.types)
            yield Cells(
                type=failed(event_type) if fault else event_type,
                event_id=None if event_id is None or place else self._id(event_id, row, "id"),
                correlation_id=_entity(about, kind) if own and about is not None else None,
                number=number,
                created_at=end if place and end is not None else start,
                name=name if kind == kinds.STEP or not own else None,
                token=self._text(row, "token", columns) if kind == kinds.HOOK else None,
                resume_at=self._resume_at(row, columns, start) if kind == kinds.WAIT else None,
                digest=self._digest(row, columns) if place == len(types) - 1 else None,
                data=self._data(row, columns, event_type),
                generation=generation,
                committed=None if committed is None else committed * _US,
            )

    # -- one field each -------------------------------------------------------------------------------------------

    def _columns_of(self, word: Word) -> Columns:
        """The map's columns with those that the word takes from other places."""
        found = self._merged.get(id(word))
        if found is None:
            found = self._merged[id(word)] = {**self._map.columns, **word.columns}
        return found

    def _word(self, row: Row) -> tuple[str, Word]:
        text = self._text(row, "type", self._map.columns)
        if text is None:
            text = next((word for word, column in self._as_columns.items() if row.get(column) is not None), None)
        if text is None:
            if (word := self._map.types.get(ANY)) is not None:
                return "", word
            raise damaged(row.where, "has no type", remedy="Name the column for it in the map, or skip such rows.")
        status = self._text(row, "status", self._map.columns)
        found = self._map.word(text, status)
        if found is None:
            raise self._map.unmapped(text, row.where)
        if len(self.used) < _MOST_NAMES:
            self.used.setdefault(text, found)
        return text, found

    def _one(self, row: Row, field: str, columns: Columns) -> Any:
        """The first value of the columns for a field that is there."""
        for column in columns.get(field, ()):
            value = row.get(column) if column.deep else row.cells.get(column.head)
            if value is None:
                value = self._map.defaults.get(column.text)
            if value is None or (isinstance(value, (str, int)) and str(value) in self._map.absent):
                continue
            return value
        return None

    def _text(self, row: Row, field: str, columns: Columns) -> str | None:
        value = self._one(row, field, columns)
        return None if value is None else text_of(value, row.where, field)

    def _id(self, value: Any, row: Row, field: str) -> str:
        take = ulid_of if field in self._map.ulids else text_of
        return take(value, row.where, field)

    def _number(self, row: Row, columns: Columns) -> int | None:
        value = self._one(row, "position", columns)
        if value is None:
            return None
        number = number_of(value, row.where, "position", self._map.digits)
        if number < 0:
            raise damaged(row.where, "has a position below 0")
        return number

    def _time(self, row: Row, field: str, columns: Columns) -> int | None:
        value = self._one(row, field, columns)
        return None if value is None else time_of(value, row.where, field, self._map.unit)

    def _resume_at(self, row: Row, columns: Columns, start: int | None) -> int | None:
        value = self._one(row, "resume_in", columns)
        if value is not None and start is not None:
            return start + time_of(str(value).removesuffix("s"), row.where, "resume_in", "s")
        return self._time(row, "resume_at", columns)

    def _digest(self, row: Row, columns: Columns) -> str | None:
        value = self._one(row, "payload", columns)
        return None if value is None else payload_of(value).digest

    def _data(self, row: Row, columns: Columns, event_type: str) -> dict[str, int]:
        data: dict[str, int] = {}
        attempt = self._one(row, "attempt", columns)
        if attempt is not None and event_type == kinds.STEP_STARTED:
            data["attempt"] = number_of(attempt, row.where, "attempt")
        serial = self._one(row, "serial", columns)
        if serial is not None:
            data["serial"] = number_of(serial, row.where, "serial")
        return data


def _entity(about: str, kind: str) -> str | None:
    if kind == kinds.RUN:
        return None
    return about if about.startswith(f"{kind}_") else f"{kind}_{about}"


def _words_as_columns(table_map: TableMap) -> dict[str, Column]:
    """The words as columns, for rows whose type is the column that is set; none where every row must have a type."""
    named = table_map.columns.get("type", ())
    if named and not all(column.optional for column in named):
        return {}
    return {word: Column(word, (word,)) for word in table_map.types if word != ANY}


def _capture(path: Path, run_id: str, found: Sequence[Cells], table_map: TableMap, left_out: int) -> Capture:
    notes: list[str] = []
    ordered = _in_order(_latest_generation(found, notes), table_map)
    base = _base(ordered, table_map)
    events = [_event(cells, run_id, base) for cells in ordered]
    missing = set(missing_from(events, has_rows=False, has_audit=False, has_result=False))
    if not table_map.starts:
        missing.add(Facet.STARTS)
    if not table_map.ends:
        notes.append("the table does not tell whether a run has ended")
    if left_out:
        notes.append(f"{left_out} events of the run were beyond what is read of one run")
    data: dict[str, Any] = {"map": table_map.name}
    stamps = {one.event_id: one.committed for one in ordered if one.event_id is not None and one.committed is not None}
    if stamps:
        missing.discard(Facet.COMMIT_STAMPS)
        data |= {COMMIT_CLOCK: _SERVER, COMMIT_TIMES: stamps}
    log = EventLog(events, run_id)
    evidence = Evidence(
        f"a table, by the map {table_map.name}",
        missing=frozenset(missing),
        truncated=left_out > 0,
        live=table_map.ends and not log.ended,
        notes=tuple(notes),
    )
    return Capture(str(path), log, evidence, data=data)


def _event(cells: Cells, run_id: str, base: int | None) -> Event:
    return Event(
        type=cells.type,
        run_id=run_id,
        event_id=cells.event_id,
        correlation_id=cells.correlation_id,
        position=None if base is None or cells.number is None else cells.number + 1 - base,
        created_at=cells.created_at,
        name=cells.name,
        token=cells.token,
        resume_at=cells.resume_at,
        payload=None if cells.digest is None else Sealed(cells.digest),
        data=cells.data,
    )


def _latest_generation(found: Sequence[Cells], notes: list[str]) -> Sequence[Cells]:
    """The events of the generation that the run's first event is of: a run that was begun anew keeps the rows behind
    its new end."""
    if all(one.generation is None for one in found):
        return found
    first = min(found, key=_by_number)
    kept = [one for one in found if one.generation == first.generation]
    if len(kept) < len(found):
        notes.append(f"{len(found) - len(kept)} rows of an earlier generation of the run were left out")
    return kept


def _in_order(found: Sequence[Cells], table_map: TableMap) -> Sequence[Cells]:
    """By position, by time, or as the table has them. What cannot be ordered so stands behind."""
    if table_map.order == "position":
        return sorted(found, key=_by_number)
    if table_map.order == "time" and all(one.created_at is not None for one in found):
        return sorted(found, key=lambda one: one.created_at or 0)
    return found


def _by_number(one: Cells) -> tuple[bool, int]:
    return one.number is None, one.number or 0


def _base(found: Sequence[Cells], table_map: TableMap) -> int | None:
    """The number of a run's first event; None where the numbers are no dense positions."""
    if not table_map.dense:
        return None
    if table_map.base is not None:
        return table_map.base
    return 0 if any(one.number == 0 for one in found) else 1


__all__ = ["read_table"]
