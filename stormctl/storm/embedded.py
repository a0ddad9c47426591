"""The target ``embedded``: our own runtime, in worker processes, on one of our worlds."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any

from stormctl.history import LOG_READ_AT, Capture, EventLog, Evidence, ReadRecord, RunRow, kinds
from stormctl.outside import outside
from stormctl.readers.evidence import missing_from
from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.crew import Crew
from stormctl.storm.folder import StormFolder
from stormctl.storm.plan import Plan
from stormctl.storm.registered import Registered, registered
from stormctl.storm.resume import Lost
from stormctl.storm.stores import Stores
from stormctl.storm.subject import Remains, Tell
from stormctl.storm.virtual import StoreTime
from stormctl.sweeps import PrefixRange, SweepPlan
from stormctl.worlds import AppendRequest, Message, Refused, World
from stormctl.worlds.base import NO_PAYLOAD, Appended
from stormctl.worlds.open import ServerHandle


class EmbeddedRun:
    """A run on one of our worlds. ``folder`` and ``known`` are where its workers write down what they did."""

    def __init__(
        self,
        world: World,
        run_id: str,
        workflow: str = "",
        folder: StormFolder | None = None,
        known: Registered | None = None,
        origin: str = "",
    ) -> None:
        self.run_id = run_id
        self._world = world
        self._workflow = workflow
        self._folder = folder
        self._known = known
        self._origin = origin
        self._log_read_at = 0

    async def begin(self, input: Any) -> None:
        """Write the event that creates the run, and send its first message."""
        reply = await self._world.append(
            AppendRequest(
                run_id=self.run_id,
                type=kinds.RUN_CREATED,
                writer="driver",
                payload=asdict(input),
                data={"workflowName": self._workflow, "deploymentId": "stormctl"},
            )
        )
        if isinstance(reply, Refused):
            raise RuntimeError(f"the store refused the run: {reply.reason}")
        await self._world.queue.send(Message(self.run_id))

    async def row(self) -> RunRow | None:
        """The row of the run in its store."""
        return await self._world.run(self.run_id)

    async def hook(self, token: str) -> str | None:
        """The hook's id, if it is this run's."""
        row = await self._world.hook(token)
        return row.correlation_id if row is not None and row.run_id == self.run_id else None

    async def resume(self, token: str, payload: Any) -> bool:
        """Append the receipt and wake the run: what a resume call of the upstream API does."""
        row = await self._world.hook(token)
        if row is None:
            return False
        reply = await self._world.append(
            AppendRequest(
                run_id=row.run_id,
                type=kinds.HOOK_RECEIVED,
                writer="driver",
                correlation_id=row.correlation_id,
                token=token,
                payload=payload if payload is not None else NO_PAYLOAD,
            )
        )
        if not isinstance(reply, Appended):
            return False
        await self._world.queue.send(Message(row.run_id))
        return True

    async def last_wait(self) -> int | None:
        """By the log."""
        return pending_until((await self._world.load(self.run_id)).events)

    async def log(self) -> EventLog:
        """The whole log, and when it was read."""
        self._log_read_at = outside().running_ns()
        return EventLog((await self._world.load(self.run_id)).events, self.run_id)

    async def remains(self, log: EventLog, *, ended: bool, live: bool) -> Remains:
        """The audit of the store, and what the workers wrote down about the run's deliveries."""
        audit = await self._world.audit_of(self.run_id)
        work, reads = await self._journals()
        evidence = Evidence(
            origin=self._origin,
            missing=missing_from(log.events, has_rows=False, has_audit=bool(audit), has_result=ended),
            live=live,
        )
        capture = Capture(
            source=f"logs/{self.run_id}.ndjson",
            log=log,
            evidence=evidence,
            audit=audit,
            reads=reads,
            data={LOG_READ_AT: self._log_read_at},
        )
        return Remains(capture, work)

    async def cancel(self, reason: str) -> None:
        """Append the event that cancels the run."""
        await cancel_run(self._world, self.run_id, reason)

    async def _journals(self) -> tuple[dict[str, int], tuple[ReadRecord, ...]]:
        """What the workers did for this run, summed over their journals: those on other hosts wrote theirs into the
        database."""
        rows = []
        if self._folder is not None:
            folder = self._folder
            rows = await outside().in_thread(lambda: list(folder.work_rows(self.run_id)))
        reads = tuple(ReadRecord(**read) for row in rows for read in row.get("reads", ()))  # others have other clocks
        work: Counter[str] = Counter()
        for row in (*rows, *(await self._known.work_rows(self.run_id) if self._known is not None else ())):
            work.update(work_of(row))
        return dict(work), reads


