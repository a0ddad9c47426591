"""The driver: attempts over all cells, a budget, failures of every kind; on the memory world, in this process."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextlib import aclosing
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.errors import EXIT_USAGE, StoreBusy, StoreFailure, StoreForeign
from stormctl.report.load import load_artefact
from stormctl.storm import driver, in_process
from stormctl.storm.attempt import Attempt
from stormctl.storm.describe import calibration
from stormctl.storm.driver import run_storm, turns
from stormctl.storm.embedded import EmbeddedRun
from stormctl.storm.events import AttemptLanded, AttemptStarted, StormFinished, StormStarted
from stormctl.storm.folder import StormFolder
from stormctl.storm.outcome import Outcome
from stormctl.storm.pump import Pump
from stormctl.storm.run import Announce, AttemptRun, Lab
from stormctl.workloads.registry import WORKLOADS
from stormctl.worlds import Page, condition_named
from stormctl.worlds.local import LocalWorld
from stormctl.worlds.memory import MemoryWorld
from tests.storm.making import attempt, collect, plan, storm

BOTH = {"scenario": ["step-storm", "hook-storm"], "pair": ["main + nets", "seq-final + dispenser"]}


@pytest.fixture
def folder(tmp_path: Path) -> StormFolder:
    return StormFolder.create(plan(), tmp_path)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Attempts that land at once. The list says which cell each one was of; nobody serves the queues."""
    made: list[str] = []

    class Quick(AttemptRun):
        async def run(self, announce: Announce) -> Attempt:
            await announce(str(self._subject.run_id))
            made.append(self._lab.cell.label)
            await asyncio.sleep(0)
            return attempt(self._number, cell=self._lab.cell, run_id=self._subject.run_id)

    monkeypatch.setattr(driver, "AttemptRun", Quick)
    return made


def landed(events: list[Any]) -> list[Attempt]:
    return [event.attempt for event in events if isinstance(event, AttemptLanded)]


def ending(folder: StormFolder) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder.path / "storm.json").read_text())
    return found


class TestAWholeStorm:
    def test_runs_every_attempt_of_every_cell_and_keeps_what_each_left(self, folder: StormFolder) -> None:
        wanted = plan(matrix=BOTH, input={"rounds": 1, "width": 2}, attempts=1)
        events = storm(wanted, folder)
        attempts = landed(events)
        assert Counter(one.cell for one in attempts) == dict.fromkeys(wanted.cells, 1)
        assert {one.outcome for one in attempts if one.cell.condition == "seq-final"} == {Outcome.COMPLETED}
        for one in attempts:
            assert one.run_id is not None
            assert one.events > 10
            assert one.work["deliveries"] > 0
            assert (folder.path / "logs" / f"{one.run_id}.ndjson").exists()
            assert (folder.path / "logs" / f"{one.run_id}.meta.json").exists()
        assert load_artefact(folder.path).attempts == tuple(attempts)

    def test_tells_its_story_from_started_to_finished(self, folder: StormFolder) -> None:
        events = storm(plan(attempts=2, concurrency=2), folder)
        assert isinstance(events[0], StormStarted)
        assert (events[0].name, events[0].seed, sum(events[0].planned.values())) == ("small", 3, 2)
        assert isinstance(events[-1], StormFinished)
        assert (events[-1].landed, events[-1].planned, events[-1].reason) == (2, 2, "done")
        told = [(type(event), getattr(event, "run_id", None)) for event in events if isinstance(event, AttemptStarted)]
        assert [run for _, run in told] == [one.run_id for one in sorted(landed(events), key=lambda one: one.number)]
        assert ending(folder) == {"schema": "stormctl.storm/1", "reason": "done", "landed": 2, "planned": 2}

    def test_warns_of_an_input_with_which_nobody_straggles(self, folder: StormFolder, quick: list[str]) -> None:
        calm = plan(input={"rounds": 1, "width": 2, "step_delay_jitter_ms": 0.0})
        started = storm(calm, folder)[0]
        assert isinstance(started, StormStarted)
        assert any("do not straddle the watchdog" in text for text in started.warnings)
        assert list(started.warnings) == list(calibration(calm))


