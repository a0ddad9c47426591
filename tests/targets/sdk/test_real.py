"""The real SDK, installed from the registry and run: small, and one version of each kind."""

from __future__ import annotations

import asyncio
import json
import random
import secrets
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from stormctl.engine.door import Outcome
from stormctl.errors import StormctlError
from stormctl.history import Capture, kinds
from stormctl.readers.worldlocal import read_store
from stormctl.targets.sdk.host import Faults, Host
from stormctl.targets.sdk.projects import Project
from stormctl.targets.sdk.workflows import fitted
from stormctl.testing import replay
from stormctl.workloads import base
from stormctl.workloads.registry import WORKLOADS
from tests.postgres_server import needs_postgres
from tests.targets.sdk.test_host import until

GOOD, BAD = "5.0.0-beta.55", "4.8.9"
KILLS = "inline-hang"
Real = Callable[..., Project]

pytestmark = [pytest.mark.sdk, pytest.mark.timeout(600)]

#: every scenario, as small as it is still itself
TINY: dict[str, dict[str, Any]] = {
    "step-storm": {
        "rounds": 1,
        "width": 2,
        "watchdog_ms": 600.0,
        "step_delay_ms": 550.0,
        "step_delay_jitter_ms": 200.0,
        "jitter_buckets": 4,
        "between_round_sleep_ms": 100.0,
    },
    "hook-storm": {
        "rounds": 1,
        "width": 2,
        "watchdog_ms": 600.0,
        "between_round_sleep_ms": 100.0,
        "hook_resume_stagger_ms": 1000.0,
    },
    "blocked-branch": {
        "rounds": 1,
        "width": 2,
        "watchdog_ms": 2000.0,
        "step_delay_ms": 400.0,
        "launch_stagger_ms": 200.0,
        "between_round_sleep_ms": 100.0,
        "resume_burst_offset_ms": 500.0,
        "resume_burst_jitter_ms": 100.0,
    },
    "wake-loop": {
        "wakes": 2,
        "heartbeat_ms": 800.0,
        "step_delay_ms": 100.0,
        "step_delay_jitter_ms": 100.0,
        "short_step_ms": 10.0,
        "step_payload_bytes": 256,
        "gap_max_ms": 500.0,
    },
    "inline-hang": {
        "tasks": 4,
        "width": 2,
        "sibling_ms": 100.0,
        "victim_delay_ms": 600.0,
        "victim_task": 1,
        "poke_interval_ms": 500.0,
    },
    "hook-sleep": {
        "iterations": 3,
        "sleep_ms": 600.0,
        "sleep_branch_wait_ms": 100.0,
        "sleep_branch_wait_spacing_ms": 30.0,
        "resume_delay_ms": 800.0,
        "resume_jitter_ms": 100.0,
    },
    "dag-runner": {
        "nodes": 4,
        "width": 2,
        "evaluate_ms": 100.0,
        "evaluate_jitter_ms": 200.0,
        "short_step_ms": 30.0,
        "worker_every": 2,
        "worker_watchdog_ms": 3000.0,
        "worker_callback_ms": 300.0,
        "prelude_binds": 1,
    },
    "capture-step-storm": {
        "rounds": 1,
        "width": 2,
        "watchdog_ms": 600.0,
        "work_ms": 570.0,
        "spread_ms": 300.0,
        "gap_ms": 100.0,
    },
    "capture-hook-storm": {"rounds": 1, "width": 2, "watchdog_ms": 600.0, "gap_ms": 100.0},
}


def capture_of(host: Host, run_id: str) -> Capture:
    """What the store's files say of a run, read as they lie."""
    captures = [one for one in read_store(host.data, [run_id]) if isinstance(one, Capture)]
    assert len(captures) == 1
    return captures[0]


