"""A storage condition: at which point of an append each thing happens, as a record.

The points of an append, in order, are those of :class:`Point`. Admission belongs under the lock and before any effect
(``ADMIT``); ``ADMIT_LATE`` exists only as a fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Point(StrEnum):
    """A named point of an append, in the order in which an append passes them."""

    ENTER = "enter"
    MINT_EARLY = "mint-early"
    LOCK = "lock"
    VALIDATE = "validate"
    ADMIT = "admit"
    EFFECTS = "effects"
    ADMIT_LATE = "admit-late"
    ALLOCATE = "allocate"
    PUBLISH = "publish"
    COUNTER = "counter"
    UNLOCK = "unlock"
    POST_READ = "post-read"


class Lock(StrEnum):
    NONE = "none"
    RUN = "run"


class Fence(StrEnum):
    """What a store refuses: nothing, any write behind the tail, or a decision behind a foreign decision."""

    NONE = "none"
    TAIL = "tail"
    DECISION = "decision"


class Credit(StrEnum):
    """Whose earlier decision lets a sibling through: the same snapshot's, or the same writer's."""

    SNAPSHOT = "snapshot"
    WRITER = "writer"


class Gate(StrEnum):
    """Which appends the fence looks at."""

    ALL = "all"
    DECISIONS = "decisions"


@dataclass(frozen=True, slots=True)
class Condition:
    """One way of storing events. Times are in milliseconds before storage_scale.

    ``mint_at`` is when an event gets its id and time: ``MINT_EARLY`` (at entry, before the store decides anything) or
    ``ALLOCATE`` (under the lock, as the last thing before publication, so that ids dominate the tail). ``dense`` gives
    every event a ``seq`` counted from 1. ``unique_creates`` makes a second create of one entity a conflict that no race
    can slip past. ``stale_ms`` is the age at which a lock left behind may be broken. ``publish_delay_ms`` is an
    injected delay between mint and publication of a create, drawn per append (see ``worlds.delay``).
    """

    name: str
    closes: str
    leaves: str
    mint_at: Point = Point.MINT_EARLY
    lock: Lock = Lock.NONE
    stale_ms: float = 120_000
    fence: Fence = Fence.NONE
    credit: Credit = Credit.WRITER
    gate: Gate = Gate.DECISIONS
    admit_at: Point = Point.ADMIT
    dense: bool = False
    unique_creates: bool = False


MAIN = Condition(
    "main",
    closes="nothing",
    leaves="late commits behind a reader's cursor, stale decisions, the same entity created twice",
)

SEQ_FINAL = Condition(
    "seq-final",
    closes="late commits, stale decisions, two writers with one snapshot",
    leaves="wake order inside a pass (vercel/workflow #3554), draws of a branch that a shorter log hides (#3700)",
    mint_at=Point.ALLOCATE,
    lock=Lock.RUN,
    fence=Fence.DECISION,
    credit=Credit.WRITER,
    gate=Gate.DECISIONS,
    admit_at=Point.ADMIT,
    dense=True,
    unique_creates=True,
)

CONDITIONS: dict[str, Condition] = {condition.name: condition for condition in (MAIN, SEQ_FINAL)}