class TestTurns:
    @given(st.integers(1, 6), st.sampled_from([{"scenario": ["step-storm"]}, BOTH, {"condition": ["main"]}]))
    def test_take_the_cells_one_after_another_so_that_a_drift_of_the_machine_hits_all(
        self, attempts: int, matrix: dict[str, Any]
    ) -> None:
        wanted = plan(attempts=attempts, matrix=matrix)
        order = [(turn.number, turn.cell) for turn in turns(wanted)]
        assert order == [(number, cell) for number in range(1, attempts + 1) for cell in wanted.cells]

    def test_are_taken_in_that_order(self, folder: StormFolder, quick: list[str]) -> None:
        wanted = plan(attempts=3, matrix=BOTH)
        storm(wanted, folder)
        assert quick == [cell.label for cell in wanted.cells] * 3

    def test_are_never_more_at_once_than_planned(self, folder: StormFolder, monkeypatch: pytest.MonkeyPatch) -> None:
        running, most = set(), []

        class Counted(AttemptRun):
            async def run(self, announce: Announce) -> Attempt:
                running.add(self._subject.run_id)
                most.append(len(running))
                await asyncio.sleep(0.002)
                running.discard(self._subject.run_id)
                return attempt(self._number, run_id=self._subject.run_id)

        monkeypatch.setattr(driver, "AttemptRun", Counted)
        assert len(landed(storm(plan(attempts=9, concurrency=3), folder))) == 9
        assert max(most) == 3


class TestTheBudget:
    def test_stops_launching_and_lets_what_runs_land(self, folder: StormFolder) -> None:
        events = storm(plan(attempts=40, concurrency=2, budget="50ms"), folder)
        finished = events[-1]
        assert isinstance(finished, StormFinished)
        assert finished.reason == "budget"
        assert 2 <= finished.landed == len(landed(events)) < 40
        assert sum(isinstance(event, AttemptStarted) for event in events) == finished.landed
        assert ending(folder)["reason"] == "budget"

    def test_that_is_not_used_up_ends_as_done(self, folder: StormFolder, quick: list[str]) -> None:
        finished = storm(plan(budget="1m"), folder)[-1]
        assert isinstance(finished, StormFinished)
        assert finished.reason == "done"