async def drive(acts: Generator[Any, Any, None], host: Host, run_id: str, over: asyncio.Event) -> None:
    """Play a scenario's driver on a host: the least that does it, without the storm's limits and counts."""
    random_numbers, reply = random.Random(7), None
    while True:
        try:
            act = acts.send(reply)
        except StopIteration:
            return
        reply = None
        try:
            match act:
                case base.Sleep(ms=ms):
                    await asyncio.sleep(ms / 1000)
                case base.Now():
                    reply = time.time() * 1000
                case base.Uniform():
                    reply = random_numbers.random()
                case base.RunEnded():
                    reply = over.is_set()
                case base.WaitForHook(token=token):
                    while reply is None and not over.is_set():
                        found = await host.hook(token)
                        reply = None if found is None else found.hook_id
                        await asyncio.sleep(0.03)
                case base.Resume(token=token, payload=payload):
                    reply = await host.resume(token, payload)
                case base.LastWait():
                    while reply is None and not over.is_set():
                        reply = last_wait(capture_of(host, run_id))
                        await asyncio.sleep(0.03)
                case base.Together(drivers=drivers):
                    await asyncio.gather(*(drive(one, host, run_id, over) for one in drivers))
        except StormctlError:
            await asyncio.sleep(0.1)  # the host was killed, by the scenario itself


def last_wait(capture: Capture) -> int | None:
    ended = {event.correlation_id for event in capture.log if event.type == kinds.WAIT_COMPLETED}
    open_ones = [
        event.resume_at
        for event in capture.log
        if event.type == kinds.WAIT_CREATED and event.correlation_id not in ended and event.resume_at is not None
    ]
    return max(open_ones, default=None)


async def attempt(host: Host, name: str, cap_s: float = 60.0) -> tuple[Capture, Any, str, str | None]:
    """One run of a scenario: its capture, the input it got, its status and its error."""
    workload = WORKLOADS[name]
    given = workload.input_type(**TINY[name], token=f"test-{name}-{secrets.token_hex(4)}")
    given = workload.at_start(fitted(given, attributes=host.project.attributes), int(time.time() * 1000))
    run_id, over = await host.start_run(name, given), asyncio.Event()
    pump = asyncio.create_task(drive(workload.driver(given, base.Pressure()), host, run_id, over))

    async def state() -> Any:
        try:
            found = await host.run(run_id)
        except StormctlError:
            if not host.is_alive:
                await host.restart()
            return None
        return found if found is not None and found.ended else None

    try:
        last = await until(state, cap_s)
    finally:
        over.set()
        await pump
    return capture_of(host, run_id), given, last.status, last.error


@pytest.mark.parametrize("version", [GOOD, BAD])
async def test_every_scenario_ends_and_its_log_is_what_our_body_would_have_drawn(
    real: Real, tmp_path: Path, version: str
) -> None:
    """The twin is exact: our engine follows a completed log to its end, and a corrupted one to the SDK's own event."""
    project = await asyncio.to_thread(real, version)
    async with await Host.start(project, tmp_path / "host") as host:
        for name in WORKLOADS:
            if name != KILLS:
                follow(name, version, *await attempt(host, name))
        assert host.lives == 1


@pytest.mark.parametrize("version", [GOOD, BAD])
async def test_the_scenario_that_kills_its_host_ends_after_a_restart(real: Real, tmp_path: Path, version: str) -> None:
    project = await asyncio.to_thread(real, version)
    switches = {"WORKFLOW_INLINE_OWNERSHIP": "0"}  # a step's owner is believed alive for 14 minutes otherwise
    async with await Host.start(project, tmp_path / "host", environment=switches) as host:
        follow(KILLS, version, *await attempt(host, KILLS))
        assert host.lives == 2


def follow(name: str, version: str, capture: Capture, given: Any, status: str, error: str | None) -> None:
    """Replay a run of the SDK with our body, and compare what became of it."""
    made = replay(WORKLOADS[name], capture, input=given, generation="nets")
    if status == "completed":
        assert made.outcome is Outcome.COMPLETED, (name, made.divergence)
    else:
        assert (version, status) == (BAD, "failed"), (name, error)
        assert made.outcome is Outcome.DIVERGED, (name, error)
        assert made.divergence is not None
        assert str(made.divergence.event_id) in str(error)
    attributes = sum(1 for event in capture.log if event.type == kinds.ATTR_SET)
    assert attributes == getattr(given, "attr_writes", 0) * getattr(given, "rounds", 0) * getattr(given, "width", 0)


