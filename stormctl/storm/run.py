"""One attempt: create a run, press on it, watch it, and keep what it left behind."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

from stormctl.errors import StoreFailure
from stormctl.history import EventLog, RunRow
from stormctl.outside import outside
from stormctl.readers import write_capture
from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.classify import Judgement, flags, judge, judge_stuck, pressure_row, why_vacuous
from stormctl.storm.folder import StormFolder
from stormctl.storm.outcome import Outcome
from stormctl.storm.plan import Plan
from stormctl.storm.pump import Pump
from stormctl.storm.subject import Remains, Stage, Subject
from stormctl.workloads.base import Pressure, scaled
from stormctl.workloads.registry import workload
from stormctl.worlds.mint import now_ms

#: told a run's id
Announce = Callable[[str], Awaitable[None]]

STATUS_POLL_MS = 1_000.0
HOOK_POLL_MS = 250.0
SHORTEST_POLL_MS = 10.0
#: how long the cancelling of a run may take when nobody waits for the run any more
CANCEL_SECONDS = 2.0
#: longer than any injected delay between a run's row and the event that ends it
LAST_EVENT_SECONDS = 5.0


class Lab:
    """What all attempts of one cell share."""

    def __init__(self, plan: Plan, cell: Cell, folder: StormFolder) -> None:
        self.plan = plan
        self.cell = cell
        self.folder = folder
        self.code = workload(cell.scenario)
        self.input = scaled(self.code.parse_input(plan.inputs[cell.scenario]), plan.time_scale)
        self.cap_ms = plan.cap_ms * plan.time_scale

    def fit(self, stage: Stage) -> None:
        """Take the input that the cell can play, now that it is open."""
        self.input = stage.fitted(self.cell, self.input)

    def seed(self, number: int) -> int:
        """The seed of an attempt's driver: the same for the same plan seed, cell and number, on any machine."""
        return zlib.crc32(f"{self.plan.seed}/{self.cell.label}/{number}".encode())

    def poll(self, ms: float) -> float:
        """A poll interval in this plan's time."""
        return max(SHORTEST_POLL_MS, ms * self.plan.time_scale)


class AttemptRun:
    """One attempt in progress. It is announced by its run's id, which some targets choose as they create the run."""

    def __init__(self, lab: Lab, subject: Subject, number: int, note: str | None = None) -> None:
        self._lab = lab
        self._subject = subject
        self._number = number
        self._note = note
        token = f"storm-{lab.cell.scenario}-{now_ms()}-{number}-{outside().token(3)}"
        self._input = lab.code.at_start(replace(lab.input, token=token), now_ms())
        self._pressure = Pressure()
        self._vacuous: str | None = None
        self._work: Mapping[str, int] = {}
        self._began = asyncio.get_running_loop().time()
        self._started_at = datetime.fromtimestamp(now_ms() / 1000, UTC).isoformat(timespec="milliseconds")

    async def run(self, announce: Announce) -> Attempt:
        """Make the attempt, and tell its run's id as soon as there is one: before the run is created, if it can be.

        A fault of the harness is an ``infra`` outcome; a failing store is raised. A run that is left before its end,
        for whatever reason, is cancelled: it would starve the next ones.
        """
        try:
            await self.begin(announce)
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

    async def begin(self, announce: Announce) -> None:
        """Announce the run and create it, or the other way round."""
        early = self._subject.run_id
        if early is not None:
            await announce(early)
        await self._subject.begin(self._input)
        if early is None and self._subject.run_id is not None:
            await announce(self._subject.run_id)

    async def _cancel(self, reason: str) -> None:
        """Cancel the run as far as the store lets us."""
        with suppress(Exception):
            await asyncio.wait_for(self._subject.cancel(reason), CANCEL_SECONDS)

    async def _watch(self) -> tuple[RunRow | None, float]:
        """Press until the run ends or its cap is over. The row is None when it has not ended."""
        lab = self._lab
        pump = Pump(self._subject, lab.seed(self._number), lab.poll(HOOK_POLL_MS))
        pumping = asyncio.create_task(pump.run(lab.code.driver(self._input, self._pressure)))
        ended: RunRow | None = None
        try:
            deadline = self._began + lab.cap_ms / 1000
            while asyncio.get_running_loop().time() < deadline:
                row = await self._subject.row()
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
            await self._subject.cancel("cap")
        else:
            judgement = judge(row, lab.code, self._input)
        for what, count in lab.code.in_log(self._input, log).items():
            self._pressure.count(what, count)
        self._vacuous = why_vacuous(row, judgement, lab.code, self._input, log, self._pressure)
        remains = await self._subject.remains(log, ended=row is not None, live=judgement.outcome.stuck)
        self._work = remains.work
        await outside().in_thread(self._keep, remains, row, judgement.outcome)
        return self._attempt(judgement, duration, len(log), progress)

    async def _log(self, *, to_its_end: bool) -> EventLog:
        """The run's log, read in full. A run's row says that it has ended before the event that ends it is published:
        wait for that event, but not for ever, for its writer may have died in between."""
        deadline = asyncio.get_running_loop().time() + LAST_EVENT_SECONDS
        while True:
            log = await self._subject.log()
            if log.ended or not to_its_end or asyncio.get_running_loop().time() > deadline:
                return log
            await asyncio.sleep(SHORTEST_POLL_MS / 1000)

    def _keep(self, remains: Remains, row: RunRow | None, outcome: Outcome) -> None:
        lab, capture = self._lab, remains.capture
        kept = row or RunRow(status="running")
        whole = replace(
            capture,
            run=replace(kept, workload=lab.code.name, input=asdict(self._input)),
            data={"outcome": str(outcome), **asdict(lab.cell), **capture.data},  # a target may know it better
        )
        write_capture(whole, lab.folder.path, with_payloads=remains.payloads)

    def _attempt(
        self, judgement: Judgement, duration: float, events: int = 0, progress: dict[str, Any] | None = None
    ) -> Attempt:
        lab = self._lab
        return Attempt(
            cell=lab.cell,
            number=self._number,
            run_id=self._subject.run_id,
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

    def _elapsed(self) -> float:
        return (asyncio.get_running_loop().time() - self._began) * 1000


async def _settle(task: asyncio.Task[None]) -> None:
    """Wait for the pump; its own faults are shown by the pressure that it did not exert."""
    try:
        await task
    except Exception as bad:
        if isinstance(bad, StoreFailure):
            raise
