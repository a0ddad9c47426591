"""A block of columns: the events of some whole runs, one after the other, and what can be told of each column at once.

The arrays are numpy's, and numpy is imported when the first block is made. Rows are counted from the block's first;
runs and entities (the correlation ids of one run) go by numbers that the block gives them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from stormctl.history import Event, ids, kinds
from stormctl.readers.meta import Meta

#: The event types that have a code of their own, and the code that all others share.
TYPES: tuple[str, ...] = tuple(sorted(kinds.ALL_TYPES))
CODES: dict[str, int] = {event_type: code for code, event_type in enumerate(TYPES)}
OTHER = len(TYPES)
#: How many rows are gathered before they are looked at: enough that a call over a column costs little beside its rows.
BLOCK_ROWS = 1 << 15
#: Stands for a time that a row does not have.
NEVER = -(1 << 63)
#: How much of the end of an event id tells what it is: a body, and what stands before it.
ID_END = ids.BODY_LENGTH + 1
_EIGHT_TRUE = 0x0101_0101_0101_0101
_SLOT_ZEROS = ids.BODY_LENGTH - 16


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a block.

    ``few`` are its first two events, the first that names a spec version and the first that ends the run, each once and
    in log order: by these a log tells its release and its end. ``odd`` says that a row holds something that the columns
    do not show. ``number`` is the run's place in its file and ``first_row`` that of its first event, both from 0.
    """

    source: str
    meta: Meta
    events: int
    few: tuple[Event, ...]
    odd: bool = False
    number: int = 0
    first_row: int = 0


@dataclass(frozen=True, slots=True)
class Lives:
    """What happened to each entity of a block, by event type: how often, and in which row first and last.

    Where it never happened, ``first`` is a number beyond the last row and ``last`` is -1. ``run`` is each entity's run.
    """

    run: Any
    _counts: Any
    _first: Any
    _last: Any

    def count(self, *types: str) -> Any:
        """How many events of these types each entity has."""
        return sum(self._counts[CODES[event_type]] for event_type in types)

    def first(self, event_type: str) -> Any:
        """The row of each entity's first event of a type."""
        return self._first[CODES[event_type]]

    def last(self, event_type: str) -> Any:
        """The row of each entity's last event of a type."""
        return self._last[CODES[event_type]]


