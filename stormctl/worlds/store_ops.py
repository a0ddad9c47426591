"""What an append asks of a store, as values.

The append generator (``worlds.pipeline``) yields these and is sent the reply that each names. They say what is wanted,
not how: a folder does them with files, memory with dictionaries, a database with statements inside one transaction.
An interpreter that cannot do one raises :class:`~stormctl.errors.StoreFailure` into the generator.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from stormctl.history import Event, kinds
from stormctl.worlds.base import AppendRequest
from stormctl.worlds.condition import Point
from stormctl.worlds.rows import Entity, Kind, RunEntity


class Once(StrEnum):
    """The things that can happen once to an entity. A claim on one is permanent: it outlives the run."""

    CREATED = "created"
    TERMINAL = "terminal"
    COMPLETED = "completed"
    DISPOSED = "disposed"
    ENDED = "ended"  # a run, where its ends exclude one another


@dataclass(frozen=True, slots=True)
class Intent:
    """What a writer under the lock is about to do, so that whoever finds its lock abandoned can put the rows right."""

    type: str
    correlation_id: str | None = None
    token: str | None = None
    also: tuple[Intent, ...] = ()

    @classmethod
    def of(cls, request: AppendRequest, *siblings: AppendRequest) -> Intent:
        """The intent of an append, or of a batch of them."""
        also = tuple(cls.of(sibling) for sibling in siblings)
        return cls(request.type, request.correlation_id, request.token, also)


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a run's log, as the fence sees it (kept in the store, read and written under the lock).

    ``seq`` counts events; ``last_fenced`` is the seq of the last fenced event, 0 when there is none; the credit lets
    siblings of an admitted write through. ``in_band`` counts the in-band events.
    """

    seq: int = 0
    last_event_id: str | None = None
    last_fenced: int = 0
    credit_key: str | None = None
    credit_base: int | None = None
    in_band: int = 0


@dataclass(frozen=True, slots=True)
class Mark:
    """What the fence said of an append: unfenced, or admitted with this credit; and whether its events are in-band."""

    fenced: bool = False
    key: str | None = None
    base: int | None = None
    in_band: bool = False


UNFENCED = Mark()


@dataclass(frozen=True, slots=True)
class TokenOwner:
    """Who holds a hook token. ``event_id`` is the create that claimed it, where ids are minted before the claim."""

    run_id: str
    hook_id: str
    event_id: str | None = None


# -- time, ids, pace: replies may not need the store at all ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class At:
    """The append has reached a named point. The interpreter yields to whoever else is running. Replies None."""

    point: Point


@dataclass(frozen=True, slots=True)
class Delay:
    """The injected delay between mint and publication. Replies None."""

    create: bool


@dataclass(frozen=True, slots=True)
class Clock:
    """Replies the store's time in epoch milliseconds."""


@dataclass(frozen=True, slots=True)
class Mint:
    """Replies an event id for that time. ``monotonic``: one ascending sequence per process, else plain random."""

    ms: int
    monotonic: bool


# -- the lock of a run ----------------------------------------------------------------------------------------------


# The intent of a lock operation is the same object from the taking to the giving back: it says whose lock is meant.


@dataclass(frozen=True, slots=True)
class TakeLock:
    """Wait for the run's lock. Replies the intents of writers that died or failed while holding it (usually none).

    In a store that rolls back, the lock is the first one of a transaction that ends with it.
    """

    run_id: str
    intent: Intent


@dataclass(frozen=True, slots=True)
class ConfirmLock:
    """Make sure, last thing before publishing, that the lock is still ours; StoreFailure when it was broken."""

    run_id: str
    intent: Intent


@dataclass(frozen=True, slots=True)
class ReleaseLock:
    """Give the lock back. A file lock never fails here: one that cannot be released is left to be broken. In a store
    that rolls back this commits (StoreFailure when that fails: nothing has happened), or rolls back without ``keep``.
    """

    run_id: str
    intent: Intent
    keep: bool = True


@dataclass(frozen=True, slots=True)
class AbandonLock:
    """After a failure. Roll back, or leave the lock to be broken at once, with its intent, because the rows may not
    agree with the log."""

    run_id: str
    intent: Intent


@dataclass(frozen=True, slots=True)
class Begin:
    """No lock is taken, but entity change and event share one transaction where the store has such. Replies None."""

    run_id: str


@dataclass(frozen=True, slots=True)
class End:
    """The end of a :class:`Begin`: commit, or roll back without ``keep``. Replies None."""

    run_id: str
    keep: bool = True


@dataclass(frozen=True, slots=True)
class OweRepair:
    """Without a lock, a repair failed too: remember the intent in this process until the store works again."""

    run_id: str
    intent: Intent


@dataclass(frozen=True, slots=True)
class TakeOwed:
    """Replies the intents whose repair this process owes the run (usually none), and forgets them."""

    run_id: str


# -- rows, claims, tokens -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadRun:
    """Replies the run's row or None."""

    run_id: str


