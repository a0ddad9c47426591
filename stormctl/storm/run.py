"""One attempt: create a run, press on it, watch it, and keep what it left behind."""

from __future__ import annotations

import asyncio
import secrets
import time
import zlib
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

from stormctl.errors import StoreFailure
from stormctl.history import LOG_READ_AT, AuditRecord, Capture, EventLog, Evidence, ReadRecord, RunRow, kinds
from stormctl.readers import write_capture
from stormctl.readers.evidence import missing_from
from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.classify import Judgement, flags, judge, judge_stuck, pressure_row, why_vacuous
from stormctl.storm.folder import StormFolder
from stormctl.storm.outcome import Outcome
from stormctl.storm.plan import Plan
from stormctl.storm.pump import Pump
from stormctl.storm.registered import Registered
from stormctl.workloads.base import Pressure, scaled
from stormctl.workloads.registry import workload
from stormctl.worlds import AppendRequest, Message, Refused, World
from stormctl.worlds.mint import now_ms

STATUS_POLL_MS = 1_000.0
HOOK_POLL_MS = 250.0
SHORTEST_POLL_MS = 10.0
#: how long the cancelling of a run may take when nobody waits for the run any more
CANCEL_SECONDS = 2.0
#: longer than any injected delay between a run's row and the event that ends it
LAST_EVENT_SECONDS = 5.0


class Lab:
    """What all attempts of one cell share."""

    def __init__(
        self, plan: Plan, cell: Cell, world: World, folder: StormFolder, registered: Registered | None = None
    ) -> None:
        self.registered = registered if registered is not None else Registered(None, folder.id)
        self.plan = plan
        self.cell = cell
        self.world = world
        self.folder = folder
        self.code = workload(cell.scenario)
        self.input = scaled(self.code.parse_input(plan.inputs[cell.scenario]), plan.time_scale)
        self.cap_ms = plan.cap_ms * plan.time_scale

    def seed(self, number: int) -> int:
        """The seed of an attempt's driver: the same for the same plan seed, cell and number, on any machine."""
        return zlib.crc32(f"{self.plan.seed}/{self.cell.label}/{number}".encode())

    def poll(self, ms: float) -> float:
        """A poll interval in this plan's time."""
        return max(SHORTEST_POLL_MS, ms * self.plan.time_scale)


