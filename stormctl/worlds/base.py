"""What a world is to those who use it: an event log per run, entity rows, and a queue of deliveries.

A world is an event-log store under one :class:`~stormctl.worlds.condition.Condition`. The rules of an append live once,
in ``worlds.pipeline``; memory, local and postgres only interpret the store operations that it yields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Protocol

from stormctl.history import AuditRecord, Event, RunRow
from stormctl.worlds.condition import Condition

_NOTHING: Mapping[str, Any] = MappingProxyType({})
NO_PAYLOAD: Any = object()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a writer had read when it derived a write: how many events, up to which cursor, and who it is.

    ``writer`` is one random id per delivery, the same across restarts inside that delivery. ``watermark`` is the
    latest ULID time of the events read, in epoch milliseconds, None when no id tells one. ``in_band`` is how many
    in-band events the log holds as the writer knows (those it read of, and its own since), where the store counts them.
    """

    count: int
    cursor: str | None
    writer: str | None
    watermark: int | None = None
    in_band: int | None = None


@dataclass(frozen=True, slots=True)
class AppendRequest:
    """One event that somebody wants in the log.

    ``lazy`` marks a ``step_started`` that also creates its step: it carries name and payload, wins or loses the step
    as one claim, and lands as two events. ``payload`` is a JSON value, ``NO_PAYLOAD`` when there is none. ``snapshot``
    is sent on replay-derived writes only.
    """

    run_id: str
    type: str
    writer: str
    correlation_id: str | None = None
    name: str | None = None
    token: str | None = None
    resume_at: int | None = None
    payload: Any = NO_PAYLOAD
    data: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    lazy: bool = False
    snapshot: Snapshot | None = None


@dataclass(frozen=True, slots=True)
class Appended:
    """The append landed, as one event or (lazy start) two. A taken token lands as ``hook_conflict``.

    ``skipped`` are events on slots that the writer had not read and that lie below its own (slots only);
    ``more_skipped`` says that some of those could not be told, and then none of them counts.
    """

    events: tuple[Event, ...]
    skipped: tuple[Event, ...] = ()
    more_skipped: bool = False


class Refusal(StrEnum):
    """Why a store said no. The comment is the meaning in HTTP."""

    CONFLICT = "conflict"  # 409: it exists already, or has ended already
    EXPIRED = "expired"  # 410: the run has ended
    PRECONDITION = "precondition"  # 412: a foreign decision lies beyond the writer's snapshot
    NOT_FOUND = "not-found"  # 404: no such run, step, wait or live hook
    TOO_EARLY = "too-early"  # 425: a retry before its time


@dataclass(frozen=True, slots=True)
class Refused:
    """The store said no and wrote nothing. ``retry_after_ms`` goes with ``TOO_EARLY``.

    ``body`` is what a refused precondition carries, as it came over the wire and not to be trusted: ``events`` (in the
    JSON shape of ``worlds.wire``) and ``cursor``, ``recordedAtOrBelow`` and ``stateUpdatedAt``, each or none of them.
    """

    refusal: Refusal
    reason: str
    retry_after_ms: float | None = None
    body: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)


@dataclass(frozen=True, slots=True)
class Page:
    """Events after a cursor, in canonical order, and the cursor of the last one (the old one on an empty page).

    The cursor is exclusive. A reader that follows cursors can miss for ever what becomes visible behind one.
    ``in_band`` is the store's count of in-band events, where it counts them.
    """

    events: tuple[Event, ...]
    cursor: str | None
    in_band: int | None = None


@dataclass(frozen=True, slots=True)
class HookRow:
    """A live hook."""

    run_id: str
    correlation_id: str
    token: str


@dataclass(frozen=True, slots=True)
class Message:
    """One queue message: one delivery of a run, or of one step of it.

    ``step_id`` makes it a background step message. ``divergences`` counts the recovery replays that led here and
    ``divergent_event`` names the last divergence. ``reinvocations`` counts delayed re-invocations after refused
    preconditions. ``data`` is for the reader of a trace.
    """

    run_id: str
    step_id: str | None = None
    step_name: str | None = None
    divergences: int = 0
    divergent_event: str | None = None
    reinvocations: int = 0
    data: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)


@dataclass(frozen=True, slots=True)
class Claimed:
    """A message in a worker's hands: ``message_id`` is stable across redeliveries, ``attempt`` counts them from 1."""

    message_id: str
    message: Message
    attempt: int
    handle: Any = None


class Queue(Protocol):
    """At-least-once delivery, delayed messages, several workers."""

    async def send(self, message: Message, *, delay_ms: float = 0, key: str | None = None) -> bool:
        """Enqueue; False when a message with the same ``key`` was enqueued before (it is dropped)."""
        ...

    async def receive(self, limit: int) -> list[Claimed]:
        """Claim up to ``limit`` messages that are due; an empty list when there is none."""
        ...

    async def ack(self, claimed: Claimed) -> None: ...

    async def release(self, claimed: Claimed, *, delay_ms: float = 0) -> None:
        """Give a claimed message back, to be delivered again with ``attempt + 1``."""
        ...

    async def depth(self) -> int:
        """How many messages wait or are in work."""
        ...

    async def requeue_dead(self, worker: str) -> int:
        """Put back what a worker that has ended had in its hands. Replies how many messages that were."""
        ...


class World(Protocol):
    """An event-log store with its queue. Every method may raise :class:`~stormctl.errors.StoreFailure`."""

    name: str
    condition: Condition
    queue: Queue

    async def append(self, request: AppendRequest) -> Appended | Refused: ...

    async def append_batch(self, requests: Sequence[AppendRequest]) -> list[Appended | Refused]:
        """Append the writes of one suspension: all under one lock and one admission where the condition is
        ``batch_atomic`` (a refused precondition refuses all of them), else one after another."""
        ...

    async def load(self, run_id: str, after: str | None = None) -> Page: ...

    async def run(self, run_id: str) -> RunRow | None: ...

    async def hook(self, token: str) -> HookRow | None: ...

    async def audit_of(self, run_id: str) -> tuple[AuditRecord, ...]:
        """What the world wrote down about every append to the run, by all its processes."""
        ...

    async def close(self) -> None: ...
