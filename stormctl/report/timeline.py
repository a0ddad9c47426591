"""One run as it happened: who committed what in which order, when each pass read, and what its read missed.

Events are put in the order of their commits and keep the number that the log gives them. Where the log orders by id, an
event that was minted sooner and committed later stands behind its followers: its number counts backwards, and every
read in between lacks it for good or until it reads all again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from stormctl.history import AuditRecord, Capture, ReadRecord, kinds
from stormctl.sweeps.commit_order import publication_times

_MS = 1_000_000
#: the next page is asked for within this many nanoseconds
_PAGE_NS = 2 * _MS
#: who writes from outside a run, where the audit does not tell: the types that no delivery appends
OUTSIDE = frozenset({kinds.RUN_CREATED, kinds.HOOK_RECEIVED})
#: what only a decision of the workflow writes
DECISIONS = frozenset({*kinds.CREATES, kinds.WAIT_COMPLETED, kinds.HOOK_DISPOSED})


@dataclass(frozen=True, slots=True)
class Mark:
    """One event. ``column`` counts commits from 0, ``place`` is its number in the log, ``at_ms`` the time since the
    first commit (None where no commit times are known). ``backwards``: something later in the log was committed
    before it."""

    column: int
    place: int
    index: int
    type: str
    label: str
    writer: str
    at_ms: float | None
    backwards: bool


@dataclass(frozen=True, slots=True)
class Pass:
    """What a delivery did with one read: from the commits that were made when it read to its last append of it.

    ``first`` and ``last`` are columns (a read after the third commit begins at 2.5). ``read_to`` is the place of the
    last event that it had, ``missed`` the places before that which it had not.
    """

    writer: str
    first: float
    last: float
    read_to: int
    missed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Timeline:
    """A run's marks in the order of commits, and its passes by when they read.

    ``exact``: commit times are known; else the order is the log's. ``audited``: writers are known; else they are told
    apart by the types of their events. ``unknown`` events have no commit time and are left out.
    """

    source: str
    run_id: str
    marks: tuple[Mark, ...]
    passes: tuple[Pass, ...]
    exact: bool
    audited: bool
    unknown: int = 0

    @property
    def backwards(self) -> int:
        """How many events were overtaken."""
        return sum(mark.backwards for mark in self.marks)

    @property
    def blind(self) -> int:
        """How many passes went on from a read with a hole."""
        return sum(bool(one.missed) for one in self.passes)

    def focus(self) -> int:
        """The column to look at: the first decision that a pass with a hole took, else the first overtaking, else the
        end."""
        holes = [one for one in self.passes if one.missed]
        for mark in self.marks:
            if mark.type in DECISIONS and any(
                one.writer == mark.writer and one.first <= mark.column <= one.last for one in holes
            ):
                return mark.column
        return next((mark.column for mark in self.marks if mark.backwards), max(0, len(self.marks) - 1))

    def column_of(self, place: int) -> int | None:
        """The column of an event, by its number in the log."""
        return next((mark.column for mark in self.marks if mark.place == place), None)


def timeline(capture: Capture) -> Timeline:
    """The timeline of a captured run, as far as the capture can tell it."""
    times = publication_times(capture)
    exact = any(time is not None for time in times)
    audited = capture.audit is not None
    order = sorted((i for i, time in enumerate(times) if time is not None), key=lambda i: (times[i], i))
    if not exact:
        order = list(range(len(capture.log)))
    writers = _writers(capture)
    soonest = _overtaken(times, order) if exact else frozenset()
    began = times[order[0]] if exact and order else None
    marks = tuple(
        Mark(
            column=column,
            place=capture.log.place(index),
            index=index,
            type=capture.log[index].type,
            label=capture.log[index].short_name or capture.log[index].kind,
            writer=writers[index],
            at_ms=None if began is None else ((times[index] or 0) - began) / _MS,
            backwards=index in soonest,
        )
        for column, index in enumerate(order)
    )
    passes = tuple(_passes(capture, times, order)) if exact and capture.reads else ()
    return Timeline(
        capture.source, capture.log.run_id, marks, passes, exact, audited, len(capture.log) - len(order) if exact else 0
    )


def _overtaken(times: Sequence[int | None], order: Sequence[int]) -> frozenset[int]:
    """The events that something later in the log was committed before."""
    found, furthest = set(), -1
    for index in order:
        if index < furthest:
            found.add(index)
        furthest = max(furthest, index)
    return frozenset(found)


def _writers(capture: Capture) -> list[str]:
    """Who wrote each event: by the audit, else by what such an event is written by."""
    names: dict[str | int, str] = {}
    for record in capture.audit or ():
        if record.admitted:
            names.update({key: record.writer for key in (record.event_id, record.position) if key is not None})
    found = []
    for event in capture.log:
        known = names.get(event.event_id or "") or (names.get(event.position) if event.position is not None else None)
        found.append(known or _by_type(event.type))
    return found


def _by_type(type: str) -> str:
    if type in OUTSIDE:
        return "outside"
    return "steps" if type.startswith("step_") and type not in kinds.CREATES else "workflow"


@dataclass(slots=True)
class _Reader:
    """What one delivery has read so far: indices of the log."""

    cursor: int = 0
    view: set[int] = field(default_factory=set)

    def read(self, read: ReadRecord, last: int, times: Sequence[int | None]) -> None:
        """Take in one read up to the index ``last``: as many of the range as it got, those committed first."""
        start = 0 if read.full else self.cursor
        if read.full:
            self.view, self.cursor = set(), 0
        reachable = sorted(range(start, last + 1), key=lambda i: (_or_zero(times[i]), i))
        got = set(reachable[: read.count])
        if last not in got and got:
            # committed within the instant of the read: it names this one, so another is the one that it lacks
            got.discard(max(got, key=lambda i: (_or_zero(times[i]), i)))
            got.add(last)
        self.view |= got
        self.cursor = max(self.cursor, last + 1)

    def missed(self) -> tuple[int, ...]:
        """The indices before the cursor that the reader has not got."""
        return tuple(i for i in range(self.cursor) if i not in self.view)


def _or_zero(time: int | None) -> int:
    return 0 if time is None else time


def _passes(capture: Capture, times: Sequence[int | None], order: Sequence[int]) -> Iterable[Pass]:
    log = capture.log
    index_of = {event.event_id: index for index, event in enumerate(log) if event.event_id is not None}
    commits = [times[index] or 0 for index in order]
    column_of = {index: column for column, index in enumerate(order)}
    written: dict[str, list[AuditRecord]] = {}
    for record in capture.audit or ():
        if record.admitted:
            written.setdefault(record.writer, []).append(record)
    by_reader: dict[str, list[ReadRecord]] = {}
    for read in sorted(capture.reads or (), key=lambda one: one.began):
        by_reader.setdefault(read.reader, []).append(read)
    for name, reads in by_reader.items():
        reader = _Reader()
        for burst, end in zip(pages := _pages(reads), [*(one[0].began for one in pages[1:]), None], strict=True):
            for read in burst:
                last = index_of.get(read.last_event_id or "", -1)
                if read.count and last >= 0:
                    reader.read(read, last, times)
            if not reader.cursor:
                continue
            first = bisect_right(commits, burst[0].began) - 0.5
            mine = [
                column_of[index]
                for record in written.get(name, ())
                if burst[0].began <= record.entered and (end is None or record.entered < end)
                if (index := index_of.get(record.event_id or "", -1)) in column_of
            ]
            missed = tuple(log.place(index) for index in reader.missed())
            yield Pass(name, first, max([first, *mine]), log.place(reader.cursor - 1), missed)


def _pages(reads: Sequence[ReadRecord]) -> list[list[ReadRecord]]:
    """Reads that follow each other at once are the pages of one."""
    bursts: list[list[ReadRecord]] = []
    for read in reads:
        if bursts and not read.full and read.began - bursts[-1][-1].returned < _PAGE_NS:
            bursts[-1].append(read)
        else:
            bursts.append([read])
    return bursts