@pytest.mark.parametrize("version", [GOOD, BAD])
async def test_what_was_acknowledged_before_a_kill_is_in_the_log_after_it(
    real: Real, tmp_path: Path, version: str
) -> None:
    project = await asyncio.to_thread(real, version)
    workload = WORKLOADS["capture-hook-storm"]
    given = workload.input_type(rounds=1, width=2, watchdog_ms=4000.0, gap_ms=0.0, token="kill")
    async with await Host.start(project, tmp_path / "host", faults=Faults(trace=True)) as host:
        run_id = await host.start_run(workload.name, given)
        await until(lambda: host.hook("kill:0:1"))
        assert await host.resume("kill:0:0", {"n": 1})
        await host.kill()
        before = {event.event_id for event in capture_of(host, run_id).log}
        acknowledged = {
            line["result"]
            for line in map(json.loads, host.trace.read_text().splitlines())
            if line["op"] == "events.create" and line["result"] is not None
        }
        assert acknowledged <= before
        assert any(event.type == kinds.HOOK_RECEIVED for event in capture_of(host, run_id).log)

        await host.restart()

        async def over() -> Any:
            found = await host.run(run_id)
            return found if found is not None and found.ended else None

        last = await until(over, 60)
        log = capture_of(host, run_id).log
    assert before <= {event.event_id for event in log}
    if version == GOOD:
        assert last.status == "completed"


async def test_the_trace_of_a_boosted_run_shows_invocations_that_overlapped(real: Real, tmp_path: Path) -> None:
    project = await asyncio.to_thread(real, GOOD)
    faults = Faults(duplicate=0.5, read_delay_ms=30, write_delay_ms=30, seed=5, trace=True)
    async with await Host.start(project, tmp_path / "host", faults=faults) as host:
        _capture, _given, status, _error = await attempt(host, "capture-step-storm")
        health = await host.healthz()
    lines = [json.loads(line) for line in host.trace.read_text().splitlines()]
    assert status == "completed"
    assert health.duplicates > 0
    assert health.peak_in_flight > 1
    assert max(line["beside"] for line in lines if line["op"] == "delivery") == health.peak_in_flight
    writes = [line for line in lines if line["op"] == "events.create"]
    assert {line["type"] for line in writes} >= {"run_created", "run_started", "step_started", "wait_created"}
    assert all("delayed" in line for line in writes)
    assert any(line["delivery"] is not None for line in writes)


@pytest.mark.parametrize("version", [GOOD, BAD])
async def test_a_run_that_is_not_there_is_none_on_the_real_sdk_too(real: Real, tmp_path: Path, version: str) -> None:
    project = await asyncio.to_thread(real, version)
    async with await Host.start(project, tmp_path / "host") as host:
        assert await host.run("wrun_01KE0000000000000000000000") is None
        assert await host.hook("nobody's") is None
        assert await host.resume("nobody's", {}) is False


async def test_two_hosts_serve_one_database(real: Real, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    needs_postgres()
    project = await asyncio.to_thread(real, BAD, "postgres")
    dsn = request.getfixturevalue("postgres_dsn")
    await asyncio.to_thread(project.migrate, dsn)
    hosts = [await Host.start(project, tmp_path / str(place), dsn=dsn, faults=Faults(trace=True)) for place in range(2)]
    try:
        workload = WORKLOADS["capture-step-storm"]
        given = workload.input_type(**TINY["capture-step-storm"], token="pg")
        run_id = await hosts[0].start_run(workload.name, given)

        async def over() -> Any:
            found = await hosts[1].run(run_id)
            return found if found is not None and found.ended else None

        await until(lambda: hosts[1].hook("pg:poke"), 30)
        for number in range(4):
            await hosts[number % 2].resume("pg:poke", {"n": number})
        await until(over, 60)
    finally:
        for host in hosts:
            await host.stop()
    delivered = [sum(1 for line in host.trace.read_text().splitlines() if '"delivery"' in line) for host in hosts]
    assert all(delivered), "both processes took messages"
