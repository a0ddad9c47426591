"""A storage condition: at which point of an append each thing happens, as a record of knobs.

The points of an append, in order, are those of :class:`Point`. Admission belongs under the lock and before any effect
(``ADMIT``); ``ADMIT_LATE`` and admission without a lock exist only as faults. The presets that history knew are in
``worlds.presets``. Memory, local and postgres speak the same record, and so does the simulator.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Point(StrEnum):
    """A named point of an append, in the order in which an append passes them.

    With ``PostReads.INSIDE`` the post-read comes before the unlock.
    """

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
    """What serializes the appends of a run: nothing, or one lock per run."""

    NONE = "none"
    RUN = "run"


class Breaking(StrEnum):
    """How a lock that was left behind changes hands.

    ``CAREFUL``: one breaker per lock, and the slow holder finds out before it publishes. ``EARLY``: whoever sees an old
    lock unlinks it, alive or dead, and the holder never looks (two races of vercel/workflow #3269).
    """

    CAREFUL = "careful"
    EARLY = "early"


class Release(StrEnum):
    """How a lock is given back: only when it is still one's own, or by unlinking whatever stands there."""

    OWNER_CHECKED = "owner-checked"
    BLIND = "blind"


class Rescan(StrEnum):
    """What is restored after a lock was broken or a counter lost: everything, or only position and last id."""

    RESTORES = "restores"
    FORGETS = "forgets"


class PostReads(StrEnum):
    """Whether the read that follows an append is made while the lock is still held."""

    OUTSIDE = "outside"
    INSIDE = "inside"


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
    """Which appends the fence or guard looks at: all that send a snapshot, or decisions only."""

    ALL = "all"
    DECISIONS = "decisions"


class Guard(StrEnum):
    """A check of the writer's snapshot that is no fence.

    ``WATERMARK``: refused when an outside event is newer than all that the writer had read. ``WATERMARK_COUNT``: also
    when more events stand at or below that time than the writer had read (vercel/workflow #3145). ``IN_BAND``: refused
    unless the writer names the run's exact count of decisions.
    """

    NONE = "none"
    WATERMARK = "watermark"
    WATERMARK_COUNT = "watermark-count"
    IN_BAND = "in-band"


class Ids(StrEnum):
    """What an event id is: a ULID, a ULID that dominates the tail beside a dense ``seq``, or a slot (the position)."""

    ULID = "ulid"
    ULID_SEQ = "ulid+seq"
    SLOT = "slot"


class SlotMode(StrEnum):
    """How a slot is found when no lock is held.

    ``LINK``: the one after the highest seen, published exclusively, the next one when it was taken. ``SQL_MAX``: the
    same, asking the store for its highest each time. ``RESERVE``: a counter of its own, moved before the event exists.
    """

    LINK = "link"
    SQL_MAX = "sql-max"
    RESERVE = "reserve"


class Staging(StrEnum):
    """How the file of an event is called before it is published: with a nonce, or by its slot alone (#3492)."""

    NONCE = "nonce"
    SHARED = "shared"


class Rollback(StrEnum):
    """Whether a refused or failed append takes its entity changes back: a folder cannot, a transaction does."""

    NONE = "none"
    FULL = "full"


class Reads(StrEnum):
    """What a load returns.

    ``CURSOR``: what is visible behind the reader's cursor, so that what becomes visible before it is missed for ever.
    ``STRONG``: everything visible, whatever the cursor. ``LAGGING``: the prefix that is older than ``lag_ms``.
    ``HOLE``: everything visible except what is younger than ``lag_ms``, served around.
    """

    CURSOR = "cursor"
    STRONG = "strong"
    LAGGING = "lagging"
    HOLE = "hole"


class Semantics(StrEnum):
    """Whose decision table a store follows: world-local 4.4.1, world-local 5.0.0-beta.46, world-postgres 4.3.7."""

    LOCAL4 = "local4"
    LOCAL5 = "local5"
    PG4 = "pg4"


class Tells(StrEnum):
    """What the answer to a refused precondition carries beside the refusal."""

    DELTA = "delta"
    COUNTS = "counts"


@dataclass(frozen=True, slots=True)
class Condition:
    """One way of storing events. Times are in milliseconds.

    ``closes`` and ``leaves`` say in words which defects the condition closes and leaves open.

    ``mint_at`` is when an event gets its id and time: ``MINT_EARLY`` (at entry, before the store decides anything) or
    ``ALLOCATE`` (the last thing before publication; under a lock, so that ids dominate the tail). ``lock`` serializes
    the appends of a run; ``stale_ms`` is the age at which a lock left behind may be broken, ``breaking``, ``release``
    and ``rescan`` how. ``fence``, ``credit_key``, ``gate`` and ``guard`` decide which snapshots are refused,
    ``admit_at`` when; ``tells`` what the refusal carries. ``ids`` gives every event a ``seq`` or a slot counted from 1,
    or neither; ``slot_mode`` and ``staging`` matter to slots without a lock. ``batch_atomic`` lets the writes of one
    suspension land or be refused as one. ``unique_creates``, ``unique_tokens`` and ``unique_ends`` make a second create
    of an entity, a second owner of a token and a second end of a run a conflict that no race can slip past. ``atomic``
    are the types whose entity change and event share one transaction although no run lock is held, where a store has
    transactions.
    """

    name: str
    closes: str
    leaves: str
    mint_at: Point = Point.MINT_EARLY
    lock: Lock = Lock.NONE
    stale_ms: float = 120_000
    breaking: Breaking = Breaking.CAREFUL
    release: Release = Release.OWNER_CHECKED
    rescan: Rescan = Rescan.RESTORES
    post_reads: PostReads = PostReads.OUTSIDE
    fence: Fence = Fence.NONE
    credit_key: Credit = Credit.WRITER
    gate: Gate = Gate.DECISIONS
    guard: Guard = Guard.NONE
    admit_at: Point = Point.ADMIT
    tells: frozenset[Tells] = frozenset()
    ids: Ids = Ids.ULID
    slot_mode: SlotMode = SlotMode.LINK
    staging: Staging = Staging.NONCE
    rollback: Rollback = Rollback.NONE
    batch_atomic: bool = False
    reads: Reads = Reads.CURSOR
    lag_ms: float = 0
    semantics: Semantics = Semantics.LOCAL4
    unique_creates: bool = False
    unique_tokens: bool = True
    unique_ends: bool = False
    atomic: frozenset[str] = frozenset()

    @property
    def dense(self) -> bool:
        """Whether every event has a position."""
        return self.ids is not Ids.ULID

    @property
    def locks(self) -> bool:
        """Whether appends of one run are serialized."""
        return self.lock is Lock.RUN

    @property
    def keeps_tail(self) -> bool:
        """Whether the store keeps the end of a run's log beside the log."""
        if self.ids is Ids.ULID_SEQ or self.fence is not Fence.NONE or self.guard is Guard.IN_BAND:
            return True
        return self.locks and self.ids is Ids.SLOT

    @property
    def marks_end(self) -> bool:
        """Whether a run's end is announced by a durable mark before it is in the log, as world-local 5.x does: with
        the mark, receipts are refused."""
        return self.semantics is Semantics.LOCAL5 or self.admit_at is Point.ADMIT_LATE
