"""Store operations as statements: what a database does for each thing that an append asks.

:class:`Store` sends one trip per operation. Outside of a transaction each commits at exactly its point, so that a
writer that is killed leaves a row without its event, as world-postgres 4.x does. ``ahead`` sends fewer trips for the
same replies.

Where an event's time comes from: under the 4.x condition (ULIDs, no lock, the table of world-postgres 4.3.7) it is the
column's default, the start of the transaction, as upstream, and so is not in the order of ids. Elsewhere it is the time
that the append gave it, so that a log reads the same on every world.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stormctl.errors import StoreFailure
from stormctl.history import Event, ids, kinds
from stormctl.worlds import fence
from stormctl.worlds.admission import is_outside
from stormctl.worlds.base import AppendRequest, Page
from stormctl.worlds.condition import Condition, Ids, Semantics, Staging
from stormctl.worlds.postgres import cells, shapes
from stormctl.worlds.postgres import statements as sql
from stormctl.worlds.postgres.cells import Cell
from stormctl.worlds.postgres.pipe import Call, Rows, Sql
from stormctl.worlds.postgres.reads import Reading
from stormctl.worlds.rows import Entity, RunEntity
from stormctl.worlds.store_ops import (
    ClaimOnce,
    ClaimToken,
    DrawSlot,
    DropClaim,
    DropEntities,
    DropEntity,
    DropRun,
    HasClaim,
    Mark,
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
    Recorded,
    ReleaseToken,
    ReserveSlots,
    Stage,
    StoreOp,
    Tail,
    TokenOwner,
    WriteTail,
)

Send = Callable[[Sequence[Call]], Awaitable[list[Rows]]]


@dataclass(frozen=True, slots=True)
class Facts:
    """What every statement of one append needs to know.

    ``writers`` are the snapshot count and the writer of each request by correlation id; ``writer`` stands for the rest.
    """

    condition: Condition
    space: bytes
    writer: tuple[Cell, Cell]
    writers: dict[str | None, tuple[Cell, Cell]]

    @classmethod
    def of(cls, condition: Condition, space: str, requests: Sequence[AppendRequest]) -> Facts:
        """Of the requests of one append or batch."""
        told = {
            request.correlation_id: (
                cells.int8(None if request.snapshot is None else request.snapshot.count),
                cells.text(request.writer),
            )
            for request in requests
        }
        return cls(condition, space.encode(), told[requests[0].correlation_id], told)

    @property
    def stamped_by_server(self) -> bool:
        """Whether an event's time is the column's default."""
        condition = self.condition
        return condition.ids is Ids.ULID and not condition.locks and condition.semantics is Semantics.PG4

    @property
    def sole(self) -> bool:
        """Whether the unique index of creates counts: the other tables publish a create twice in one case."""
        return self.condition.unique_creates and self.condition.semantics is Semantics.PG4


class Store:
    """Operations of one append, sent by ``send``. ``inside``: within a transaction, where an error would end it and
    rows that are read to be changed are locked."""

    def __init__(self, facts: Facts, send: Send, *, inside: bool = False) -> None:
        self.facts = facts
        self.send = send
        self.inside = inside
        self.reading = Reading(facts.condition, facts.space)

    async def perform(self, op: StoreOp) -> Any:
        """The reply to an operation; errors as ``Pipe.run``."""
        return await _DO[type(op)](self, op)

    # -- rows

    async def read_run(self, op: ReadRun) -> RunEntity | None:
        rows = await self._one(sql.READ_RUN, *self._run(op.run_id))
        return shapes.run_of(rows[0]) if rows else None

    async def put_run(self, op: PutRun) -> bool:
        rows = (await self.send([self.call_put_run(op)]))[0]
        return bool(rows) or not op.unless_ended

    async def drop_run(self, op: DropRun) -> None:
        await self._one(sql.DROP_RUN, *self._run(op.run_id))

    async def read_entity(self, op: ReadEntity) -> Entity | None:
        if op.kind not in sql.TABLE:
            return None
        statement = (sql.READ_ENTITY_LOCKED if self.inside else sql.READ_ENTITY)[op.kind]
        rows = await self._one(statement, *self._entity(op))
        return shapes.entity_of(op.kind, rows[0]) if rows else None

    async def put_entity(self, op: PutEntity) -> None:
        await self.send([self.call_put_entity(op)])

    async def drop_entity(self, op: DropEntity) -> None:
        if op.kind in sql.TABLE:
            await self._one(sql.DROP_ENTITY[op.kind], *self._entity(op))

    async def drop_entities(self, op: DropEntities) -> None:
        await self.send(self.call_drop_entities(op))

    # -- claims and tokens

    async def claim_once(self, op: ClaimOnce) -> bool:
        return bool((await self.send([self.call_claim(sql.CLAIM, op)]))[0])

    async def has_claim(self, op: HasClaim) -> bool:
        return bool((await self.send([self.call_claim(sql.HAS_CLAIM, op)]))[0])

    async def drop_claim(self, op: DropClaim) -> None:
        await self.send([self.call_claim(sql.DROP_CLAIM, op)])

    async def claim_token(self, op: ClaimToken) -> TokenOwner:
        owner = op.owner
        if not op.exclusive:
            rows = await self._one(sql.LOOK_FOR_TOKEN, cells.text(op.token), self.facts.space)
            return TokenOwner(cells.need(rows[0][0]), cells.need(rows[0][1])) if rows else owner
        rows = await self._one(
            sql.CLAIM_TOKEN,
            cells.text(op.token),
            self.facts.space,
            cells.text(owner.run_id),
            cells.text(owner.hook_id),
            cells.text(owner.event_id),
        )
        run_id, hook_id, event_id = rows[0]
        return TokenOwner(cells.need(run_id), cells.need(hook_id), cells.as_text(event_id))

    async def release_token(self, op: ReleaseToken) -> None:
        await self.send(self.call_release_token(op))

    # -- the log

    async def read_tail(self, op: ReadTail) -> Tail:
        if not op.rescan:
            rows = await self._one(sql.READ_TAIL, *self._run(op.run_id))
            kept = shapes.tail_of(rows[0]) if rows else None
            if kept is not None:
                return kept
        return await self._rescan(op)

    async def write_tail(self, op: WriteTail) -> None:
        await self.send([self.call_write_tail(op)])

    async def publish(self, op: Publish) -> bool:
        from psycopg.errors import UniqueViolation

        if not self.inside and len(op.events) > 1:
            try:
                await self.send(self.call_publish(op, sql.INSERT_EVENT))
            except UniqueViolation:
                return False
            return True
        found = await self.send(self.call_publish(op, sql.INSERT_FREE_EVENT))
        landed = sum(bool(rows) for rows in found[: len(op.events)])
        if 0 < landed < len(op.events):
            raise StoreFailure(
                f"one of the events {', '.join(str(event.event_id) for event in op.events)} exists already",
                remedy="This is a fault of stormctl.",
            )
        return landed > 0

    async def read_log(self, op: ReadLog) -> tuple[Event, ...]:
        events = self.reading.events((await self.send([self.reading.all_of(op.run_id)]))[0])
        return tuple(events)

    async def read_after(self, op: ReadAfter) -> Page:
        rows = (await self.send([self.reading.after(op.run_id, op.cursor, op.limit)]))[0]
        events = tuple(self.reading.events(rows))
        return Page(events, self.reading.cursor_of(events[-1]) if events else op.cursor)

    async def read_slots(self, op: ReadSlots) -> tuple[Event, ...]:
        above, below = cells.text(ids.slot_id(op.above)), cells.text(ids.slot_id(op.below))
        return tuple(self.reading.events(await self._one(sql.BETWEEN, *self._run(op.run_id), above, below)))

    async def read_guard(self, op: ReadGuard) -> Recorded:
        bound = cells.text(ids.compose(op.watermark + 1, 0))
        rows = await self._one(sql.RECORDED, *self._run(op.run_id), _OUTSIDE, bound)
        latest = cells.as_text(rows[0][0])
        return Recorded(None if latest is None else ids.ulid_ms(latest), cells.as_int(rows[0][1]) or 0)

    # -- slots

    async def draw_slot(self, op: DrawSlot) -> int | None:
        rows = await self._one(sql.LAST_ID, *self._run(op.run_id))
        if not rows:
            return max(1, op.at_least)
        last = ids.slot_of(cells.need(rows[0][0]))
        return None if last is None else max(last + 1, op.at_least)

    async def reserve_slots(self, op: ReserveSlots) -> tuple[int, ...]:
        rows = await self._one(sql.RESERVE, *self._run(op.run_id), cells.int8(op.count))
        last = cells.as_int(rows[0][0]) or 0
        return tuple(range(last - op.count + 1, last + 1))

    async def stage(self, op: Stage) -> bool:
        return bool(await self._one(sql.STAGE, *self._run(op.event.run_id), cells.text(op.event.event_id)))

    # -- the statements of operations, which may be sent later

    def call_put_run(self, op: PutRun) -> Call:
        statement = sql.PUT_RUN_UNLESS_ENDED if op.unless_ended else sql.PUT_RUN
        return statement, (*shapes.run_cells(op.row), shapes.SPEC_TEXT, self.facts.space)

    def call_put_entity(self, op: PutEntity) -> Call:
        return sql.PUT_ENTITY[op.row.kind], (*shapes.entity_cells(op.row), shapes.SPEC_CELL, self.facts.space)

    def call_drop_entities(self, op: DropEntities) -> list[Call]:
        run = self._run(op.run_id)
        calls: list[Call] = [(sql.DROP_WAITS, run), (sql.DROP_HOOKS, run)]
        if self.facts.condition.unique_tokens:
            calls.append((sql.DROP_TOKENS, run))
        return calls

    def call_claim(self, statement: Sql, op: ClaimOnce | HasClaim | DropClaim) -> Call:
        return statement, (
            *self._run(op.run_id),
            cells.text(op.id),
            op.kind.value.encode(),
            op.what.value.encode(),
        )

    def call_release_token(self, op: ReleaseToken) -> list[Call]:
        held = (
            cells.text(op.token),
            self.facts.space,
            cells.text(op.owner.run_id),
            cells.text(op.owner.hook_id),
        )
        # Where several may own a token there is no claim beside the hook: freeing it means that the hook is gone.
        return [(sql.RELEASE_TOKEN if self.facts.condition.unique_tokens else sql.DROP_HOOK_OF_TOKEN, held)]

    def call_write_tail(self, op: WriteTail) -> Call:
        return sql.WRITE_TAIL, (*self._run(op.run_id), *shapes.tail_cells(op.tail))

    def call_publish(self, op: Publish, statement: Sql) -> list[Call]:
        facts = self.facts
        mark = shapes.mark_cells(op.mark)
        sole = cells.flag(facts.sole)
        calls: list[Call] = []
        for event in op.events:
            if facts.stamped_by_server:
                event = replace(event, created_at=None)
            writer = facts.writers.get(event.correlation_id, facts.writer)
            calls.append((statement, (*shapes.event_cells(event), *mark, *writer, sole, facts.space)))
        if facts.condition.staging is Staging.SHARED:
            for event in op.events:
                calls.append((sql.UNSTAGE, (*self._run(event.run_id), cells.text(event.event_id))))
        return calls

    async def _rescan(self, op: ReadTail) -> Tail:
        """The tail as the events give it, with fence and credit where they are to be restored.

        An event whose mark nobody recorded counts as fenced when in doubt, which costs a writer a reload.
        """
        tail = Tail()
        before: Event | None = None
        for row in await self._one(sql.MARKS, *self._run(op.run_id)):
            event_id, kind, correlation_id, seq, fenced, key, base, in_band = row
            event = Event(
                cells.need(kind),
                op.run_id,
                cells.as_text(event_id),
                cells.as_text(correlation_id),
                cells.as_int(seq),
            )
            mark = Mark()
            if op.restore and fenced is None:
                mark = fence.guess(event, before)
            elif op.restore:
                mark = Mark(
                    bool(cells.as_flag(fenced)), cells.as_text(key), cells.as_int(base), bool(cells.as_flag(in_band))
                )
            tail = fence.advance(tail, event, mark)
            before = event
        return tail

    async def _one(self, statement: Sql, *values: Cell) -> Rows:
        return (await self.send([(statement, values)]))[0]

    def _run(self, run_id: str) -> tuple[Cell, Cell]:
        return run_id.encode("utf-8", "surrogatepass"), self.facts.space

    def _entity(self, op: ReadEntity | DropEntity) -> tuple[Cell, Cell, Cell]:
        return (*self._run(op.run_id), cells.text(shapes.row_id(op.kind, op.run_id, op.id)))


_OUTSIDE = cells.texts(sorted(kind for kind in kinds.ALL_TYPES if is_outside(Event(kind))))

_DO: dict[type[Any], Callable[[Store, Any], Awaitable[Any]]] = {
    ReadRun: Store.read_run,
    PutRun: Store.put_run,
    DropRun: Store.drop_run,
    ReadEntity: Store.read_entity,
    PutEntity: Store.put_entity,
    DropEntity: Store.drop_entity,
    DropEntities: Store.drop_entities,
    ClaimOnce: Store.claim_once,
    HasClaim: Store.has_claim,
    DropClaim: Store.drop_claim,
    ClaimToken: Store.claim_token,
    ReleaseToken: Store.release_token,
    ReadTail: Store.read_tail,
    WriteTail: Store.write_tail,
    Publish: Store.publish,
    ReadLog: Store.read_log,
    ReadAfter: Store.read_after,
    ReadSlots: Store.read_slots,
    ReadGuard: Store.read_guard,
    DrawSlot: Store.draw_slot,
    ReserveSlots: Store.reserve_slots,
    Stage: Store.stage,
}
