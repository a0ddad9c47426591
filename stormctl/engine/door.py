"""The door of the engine: whatever turns prefixes of a log into passes.

One of our own generations stands behind it, or the real SDK run offline. Sweeps, explanations and pictures take any
engine through these types and do not know which. A field that an engine cannot know is None.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Protocol

from stormctl.history import Event, EventLog, digest_value


class Outcome(StrEnum):
    """How a pass ended."""

    SUSPENDED = "suspended"
    COMPLETED = "completed"
    FAILED = "failed"
    DIVERGED = "diverged"


class Create(StrEnum):
    """The class of a create that a pass asks for: how the runtime will write it.

    The first few uncreated steps in draw order are ``LAZY`` (created together with their start, run inline); every
    other step is ``EAGER``.
    """

    LAZY = "lazy"
    EAGER = "eager"
    WAIT = "wait"
    HOOK = "hook"
    ATTRIBUTE = "attribute"


@dataclass(frozen=True)
class Draw:
    """One id of the run's sequence and what the workflow asked for with it.

    ``rank`` is the ordinal of the draw. ``arguments`` is what the call was given (step arguments, the wait's duration
    in ms, the hook's token).
    """

    rank: int
    kind: str
    name: str | None
    arguments: Any = None
    #: the correlation id that was drawn; None where an engine knows ranks only
    id: str | None = field(default=None, compare=False)

    @cached_property
    def digest(self) -> str:
        """The digest of the arguments, for comparing two draws by input."""
        return digest_value(self.arguments)

    @property
    def label(self) -> str:
        """How a person reads the binding: ``step:finalizeStep``, ``wait``, ``hook``."""
        return f"{self.kind}:{self.name}" if self.name else self.kind


@dataclass(frozen=True, slots=True)
class Pending:
    """Something that the workflow asked for and that is not settled at the end of a pass.

    ``created`` tells whether the log holds its create. ``create`` is the class of a create still to be written (None
    when there is none). ``resume_at`` (epoch ms) is a wait's; ``disposed`` says that the workflow gave the hook up.
    ``owner`` is the message that runs a started step inline; ``attempts`` counts its starts and ``started_at`` (epoch
    ms) is the latest one's; ``retry_at`` is set while a failed attempt waits to be tried again. ``awaited`` says of a
    hook that the workflow waits for its registration.
    """

    rank: int
    kind: str
    correlation_id: str
    name: str | None
    arguments: Any
    created: bool
    create: Create | None = None
    resume_at: int | None = None
    token: str | None = None
    disposed: bool = False
    owner: str | None = None
    attempts: int = 0
    retry_at: int | None = None
    started_at: int | None = None
    awaited: bool = False


@dataclass(frozen=True, slots=True)
class Divergence:
    """The event that the workflow, replayed, has no place for.

    ``index`` is the event's 0-based index in the log and ``position`` its store position. ``expected`` is what the
    event belongs to, ``actual`` what the workflow did instead there. ``reason`` is a stable word for the kind of
    disagreement: ``name``, ``unconsumed``, ``stranded``, ``type``, ``resume-at``, ``token``, ``attributes``, ``item``.
    """

    reason: str
    index: int
    position: int | None
    event_id: str | None
    event_type: str
    rank: int | None
    expected: str
    actual: str
    text: str


@dataclass(frozen=True, slots=True)
class Pass:
    """One replay of the workflow against one prefix.

    ``prefix`` is the number of events offered. ``draws`` is the whole table by rank, consumed draws included.
    ``pending`` is in draw order. ``parked`` are 0-based indices of events set aside; ``consumed`` is how many events
    the walk passed, ``drawn_at_end`` how many ids had been drawn when it first met the end of the prefix.
    ``undelivered`` is how many results that the log holds and the workflow waits for had not reached it when the pass
    ended: a suspension with such results asks for too little, and its run may go dormant. ``stalled`` says that a pass
    which did not end had nothing left to wake it either. ``duration_ms`` is virtual time.
    """

    prefix: int
    outcome: Outcome
    draws: tuple[Draw, ...]
    pending: tuple[Pending, ...] = ()
    divergence: Divergence | None = None
    value: Any = None
    error: str | None = None
    parked: tuple[int, ...] | None = None
    consumed: int | None = None
    #: how the pass came about, not what it found: a retained session meets the end at other moments
    drawn_at_end: int | None = field(default=None, compare=False)
    duration_ms: float | None = None
    undelivered: int | None = None
    stalled: bool = False


class AttributeHandling(StrEnum):
    """What the walk does with an attribute write that no replay asked for, because a step body wrote it.

    ``CLAIMED``: the run itself claims it at once. ``PARKED``: nobody does, and it is set aside after the grace period.
    ``DROPPED``: it is not offered at all.
    """

    CLAIMED = "claimed"
    PARKED = "parked"
    DROPPED = "dropped"


#: what reading the result of a step from the cache costs, in microtasks
WARM_HOPS = 1


@dataclass(frozen=True, slots=True)
class Perturbation:
    """What may vary between two passes over one prefix without changing a correct engine's answer.

    Reading a payload costs ``hydration_hops`` microtasks and then ``hydration_ms`` milliseconds of virtual time;
    ``jitter_ms`` and ``jitter_hops`` add seeded amounts per event, uniform over 0..jitter, both ends included. The
    results of steps among the first ``warm`` events lie in a cache and cost ``WARM_HOPS`` and nothing else
    (vercel/workflow #3137: the replays of one delivery share such a cache). ``timer_ms`` is the grain of the timers: a
    timer is due at the next whole multiple of it. ``attributes`` says what becomes of attribute writes by step bodies.
    """

    hydration_hops: int = 3
    hydration_ms: float = 0.0
    jitter_ms: int = 0
    seed: int = 0
    jitter_hops: int = 0
    warm: int = 0
    timer_ms: float = 1.0
    attributes: AttributeHandling = AttributeHandling.CLAIMED


CALM = Perturbation()


class Session(Protocol):
    """A workflow kept alive between passes and fed the events that the log gained."""

    def extend(self, events: Sequence[Event]) -> Pass: ...


class Engine(Protocol):
    """Anything that replays prefixes of one workload's logs. ``workload`` is None where it is not one of ours."""

    name: str
    workload: str | None

    def passes(
        self,
        log: EventLog,
        prefixes: Iterable[int],
        *,
        hidden: frozenset[int] = frozenset(),
        perturbation: Perturbation | None = None,
    ) -> Iterator[Pass]:
        """One pass per prefix length, in the order asked. ``hidden`` are 0-based indices left out of every prefix.

        Each pass is what a replay of that prefix alone would give; how they are come by is the engine's affair.
        """
        ...

    def open(self, log: EventLog) -> Session:
        """A retained session that has already read ``log``."""
        ...
