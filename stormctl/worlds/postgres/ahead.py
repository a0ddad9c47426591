"""Reading ahead and writing behind, within one transaction under a run's lock.

Nobody else changes the run while its lock is held, and nobody sees what the transaction does before its end. So what an
append will want to read comes along with the lock, in the same round trip, and what it writes goes along with the
commit; in between an operation is answered from here. What this cannot answer is sent to the server, after everything
that is still to be written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stormctl.history import kinds
from stormctl.worlds.base import AppendRequest
from stormctl.worlds.postgres import cells, shapes
from stormctl.worlds.postgres import statements as sql
from stormctl.worlds.postgres.pipe import Call, Rows
from stormctl.worlds.postgres.store import Facts, Send, Store
from stormctl.worlds.rows import Entity, Kind, RunEntity
from stormctl.worlds.store_ops import (
    ClaimOnce,
    DropClaim,
    DropEntities,
    DropEntity,
    DropRun,
    HasClaim,
    Once,
    Publish,
    PutEntity,
    PutRun,
    ReadEntity,
    ReadRun,
    ReadTail,
    ReleaseToken,
    StoreOp,
    Tail,
    WriteTail,
)

_UNKNOWN: Any = object()


class Ahead(Store):
    """The store of one transaction that holds a run's lock."""

    def __init__(self, facts: Facts, send: Send, run_id: str) -> None:
        super().__init__(facts, self._send_all, inside=True)
        self._send = send
        self._run_id = run_id
        self._waiting: list[Call] = []
        self._row: RunEntity | None = _UNKNOWN
        self._tail: Tail | None = None
        self._entities: dict[tuple[Kind, str], Entity | None] = {}
        self._claims: set[tuple[str, str, str]] = set()
        self._claimed_ids: set[str] = set()

    async def begin(self, requests: Sequence[AppendRequest]) -> None:
        """Open the transaction, take the lock, and read what the requests will need.

        The reads are statements of their own: the lock's would still see what was there before it was granted.
        """
        if len(requests) == 1:
            await self._begin_one(requests[0])
            return
        run = self._run(self._run_id)
        wanted: dict[Kind, list[str]] = {}
        claims: list[str] = []
        for request in requests:
            kind = Kind(kinds.kind_of_type(request.type))
            if kind is Kind.RUN:
                claims.append(self._run_id)
            elif request.correlation_id is not None:
                claims.append(request.correlation_id)
                if kind in sql.TABLE:
                    wanted.setdefault(kind, []).append(request.correlation_id)
        calls: list[Call] = [(sql.BEGIN, ()), (sql.LOCK, run[:1]), (sql.READ_RUN_AND_TAIL, run)]
        for kind, found in wanted.items():
            keys = [shapes.row_id(kind, self._run_id, one) for one in found]
            calls.append((sql.READ_ENTITIES[kind], (*run, cells.texts(keys))))
        if claims:
            calls.append((sql.READ_CLAIMS, (*run, cells.texts(claims))))
        replies = iter((await self._send(calls))[2:])
        self._take_run(next(replies))
        for kind, found in wanted.items():
            self._entities.update(((kind, one), None) for one in found)
            for row in next(replies):
                entity = shapes.entity_of(kind, row)
                self._entities[kind, entity.id] = entity
        if claims:
            self._claimed_ids.update(claims)
            for identity, kind_name, what in next(replies):
                self._claims.add((cells.need(identity), cells.need(kind_name), cells.need(what)))

    async def _begin_one(self, request: AppendRequest) -> None:
        """The same for one request, with one statement for all that it reads."""
        run = self._run(self._run_id)
        kind = Kind(kinds.kind_of_type(request.type))
        identity = self._run_id if kind is Kind.RUN else request.correlation_id
        table = kind if kind in sql.TABLE and identity is not None else None
        row_id = None if table is None else shapes.row_id(kind, self._run_id, identity or "")
        look: Call = (sql.LOOK[table], (*run, cells.text(row_id), cells.text(identity)))
        row = (await self._send([(sql.BEGIN, ()), (sql.LOCK, run[:1]), look]))[2][0]
        if identity is not None:
            self._claimed_ids.add(identity)
            words = cells.need(row[0]).split()
            self._claims.update((identity, *pair) for pair in zip(words[::2], words[1::2], strict=True))
        there = row[_HEAD + _TAIL] is not None
        self._take_run([row[_HEAD : _HEAD + _TAIL + _RUN]] if there else [])
        if table is not None and identity is not None:
            found = row[_HEAD + _TAIL + _RUN :]
            self._entities[table, identity] = None if found[0] is None else shapes.entity_of(table, found)

    async def commit(self) -> None:
        """Write what waits, and end the transaction."""
        calls = [*self._waiting, (sql.COMMIT, ())]
        self._waiting = []
        await self._send(calls)

    async def perform(self, op: StoreOp) -> Any:
        if isinstance(op, ReadTail):
            return await self.read_tail(op)
        answer = _AHEAD.get(type(op))
        if answer is not None and (found := answer(self, op)) is not _UNKNOWN:
            return found
        return await super().perform(op)

    # -- inside

    async def _send_all(self, calls: Sequence[Call]) -> list[Rows]:
        waiting, self._waiting = self._waiting, []
        return (await self._send([*waiting, *calls]))[len(waiting) :]

    def _take_run(self, rows: Rows) -> None:
        if not rows:
            self._row = None
            return
        self._tail = shapes.tail_of(rows[0][:_TAIL])
        self._row = shapes.run_of(rows[0][_TAIL:])

    def _read_run(self, op: ReadRun) -> Any:
        return self._row if op.run_id == self._run_id else _UNKNOWN

    def _put_run(self, op: PutRun) -> Any:
        if op.row.run_id != self._run_id:
            return _UNKNOWN
        if op.unless_ended and self._row is not None and self._row.ended:
            return False
        self._row = op.row
        self._waiting.append(self.call_put_run(PutRun(op.row)))
        return True

    def _drop_run(self, op: DropRun) -> Any:
        if op.run_id == self._run_id:
            self._row = self._tail = None
        return _UNKNOWN

    def _read_entity(self, op: ReadEntity) -> Any:
        return self._entities.get((op.kind, op.id), _UNKNOWN) if op.run_id == self._run_id else _UNKNOWN

    def _put_entity(self, op: PutEntity) -> Any:
        self._keep(op.row.run_id, op.row.kind, op.row.id, op.row)
        self._waiting.append(self.call_put_entity(op))

    def _drop_entity(self, op: DropEntity) -> Any:
        self._keep(op.run_id, op.kind, op.id, None)
        if op.kind in sql.TABLE:
            self._waiting.append((sql.DROP_ENTITY[op.kind], self._entity(op)))

    def _drop_entities(self, op: DropEntities) -> Any:
        if op.run_id == self._run_id:
            self._entities = {key: row for key, row in self._entities.items() if key[0] is Kind.STEP}
        self._waiting.extend(self.call_drop_entities(op))

    def _keep(self, run_id: str, kind: Kind, identity: str, row: Entity | None) -> None:
        if run_id == self._run_id:
            self._entities[kind, identity] = row

    def _claim_once(self, op: ClaimOnce) -> Any:
        found = self._has_claim(op)
        if found is _UNKNOWN or found:
            return found if found is _UNKNOWN else False
        self._claims.add((op.id, op.kind.value, op.what.value))
        if op.kind is not Kind.STEP:
            self._waiting.append(self.call_claim(sql.CLAIM, op))
        return True

    def _has_claim(self, op: ClaimOnce | HasClaim) -> Any:
        """Of a step its row tells, which stays as long as the run does: its claims need not be written as well."""
        if op.run_id != self._run_id or op.id not in self._claimed_ids:
            return _UNKNOWN
        step = self._entities.get((Kind.STEP, op.id)) if op.kind is Kind.STEP else None
        if step is not None and (op.what is Once.CREATED or step.ended):
            return True
        return (op.id, op.kind.value, op.what.value) in self._claims

    def _drop_claim(self, op: DropClaim) -> Any:
        if op.run_id == self._run_id:
            self._claims.discard((op.id, op.kind.value, op.what.value))
        self._waiting.append(self.call_claim(sql.DROP_CLAIM, op))

    def _release_token(self, op: ReleaseToken) -> Any:
        if not self.facts.condition.unique_tokens:
            return _UNKNOWN
        self._waiting.extend(self.call_release_token(op))
        return None

    async def read_tail(self, op: ReadTail) -> Tail:
        if op.rescan or op.run_id != self._run_id:
            return await super().read_tail(op)
        if self._tail is None:  # none was kept with the run's row, which was read with the lock
            self._tail = await self._rescan(op)
        return self._tail

    def _write_tail(self, op: WriteTail) -> Any:
        if op.run_id == self._run_id:
            self._tail = op.tail
            if self._row is None:
                return None  # it is kept in the run's row, and derived where there is none
        self._waiting.append(self.call_write_tail(op))
        return None

    def _publish(self, op: Publish) -> Any:
        """Nobody else publishes in this run; should an id exist all the same, the commit fails."""
        self._waiting.extend(self.call_publish(op, sql.INSERT_EVENT))
        return True


_HEAD = 2
_TAIL = len(shapes.TAIL_COLUMNS.split(","))
_RUN = len(shapes.RUN_COLUMNS.split(","))

_AHEAD: dict[type[Any], Callable[[Ahead, Any], Any]] = {
    ReadRun: Ahead._read_run,
    PutRun: Ahead._put_run,
    DropRun: Ahead._drop_run,
    ReadEntity: Ahead._read_entity,
    PutEntity: Ahead._put_entity,
    DropEntity: Ahead._drop_entity,
    DropEntities: Ahead._drop_entities,
    ClaimOnce: Ahead._claim_once,
    HasClaim: Ahead._has_claim,
    DropClaim: Ahead._drop_claim,
    ReleaseToken: Ahead._release_token,
    WriteTail: Ahead._write_tail,
    Publish: Ahead._publish,
}