class AttemptRun:
    """One attempt in progress. ``run_id`` is known before the run exists, so that it can be announced."""

    def __init__(self, lab: Lab, number: int, note: str | None = None) -> None:
        from ulid import ULID

        self._lab = lab
        self._number = number
        self._note = note
        self.run_id = f"wrun_{ULID()}"
        token = f"storm-{lab.cell.scenario}-{now_ms()}-{number}-{secrets.token_hex(3)}"
        self._input = lab.code.at_start(replace(lab.input, token=token), now_ms())
        self._pressure = Pressure()
        self._vacuous: str | None = None
        self._work: Counter[str] = Counter()
        self._reads: tuple[ReadRecord, ...] = ()
        self._log_read_at = 0
        self._began = asyncio.get_running_loop().time()
        self._started_at = datetime.now(UTC).isoformat(timespec="milliseconds")

    async def run(self) -> Attempt:
        """Make the attempt. A fault of the harness is an ``infra`` outcome; a failing store is raised.

        A run that is left before its end, for whatever reason, is cancelled: it would starve the next ones.
        """
        try:
            await self._create()
            row, duration = await self._watch()
            return await self._land(row, duration)
        except StoreFailure:
            raise
        except Exception as bad:
            await self._cancel("the harness failed")
            return self._attempt(
                Judgement(Outcome.INFRA, "HARNESS_ERROR", f"{type(bad).__name__}: {bad}"), self._elapsed()
            )
        except BaseException:
            await self._cancel("interrupted")
            raise

    async def _cancel(self, reason: str) -> None:
        """Cancel the run as far as the store lets us."""
        with suppress(Exception):
            await asyncio.wait_for(cancel_run(self._lab.world, self.run_id, reason), CANCEL_SECONDS)

    async def _create(self) -> None:
        world = self._lab.world
        reply = await world.append(
            AppendRequest(
                run_id=self.run_id,
                type=kinds.RUN_CREATED,
                writer="driver",
                payload=asdict(self._input),
                data={"workflowName": self._lab.code.name, "deploymentId": "stormctl"},
            )
        )
        if isinstance(reply, Refused):
            raise RuntimeError(f"the store refused the run: {reply.reason}")
        await world.queue.send(Message(self.run_id))

    async def _watch(self) -> tuple[RunRow | None, float]:
        """Press until the run ends or its cap is over. The row is None when it has not ended."""
        lab = self._lab
        pump = Pump(lab.world, self.run_id, lab.seed(self._number), lab.poll(HOOK_POLL_MS))
        pumping = asyncio.create_task(pump.run(lab.code.driver(self._input, self._pressure)))
        ended: RunRow | None = None
        try:
            deadline = self._began + lab.cap_ms / 1000
            while asyncio.get_running_loop().time() < deadline:
                row = await lab.world.run(self.run_id)
                if row is not None and row.status in ("completed", "failed", "cancelled"):
                    ended = row
                    break
                if pumping.done():
                    await _settle(pumping)  # a store that fails will not let the run end either
                await asyncio.sleep(lab.poll(STATUS_POLL_MS) / 1000)
        except BaseException:
            pumping.cancel()  # it may be in a store call that waits for a lock
            await asyncio.gather(pumping, return_exceptions=True)
            raise
        duration = self._elapsed()
        pump.ended.set()
        await _settle(pumping)
        return ended, duration

    async def _land(self, row: RunRow | None, duration: float) -> Attempt:
        """Judge the run and keep its log. A run that outlives its cap is cancelled: it would starve the next ones."""
        lab = self._lab
        log = await self._log(to_its_end=row is not None)
        progress: dict[str, Any] = {}
        if row is None:
            outcome, progress = judge_stuck(log, now_ms(), lab.cap_ms)
            judgement = Judgement(outcome, message=f"still running after {lab.cap_ms:g} ms")
            await cancel_run(lab.world, self.run_id, "cap")
        else:
            judgement = judge(row, lab.code, self._input)
        for what, count in lab.code.in_log(self._input, log).items():
            self._pressure.count(what, count)
        self._vacuous = why_vacuous(row, judgement, lab.code, self._input, log, self._pressure)
        audit = await lab.world.audit_of(self.run_id)
        await self._count_work()
        await asyncio.to_thread(self._keep, log, row, judgement.outcome, audit)
        return self._attempt(judgement, duration, len(log), progress)

    async def _log(self, *, to_its_end: bool) -> EventLog:
        """The run's log, read in full. A run's row says that it has ended before the event that ends it is published:
        wait for that event, but not for ever, for its writer may have died in between."""
        deadline = asyncio.get_running_loop().time() + LAST_EVENT_SECONDS
        while True:
            self._log_read_at = time.monotonic_ns()
            log = EventLog((await self._lab.world.load(self.run_id)).events, self.run_id)
            if log.ended or not to_its_end or asyncio.get_running_loop().time() > deadline:
                return log
            await asyncio.sleep(SHORTEST_POLL_MS / 1000)

    def _keep(self, log: EventLog, row: RunRow | None, outcome: Outcome, audit: tuple[AuditRecord, ...]) -> None:
        lab = self._lab
        kept = row or RunRow(status="running")
        evidence = Evidence(
            origin=f"storm {lab.cell.label}",
            missing=missing_from(log.events, has_rows=False, has_audit=bool(audit), has_result=row is not None),
            live=outcome.stuck,
        )
        capture = Capture(
            source=f"logs/{self.run_id}.ndjson",
            log=log,
            evidence=evidence,
            run=replace(kept, workload=lab.code.name, input=asdict(self._input)),
            audit=audit,
            reads=self._reads,
            data={"outcome": str(outcome), LOG_READ_AT: self._log_read_at, **asdict(lab.cell)},
        )
        write_capture(capture, lab.folder.path)

    def _attempt(
        self, judgement: Judgement, duration: float, events: int = 0, progress: dict[str, Any] | None = None
    ) -> Attempt:
        lab = self._lab
        return Attempt(
            cell=lab.cell,
            number=self._number,
            run_id=self.run_id,
            outcome=judgement.outcome,
            status={Outcome.COMPLETED: "completed"}.get(judgement.outcome),
            error_code=judgement.code,
            error_message=judgement.message,
            started_at=self._started_at,
            duration_ms=round(duration, 1),
            events=events,
            pressure=pressure_row(self._pressure, judgement.stragglers, self._vacuous),
            work=dict(self._work),
            progress=progress or {},
            flags=flags(judgement.outcome, self._pressure, self._vacuous),
            note=self._note,
        )

    async def _count_work(self) -> None:
        """What the workers did for this run, summed over their journals: those on other hosts wrote theirs into the
        database."""
        rows = await asyncio.to_thread(lambda: list(self._lab.folder.work_rows(self.run_id)))
        self._work.clear()
        for row in (*rows, *await self._lab.registered.work_rows(self.run_id)):
            self._work.update(work_of(row))
        # those of other hosts have other clocks
        self._reads = tuple(ReadRecord(**read) for row in rows for read in row.get("reads", ()))

    def _elapsed(self) -> float:
        return (asyncio.get_running_loop().time() - self._began) * 1000


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


async def _settle(task: asyncio.Task[None]) -> None:
    """Wait for the pump; its own faults are shown by the pressure that it did not exert."""
    try:
        await task
    except Exception as bad:
        if isinstance(bad, StoreFailure):
            raise
