"""Store operations as file calls: what a folder does for each thing that an append asks.

Everything here is synchronous and may run in any thread. The lock operations are the world's (``worlds.local``), which
waits for them without blocking a thread.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from stormctl.errors import StoreFailure, StormctlError
from stormctl.history import Event, ids
from stormctl.worlds import fence, shapes
from stormctl.worlds.base import HookRow
from stormctl.worlds.condition import Condition, Staging
from stormctl.worlds.files import Files, failure
from stormctl.worlds.layout import Layout
from stormctl.worlds.mint import Minter
from stormctl.worlds.pipeline import SPEC
from stormctl.worlds.rows import Entity, Kind, RunEntity
from stormctl.worlds.runlog import RunLogs
from stormctl.worlds.store_ops import (
    UNFENCED,
    Begin,
    ClaimOnce,
    ClaimToken,
    Clock,
    DrawSlot,
    DropClaim,
    DropEntities,
    DropEntity,
    DropRun,
    End,
    HasClaim,
    Intent,
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
    ReleaseToken,
    ReserveSlots,
    Stage,
    StoreOp,
    Tail,
    TakeOwed,
    TokenOwner,
    WriteTail,
)

T = TypeVar("T")


class LocalStore:
    """One store folder, for one process."""

    def __init__(self, folder: Path, condition: Condition, files: Files, minter: Minter) -> None:
        self.folder = folder
        self.files = files
        self.layout = Layout(folder)
        self.condition = condition
        self.minter = minter
        self.logs = RunLogs(files, self.layout)
        self._owed: dict[str, tuple[Intent, ...]] = {}
        self._reserved: dict[str, int] = {}
        self._do: dict[type[Any], Callable[[Any], Any]] = {
            Clock: lambda op: minter.clock(),
            Mint: lambda op: minter.mint(op.ms, monotonic=op.monotonic),
            OweRepair: self._owe,
            TakeOwed: lambda op: self._owed.pop(op.run_id, ()),
            ReadRun: lambda op: self.read_run(op.run_id),
            PutRun: self._put_run,
            DropRun: lambda op: files.remove(self.layout.run(op.run_id)),
            ReadEntity: lambda op: self.read_entity(op.kind, op.run_id, op.id),
            PutEntity: self._put_entity,
            DropEntity: lambda op: files.remove(self.layout.entity(op.kind, op.run_id, op.id)),
            DropEntities: self._drop_entities,
            ClaimOnce: self._claim_once,
            HasClaim: lambda op: files.exists(self._claim(op)),
            DropClaim: lambda op: files.remove(self._claim(op)),
            ClaimToken: self._claim_token,
            ReleaseToken: self._release_token,
            ReadTail: self._read_tail,
            WriteTail: self._write_tail,
            Publish: self._publish,
            ReadLog: lambda op: self.logs.events(op.run_id, list_folder=True),
            ReadAfter: lambda op: self.logs.page(op.run_id, op.cursor, op.limit),
            ReadSlots: lambda op: self.logs.ask(op.run_id, lambda log: log.between(op.above, op.below)),
            ReadGuard: lambda op: self.logs.ask(op.run_id, lambda log: log.recorded(op.watermark)),
            DrawSlot: self._draw_slot,
            ReserveSlots: self._reserve_slots,
            Stage: self._stage,
            Begin: lambda op: None,
            End: lambda op: None,
        }

    def perform(self, op: StoreOp) -> Any:
        """The reply to an operation; StoreFailure when the folder cannot give it."""
        try:
            return self._do[type(op)](op)
        except OSError as error:
            raise failure(self.folder, error) from error

    # -- rows

    def read_run(self, run_id: str) -> RunEntity | None:
        """The run's row, None when there is none."""
        return self._parsed(self.layout.run(run_id), shapes.run_of)

    def read_entity(self, kind: Kind, run_id: str, entity_id: str) -> Entity | None:
        """A step, wait or live hook, None when there is none."""
        path = self.layout.entity(kind, run_id, entity_id)
        row = self._parsed(path, lambda raw: shapes.entity_of(kind, entity_id, raw))
        return row if row is not None and row.run_id == run_id else None

    def find_hook(self, token: str) -> HookRow | None:
        """The live hook that holds a token."""
        owner = self._parsed(self.layout.token(token), shapes.owner_of)
        if owner is None or self.read_entity(Kind.HOOK, owner.run_id, owner.hook_id) is None:
            return None
        return HookRow(owner.run_id, owner.hook_id, token)

    def _owe(self, op: OweRepair) -> None:
        self._owed[op.run_id] = (*self._owed.get(op.run_id, ()), op.intent)

    def _put_run(self, op: PutRun) -> bool:
        if op.unless_ended and not self._claim_once(
            ClaimOnce(Kind.RUN, op.row.run_id, op.row.run_id, Once.ENDED)
        ):  # a file cannot be written on a condition: the claim decides
            return False
        self.files.replace(self.layout.run(op.row.run_id), shapes.run_bytes(op.row, SPEC), self.minter.nonce())
        return True

    def _put_entity(self, op: PutEntity) -> None:
        path = self.layout.entity(op.row.kind, op.row.run_id, op.row.id)
        self.files.replace(path, shapes.entity_bytes(op.row, SPEC), self.minter.nonce())

    def _drop_entities(self, op: DropEntities) -> None:
        prefix = f"{op.run_id}-"
        for name in self.files.names(self.layout.waits):
            if name.startswith(prefix):
                self.files.remove(f"{self.layout.waits}/{name}")
        for name in self.files.names(self.layout.hooks):
            if not name.endswith(".json"):
                continue
            hook = self.read_entity(Kind.HOOK, op.run_id, name[: -len(".json")])
            if hook is not None:
                self.files.remove(f"{self.layout.hooks}/{name}")
                if hook.token is not None:
                    self._release_token(ReleaseToken(hook.token, TokenOwner(op.run_id, hook.id)))

    # -- claims and tokens

    def _claim(self, op: ClaimOnce | HasClaim | DropClaim) -> str:
        return self.layout.claim(op.kind, op.run_id, op.id, op.what)

    def _claim_once(self, op: ClaimOnce) -> bool:
        try:
            self.files.write_new(self._claim(op), b"")
        except FileExistsError:
            return False
        return True

    def _claim_token(self, op: ClaimToken) -> TokenOwner:
        path = self.layout.token(op.token)
        if not op.exclusive and self._parsed(path, shapes.owner_of) is None:
            self.files.replace(path, shapes.token_bytes(op.token, op.owner), self.minter.nonce())
            return op.owner
        while True:
            if self.files.publish(path, shapes.token_bytes(op.token, op.owner), self.minter.nonce()):
                return op.owner
            owner = self._parsed(path, shapes.owner_of)
            if owner is not None:  # else it was released just now: try again
                return owner

    def _release_token(self, op: ReleaseToken) -> None:
        path = self.layout.token(op.token)
        owner = self._parsed(path, shapes.owner_of)
        if owner is not None and (owner.run_id, owner.hook_id) == (op.owner.run_id, op.owner.hook_id):
            self.files.remove(path)

    # -- the log

    def _publish(self, op: Publish) -> bool:
        run_id = op.events[0].run_id
        self.files.append(self.layout.journal(run_id), shapes.journal_bytes(op.events, op.mark))
        staged: list[tuple[str, str]] = []
        try:
            for event in op.events:
                path = self.layout.event(run_id, event.event_id or "")
                if self.condition.staging is Staging.SHARED:
                    staged.append((self.layout.staged(run_id, event.event_id or ""), path))
                    continue
                staged.append((f"{path}.tmp.{self.minter.nonce()}", path))
                self.files.write_new(staged[-1][0], shapes.event_bytes(event))
            # What can fill a disk is done: from here on each event appears at once and whole.
            for event, (temp, path) in zip(op.events, staged, strict=True):
                try:
                    self.files.link(temp, path)
                except FileExistsError:
                    if event is op.events[0]:
                        return False
                    raise
                self.logs.note(event)
        finally:
            for temp, _ in staged:
                self.files.discard(temp)
        return True

    # -- slots

    def _draw_slot(self, op: DrawSlot) -> int | None:
        by_ulid, highest = self.logs.remembered(op.run_id)
        if not op.remembered or not (by_ulid or highest):
            by_ulid, highest = self.logs.ask(op.run_id, lambda log: (log.by_ulid, log.highest_slot))
        if by_ulid:
            return None
        slot = max(highest + 1, op.at_least)
        while self.files.exists(self.layout.event(op.run_id, ids.slot_id(slot))):
            slot += 1
        return slot

    def _reserve_slots(self, op: ReserveSlots) -> tuple[int, ...]:
        """A counter that several processes move without a lock: each slot is an empty file that only one can make."""
        found: list[int] = []
        slot = self._reserved.get(op.run_id, 0)
        while len(found) < op.count:
            slot += 1
            try:
                self._write_in_folder(self.layout.reserved(op.run_id, slot), b"")
            except FileExistsError:
                continue
            found.append(slot)
        self._reserved[op.run_id] = slot
        return tuple(found)

    def _stage(self, op: Stage) -> bool:
        path = self.layout.staged(op.event.run_id, op.event.event_id or "")
        try:
            self._write_in_folder(path, shapes.event_bytes(op.event))
        except FileExistsError:
            return False
        return True

    def _write_in_folder(self, path: str, data: bytes) -> None:
        """Write a new file whose folder may be missing."""
        try:
            self.files.write_new(path, data)
        except FileNotFoundError:
            Path(path).parent.mkdir(exist_ok=True)
            self.files.write_new(path, data)

    # -- the tail

    def _read_tail(self, op: ReadTail) -> Tail:
        if not op.rescan:
            try:
                tail = shapes.tail_of(self.files.read(self.layout.counter(op.run_id)))
            except FileNotFoundError:
                places = (self.layout.journal(op.run_id), self.layout.run(op.run_id))
                if not any(self.files.exists(place) for place in places):
                    return Tail()  # nothing was ever published
                tail = None
            if tail is not None:
                return tail
        return self._rescan(op.run_id, restore=op.restore)

    def _write_tail(self, op: WriteTail) -> None:
        data = shapes.tail_bytes(op.tail)
        self.files.write_in_place(self.layout.counter(op.run_id), data)

    def _rescan(self, run_id: str, *, restore: bool) -> Tail:
        """The tail as the published events and the journal give it: seq, last id and, to ``restore``, fence, credit and
        in-band count."""
        try:
            marks = dict(shapes.journal_of(self.files.read(self.layout.journal(run_id))))
        except FileNotFoundError:
            marks = {}
        tail = Tail()
        before: Event | None = None
        for event in self.logs.events(run_id, list_folder=True):
            mark = (marks.get(event.event_id or "") or fence.guess(event, before)) if restore else UNFENCED
            tail = fence.advance(tail, event, mark)
            before = event
        return tail

    def _parsed(self, path: str, parse: Callable[[bytes], T]) -> T | None:
        try:
            raw = self.files.read(path)
        except FileNotFoundError:
            return None
        try:
            return parse(raw)
        except (StormctlError, ValueError, KeyError, TypeError):
            raise StoreFailure(
                f"the file {path} is damaged", remedy="Something else wrote into the store: use another folder."
            ) from None
