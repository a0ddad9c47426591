"""What every rank was bound to at every prefix: the data behind the heat map.

A rank keeps its binding over long stretches of prefixes, so a map holds spans and not cells: a log of ten thousand
events has some thousands of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import attrgetter, eq, is_

from stormctl.engine.door import Draw, Pass
from stormctl.history import EventLog
from stormctl.sweeps.rebinding import ids_are_ranks

_row = attrgetter("rank", "kind", "name")


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of columns, both ends included, over which a rank was bound to ``label``."""

    first: int
    last: int
    label: str


@dataclass(frozen=True, slots=True)
class Change:
    """A rank that is bound to ``was`` in the column before and to ``now`` from this column on."""

    column: int
    rank: int
    was: str
    now: str


@dataclass(frozen=True, slots=True)
class BindingMap:
    """What one engine bound, prefix by prefix.

    Column ``i`` is the prefix named ``prefixes[i]``. ``rows`` holds the spans of each rank, in order; where a rank has
    none it had not been drawn. ``diverges`` is the column of the first divergence, ``lost`` the rank it is about and
    ``expected`` what the log has there. ``steps`` are the labels of all steps in the log.

    Where ids do not follow the ranks (ids by kind, by call site) nothing refers to a rank: ``ordinal`` is False, and a
    row stands for an id, numbered as they were first drawn.
    """

    engine: str
    workload: str
    prefixes: tuple[int, ...]
    rows: dict[int, tuple[Span, ...]]
    diverges: int | None = None
    lost: int | None = None
    expected: str = ""
    steps: tuple[str, ...] = ()
    ordinal: bool = True

    @property
    def row(self) -> str:
        """What a row stands for."""
        return "rank" if self.ordinal else "id"

    @property
    def changes(self) -> tuple[Change, ...]:
        """The flips, by column and rank. A rank that was not drawn in between is no flip."""
        found = [
            Change(after.first, rank, before.label, after.label)
            for rank, spans in self.rows.items()
            for before, after in pairwise(spans)
            if before.last + 1 == after.first and before.label != after.label
        ]
        return tuple(sorted(found, key=lambda change: (change.column, change.rank)))

    @property
    def labels(self) -> dict[str, int]:
        """How many ranks each label was ever bound to, the frequent ones first."""
        counts: dict[str, int] = {}
        for spans in self.rows.values():
            for label in {span.label for span in spans}:
                counts[label] = counts.get(label, 0) + 1
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def at(self, rank: int, column: int) -> str | None:
        """The binding of a rank in a column, None where it was not drawn."""
        return next((span.label for span in self.rows.get(rank, ()) if span.first <= column <= span.last), None)


@dataclass(slots=True)
class BindingRecorder:
    """Builds a map from passes as they come: call it with each prefix length and its pass, in order."""

    prefixes: list[int] = field(default_factory=list)
    diverges: int | None = None
    lost: int | None = None
    expected: str = ""
    _closed: dict[int, list[Span]] = field(default_factory=dict)
    _open: dict[int, tuple[int, str]] = field(default_factory=dict)
    _before: tuple[Draw, ...] = ()
    _seen: Pass | None = None
    _ordinal: bool | None = None
    _numbers: dict[str, int] = field(default_factory=dict)

    def __call__(self, length: int, replay: Pass) -> None:
        """Note the pass over ``length`` events."""
        column = len(self.prefixes)
        self.prefixes.append(length)
        if replay.divergence is not None and self.diverges is None:
            self.diverges, self.lost, self.expected = column, replay.divergence.rank, replay.divergence.expected
        if replay is self._seen:
            return
        self._seen = replay
        draws = self._numbered(_known(replay))
        before, self._before = self._before, draws
        if _only_adds(before, draws):  # by far the most passes do
            for draw in draws[len(before) :]:
                self._open[draw.rank] = (column, draw.label)
            return
        labels = {draw.rank: draw.label for draw in draws}
        for rank in [rank for rank, (_, label) in self._open.items() if labels.get(rank) != label]:
            self._close(rank, column)
        for rank, label in labels.items():
            self._open.setdefault(rank, (column, label))

    def _numbered(self, draws: tuple[Draw, ...]) -> tuple[Draw, ...]:
        """The draws by rank, or by the number of their id where ids do not follow the ranks."""
        if self._ordinal is None and len(draws) > 1:  # one draw alone is the first by either
            self._ordinal = ids_are_ranks(draws)
        if self._ordinal is not False:
            return draws
        return tuple(replace(draw, rank=self._numbers.setdefault(str(draw.id), len(self._numbers))) for draw in draws)

    def finish(self, engine: str, workload: str, log: EventLog) -> BindingMap:
        """The map of what was noted."""
        for rank in list(self._open):
            self._close(rank, len(self.prefixes))
        return BindingMap(
            engine=engine,
            workload=workload,
            prefixes=tuple(map(log.name_of_prefix, self.prefixes)),
            rows={rank: tuple(self._closed[rank]) for rank in sorted(self._closed)},
            diverges=self.diverges,
            lost=self.lost if self._ordinal is not False else None,
            expected=self.expected,
            steps=tuple(sorted({f"step:{event.short_name}" for event in log if event.short_name})),
            ordinal=self._ordinal is not False,
        )

    def _close(self, rank: int, column: int) -> None:
        first, label = self._open.pop(rank)
        self._closed.setdefault(rank, []).append(Span(first, column - 1, label))


def _only_adds(before: tuple[Draw, ...], draws: tuple[Draw, ...]) -> bool:
    """Whether a table begins with all of the one before. Our engines put the same objects into the tables of one log,
    which is seen sooner."""
    if len(draws) < len(before):
        return False
    return all(map(is_, before, draws)) or all(map(eq, map(_row, before), map(_row, draws)))


def _known(replay: Pass) -> tuple[Draw, ...]:
    """The draw table; an engine that cannot know it leaves None there."""
    return replay.draws or ()


def window(found: BindingMap, *, columns: int, before: int, after: int) -> range:
    """The columns around what is marked, at most so many: from ``before`` the first flip on.

    A map without a flip is shown around its divergence, and one without either at its end.
    """
    marks = [change.column for change in found.changes]
    marks += [] if found.diverges is None else [found.diverges]
    last = len(found.prefixes) - 1
    first = max(0, (min(marks) if marks else last) - before)
    end = min(last, (max(marks) if marks else last) + after) + 1
    return range(first, min(end, first + columns))


def touched(found: BindingMap, columns: range, *, around: int, most: int) -> Iterator[int]:
    """The ranks that flip or diverge in these columns, with so many neighbours, at most ``most`` in all, ascending."""
    marked = [change.rank for change in found.changes if change.column in columns]
    if found.lost is not None and found.diverges is not None and found.diverges in columns:
        marked.append(found.lost)
    near = sorted(
        {rank: min(abs(rank - mark) for mark in marked) for rank in found.rows if marked}.items(),
        key=lambda item: (item[1], item[0]),
    )
    yield from sorted(rank for rank, distance in near[:most] if distance <= around)
