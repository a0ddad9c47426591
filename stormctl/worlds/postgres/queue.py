"""The queue of a store in a database: one table, claimed with SKIP LOCKED.

A message is due at ``due_at``. Claiming it moves that to the end of its lease and names the worker, so that a message
whose worker died is simply due again, with its attempt counted up. Idempotency keys are kept for ever. Times are the
server's, so that workers on several hosts agree.

Why not procrastinate (3.10.0, measured: 200 jobs, each scheduled 200 ms ahead, one worker on one machine): with its
own polling interval its delayed wakes come 9 ms late in the median and 4,959 ms late at p99, because its notifications
are for jobs due at once; polling every 100 ms gives 19 and 81 ms (101 at most), every 20 ms 8 and 27 ms. This queue,
polled as a worker does, gives 7 and 16 ms (38 at most). So procrastinate can be made fast enough by its polling
interval. What it lacks is a key that stays taken once its job has run, a lease per message, a queue that one takes from
instead of a loop that calls tasks, and tables in a schema of ours.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from stormctl.errors import StoreFailure, StormctlError
from stormctl.worlds.base import Claimed, Message
from stormctl.worlds.messages import message_bytes, message_of
from stormctl.worlds.postgres import cells
from stormctl.worlds.postgres.cells import Cell
from stormctl.worlds.postgres.links import Links
from stormctl.worlds.postgres.pipe import SYNC, Call, Lost, Rows, Sql
from stormctl.worlds.postgres.signals import NOTIFY, Signal, Signals

IDLE_S = 0.25
"""A queue that found nothing looks again after so long at the latest, if it is not told before."""

DEAF_S = 0.02
"""The same while nobody can tell it."""

BATCH = 500
"""How many messages go into one round trip of :meth:`PostgresQueue.send_many`."""

_T = "stormctl.messages"
_DUE = "clock_timestamp() + $2::bigint * interval '1 millisecond'"
_SEND = Sql(f"insert into {_T} (space, due_at, body) values ($1, {_DUE}, $3) returning id")
_SEND_KEYED = Sql(f"""
with fresh as (
    insert into stormctl.message_keys (space, key) values ($1, $4) on conflict do nothing returning true
)
insert into {_T} (space, due_at, body) select $1, {_DUE}, $3 from fresh returning id
""")
#: The last row says in how many milliseconds the next message is due, null when there is none.
_RECEIVE = Sql(f"""
with due as (
    select id from {_T} where space = $1 and due_at <= clock_timestamp()
    order by due_at, id limit $3::bigint for update skip locked
), taken as (
    update {_T} m set due_at = clock_timestamp() + $4::bigint * interval '1 millisecond', worker = $2,
        attempt = m.attempt + (m.worker is not null)::int
    from due where m.id = due.id returning m.id, m.attempt, m.body
)
select id, attempt, body, null::bigint from taken
union all
select null, null, null, (
    select (extract(epoch from due_at - clock_timestamp()) * 1000)::bigint from {_T}
    where space = $1 and due_at > clock_timestamp() order by due_at limit 1
)
""")
_ACK = Sql(f"delete from {_T} where id = $1 and worker = $2 and attempt = $3")
_RELEASE = Sql(
    f"update {_T} set due_at = {_DUE}, worker = null, attempt = attempt + 1 "
    "where id = $1 and worker = $3 and attempt = $4"
)
_DEPTH = Sql(f"select count(*) from {_T} where space = $1")
_REQUEUE = Sql(
    f"update {_T} set due_at = clock_timestamp(), worker = null, attempt = attempt + 1 "
    "where space = $1 and worker = $2 returning id"
)
#: What this worker claimed without ever hearing of it.
_RECLAIM = Sql(
    f"update {_T} set due_at = clock_timestamp(), worker = null "
    "where space = $1 and worker = $2 and id::text <> all($3::varchar[])"
)


@dataclass(frozen=True, slots=True)
class _Handle:
    """Which claim of a message it was."""

    id: int
    attempt: int


class PostgresQueue:
    """The :class:`~stormctl.worlds.base.Queue` of one space, for one worker.

    ``worker`` must be a name that no other living worker of the space has, on any host. Delays and leases are
    milliseconds.
    """

    def __init__(
        self, connected: Callable[[], Awaitable[Links]], space: str, worker: str, *, lease_ms: float = 300_000
    ) -> None:
        self.worker = worker
        self._connected = connected
        self._space = space
        self._lease = cells.int8(max(1, round(lease_ms)))
        self._in_hand: set[int] = set()
        self._signals: Signals | None = None
        self._signal: Signal | None = None
        self._next_look = 0.0

    async def send(self, message: Message, *, delay_ms: float = 0, key: str | None = None) -> bool:
        """Enqueue; False when a message with the same ``key`` was enqueued before (it is dropped)."""
        return (await self.send_many([(message, delay_ms, key)]))[0]

    async def send_many(self, messages: Sequence[tuple[Message, float, str | None]]) -> list[bool]:
        """Enqueue messages with their delays and keys, :data:`BATCH` per round trip and transaction.

        Replies as :meth:`send` for each. After a StoreFailure earlier batches are in the queue.
        """
        sent: list[bool] = []
        for start in range(0, len(messages), BATCH):
            calls = [self._sending(*one) for one in messages[start : start + BATCH]]
            # Told in a transaction of its own: PostgreSQL lets only one that notifies commit at a time.
            found = await self._run([*calls, SYNC, (NOTIFY, (cells.text(self._space),))])
            sent += [bool(rows) for rows in found[: len(calls)]]
        if self._signal is not None:
            self._signal.raised = True
        return sent

    async def receive(self, limit: int) -> list[Claimed]:
        """Claim up to ``limit`` messages that are due, the longest due first; survives the loss of its connection.

        While nothing was sent and nothing is due the server is not asked.
        """
        signal = await self._listening()
        now = time.monotonic()
        if limit < 1 or (not signal.raised and now < self._next_look):
            return []
        signal.raised = False
        values = (cells.text(self._space), cells.text(self.worker), cells.int8(limit), self._lease)
        try:
            rows = (await self._try([(_RECEIVE, values)]))[0]
        except Lost:
            mine = cells.texts([str(one) for one in self._in_hand])
            rows = (await self._run([(_RECLAIM, (*values[:2], mine)), SYNC, (_RECEIVE, values)]))[1]
        due_in = cells.as_int(rows[-1][3])
        longest = DEAF_S if signal.deaf else IDLE_S
        if len(rows) > limit:
            self._next_look = now
        else:
            self._next_look = now + (longest if due_in is None else min(longest, due_in / 1000))
        return [self._claimed(row) for row in rows[:-1]]

    async def ack(self, claimed: Claimed) -> None:
        """The message is done with. Nothing happens when its lease ran out and another worker has it."""
        await self._run([(_ACK, self._claim(claimed))])

    async def release(self, claimed: Claimed, *, delay_ms: float = 0) -> None:
        """Give a claimed message back, to be delivered again with ``attempt + 1``.

        Nothing happens when its lease ran out and another worker has it.
        """
        identity, worker, attempt = self._claim(claimed)
        told: list[Call] = [SYNC, (NOTIFY, (cells.text(self._space),))]
        await self._run([(_RELEASE, (identity, cells.int8(round(delay_ms)), worker, attempt)), *told])
        if self._signal is not None:
            self._signal.raised = True

    async def depth(self) -> int:
        """How many messages wait or are in work."""
        return cells.as_int((await self._run([(_DEPTH, (cells.text(self._space),))]))[0][0][0]) or 0

    async def requeue_dead(self, worker: str) -> int:
        """Put back what a worker that has ended had in its hands. Replies how many messages that were."""
        space = cells.text(self._space)
        rows = (await self._run([(_REQUEUE, (space, cells.text(worker))), SYNC, (NOTIFY, (space,))]))[0]
        if self._signal is not None:
            self._signal.raised = True
        return len(rows)

    async def close(self) -> None:
        """Stop listening."""
        if self._signals is not None and self._signal is not None:
            await self._signals.unsubscribe(self._space, self._signal)
            self._signals = self._signal = None

    # -- inside

    def _sending(self, message: Message, delay_ms: float, key: str | None) -> Call:
        values = (cells.text(self._space), cells.int8(round(delay_ms)), message_bytes(message))
        if key is None:
            return _SEND, values
        return _SEND_KEYED, (*values, hashlib.sha256(key.encode()).digest())

    async def _listening(self) -> Signal:
        if self._signal is None:
            links = await self._connected()
            self._signals = Signals.shared(links.dsn)
            self._signal = self._signals.subscribe(self._space)
        return self._signal

    def _claimed(self, row: tuple[Cell, ...]) -> Claimed:
        identity, attempt = cells.as_int(row[0]) or 0, cells.as_int(row[1]) or 0
        try:
            message = message_of(row[2] or b"")
        except (ValueError, KeyError, TypeError):
            raise StoreFailure(
                f"the queue message {identity} is damaged",
                remedy="Something else wrote into the store: use another database.",
            ) from None
        self._in_hand.add(identity)
        return Claimed(f"msg_{identity}", message, attempt, _Handle(identity, attempt))

    def _claim(self, claimed: Claimed) -> tuple[Cell, Cell, Cell]:
        handle: _Handle = claimed.handle
        self._in_hand.discard(handle.id)
        return cells.int8(handle.id), cells.text(self.worker), cells.int4(handle.attempt)

    async def _run(self, calls: Sequence[Call]) -> list[Rows]:
        try:
            return await self._try(calls)
        except Lost as lost:
            raise (await self._connected()).failure(lost) from lost

    async def _try(self, calls: Sequence[Call]) -> list[Rows]:
        links = await self._connected()
        try:
            return await links.run(calls)
        except (StormctlError, Lost):
            raise
        except Exception as error:
            raise links.failure(error) from error
