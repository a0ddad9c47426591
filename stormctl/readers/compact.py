"""Compact rows ``{s, t, k, r, n}``: position, type, kind, rank and short step name of each event, as one JSON array.

The form in which a corrupted production log was published with vercel/workflow #3543. It holds no ids, times or values,
and its writer left out the events that open the run (positions 1 and 2) and the one that ends it. Correlation ids are
made again from the ranks on one fixed base, so that ranks, holes and collisions read as they were.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stormctl.history import Capture, Event, EventLog, Evidence, Facet, ids, kinds
from stormctl.history.log import MAX_RANK
from stormctl.readers.fields import optional, required, shown
from stormctl.readers.json_stream import array_items
from stormctl.readers.text import at_most, damaged

_HEAD = re.compile(rb'\s*\[\s*\{\s*"s"\s*:\s*-?\d+\s*,\s*"t"\s*:')
_RUN = re.compile(r"wrun[-_]([0-9A-Z]{4,26})")
_OPENING = (1, 2)
#: The rank that stands for an event without an id of its own: an attribute that a step body wrote.
_NO_RANK = -1
_MISSING = frozenset(
    {
        Facet.EVENT_IDS,
        Facet.TIMES,
        Facet.RUN_BOUNDS,
        Facet.INPUTS,
        Facet.RESULT,
        Facet.COMMIT_STAMPS,
        Facet.AUDIT,
        Facet.ROWS,
    }
)


class CompactReader:
    """Reads compact rows."""

    name = "compact"
    summary = 'a JSON array of compact rows ({"s", "t", "k", "r", "n"})'
    sign = 'a JSON array whose first row begins with "s" and "t"'

    def recognises(self, head: bytes, path: Path) -> bool:
        """Whether the file begins with such a row."""
        return _HEAD.match(head) is not None

    def read(self, path: Path) -> Iterator[Capture]:
        """The one capture of the file."""
        run_id = run_id_of(path)
        base = ids.seeded_base(run_id)
        events = [_event(row, where, run_id, base) for where, row in at_most(array_items(path), path.name)]
        places = [event.position for event in events if event.position is not None]
        omitted = tuple(place for place in (*_OPENING, max(places, default=0) + 1) if place not in places)
        evidence = Evidence("compact rows", missing=_MISSING, omitted=omitted)
        yield Capture(str(path), EventLog(events, run_id), evidence)


def run_id_of(path: Path) -> str:
    """The run id that a file name carries, or one made of the name."""
    found = _RUN.search(path.name)
    return f"wrun_{found[1] if found else path.name.partition('.')[0]}"


def _event(row: Any, where: str, run_id: str, base: int) -> Event:
    if not isinstance(row, dict):
        raise damaged(where, f"is {shown(row)}, not an object")
    kind = required(row, "k", str, where)
    event_type = required(row, "t", str, where)
    rank = required(row, "r", int, where)
    position = required(row, "s", int, where)
    if not _NO_RANK <= rank <= MAX_RANK:
        raise damaged(where, f"has the rank {rank}, which no run reaches")
    if position < 0:
        raise damaged(where, "has a position below 0")
    from_step = event_type == kinds.ATTR_SET and rank == _NO_RANK
    return Event(
        type=event_type,
        run_id=run_id,
        correlation_id=None if rank == _NO_RANK else f"{kind}_{ids.body_of(base + rank)}",
        position=position,
        name=optional(row, "n", str, where) or None,
        data={"writer": {"type": "step"}} if from_step else {},
    )


READER = CompactReader()