class Block:
    """Columns of whole runs.

    ``positions``, ``types`` (codes), ``entities`` (-1 for none), ``created`` and ``due`` (milliseconds, or ``NEVER``)
    are arrays of one number per row, and ``id_ends`` is a matrix of the last ``ID_END`` bytes of each event id, zeros
    for one that is shorter. ``tokens`` are the hook tokens that were taken and ``resumes`` the resume ids that were
    received, each with the number of its run. Without ``positions`` they count the events of each run.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        *,
        types: Any,
        id_ends: Any,
        entities: Any,
        created: Any,
        due: Any,
        tokens: Sequence[tuple[int, str]] = (),
        resumes: Sequence[tuple[int, str]] = (),
        positions: Any = None,
    ) -> None:
        import numpy as np

        self.runs = runs
        self.types, self.entities, self.created, self.due = types, entities, created, due
        self.tokens, self.resumes = tokens, resumes
        self._id_ends = id_ends
        sizes = np.array([run.events for run in runs])
        ends = np.cumsum(sizes)
        #: The first row of each run, its last, and the run of each row.
        self.firsts, self.lasts = ends - sizes, ends - 1
        self.run = np.repeat(np.arange(len(runs)), sizes)
        #: The runs with a row of which columns cannot tell.
        self.odd = np.array([run.odd for run in runs])
        self.positions = self.places() if positions is None else positions

    def __len__(self) -> int:
        return len(self.types)

    def has_type(self, *types: str) -> Any:
        """The rows of these types."""
        found = self.types == CODES[types[0]]
        for event_type in types[1:]:
            found |= self.types == CODES[event_type]
        return found

    def places(self) -> Any:
        """The place of each row in its run, from 1."""
        import numpy as np

        return np.arange(1, len(self) + 1) - self.firsts[self.run]

    def runs_of(self, rows: Any) -> Any:
        """Which runs have a row among these (one truth value per row): one truth value per run."""
        import numpy as np

        found = np.zeros(len(self.runs), bool)
        found[self.run[rows]] = True
        return found

    def per_run(self, rows: Any) -> Any:
        """How many of these rows (one truth value per row) each run has."""
        import numpy as np

        return np.bincount(self.run[rows], minlength=len(self.runs))

    def runs_that_repeat(self, taken: Sequence[tuple[int, str]]) -> Any:
        """Which runs have one of their texts twice."""
        import numpy as np

        found = np.zeros(len(self.runs), bool)
        if len(set(taken)) != len(taken):
            seen: set[tuple[int, str]] = set()
            for one in taken:
                if one in seen:
                    found[one[0]] = True
                seen.add(one)
        return found

    # -- ids ----------------------------------------------------------------------------------------------------------

    def has_body(self) -> Any:
        """The rows whose event id is a ULID or a slot."""
        return self._has_body

    @cached_property
    def _has_body(self) -> Any:
        import numpy as np

        digit = np.zeros(256, bool)
        digit[[ord(char) for char in ids.ALPHABET]] = True
        fits = np.ones((len(self), 32), bool)
        fits[:, : ids.BODY_LENGTH] = digit[self._id_ends[:, 1:]]
        # eight truth values at a time: reducing along short rows is slow
        words = fits.view(np.uint64)
        whole = words[:, 0] & words[:, 1] & words[:, 2] & words[:, 3]
        return (self._id_ends[:, 0] == ord("_")) & (whole == _EIGHT_TRUE)

    def slots(self) -> Any:
        """The slot that each row's event id names, -1 for another id."""
        import numpy as np

        bodies = self._id_ends[:, 1:]
        found = np.full(len(self), -1)
        rows = np.flatnonzero(self._has_body & (bodies[:, 0] == ord("0")) & (bodies[:, 1] == ord("0")))
        rows = rows[(bodies[rows, :_SLOT_ZEROS] == ord("0")).all(axis=1)]
        if not rows.size:
            return found
        digits = bodies[rows, _SLOT_ZEROS:].astype(np.int64) - ord("0")
        decimal = (digits <= 9).all(axis=1)
        found[rows[decimal]] = digits[decimal] @ 10 ** np.arange(15, -1, -1)
        return found

    def id_rises(self) -> Any:
        """The rows whose event id is larger than that of the row before, and the first row of each run."""
        import numpy as np

        wide = np.zeros((len(self), 32), np.uint8)
        wide[:, : ids.BODY_LENGTH] = self._id_ends[:, 1:]
        words = wide.view(">u8").astype(np.uint64)
        larger = np.zeros(len(self) - 1, bool)
        for place in (3, 2, 1, 0):
            before, after = words[:-1, place], words[1:, place]
            larger = (after > before) | ((after == before) & larger)
        found = np.concatenate(([True], larger))
        found[self.firsts] = True
        return found

    # -- entities -----------------------------------------------------------------------------------------------------

    def is_named(self) -> Any:
        """The rows that have a correlation id."""
        found: Any = self.entities >= 0
        return found

    @cached_property
    def lives(self) -> Lives:
        """What happened to each entity."""
        import numpy as np

        entities, count = self.entities, int(self.entities.max(initial=-1)) + 1
        rows = np.flatnonzero(entities >= 0)
        width = OTHER + 1
        keys = self.types[rows].astype(np.int64) * count + entities[rows]  # what is asked for is one type of all
        counts = np.bincount(keys, minlength=count * width)
        first = np.full(count * width, len(self), np.int32)
        first[keys[::-1]] = rows[::-1]
        last = np.full(count * width, -1, np.int32)
        last[keys] = rows
        owner = np.zeros(count, np.int64)
        owner[entities[rows]] = self.run[rows]
        shape = (width, count)
        return Lives(owner, counts.reshape(shape), first.reshape(shape), last.reshape(shape))


__all__ = ["BLOCK_ROWS", "CODES", "ID_END", "NEVER", "OTHER", "TYPES", "Block", "Lives", "Run"]
