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
