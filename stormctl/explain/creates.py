"""The creates of a log: what each one claims to be, and which footprint its writer left.

A step that its delivery runs itself is created together with its start, so its ``step_created`` is followed directly by
its own ``step_started``. Every other step is created alone, and started later by whoever takes its message.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stormctl.engine.door import Create
from stormctl.history import Event, EventLog, kinds


@dataclass(frozen=True, slots=True)
class Created:
    """One event that a replay asked for.

    ``index`` is 0-based and ``place`` how a person names it. ``rank`` is None where the id is not of the run's
    sequence.
    ``digest`` is that of the recorded input, None where the log does not hold it. ``footprint`` is the class that the
    events around it speak for.
    """

    index: int
    place: int
    correlation_id: str
    rank: int | None
    kind: str
    name: str | None
    footprint: Create
    digest: str | None = None
    token: str | None = None

    @property
    def label(self) -> str:
        """``step:finalizeStep``, ``wait``, ``hook``."""
        return f"{self.kind}:{self.name}" if self.name else self.kind

    @property
    def counts(self) -> bool:
        """Whether it is one of the step and wait creates that generations are compared by."""
        return self.footprint in COUNTED

    @property
    def is_pair(self) -> bool:
        """Whether it was written together with the start that follows it."""
        return self.footprint is Create.LAZY


#: Hooks and attributes are written in other phases of a delivery and never race for a rank; they are counted apart.
COUNTED = frozenset({Create.LAZY, Create.EAGER, Create.WAIT})


def creates_of(log: EventLog) -> tuple[Created, ...]:
    """Every create of a log that a replay of the workflow asks for, in its order."""
    return tuple(_creates(log))


def _creates(log: EventLog) -> Iterator[Created]:
    for index, event in enumerate(log):
        footprint = _footprint(log, index, event)
        if footprint is None or event.correlation_id is None:
            continue
        yield Created(
            index=index,
            place=log.place(index),
            correlation_id=event.correlation_id,
            rank=log.rank(event),
            kind=event.kind,
            name=event.short_name if event.kind == kinds.STEP else None,
            footprint=footprint,
            digest=event.payload.digest if event.payload is not None and event.kind == kinds.STEP else None,
            token=event.token,
        )


def _footprint(log: EventLog, index: int, event: Event) -> Create | None:
    if event.type == kinds.STEP_CREATED:
        return Create.LAZY if _started_at_once(log, index, event) else Create.EAGER
    if event.type == kinds.ATTR_SET:
        return Create.ATTRIBUTE if (event.correlation_id or "").startswith(f"{kinds.ATTR}_") else None
    return {kinds.WAIT_CREATED: Create.WAIT, kinds.HOOK_CREATED: Create.HOOK}.get(event.type)


def _started_at_once(log: EventLog, index: int, event: Event) -> bool:
    if index + 1 >= len(log):
        return False
    after = log[index + 1]
    return after.type == kinds.STEP_STARTED and after.correlation_id == event.correlation_id
