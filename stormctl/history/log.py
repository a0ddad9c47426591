"""The events of one run in the canonical order of the store they came from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import overload

from stormctl.history import ids, kinds
from stormctl.history.event import Event

#: No run draws more ids than this; a larger distance means that the base is not this run's.
MAX_RANK = 1_000_000


class EventLog(Sequence[Event]):
    """An immutable sequence of events.

    A prefix is named by the position of its last event, or by its 1-based length where the store has no positions.
    """

    def __init__(self, events: Sequence[Event], run_id: str | None = None) -> None:
        self.events = tuple(events)
        self.run_id = run_id if run_id is not None else (self.events[0].run_id if self.events else "")

    def __len__(self) -> int:
        return len(self.events)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> EventLog: ...
    def __getitem__(self, index: int | slice) -> Event | EventLog:
        if isinstance(index, slice):
            return EventLog(self.events[index], self.run_id)
        return self.events[index]

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EventLog) and (self.run_id, self.events) == (other.run_id, other.events)

    def __hash__(self) -> int:
        return hash((self.run_id, len(self.events)))

    def __repr__(self) -> str:
        return f"EventLog({self.run_id!r}, {len(self.events)} events)"

    @cached_property
    def has_positions(self) -> bool:
        """Whether every event carries a position."""
        return bool(self.events) and all(event.position is not None for event in self.events)

    def place(self, index: int) -> int:
        """How a person names the event at a 0-based index: its position, else its 1-based index."""
        position = self.events[index].position
        return position if position is not None and self.has_positions else index + 1

    def name_of_prefix(self, length: int) -> int:
        """The name of the prefix of that many events (0 for the empty one)."""
        return self.place(length - 1) if length else 0

    def length_of_prefix(self, name: int) -> int:
        """How many events the prefix of that name holds: the events at or before it."""
        if not self.has_positions:
            return max(0, min(name, len(self.events)))
        return sum(1 for event in self.events if event.position is not None and event.position <= name)

    @cached_property
    def base(self) -> int:
        """The ordinal of the run's first draw.

        For a run of our own engine it is seeded by the run id, exact even if the first draw's event is lost; for any
        other it is the smallest ordinal in the log, and ranks are relative to it.
        """
        seeded = ids.seeded_base(self.run_id)
        smallest: int | None = None
        for event in self.events:
            body = event.body
            value = None if body is None or event.correlation_id == self.run_id else ids.drawn(body)
            if value is None:
                continue  # an attribute that a step wrote may carry the run's own id, which is no draw
            if smallest is None and 0 <= value - seeded <= MAX_RANK:
                return seeded  # one id of a seeded sequence cannot be so close to another run's by accident
            smallest = value if smallest is None else min(smallest, value)
        return seeded if smallest is None else smallest

    def rank(self, event: Event) -> int | None:
        """The rank of the event's entity: how many draws came before its id. None without an id that tells it."""
        body = event.body
        value = None if body is None or event.correlation_id == self.run_id else ids.drawn(body)
        if value is None:
            return None
        rank = value - self.base
        return rank if abs(rank) <= MAX_RANK else None

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """The 0-based indices of the events that end the run: one in a sound log of a run that has ended."""
        return tuple([index for index, event in enumerate(self.events) if event.type in kinds.RUN_TERMINAL])

    @property
    def ended(self) -> bool:
        """Whether the log holds an event that ends the run."""
        return bool(self.ends)