class TestAnAttempt:
    def test_in_which_the_harness_fails_is_infra_and_the_storm_goes_on(
        self, folder: StormFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        watched = AttemptRun._watch

        async def fails_once(self: AttemptRun) -> Any:
            if self._number == 1:
                raise LookupError("a fault of the harness")
            return await watched(self)

        monkeypatch.setattr(AttemptRun, "_watch", fails_once)
        attempts = {one.number: one for one in landed(storm(plan(), folder))}
        assert attempts[1].outcome is Outcome.INFRA
        assert (attempts[1].error_code, attempts[1].error_message) == (
            "HARNESS_ERROR",
            "LookupError: a fault of the harness",
        )
        assert attempts[1].run_id is not None
        assert attempts[2].outcome is Outcome.COMPLETED

    def test_whose_pump_dies_says_that_the_pressure_was_lost(
        self, folder: StormFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def dies(_input: Any, _pressure: Any) -> Any:
            yield from ()
            raise LookupError("a fault of the driver")

        monkeypatch.setitem(WORKLOADS, "step-storm", replace(WORKLOADS["step-storm"], driver=dies))
        (one,) = landed(storm(plan(attempts=1), folder))
        assert one.outcome is Outcome.COMPLETED
        assert "pressure-lost" in one.flags

    def test_that_outlives_its_cap_is_stuck_and_cancelled(
        self, folder: StormFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def nobody_serves(_cells: Any, _hand: Any) -> None:
            await asyncio.sleep(60)

        monkeypatch.setattr(in_process, "serve", nobody_serves)
        (one,) = landed(storm(plan(attempts=1, cap="10s"), folder))
        assert one.outcome is Outcome.DORMANT
        assert one.error_message == "still running after 100 ms"
        assert one.duration_ms >= 100
        rows = [json.loads(line) for line in (folder.path / "logs" / f"{one.run_id}.ndjson").read_text().splitlines()]
        assert [row["type"] for row in rows] == ["run_created"]  # as it was when it was judged

    def test_has_the_same_driver_seed_in_every_storm_of_the_same_plan(self, folder: StormFolder) -> None:
        async def seeds(wanted: Any) -> list[int]:
            cell = wanted.cells[0]
            lab = Lab(wanted, cell, folder)
            return [lab.seed(number) for number in range(1, 5)]

        first, again, other = (asyncio.run(seeds(plan(seed=seed))) for seed in (3, 3, 4))
        assert first == again
        assert len(set(first)) == 4
        assert first != other


class TestAStoreThatFails:
    def test_ends_the_storm_and_what_landed_stays(self, folder: StormFolder, monkeypatch: pytest.MonkeyPatch) -> None:
        """The third run cannot be created: the disk is full."""
        created = EmbeddedRun.begin
        numbers = count(1)

        async def refused(self: EmbeddedRun, input: Any) -> None:
            if next(numbers) == 3:
                raise StoreFailure("the store failed: No space left on device", remedy="Free space.")
            await created(self, input)

        monkeypatch.setattr(EmbeddedRun, "begin", refused)
        seen: list[Any] = []
        with pytest.raises(StoreFailure, match="No space left"):
            asyncio.run(collect(plan(attempts=5, concurrency=1), folder, seen))
        assert [one.number for one in landed(seen)] == [1, 2]
        assert load_artefact(folder.path).attempts == tuple(landed(seen))
        assert ending(folder) == {"schema": "stormctl.storm/1", "reason": "failed", "landed": 2, "planned": 5}

    def test_under_the_pump_ends_the_storm_long_before_the_cap(
        self, folder: StormFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def fails(_self: MemoryWorld, _token: str) -> Any:
            raise StoreFailure("the store failed: Input/output error", remedy="Check the disk.")

        monkeypatch.setattr(MemoryWorld, "hook", fails)
        monkeypatch.setattr(in_process, "serve", lambda _cells, _hand: asyncio.sleep(60))
        with pytest.raises(StoreFailure, match="Input/output error"):
            storm(plan(cap="240000s"), folder)

    def test_under_the_workers_ends_the_storm(self, folder: StormFolder, monkeypatch: pytest.MonkeyPatch) -> None:
        async def fails(_cells: Any, _hand: Any) -> None:
            raise StoreFailure("the queue failed", remedy="Check the disk.")

        monkeypatch.setattr(in_process, "serve", fails)
        with pytest.raises(StoreFailure, match="the queue failed"):
            storm(plan(cap="240000s"), folder)

    def test_a_fault_of_ours_in_the_workers_ends_it_too(
        self, folder: StormFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A storm that nobody serves any more would be a wall of stuck runs."""

        async def fails(_cells: Any, _hand: Any) -> None:
            raise LookupError("a fault of ours")

        monkeypatch.setattr(in_process, "serve", fails)
        with pytest.raises(LookupError):
            storm(plan(cap="240000s"), folder)
        assert ending(folder)["reason"] == "failed"

    def test_while_the_end_is_written_down_does_not_hide_the_first_failure(
        self, folder: StormFolder, quick: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuses(what: str) -> Any:
            def raises(*_: Any) -> Any:
                raise StoreFailure(f"{what} failed", remedy="Make room.")

            return raises

        monkeypatch.setattr(StormFolder, "record", refuses("record"))
        monkeypatch.setattr(StormFolder, "write_json", refuses("write_json"))
        with pytest.raises(StoreFailure, match="record failed"):
            storm(plan(), folder)


class TestAStoreThatCannotBeHad:
    def test_because_somebody_uses_it(self, folder: StormFolder) -> None:
        wanted = plan(world="local", processes=1)
        place = folder.store(wanted.cells[0])
        holder = LocalWorld.create(place, condition_named("seq-final"))
        try:
            with pytest.raises(StoreBusy, match=r"in use by pid \d+") as told:
                storm(wanted, folder)
        finally:
            asyncio.run(holder.close())
        assert told.value.exit_code == EXIT_USAGE
        assert ending(folder)["reason"] == "failed"

    def test_because_it_holds_something_else(self, folder: StormFolder) -> None:
        wanted = plan(world="local", processes=1)
        place = folder.store(wanted.cells[0])
        place.mkdir()
        (place / "thesis.txt").write_text("mine")
        with pytest.raises(StoreForeign, match="not empty and no store of stormctl"):
            storm(wanted, folder)
        assert [entry.name for entry in place.iterdir()] == ["thesis.txt"]


class TestCuttingItShort:
    def test_by_cancelling_leaves_no_task_and_says_interrupted(self, folder: StormFolder) -> None:
        async def main() -> set[Any]:
            seen: list[Any] = []
            task = asyncio.create_task(collect(plan(attempts=50), folder, seen))
            while not landed(seen):
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert ending(folder)["landed"] >= len(landed(seen)) > 0
            return asyncio.all_tasks() - {asyncio.current_task()}

        assert asyncio.run(main()) == set()
        assert ending(folder)["reason"] == "interrupted"

    def test_while_an_attempt_waits_for_its_pump_starts_no_other_attempt(
        self, folder: StormFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The cancellation was taken for the pump's own there, and the storm went on without its workers."""

        async def main() -> tuple[int, float]:
            ended = asyncio.Event()

            async def lingers(self: Pump, _driver: Any) -> None:
                await self.ended.wait()
                ended.set()
                await asyncio.sleep(600)

            monkeypatch.setattr(Pump, "run", lingers)
            seen: list[Any] = []
            task = asyncio.create_task(collect(plan(attempts=9, concurrency=1), folder, seen))
            await ended.wait()
            began = asyncio.get_running_loop().time()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            started = sum(isinstance(event, AttemptStarted) for event in seen)
            return started, asyncio.get_running_loop().time() - began

        started, seconds = asyncio.run(main())
        assert started == 1
        assert seconds < 5
        assert load_artefact(folder.path).attempts == ()

    def test_while_the_pump_is_stuck_in_the_store_does_not_wait_for_it(
        self, folder: StormFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def main() -> float:
            async def stuck(self: Pump, _driver: Any) -> None:
                await asyncio.sleep(600)

            monkeypatch.setattr(Pump, "run", stuck)
            task = asyncio.create_task(collect(plan(attempts=1, cap="240000s"), folder, []))
            await asyncio.sleep(0.05)
            began = asyncio.get_running_loop().time()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return asyncio.get_running_loop().time() - began

        assert asyncio.run(main()) < 5

    def test_by_closing_the_generator_does_the_same(self, folder: StormFolder) -> None:
        async def main() -> set[Any]:
            async with aclosing(run_storm(plan(attempts=50), folder)) as events:
                async for event in events:
                    if isinstance(event, AttemptLanded):
                        break
            return asyncio.all_tasks() - {asyncio.current_task()}

        assert asyncio.run(main()) == set()
        assert ending(folder)["reason"] == "interrupted"
        assert len(load_artefact(folder.path).attempts) >= 1


def test_a_log_is_kept_up_to_the_event_that_ends_its_run(folder: StormFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    # a run's row says that it has ended before the event is published
    load, hidden = MemoryWorld.load, [3]

    async def late(world: MemoryWorld, run_id: str, after: str | None = None) -> Page:
        page = await load(world, run_id, after)
        if page.events and page.events[-1].is_terminal and hidden[0] > 0:
            hidden[0] -= 1
            return replace(page, events=page.events[:-1])
        return page

    monkeypatch.setattr(MemoryWorld, "load", late)
    (made,) = landed(storm(plan(attempts=1, concurrency=1), folder))
    kept = (folder.path / "logs" / f"{made.run_id}.ndjson").read_text().splitlines()
    assert hidden == [0]
    assert json.loads(kept[-1])["type"] == "run_completed"
