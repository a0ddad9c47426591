"""What happens in a storm, as values. The live table, plain lines and files are handlers of this stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from stormctl.storm.attempt import Attempt, Cell


@dataclass(frozen=True, slots=True)
class StormStarted:
    """``landed`` attempts are there already when a storm is resumed."""

    name: str
    seed: int
    folder: Path
    planned: Mapping[Cell, int]
    warnings: tuple[str, ...] = ()
    landed: int = 0


@dataclass(frozen=True, slots=True)
class AttemptStarted:
    cell: Cell
    number: int
    run_id: str


@dataclass(frozen=True, slots=True)
class AttemptLanded:
    attempt: Attempt


@dataclass(frozen=True, slots=True)
class WorkerDied:
    """A worker ended before its time, ``how`` in words; its ``requeued`` messages went back, and ``successor`` took its
    place."""

    worker: str
    how: str
    requeued: int
    successor: str


@dataclass(frozen=True, slots=True)
class StormNoted:
    """Something that whoever watches the storm must hear of, such as a store taken over from a dead driver."""

    text: str


@dataclass(frozen=True, slots=True)
class LogSwept:
    """One captured log was swept. ``findings`` counts fatal ones by sweep; ``unknown`` names what lacked evidence."""

    cell: Cell
    run_id: str
    verdict: str
    findings: Mapping[str, int] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StormFinished:
    """``reason`` is ``done`` or ``budget`` (the launch budget ran out); any other end is told by an error."""

    folder: Path
    landed: int
    planned: int
    reason: str
    seconds: float


StormEvent = StormStarted | AttemptStarted | AttemptLanded | WorkerDied | StormNoted | LogSwept | StormFinished


class Handler(Protocol):
    """Something that shows or keeps the stream of storm events."""

    def handle(self, event: StormEvent) -> None: ...

    def close(self) -> None: ...