@dataclass(frozen=True, slots=True)
class PutRun:
    """Write the run's row. Replies True; with ``unless_ended`` False, and nothing is written, when the stored row has
    ended (in a database one conditional UPDATE, so that exactly one end of a run wins)."""

    row: RunEntity
    unless_ended: bool = False


@dataclass(frozen=True, slots=True)
class DropRun:
    run_id: str


@dataclass(frozen=True, slots=True)
class ReadEntity:
    """Replies the entity's row or None."""

    kind: Kind
    run_id: str
    id: str


@dataclass(frozen=True, slots=True)
class PutEntity:
    """Write the row, whatever was there before: deciding whether it may be written is the append's business."""

    row: Entity


@dataclass(frozen=True, slots=True)
class DropEntity:
    kind: Kind
    run_id: str
    id: str


@dataclass(frozen=True, slots=True)
class DropEntities:
    """The run has ended: delete its waits and hooks and release their tokens."""

    run_id: str


@dataclass(frozen=True, slots=True)
class ClaimOnce:
    """Replies True to exactly one claimer, ever."""

    kind: Kind
    run_id: str
    id: str
    what: Once


@dataclass(frozen=True, slots=True)
class HasClaim:
    """Replies whether the claim is taken."""

    kind: Kind
    run_id: str
    id: str
    what: Once


@dataclass(frozen=True, slots=True)
class DropClaim:
    """Take a claim back that has no event. Only a repair does this."""

    kind: Kind
    run_id: str
    id: str
    what: Once


@dataclass(frozen=True, slots=True)
class ClaimToken:
    """Replies the owner after the attempt: the claimer itself when it won, or held the token before.

    Without ``exclusive`` two claimers that look at the same time may both win.
    """

    token: str
    owner: TokenOwner
    exclusive: bool = True


@dataclass(frozen=True, slots=True)
class ReleaseToken:
    """Free a token, if this hook of this run holds it."""

    token: str
    owner: TokenOwner


# -- the log --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadTail:
    """Replies the :class:`Tail`. ``rescan`` distrusts the stored one and derives it from what was published;
    ``restore`` then restores fence, credit and in-band count too."""

    run_id: str
    rescan: bool
    restore: bool = True


@dataclass(frozen=True, slots=True)
class WriteTail:
    run_id: str
    tail: Tail


@dataclass(frozen=True, slots=True)
class Publish:
    """Make events readable, in this order. Replies False, having published nothing, when the first id exists already.

    ``mark`` is kept with the events so that a rescan can restore fence and credit.
    """

    events: tuple[Event, ...]
    mark: Mark


@dataclass(frozen=True, slots=True)
class ReadLog:
    """Replies every published event of the run as a tuple, in canonical order. Only a repair does this."""

    run_id: str


@dataclass(frozen=True, slots=True)
class ReadAfter:
    """Replies a :class:`~stormctl.worlds.base.Page` of at most ``limit`` events behind a cursor."""

    run_id: str
    cursor: str | None
    limit: int


@dataclass(frozen=True, slots=True)
class ReadSlots:
    """Replies the events on slots above ``above`` and below ``below``, as a tuple in order: what a writer skipped."""

    run_id: str
    above: int
    below: int


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a guard compares a snapshot with: the ULID time of the latest outside event (None without one), and how
    many events stand at or below the snapshot's watermark."""

    marker: int | None
    at_or_below: int


@dataclass(frozen=True, slots=True)
class ReadGuard:
    """Replies :class:`Recorded`, read without any lock."""

    run_id: str
    watermark: int


# -- slots ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DrawSlot:
    """Replies the next free slot of the run, at least ``at_least``; None when the run is numbered by ULIDs, which it
    then is for life. ``remembered``: trust what this process has seen published, and look only above it."""

    run_id: str
    at_least: int
    remembered: bool


@dataclass(frozen=True, slots=True)
class ReserveSlots:
    """Move the run's slot counter by ``count``, for good, whatever becomes of the append. Replies the slots, as a tuple
    in ascending order."""

    run_id: str
    count: int


@dataclass(frozen=True, slots=True)
class Stage:
    """Write the event under the name that its slot gives it, to be published from there. Replies False when that name
    is taken, by a writer that is slow or dead. Only a condition with shared staging does this."""

    event: Event


StoreOp = (
    At
    | Delay
    | Clock
    | Mint
    | TakeLock
    | ConfirmLock
    | ReleaseLock
    | AbandonLock
    | OweRepair
    | TakeOwed
    | ReadRun
    | PutRun
    | DropRun
    | ReadEntity
    | PutEntity
    | DropEntity
    | DropEntities
    | ClaimOnce
    | HasClaim
    | DropClaim
    | ClaimToken
    | ReleaseToken
    | ReadTail
    | WriteTail
    | Publish
    | ReadLog
    | ReadAfter
    | ReadSlots
    | ReadGuard
    | DrawSlot
    | ReserveSlots
    | Stage
    | Begin
    | End
)


def fenced_by_type(event: Event) -> bool:
    """Whether an event would be fenced, judged by its type alone: what a rescan falls back on without a record."""
    return kinds.is_decision(event.type)