def pending_until(events: Iterable[Any]) -> int | None:
    """The latest resume time of a wait that a log has created and not ended."""
    rows = list(events)
    done = {event.correlation_id for event in rows if event.type == kinds.WAIT_COMPLETED}
    return max(
        (
            event.resume_at
            for event in rows
            if event.type == kinds.WAIT_CREATED and event.correlation_id not in done and event.resume_at is not None
        ),
        default=None,
    )


def work_of(row: Mapping[str, Any]) -> dict[str, int]:
    """The counts of one row of a worker's journal. What the runtime only counts once per delivery or pass is there
    already; its other notes are counted by their own names."""
    notes: Mapping[str, int] = row.get("notes", {})
    counts = {key: row.get(key, 0) for key in ("deliveries", "passes", "restarts")}
    counts["divergences"] = notes.get("divergence", 0)
    return counts | {name: count for name, count in notes.items() if name not in _COUNTED}


#: notes that the columns of a row tell already
_COUNTED = frozenset({"pass", "restart", "divergence"})


async def cancel_run(world: World, run_id: str, reason: str) -> None:
    """Cancel a run that nobody waits for any more. One that has ended, or never began, stays as it is."""
    await world.append(
        AppendRequest(run_id=run_id, type=kinds.RUN_CANCELLED, writer="driver", data={"cancelReason": reason})
    )


class _Stage:
    """Open stores with their workers."""

    def __init__(self, crew: Crew, worlds: Mapping[Cell, World], folder: StormFolder, known: Registered) -> None:
        self._crew = crew
        self._worlds = worlds
        self._folder = folder
        self._known = known

    @property
    def notes(self) -> Iterator[str]:
        for cell, world in self._worlds.items():
            for note in getattr(world, "notes", ()):
                yield f"{cell.label}: {note}"

    async def open(self, _cell: Cell) -> None:
        """All stores are open already: the workers serve them together."""

    async def close(self, _cell: Cell) -> None:
        """They stay open until the storm ends."""

    def fitted(self, _cell: Cell, input: Any) -> Any:
        return input

    def subject(self, cell: Cell, _number: int) -> EmbeddedRun:
        return EmbeddedRun(
            self._worlds[cell],
            f"wrun_{outside().ulid()}",
            cell.scenario,
            self._folder,
            self._known,
            origin=f"storm {cell.label}",
        )

    def watches(self) -> Iterator[Coroutine[Any, Any, None]]:
        return self._crew.watches()


class Embedded:
    """The target. ``server`` is the database for worlds that need one; with ``virtual`` none is, see Stores."""

    #: all cells in turn, so that a drift of the machine hits every cell alike
    apart = False

    def __init__(self, server: ServerHandle | None = None, virtual: StoreTime | None = None) -> None:
        self._server = server
        self._virtual = virtual

    def sweeps(self, cell: Cell) -> SweepPlan:
        """Strictly, and replayed by the generation that wrote them; in virtual time, where the replays are most of the
        work, from the prefixes at which a binding can change."""
        prefixes = PrefixRange(decisive=self._virtual is not None)
        return SweepPlan(workload=cell.scenario, engines=(cell.generation,), prefixes=prefixes)

    def account(self, _folder: StormFolder, _attempts: Sequence[Attempt]) -> Iterator[str]:
        """The tables say it all."""
        yield from ()

    @asynccontextmanager
    async def stage(
        self, plan: Plan, folder: StormFolder, tell: Tell, lost: Sequence[Lost] = ()
    ) -> AsyncIterator[_Stage]:
        """Open the stores, cancel the runs that were lost, start the workers."""
        dsn = None if self._server is None else self._server.dsn
        stores = Stores(plan, folder.id, folder, dsn, self._virtual)
        async with registered(plan, folder.id, stores.dsn) as known:
            crew = Crew(stores, folder, tell)
            async with crew.stores() as worlds:
                for one in lost:
                    if one.cell in worlds:
                        await cancel_run(worlds[one.cell], one.run_id, "its driver died")
                async with crew:
                    yield _Stage(crew, worlds, folder, known)
