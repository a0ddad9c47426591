"""The entity rows that a store keeps beside the log, and how each event changes them.

A row is what the log says of one entity, kept so that an append need not read the log. It is a pure function of the
events: :func:`evolve` and :func:`evolve_run` take it one event further, and folding them over a log rebuilds it,
which is how a store repairs what a killed or failing writer left behind. (Only its times can be some milliseconds
earlier than the event's, where the event gets its time after the row is written.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from stormctl.history import Event, Payload, RunRow, kinds

_NOTHING: Mapping[str, Any] = MappingProxyType({})

TERMINAL_STATUS = frozenset({"completed", "failed", "cancelled"})
_RUN_STATUS = {
    kinds.RUN_COMPLETED: "completed",
    kinds.RUN_FAILED: "failed",
    kinds.RUN_CANCELLED: "cancelled",
}


class Kind(StrEnum):
    """The kinds of thing that have claims of their own; steps, waits and hooks have rows too."""

    STEP = "step"
    WAIT = "wait"
    HOOK = "hook"
    ATTR = "attr"
    RUN = "run"


@dataclass(frozen=True, slots=True)
class Entity:
    """A step, wait or hook. Times are epoch milliseconds.

    ``status`` is pending, running, completed or failed (steps), waiting or completed (waits), live or disposed (hooks;
    a disposed hook has no row in a store). ``attempt`` counts starts. ``retry_at`` is set while a failed attempt waits.
    """

    kind: Kind
    run_id: str
    id: str
    status: str
    created_at: int
    updated_at: int
    name: str | None = None
    token: str | None = None
    resume_at: int | None = None
    attempt: int = 0
    retry_at: int | None = None
    started_at: int | None = None
    completed_at: int | None = None
    input: Payload | None = None
    result: Payload | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing more may happen to it."""
        return self.status in TERMINAL_STATUS


@dataclass(frozen=True, slots=True)
class RunEntity:
    """A run. ``data`` keeps what its ``run_created`` carried besides input and workload."""

    run_id: str
    status: str
    created_at: int
    updated_at: int
    workload: str | None = None
    input: Payload | None = None
    output: Payload | None = None
    started_at: int | None = None
    completed_at: int | None = None
    error_code: str | None = None
    error_message: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    data: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)

    @property
    def ended(self) -> bool:
        """Whether the run has ended."""
        return self.status in TERMINAL_STATUS

    def row(self) -> RunRow:
        """The run as those who use a world see it."""
        given = None if self.input is None else self.input.load()
        return RunRow(
            status=self.status,
            workload=self.workload,
            input=given if isinstance(given, Mapping) else ({} if given is None else {"input": given}),
            output=None if self.output is None else self.output.load(),
            error_code=self.error_code,
            error_message=self.error_message,
        )


def evolve(row: Entity | None, event: Event) -> Entity | None:
    """The row after the event; None when the entity has no row (it was never created, or its hook was given up)."""
    at = event.created_at or 0
    if event.type in kinds.CREATES:
        if row is not None:  # a duplicate create changes nothing
            return row
        kind = Kind(kinds.kind_of_type(event.type))
        return Entity(
            kind,
            event.run_id,
            event.correlation_id or "",
            {Kind.STEP: "pending", Kind.WAIT: "waiting"}.get(kind, "live"),
            created_at=at,
            updated_at=at,
            name=event.name,
            token=event.token,
            resume_at=event.resume_at,
            input=event.payload,
        )
    if row is None or event.type in (kinds.HOOK_DISPOSED, kinds.HOOK_CONFLICT):
        return None
    if event.type == kinds.STEP_STARTED:
        if row.ended:  # a start that raced the end: it counts, and the step stays ended
            return replace(row, attempt=row.attempt + 1)
        return replace(
            row,
            status="running",
            attempt=row.attempt + 1,
            retry_at=None,
            started_at=at if row.started_at is None else row.started_at,
            updated_at=at,
        )
    if event.type == kinds.STEP_RETRYING:
        return replace(
            row,
            status=row.status if row.ended else "pending",
            retry_at=event.data.get("retryAfter"),
            result=event.payload,
            updated_at=at,
        )
    if event.type in kinds.STEP_TERMINAL:
        status = "completed" if event.type == kinds.STEP_COMPLETED else "failed"
        return replace(row, status=status, result=event.payload, completed_at=at, updated_at=at, retry_at=None)
    if event.type == kinds.WAIT_COMPLETED:
        return replace(row, status="completed", completed_at=at, updated_at=at)
    return row


def evolve_run(row: RunEntity | None, event: Event) -> RunEntity | None:
    """The run's row after the event; None while no ``run_created`` was seen (orphan events have no row)."""
    at = event.created_at or 0
    if event.type == kinds.RUN_CREATED:
        data = dict(event.data)
        return RunEntity(
            event.run_id,
            "pending",
            created_at=at,
            updated_at=at,
            workload=data.pop("workflowName", event.name),
            input=event.payload,
            attributes=data.pop("attributes", None) or {},
            data=data,
        )
    if row is None:
        return None
    if event.type == kinds.RUN_STARTED:
        if row.ended:  # never let a late start re-open a run that has ended
            return row
        return replace(row, status="running", started_at=row.started_at or at, updated_at=at)
    if event.type in kinds.RUN_TERMINAL:
        error = event.data.get("error")
        return replace(
            row,
            status=_RUN_STATUS[event.type],
            output=event.payload if event.type == kinds.RUN_COMPLETED else None,
            completed_at=at,
            updated_at=at,
            error_code=event.data.get("errorCode"),
            error_message=_text(error if error is not None or event.payload is None else event.payload.load())
            if event.type == kinds.RUN_FAILED
            else None,
        )
    if event.type == kinds.ATTR_SET:
        merged = dict(row.attributes)
        for change in event.data.get("changes", ()):
            if change.get("value") is None:
                merged.pop(change["key"], None)
            else:
                merged[change["key"]] = change["value"]
        return replace(row, attributes=merged, updated_at=max(at, row.updated_at))
    return row


def _text(error: Any) -> str | None:
    """The message of an error, whether it was given as text or as an object with a message."""
    if error is None or isinstance(error, str):
        return error
    if isinstance(error, Mapping) and "message" in error:
        return str(error["message"])
    return str(error)


def fold(events: Iterable[Event], correlation_id: str) -> Entity | None:
    """The row that the log gives an entity."""
    row: Entity | None = None
    for event in events:
        if event.correlation_id == correlation_id:
            row = evolve(row, event)
    return row


def fold_run(events: Iterable[Event]) -> RunEntity | None:
    """The row that the log gives its run."""
    row: RunEntity | None = None
    for event in events:
        row = evolve_run(row, event)
    return row
