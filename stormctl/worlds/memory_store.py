"""Store operations on dictionaries: one store in one process, for tests of the runtime and for the simulator.

It interprets the same operations as the folder does. Each is atomic; what can come between two of them is decided by
whoever drives the append generators.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from stormctl.errors import StoreFailure
from stormctl.worlds import fence
from stormctl.worlds.base import HookRow
from stormctl.worlds.condition import Breaking, Condition, Release, Rollback
from stormctl.worlds.mint import Minter
from stormctl.worlds.rows import Entity, Kind, RunEntity
from stormctl.worlds.runlog import RunLog
from stormctl.worlds.store_ops import (
    UNFENCED,
    AbandonLock,
    At,
    Begin,
    ClaimOnce,
    ClaimToken,
    Clock,
    ConfirmLock,
    Delay,
    DrawSlot,
    DropClaim,
    DropEntities,
    DropEntity,
    DropRun,
    End,
    HasClaim,
    Intent,
    Mark,
    Mint,
    Once,
    OweRepair,
    Publish,
    PutEntity,
    PutRun,
    ReadAfter,
    ReadEntity,
    ReadGuard,
    ReadLog,
    ReadRun,
    ReadSlots,
    ReadTail,
    ReleaseLock,
    ReleaseToken,
    ReserveSlots,
    Stage,
    StoreOp,
    Tail,
    TakeLock,
    TakeOwed,
    TokenOwner,
    WriteTail,
)

#: The reply to a ``TakeLock`` while somebody else holds the lock: perform it again later.
BLOCKED: Any = object()
_ABSENT: Any = object()


@dataclass(slots=True)
class _Hold:
    """A lock that is held: by whose append, since when. ``undo`` takes its changes back, newest last."""

    intent: Intent
    since: int
    undo: list[Callable[[], Any]]


class MemoryStore:
    """The state of one store. :meth:`perform` never waits: a taken lock replies ``BLOCKED``.

    A lock whose holder outlives ``stale_ms`` of the store's clock changes hands by the condition's rules, so that the
    races of files can be shown here as well. Under full rollback the changes made under a lock are undone when it is
    given up.
    """

    def __init__(self, condition: Condition, minter: Minter | None = None) -> None:
        self.condition = condition
        self.minter = minter if minter is not None else Minter()
        self.runs: dict[str, RunEntity] = {}
        self.entities: dict[tuple[Kind, str, str], Entity] = {}
        self.claims: dict[tuple[Kind, str, str, Once], None] = {}
        self.tokens: dict[str, TokenOwner] = {}
        self.logs: dict[str, RunLog] = {}
        self.tails: dict[str, Tail] = {}
        self.marks: dict[str, Mark] = {}
        self.reserved: dict[str, int] = {}
        self.staged: set[tuple[str, str]] = set()
        self.held: dict[str, _Hold] = {}
        self.abandoned: dict[str, tuple[Intent, ...]] = {}
        self.waiting: dict[str, deque[Any]] = {}  # whoever waits for a lock, in its own way (the worlds' futures)
        self._do: dict[type[Any], Callable[[Any], Any]] = {
            At: lambda op: None,
            Delay: lambda op: None,
            Clock: lambda op: self.minter.clock(),
            Mint: lambda op: self.minter.mint(op.ms, monotonic=op.monotonic),
            TakeLock: self._take,
            ConfirmLock: self._confirm,
            ReleaseLock: self._release,
            AbandonLock: self._abandon,
            Begin: lambda op: None,
            End: lambda op: None,
            OweRepair: self._owe,
            TakeOwed: lambda op: self.abandoned.pop(op.run_id, ()),
            ReadRun: lambda op: self.runs.get(op.run_id),
            PutRun: self._put_run,
            DropRun: lambda op: self._set(op.run_id, self.runs, op.run_id, _ABSENT),
            ReadEntity: lambda op: self.entities.get((op.kind, op.run_id, op.id)),
            PutEntity: lambda op: self._set(
                op.row.run_id, self.entities, (op.row.kind, op.row.run_id, op.row.id), op.row
            ),
            DropEntity: lambda op: self._set(op.run_id, self.entities, (op.kind, op.run_id, op.id), _ABSENT),
            DropEntities: self._drop_entities,
            ClaimOnce: self._claim_once,
            HasClaim: lambda op: (op.kind, op.run_id, op.id, op.what) in self.claims,
            DropClaim: lambda op: self._set(op.run_id, self.claims, (op.kind, op.run_id, op.id, op.what), _ABSENT),
            ClaimToken: self._claim_token,
            ReleaseToken: self._release_token,
            ReadTail: self._read_tail,
            WriteTail: lambda op: self._set(op.run_id, self.tails, op.run_id, op.tail),
            Publish: self._publish,
            ReadLog: lambda op: self.log(op.run_id).events(),
            ReadAfter: lambda op: self.log(op.run_id).page(op.cursor, op.limit),
            ReadSlots: lambda op: self.log(op.run_id).between(op.above, op.below),
            ReadGuard: lambda op: self.log(op.run_id).recorded(op.watermark),
            DrawSlot: self._draw_slot,
            ReserveSlots: self._reserve_slots,
            Stage: self._stage,
        }

    def perform(self, op: StoreOp) -> Any:
        """The reply to an operation."""
        return self._do[type(op)](op)

    def log(self, run_id: str) -> RunLog:
        """The run's published events."""
        return self.logs.setdefault(run_id, RunLog())

    def find_hook(self, token: str) -> HookRow | None:
        """The live hook that holds a token."""
        owner = self.tokens.get(token)
        if owner is None or (Kind.HOOK, owner.run_id, owner.hook_id) not in self.entities:
            return None
        return HookRow(owner.run_id, owner.hook_id, token)

    # -- locks

    def _take(self, op: TakeLock) -> Any:
        held = self.held.get(op.run_id)
        now = self.minter.clock()
        left: tuple[Intent, ...] = ()
        if held is not None:
            if now - held.since <= self.condition.stale_ms:
                return BLOCKED
            left = (held.intent,)
        self.held[op.run_id] = _Hold(op.intent, now, [])
        return (*self.abandoned.pop(op.run_id, ()), *left)

    def _confirm(self, op: ConfirmLock) -> None:
        if not self._mine(op):
            raise StoreFailure(
                f"the append lock of {op.run_id} was broken: its holder took longer than "
                f"{self.condition.stale_ms / 1000:g} s",
                remedy="Look for what stopped the process for so long, or raise the condition's stale_ms.",
            )

    def _release(self, op: ReleaseLock) -> None:
        if self._mine(op):
            hold = self.held.pop(op.run_id)
            if not op.keep:
                _undo(hold)
        elif self.condition.release is Release.BLIND:
            self.held.pop(op.run_id, None)  # whoever's it is by now

    def _abandon(self, op: AbandonLock) -> None:
        if not self._mine(op):
            if self.condition.breaking is Breaking.EARLY:
                self.held.pop(op.run_id, None)
            return
        hold = self.held.pop(op.run_id)
        if self.condition.rollback is Rollback.FULL:
            _undo(hold)
        else:
            self.abandoned[op.run_id] = (*self.abandoned.get(op.run_id, ()), hold.intent)

    def _mine(self, op: ConfirmLock | ReleaseLock | AbandonLock) -> bool:
        held = self.held.get(op.run_id)
        return held is not None and held.intent is op.intent

    def _owe(self, op: OweRepair) -> None:
        self.abandoned[op.run_id] = (*self.abandoned.get(op.run_id, ()), op.intent)

    # -- rows and claims

    def _set(self, run_id: str, table: MutableMapping[Any, Any], key: Any, value: Any) -> bool:
        """Change one entry, so that it can be changed back while the run's lock is held."""
        hold = self.held.get(run_id)
        if hold is not None and self.condition.rollback is Rollback.FULL:
            before = table.get(key, _ABSENT)
            hold.undo.append(lambda: _put(table, key, before))
        _put(table, key, value)
        return True

    def _put_run(self, op: PutRun) -> bool:
        before = self.runs.get(op.row.run_id)
        if op.unless_ended and before is not None and before.ended:
            return False
        return self._set(op.row.run_id, self.runs, op.row.run_id, op.row)

    def _drop_entities(self, op: DropEntities) -> None:
        for key in [key for key in self.entities if key[1] == op.run_id and key[0] in (Kind.WAIT, Kind.HOOK)]:
            row = self.entities[key]
            self._set(op.run_id, self.entities, key, _ABSENT)
            if row.token is not None:
                self._release_token(ReleaseToken(row.token, TokenOwner(op.run_id, row.id)))

    def _claim_once(self, op: ClaimOnce) -> bool:
        claim = (op.kind, op.run_id, op.id, op.what)
        return claim not in self.claims and self._set(op.run_id, self.claims, claim, None)

    def _claim_token(self, op: ClaimToken) -> TokenOwner:
        owner = self.tokens.get(op.token)
        if owner is None:
            self._set(op.owner.run_id, self.tokens, op.token, op.owner)
        return owner or op.owner

    def _release_token(self, op: ReleaseToken) -> None:
        owner = self.tokens.get(op.token)
        if owner is not None and (owner.run_id, owner.hook_id) == (op.owner.run_id, op.owner.hook_id):
            self._set(owner.run_id, self.tokens, op.token, _ABSENT)

    # -- the log

    def _read_tail(self, op: ReadTail) -> Tail:
        if not op.rescan and op.run_id in self.tails:
            return self.tails[op.run_id]
        tail = Tail()
        for event in self.log(op.run_id).events():
            mark = self.marks.get(event.event_id or "", UNFENCED) if op.restore else UNFENCED
            tail = fence.advance(tail, event, mark)
        return tail

    def _publish(self, op: Publish) -> bool:
        run_id = op.events[0].run_id
        log = self.log(run_id)
        for event in op.events:
            event_id = event.event_id or ""
            self.staged.discard((run_id, event_id))
            if event_id in log.known:
                if event is op.events[0]:
                    return False
                raise StoreFailure(f"the event {event.event_id} exists already", remedy="This is a fault of stormctl.")
            self.marks[event_id] = op.mark
            log.add(event)
            hold = self.held.get(run_id)
            if hold is not None and self.condition.rollback is Rollback.FULL:
                hold.undo.append(lambda event=event: log.forget(event))  # type: ignore[misc]
        return True

    # -- slots

    def _draw_slot(self, op: DrawSlot) -> int | None:
        log = self.log(op.run_id)
        return None if log.by_ulid else max(log.highest_slot + 1, op.at_least)

    def _reserve_slots(self, op: ReserveSlots) -> tuple[int, ...]:
        last = self.reserved.get(op.run_id, 0)
        self.reserved[op.run_id] = last + op.count
        return tuple(range(last + 1, last + op.count + 1))

    def _stage(self, op: Stage) -> bool:
        key = (op.event.run_id, op.event.event_id or "")
        if key in self.staged or key[1] in self.log(key[0]).known:
            return False
        self.staged.add(key)
        return True


def _put(table: MutableMapping[Any, Any], key: Any, value: Any) -> None:
    if value is _ABSENT:
        table.pop(key, None)
    else:
        table[key] = value


def _undo(hold: _Hold) -> None:
    while hold.undo:
        hold.undo.pop()()
