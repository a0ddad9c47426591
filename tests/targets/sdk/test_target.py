"""Storms on the target sdk, against servers played in Python: what lands, what is kept, what a sick server costs."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from stormctl.errors import PlanError, UsageError
from stormctl.history import LOG_READ_AT, Capture, Facet
from stormctl.readers import open_captures
from stormctl.storm.after import sweep_storm
from stormctl.storm.attempt import Attempt
from stormctl.storm.driver import run_storm
from stormctl.storm.events import AttemptLanded, AttemptStarted, StormEvent, StormNoted
from stormctl.storm.folder import StormFolder
from stormctl.storm.outcome import Outcome
from stormctl.storm.plan import Plan, parse_plan
from stormctl.targets.sdk.target import SdkTarget
from tests.targets.sdk.fake_sdk import FakeHost, FakeSdk

SMALL: dict[str, Any] = {
    "schema": "stormctl.plan/1",
    "name": "small",
    "target": "sdk",
    "scenario": "hook-storm",
    "version": "4.8.9",
    "attempts": 2,
    "concurrency": 1,
    "time_scale": 0.05,
    "cap": "100s",
    "input": {"rounds": 1, "width": 2, "resume": "burst"},
}


def plan(**changes: Any) -> Plan:
    return parse_plan({**SMALL, **changes}, "small.yaml")


class Storm:
    """A whole storm, and what came of it."""

    def __init__(self, folder: Path, sdk: FakeSdk, wanted: Plan | None = None) -> None:
        self.plan = wanted if wanted is not None else plan()
        self.folder = StormFolder.create(self.plan, folder)
        self.target = SdkTarget(ensure=sdk.ensure, start=sdk.start)
        self.events: list[StormEvent] = []

    async def run(self) -> Storm:
        running = run_storm(self.plan, self.folder, target=self.target)
        async with aclosing(running) as events:
            async for event in events:
                self.events.append(event)
        return self

    @property
    def attempts(self) -> list[Attempt]:
        return [event.attempt for event in self.events if isinstance(event, AttemptLanded)]

    @property
    def notes(self) -> str:
        return "\n".join(event.text for event in self.events if isinstance(event, StormNoted))

    def capture(self, number: int = 0) -> Capture:
        (found,) = open_captures([self.folder.path / "logs" / f"{self.attempts[number].run_id}.ndjson"])
        assert isinstance(found, Capture)
        return found


@pytest.fixture
def sdk() -> FakeSdk:
    return FakeSdk()


class TestAWholeStorm:
    async def test_lands_every_attempt_with_its_log_its_row_and_its_trace(self, sdk: FakeSdk, tmp_path: Path) -> None:
        storm = await Storm(tmp_path, sdk).run()
        assert [one.outcome for one in storm.attempts] == [Outcome.COMPLETED] * 2
        first = storm.attempts[0]
        assert first.pressure["stragglers"] == 1
        assert first.pressure["resumes_sent"] == 2
        assert first.work == {"deliveries": 1, "duplicates": 1, "overlap": 2, "reads": 1}
        capture = storm.capture()
        assert len(capture.log) == first.events == 9
        assert capture.run is not None
        assert capture.run.output["ledger"][0]["stragglers"] == 1
        assert capture.audit is not None
        assert {record.type for record in capture.audit} >= {"run_created", "hook_received", "run_completed"}
        assert Facet.AUDIT not in capture.evidence.missing
        assert capture.reads is not None
        assert [(read.reader, read.full, read.count) for read in capture.reads] == [("server 1 delivery 2", True, 6)]
        assert capture.data["version"] == "4.8.9"
        assert capture.data["generation"] == "opposite"
        assert capture.data["condition"] == "workflow 4.8.9"
        assert isinstance(capture.data[LOG_READ_AT], int)
        assert capture.log[0].payload is not None
        assert capture.log[0].payload.load() is not None  # the log is kept with what its events carry

    async def test_a_run_is_announced_once_the_sdk_has_named_it(self, sdk: FakeSdk, tmp_path: Path) -> None:
        storm = await Storm(tmp_path, sdk).run()
        announced = [event.run_id for event in storm.events if isinstance(event, AttemptStarted)]
        assert announced == [one.run_id for one in storm.attempts]

    async def test_the_burst_is_aimed_at_the_recorded_end_of_the_waits(self, sdk: FakeSdk, tmp_path: Path) -> None:
        sdk.watchdog_ms = 700  # later than the plan's input says: only the log knows
        storm = await Storm(tmp_path, sdk, plan(attempts=1)).run()
        capture = storm.capture()
        (ends,) = {event.resume_at for event in capture.log if event.type == "wait_created"}
        received = [event.created_at for event in capture.log if event.type == "hook_received"]
        assert len(received) == 2
        assert ends is not None
        assert all(at is not None and abs(at - ends) < 150 for at in received)

    async def test_every_cell_has_servers_of_its_own_on_a_fresh_store_one_after_the_other(
        self, sdk: FakeSdk, tmp_path: Path
    ) -> None:
        wanted = plan(version=["4.8.9", "5.0.0-beta.55"], attempts=1, environment={"WORKFLOW_TURBO": "0"})
        storm = await Storm(tmp_path, sdk, wanted).run()
        assert sdk.ensured == [("4.8.9", "local"), ("5.0.0-beta.55", "local")]
        first, second = sdk.hosts
        assert first.folder != second.folder
        assert first._environment == {"WORKFLOW_TURBO": "0"}
        assert not first.is_alive
        assert not second.is_alive
        assert storm.attempts[1].started_at > storm.attempts[0].started_at
        assert "installing workflow 4.8.9" in storm.notes

    async def test_the_faults_of_the_plan_reach_the_host(self, sdk: FakeSdk, tmp_path: Path) -> None:
        faults = {"duplicate": 0.5, "duplicate_ms": 20, "read_delay_ms": 60, "write_delay_ms": 30}
        await Storm(tmp_path, sdk, plan(attempts=1, host_faults=faults)).run()
        told = sdk.hosts[0].faults
        assert (told.duplicate, told.duplicate_ms, told.read_delay_ms, told.write_delay_ms) == (0.5, 20, 60, 30)
        assert told.trace

    async def test_a_version_without_attributes_writes_none_and_its_log_says_so(
        self, sdk: FakeSdk, tmp_path: Path
    ) -> None:
        inputs = {"rounds": 1, "width": 2, "watchdog_ms": 1000}
        wanted = plan(scenario="step-storm", attempts=1, input=inputs, cap="20s")
        storm = await Storm(tmp_path, sdk, wanted).run()
        assert sdk.started[0]["attrWrites"] == 0
        assert storm.capture().run.input["attr_writes"] == 0  # type: ignore[union-attr]

    async def test_an_attribute_is_written_where_there_are_attributes(self, sdk: FakeSdk, tmp_path: Path) -> None:
        sdk.attributes = True
        await Storm(tmp_path, sdk, plan(scenario="step-storm", attempts=1, input={}, cap="20s")).run()
        assert sdk.started[0]["attrWrites"] == 1

    async def test_times_are_scaled_and_whole(self, sdk: FakeSdk, tmp_path: Path) -> None:
        await Storm(tmp_path, sdk, plan(attempts=1, time_scale=0.0333)).run()
        assert sdk.started[0]["watchdogMs"] == 83


class TestOutcomes:
    async def test_a_corrupted_run_is_told_by_the_code_in_its_row_and_its_divergence_is_predicted_or_said(
        self, sdk: FakeSdk, tmp_path: Path
    ) -> None:
        sdk.outcome = "corrupted"
        storm = await Storm(tmp_path, sdk, plan(attempts=1)).run()
        (landed,) = storm.attempts
        assert (landed.outcome, landed.error_code) == (Outcome.CORRUPTED, "CORRUPTED_EVENT_LOG")
        assert "Last divergence" in (landed.error_message or "")
        told = list(sweep_storm(storm.plan, storm.folder, storm.attempts, storm.target))
        lines = [one.text for one in told if isinstance(one, StormNoted)]
        assert lines[0].startswith("workflow 4.8.9: the generation opposite predicts the divergence")
        kept = json.loads((storm.folder.path / "predictions.json").read_text())
        assert kept["logs"][0]["printed"]["kind"] == "resume-at"
        assert kept["logs"][0]["condition"] == "workflow 4.8.9"

    async def test_a_run_that_outlives_its_cap_is_stuck_and_cancelled(self, sdk: FakeSdk, tmp_path: Path) -> None:
        sdk.outcome = "stuck"
        storm = await Storm(tmp_path, sdk, plan(attempts=1, cap="10s")).run()
        assert storm.attempts[0].outcome.stuck
        assert sdk.cancelled == [storm.attempts[0].run_id]
        assert storm.capture().evidence.live

    async def test_at_most_four_resumes_of_a_run_are_under_way(self, sdk: FakeSdk, tmp_path: Path) -> None:
        sdk.resume_takes_s = 0.2
        from stormctl.storm.sdk_plan import NO_HOST_FAULTS
        from stormctl.targets.outside import LocalStore
        from stormctl.targets.sdk.run import SdkRun
        from stormctl.targets.sdk.station import Station
        from stormctl.workloads.hook_storm import Input

        async def tell(_event: StormEvent) -> None: ...

        project = sdk.ensure("4.8.9", "local", tell=lambda _text: None)
        station = await Station.open(
            "x", project, tmp_path / "x", LocalStore, faults=NO_HOST_FAULTS, tell=tell, start=sdk.start
        )
        run = SdkRun(station, "hook-storm")
        await run.begin(Input(token="t"))
        sent = await asyncio.gather(*(run.resume("t:0:0", {}) for _ in range(10)))
        assert sent == [True] * 10
        assert sdk.most_resumes == 4
        await station.close()


class TestSickServers:
    async def test_a_server_that_ends_is_told_with_its_last_words_and_costs_the_rest_of_its_cell(
        self, sdk: FakeSdk, tmp_path: Path
    ) -> None:
        sdk.outcome = "stuck"
        storm = Storm(tmp_path, sdk, plan(attempts=3, cap="2000s"))
        running = asyncio.create_task(storm.run())
        await started(storm)
        await sdk.hosts[0].die("out of memory: it is all over")
        await asyncio.wait_for(running, 20)
        assert [one.outcome for one in storm.attempts] == [Outcome.INFRA] * 3
        assert "out of memory: it is all over" in storm.notes
        assert "ended by itself" in storm.notes
        assert all("not started again" in (one.error_message or "") for one in storm.attempts)

    async def test_where_the_plan_says_so_it_is_started_again_once(self, sdk: FakeSdk, tmp_path: Path) -> None:
        sdk.outcome = "stuck"
        storm = Storm(tmp_path, sdk, plan(attempts=2, cap="2000s", host_faults={"restart": True}))
        running = asyncio.create_task(storm.run())
        await started(storm)
        await sdk.hosts[0].die("the first time")
        await until(lambda: "serves again" in storm.notes)
        assert sdk.hosts[0].lives == 2
        await sdk.hosts[0].die("the second time")
        await asyncio.wait_for(running, 20)
        assert [one.outcome for one in storm.attempts] == [Outcome.INFRA] * 2
        assert "the second time" in storm.notes

    async def test_a_kill_of_the_plan_is_told_and_the_runs_go_on(self, sdk: FakeSdk, tmp_path: Path) -> None:
        sdk.watchdog_ms = 300
        wanted = plan(attempts=2, host_faults={"kill_after": "600ms"})
        storm = await Storm(tmp_path, sdk, wanted).run()
        assert "was killed, as the plan has it" in storm.notes
        assert "serves again" in storm.notes
        assert sdk.hosts[0].lives == 2
        assert storm.attempts[0].outcome is Outcome.COMPLETED

    async def test_a_server_that_does_not_come_up_costs_its_cell_and_not_the_storm(
        self, sdk: FakeSdk, tmp_path: Path
    ) -> None:
        sdk.boots_fail = True
        storm = await Storm(tmp_path, sdk).run()
        assert [one.outcome for one in storm.attempts] == [Outcome.INFRA] * 2
        assert "no leg to stand on" in storm.notes

    async def test_a_version_that_cannot_be_had_ends_the_storm_before_its_first_attempt(
        self, sdk: FakeSdk, tmp_path: Path
    ) -> None:
        def ensure(version: str, world: str, *, tell: Any) -> Any:
            if version == "5.0.0-beta.55":
                raise UsageError("workflow 5.0.0-beta.55 was never published", remedy="Give another.")
            return sdk.ensure(version, world, tell=tell)

        storm = Storm(tmp_path, sdk, plan(version=["4.8.9", "5.0.0-beta.55"]))
        storm.target = SdkTarget(ensure=ensure, start=sdk.start)
        with pytest.raises(UsageError, match="was never published"):
            await storm.run()
        assert storm.attempts == []
        assert sdk.hosts == []

    async def test_servers_end_when_the_storm_is_cut_short(self, sdk: FakeSdk, tmp_path: Path) -> None:
        sdk.outcome = "stuck"
        storm = Storm(tmp_path, sdk, plan(cap="2000s"))
        running = asyncio.create_task(storm.run())
        await started(storm)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not any(host.is_alive for host in sdk.hosts)


async def test_a_resumed_storm_has_a_fresh_store_beside_the_one_of_the_driver_that_died(tmp_path: Path) -> None:
    sdk = FakeSdk()
    storm = await Storm(tmp_path, sdk, plan(attempts=1)).run()
    again = Storm(tmp_path, sdk, storm.plan)
    again.folder = storm.folder
    await again.run()
    assert sdk.hosts[0].folder != sdk.hosts[1].folder
    assert sdk.hosts[1].folder.parent.name == "2"


async def test_a_scenario_of_a_persons_own_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="no workflow for"):
        async with SdkTarget().stage(
            Plan(
                "x",
                1,
                {
                    "scenario": ("mine",),
                    "world": ("local",),
                    "condition": ("workflow 4.8.9",),
                    "generation": ("as published",),
                },
            ),
            StormFolder(tmp_path),
            lambda _event: asyncio.sleep(0),
        ):
            pass


async def started(storm: Storm) -> None:
    await until(lambda: any(isinstance(event, AttemptStarted) for event in storm.events))


async def until(wanted: Any, limit_s: float = 10.0) -> None:
    end = asyncio.get_running_loop().time() + limit_s
    while not wanted():
        assert asyncio.get_running_loop().time() < end, "it never came true"
        await asyncio.sleep(0.02)


__all__ = ["FakeHost"]
