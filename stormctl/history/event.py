"""One event of a run's log, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from stormctl.history import ids, kinds
from stormctl.history.payload import Payload

_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Event:
    """One event, whatever store it came from. A field that the capture does not hold is None.

    ``position`` is the store's own place number (a dense ``seq`` or a slot), counted from 1. ``created_at`` and
    ``resume_at`` are epoch milliseconds. ``name`` is the step name as stored. ``data`` holds everything else, under the
    names that the store used, so that a log written again loses nothing.
    """

    type: str
    run_id: str = ""
    event_id: str | None = None
    correlation_id: str | None = None
    position: int | None = None
    created_at: int | None = None
    name: str | None = None
    token: str | None = None
    resume_at: int | None = None
    spec: int | None = None
    payload: Payload | None = None
    data: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)

    @property
    def kind(self) -> str:
        """The entity kind by event type: step, hook, wait, attr or run."""
        return kinds.kind_of_type(self.type)

    @property
    def body(self) -> str | None:
        """The correlation id without its kind prefix."""
        return None if self.correlation_id is None else ids.split(self.correlation_id)[1]

    @property
    def short_name(self) -> str | None:
        """The step name after its last ``//``: ``step//./src/storms//settle`` -> ``settle``."""
        return None if self.name is None else self.name.rpartition("//")[2]

    @property
    def is_terminal(self) -> bool:
        """Whether the event ends its run."""
        return self.type in kinds.RUN_TERMINAL


class _Open:
    """An event while it is filled: the same slots, which may be set."""

    __slots__ = Event.__slots__

    def __init__(
        self,
        type: str,
        run_id: str,
        event_id: str | None,
        correlation_id: str | None,
        position: int | None,
        created_at: int | None,
        name: str | None,
        token: str | None,
        resume_at: int | None,
        spec: int | None,
        payload: Payload | None,
        data: Mapping[str, Any],
    ) -> None:
        self.type = type
        self.run_id = run_id
        self.event_id = event_id
        self.correlation_id = correlation_id
        self.position = position
        self.created_at = created_at
        self.name = name
        self.token = token
        self.resume_at = resume_at
        self.spec = spec
        self.payload = payload
        self.data = data


def quick_event(*fields: Any) -> Event:
    """An event of all its fields, in their order, for readers of many: setting what is frozen takes three times as long
    as all the rest of reading a row."""
    made: Any = _Open(*fields)
    made.__class__ = Event
    event: Event = made
    return event
