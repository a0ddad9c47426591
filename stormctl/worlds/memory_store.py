"""Store operations on dictionaries: one store in one process, for tests of the runtime and for the simulator.

It interprets the same operations as the folder does. Each is atomic; what can come between two of them is decided by
whoever drives the append generators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stormctl.errors import StoreFailure
from stormctl.worlds import fence
from stormctl.worlds.base import HookRow
from stormctl.worlds.condition import Condition
from stormctl.worlds.mint import Minter
from stormctl.worlds.rows import Entity, Kind, RunEntity
from stormctl.worlds.runlog import RunLog
from stormctl.worlds.store_ops import (
    UNFENCED,
    AbandonLock,
    At,
    ClaimOnce,
    ClaimToken,
    Clock,
    ConfirmLock,
    Delay,
    DropClaim,
    DropEntities,
    DropEntity,
    DropRun,
    HasClaim,
    Intent,
    Mark,
    Mint,
    Once,
    OweRepair,
    Publish,
    PutEntity,
    PutRun,
    ReadEntity,
    ReadLog,
    ReadRun,
    ReadTail,
    ReleaseLock,
    ReleaseToken,
    StoreOp,
    Tail,
    TakeLock,
    TakeOwed,
    TokenOwner,
    WriteTail,
)

#: The reply to a ``TakeLock`` while somebody else holds the lock: perform it again later.
BLOCKED: Any = object()


class MemoryStore:
    """The state of one store. :meth:`perform` never waits: a taken lock replies ``BLOCKED``."""

    def __init__(self, condition: Condition, minter: Minter | None = None) -> None:
        self.condition = condition
        self.minter = minter if minter is not None else Minter()
        self.runs: dict[str, RunEntity] = {}
        self.entities: dict[tuple[Kind, str, str], Entity] = {}
        self.claims: set[tuple[Kind, str, str, Once]] = set()
        self.tokens: dict[str, TokenOwner] = {}
        self.logs: dict[str, RunLog] = {}
        self.tails: dict[str, Tail] = {}
        self.marks: dict[str, Mark] = {}
        self.held: dict[str, Intent] = {}
        self.abandoned: dict[str, tuple[Intent, ...]] = {}
        self._do: dict[type[Any], Callable[[Any], Any]] = {
            At: lambda op: None,
            Delay: lambda op: None,
            Clock: lambda op: self.minter.clock(),
            Mint: lambda op: self.minter.mint(op.ms, monotonic=op.monotonic),
            TakeLock: self._take,
            ConfirmLock: lambda op: None,
            ReleaseLock: lambda op: self.held.pop(op.run_id, None),
            AbandonLock: self._abandon,
            OweRepair: self._owe,
            TakeOwed: lambda op: self.abandoned.pop(op.run_id, ()),
            ReadRun: lambda op: self.runs.get(op.run_id),
            PutRun: lambda op: self.runs.__setitem__(op.row.run_id, op.row),
            DropRun: lambda op: self.runs.pop(op.run_id, None),
            ReadEntity: lambda op: self.entities.get((op.kind, op.run_id, op.id)),
            PutEntity: lambda op: self.entities.__setitem__((op.row.kind, op.row.run_id, op.row.id), op.row),
            DropEntity: lambda op: self.entities.pop((op.kind, op.run_id, op.id), None),
            DropEntities: self._drop_entities,
            ClaimOnce: self._claim_once,
            HasClaim: lambda op: (op.kind, op.run_id, op.id, op.what) in self.claims,
            DropClaim: lambda op: self.claims.discard((op.kind, op.run_id, op.id, op.what)),
            ClaimToken: lambda op: self.tokens.setdefault(op.token, op.owner),
            ReleaseToken: self._release_token,
            ReadTail: self._read_tail,
            WriteTail: lambda op: self.tails.__setitem__(op.run_id, op.tail),
            Publish: self._publish,
            ReadLog: lambda op: self.log(op.run_id).events(),
        }

    def perform(self, op: StoreOp) -> Any:
        """The reply to an operation."""
        return self._do[type(op)](op)

    def log(self, run_id: str) -> RunLog:
        """The run's published events."""
        return self.logs.setdefault(run_id, RunLog(dense=self.condition.dense))

    def find_hook(self, token: str) -> HookRow | None:
        """The live hook that holds a token."""
        owner = self.tokens.get(token)
        if owner is None or (Kind.HOOK, owner.run_id, owner.hook_id) not in self.entities:
            return None
        return HookRow(owner.run_id, owner.hook_id, token)

    # -- inside

    def _take(self, op: TakeLock) -> Any:
        if op.run_id in self.held:
            return BLOCKED
        self.held[op.run_id] = op.intent
        return self.abandoned.pop(op.run_id, ())

    def _abandon(self, op: AbandonLock) -> None:
        intent = self.held.pop(op.run_id)
        self.abandoned[op.run_id] = (*self.abandoned.get(op.run_id, ()), intent)

    def _owe(self, op: OweRepair) -> None:
        self.abandoned[op.run_id] = (*self.abandoned.get(op.run_id, ()), op.intent)

    def _drop_entities(self, op: DropEntities) -> None:
        for key in [key for key in self.entities if key[1] == op.run_id and key[0] in (Kind.WAIT, Kind.HOOK)]:
            row = self.entities.pop(key)
            if row.token is not None:
                self._release_token(ReleaseToken(row.token, TokenOwner(op.run_id, row.id)))

    def _claim_once(self, op: ClaimOnce) -> bool:
        claim = (op.kind, op.run_id, op.id, op.what)
        if claim in self.claims:
            return False
        self.claims.add(claim)
        return True

    def _release_token(self, op: ReleaseToken) -> None:
        owner = self.tokens.get(op.token)
        if owner is not None and (owner.run_id, owner.hook_id) == (op.owner.run_id, op.owner.hook_id):
            del self.tokens[op.token]

    def _read_tail(self, op: ReadTail) -> Tail:
        if not op.rescan:
            return self.tails.get(op.run_id, Tail())
        tail = Tail()
        for event in self.log(op.run_id).events():
            tail = fence.advance(tail, event, self.marks.get(event.event_id or "", UNFENCED))
        return tail

    def _publish(self, op: Publish) -> bool:
        log = self.log(op.events[0].run_id)
        for event in op.events:
            if event.event_id in log.known:
                if event is op.events[0]:
                    return False
                raise StoreFailure(f"the event {event.event_id} exists already", remedy="This is a fault of stormctl.")
            self.marks[event.event_id or ""] = op.mark
            log.add(event)
        return True
