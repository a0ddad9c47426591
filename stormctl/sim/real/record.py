"""What a simulated run leaves behind beside its log: who did what, in which order, and what each read did not see."""

from __future__ import annotations

from dataclasses import dataclass, field

from stormctl.engine.door import Pass
from stormctl.history import Event


@dataclass(frozen=True, slots=True)
class Happened:
    """Something that an actor did, in the order in which it happened. ``turn`` is its turn in the run (0-based).

    ``op`` is the operation, ``text`` says it for a reader. A ``publish`` has its ``event``; a ``read`` has the ids of
    the events that it returned and of those that it did not show although they were there (``hidden``).
    """

    turn: int
    at_ms: int
    actor: str
    op: str
    text: str
    event: Event | None = None
    saw: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Passed:
    """A replay that an actor made: over which events (ids, in the order of its view), at which time, and what came."""

    turn: int
    at_ms: int
    actor: str
    events: tuple[str, ...]
    result: Pass = field(compare=False)
