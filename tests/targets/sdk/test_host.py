"""The host: the real one, serving a stub of the SDK. Its routes, its faults, its trace, and its ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stormctl.errors import StoreFailure, UsageError
from stormctl.targets.sdk import client
from stormctl.targets.sdk import host as host_module
from stormctl.targets.sdk.host import Faults, Host, HostBusy, HostDied, HostRefused
from stormctl.targets.sdk.projects import Project
from stormctl.workloads.capture_storms import Input

WORKLOAD = "capture-hook-storm"


def asking(token: str) -> Input:
    """The input of a run of the stub, which does what its token says."""
    return Input(token=token)


@asynccontextmanager
async def hosting(project: Project, folder: Path, **more: Any) -> AsyncIterator[Host]:
    async with await Host.start(project, folder, **more) as host:
        yield host


async def until(wanted: Callable[[], Any], limit_s: float = 10.0) -> Any:
    """Wait for something to be true: what it was."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        found = wanted()
        if asyncio.iscoroutine(found):
            found = await found
        if found:
            return found
        await asyncio.sleep(0.02)
    raise AssertionError("it never came true")


async def ended(host: Host, run_id: str) -> str:
    async def state() -> str | None:
        found = await host.run(run_id)
        return found.status if found is not None and found.ended else None

    return str(await until(state))


def trace_of(host: Host) -> list[dict[str, Any]]:
    return [json.loads(line) for line in host.trace.read_text().splitlines()]


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return True


# -- routes -----------------------------------------------------------------------------------------------------------


async def test_a_host_says_what_it_serves(stub: Project, tmp_path: Path) -> None:
    async with hosting(stub, tmp_path / "host") as host:
        health = await host.healthz()
        assert health.pid == host.pid
        assert health.port == host.port
        assert (health.version, health.world_package, health.world_version) == ("5.0.0-stub.1", "stub-world", "1.2.3")
        assert (health.spec_version, health.attributes) == (9, True)
        assert health.workflows == ("workflow//./workflows/storms//hookStorm",)


async def test_a_run_is_started_resumed_and_seen_to_end(stub: Project, tmp_path: Path) -> None:
    async with hosting(stub, tmp_path / "host") as host:
        run_id = await host.start_run(WORKLOAD, asking("stay"))
        hook = await until(lambda: host.hook("stay"))
        assert (hook.hook_id, hook.run_id) == ("hook_1", run_id)
        assert await host.resume("stay", {"n": 1})
        state = await host.run(run_id)
        assert state is not None
        assert (state.status, state.ended) == ("running", False)
        events = [json.loads(line) for line in (host.data / "events.ndjson").read_text().splitlines()]
        assert events[0]["eventData"]["input"][0]["watchdogMs"] == 1200.0
        assert events[-1]["eventData"]["payload"] == {"n": 1}


async def test_what_is_not_there_is_none_and_not_an_error(stub: Project, tmp_path: Path) -> None:
    async with hosting(stub, tmp_path / "host") as host:
        assert await host.hook("nobody's") is None
        assert await host.resume("nobody's", {}) is False
        assert await host.run("wrun_unknown") is None


async def test_a_failed_run_says_why(stub: Project, tmp_path: Path) -> None:
    async with hosting(stub, tmp_path / "host") as host:
        run_id = await host.start_run(WORKLOAD, asking("fail"))
        assert await ended(host, run_id) == "failed"
        state = await host.run(run_id)
        assert state is not None
        assert (state.error_code, state.error) == ("CORRUPTED_EVENT_LOG", "it fell over")


@pytest.mark.parametrize("path", ["/healthz", "/start", "/resume", "/run?id=x", "/hold", "/stop"])
async def test_no_control_route_answers_without_the_token(stub: Project, tmp_path: Path, path: str) -> None:
    async with hosting(stub, tmp_path / "host") as host:
        for method in ("GET", "POST"):
            answer = await client.request(host.port, method, path, token="guessed", timeout_s=5)
            assert answer.status == 403
        await host.healthz()  # and it still runs


async def test_the_host_listens_on_loopback_only(stub: Project, tmp_path: Path) -> None:
    async with hosting(stub, tmp_path / "host") as host:
        said = subprocess.run(["ss", "-Hltn"], capture_output=True, text=True, check=False).stdout
        ours = [line.split()[3] for line in said.splitlines() if line.split()[3].endswith(f":{host.port}")]
        if not said:
            pytest.skip("this machine cannot tell who listens")
        assert ours == [f"127.0.0.1:{host.port}"]


async def test_a_workflow_that_the_bundle_lacks_is_refused(stub: Project, tmp_path: Path) -> None:
    async with hosting(stub, tmp_path / "host") as host:
        with pytest.raises(HostRefused, match=r"refused /start \(404\): there is no workflow .*stepStorm") as error:
            await host.start_run("capture-step-storm", asking("x"))
        assert error.value.status == 404


@pytest.mark.parametrize(("switches", "seen"), [({"WORKFLOW_STUB_SWITCH": "0"}, "0"), ({}, None)])
async def test_switches_of_a_plan_reach_the_sdk_and_those_of_the_shell_do_not(
    stub: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, switches: dict[str, str], seen: str | None
) -> None:
    monkeypatch.setenv("WORKFLOW_STUB_SWITCH", "from the shell")
    async with hosting(stub, tmp_path / "host", environment=switches) as host:
        run_id = await host.start_run(WORKLOAD, asking("stay"))
        path = "/.well-known/workflow/v1/flow"  # as the queue asks, for which there is no token
        url = f"http://127.0.0.1:{host.port}{path}"
        asked = urllib.request.Request(url, json.dumps({"runId": run_id}).encode(), method="POST")
        said = await asyncio.to_thread(lambda: urllib.request.urlopen(asked, timeout=5).read())
        assert json.loads(said) == {"env": seen}


# -- faults -----------------------------------------------------------------------------------------------------------


async def test_every_call_of_the_world_is_in_the_trace_with_its_delivery(stub: Project, tmp_path: Path) -> None:
    async with hosting(stub, tmp_path / "host", faults=Faults(trace=True)) as host:
        run_id = await host.start_run(WORKLOAD, asking("done"))
        await ended(host, run_id)
        await until(lambda: any(line["op"] == "delivery" for line in trace_of(host)))
        lines = {(line["op"], line.get("type")): line for line in trace_of(host)}
    assert {op for op, _type in lines} == {"events.create", "events.list", "queue", "delivery"}
    delivery = lines["delivery", None]
    assert (delivery["runId"], delivery["beside"], delivery["result"], delivery["message"]) == (run_id, 1, 200, "msg_1")
    read = lines["events.list", None]
    assert (read["runId"], read["limit"], read["order"], read["cursor"]) == (run_id, 100, "asc", None)
    assert (read["events"], read["last"], read["next"], read["more"]) == (1, "evnt_1", "evnt_1", False)
    assert read["delivery"] == delivery["delivery"]
    created = lines["events.create", "run_created"]
    assert (created["result"], created["delivery"], created["error"]) == ("evnt_1", None, None)
    assert lines["events.create", "hook_created"]["name"] == "done"
    for line in lines.values():
        assert 0 < line["start"] <= line["end"]
    assert delivery["start"] <= read["start"] <= read["end"] <= delivery["end"]


async def test_without_a_trace_no_file_is_written(stub: Project, tmp_path: Path) -> None:
    async with hosting(stub, tmp_path / "host") as host:
        await ended(host, await host.start_run(WORKLOAD, asking("done")))
        assert not host.trace.exists()


async def test_a_call_that_the_store_refuses_is_in_the_trace(stub: Project, tmp_path: Path) -> None:
    async with hosting(stub, tmp_path / "host", faults=Faults(trace=True)) as host:
        assert await host.hook("nobody's") is None
        (line,) = trace_of(host)
    assert (line["op"], line["name"], line["runId"]) == ("hooks.getByToken", "nobody's", None)
    assert line["error"].startswith("HookNotFoundError: ")


async def test_deliveries_are_doubled_on_demand_and_overlap(stub: Project, tmp_path: Path) -> None:
    faults = Faults(duplicate=1.0, duplicate_ms=1, trace=True)
    async with hosting(stub, tmp_path / "host", faults=faults) as host:
        run_id = await host.start_run(WORKLOAD, asking("slow"))
        await ended(host, run_id)
        deliveries = await until(
            lambda: (
                (found := [line for line in trace_of(host) if line["op"] == "delivery"]) and len(found) == 2 and found
            )
        )
        health = await host.healthz()
    assert (health.deliveries, health.duplicates, health.peak_in_flight) == (1, 1, 2)
    assert sorted(bool(line.get("duplicate")) for line in deliveries) == [False, True]
    one, other = deliveries
    assert max(one["start"], other["start"]) < min(one["end"], other["end"])


async def test_without_faults_nothing_is_doubled(stub: Project, tmp_path: Path) -> None:
    async with hosting(stub, tmp_path / "host") as host:
        await ended(host, await host.start_run(WORKLOAD, asking("slow")))
        health = await host.healthz()
    assert (health.duplicates, health.peak_in_flight) == (0, 1)


@pytest.mark.parametrize(("fault", "op"), [("read_delay_ms", "events.list"), ("write_delay_ms", "events.create")])
async def test_delays_hold_reads_or_writes_and_nothing_else(stub: Project, tmp_path: Path, fault: str, op: str) -> None:
    faults = replace(Faults(trace=True, seed=3), **{fault: 100.0})
    async with hosting(stub, tmp_path / "host", faults=faults) as host:
        await ended(host, await host.start_run(WORKLOAD, asking("done")))
        calls = await until(lambda: (found := trace_of(host)) and len(found) >= 6 and found)
    assert {line["op"] for line in calls if "delayed" in line} == {op}
    for line in calls:
        if line["op"] == op:
            assert 0 <= line["delayed"] < 100
            assert line["end"] - line["start"] > line["delayed"] - 2  # timers count whole milliseconds


async def test_delays_are_the_same_for_the_same_seed(stub: Project, tmp_path: Path) -> None:
    async def delays(name: str, seed: int) -> list[float]:
        async with hosting(stub, tmp_path / name, faults=Faults(write_delay_ms=50, seed=seed, trace=True)) as host:
            await ended(host, await host.start_run(WORKLOAD, asking("done")))
            calls = [line for line in trace_of(host) if line["op"] == "events.create"]
        return [line["delayed"] for line in sorted(calls, key=lambda line: line["call"])]

    one, same, other = await delays("one", 7), await delays("same", 7), await delays("other", 8)
    assert one == same
    assert one != other


async def test_one_call_is_held_and_only_one(stub: Project, tmp_path: Path) -> None:
    async with hosting(stub, tmp_path / "host", faults=Faults(trace=True)) as host:
        await host.hold("events.create", 300, match="hook_created")
        for _ in range(2):
            await ended(host, await host.start_run(WORKLOAD, asking("done")))
        calls = [line for line in trace_of(host) if line.get("type") == "hook_created"]
        held = (await host.healthz()).held
    assert [line.get("held") for line in calls] == [300, None]
    assert calls[0]["end"] - calls[0]["start"] > 290
    assert held == 1


@pytest.mark.parametrize(
    "wrong", [{"duplicate": 1.5}, {"duplicate": -0.1}, {"read_delay_ms": -1.0}, {"write_delay_ms": 1e9}]
)
async def test_faults_that_cannot_be_meant_are_refused(stub: Project, tmp_path: Path, wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        await Host.start(stub, tmp_path / "host", faults=Faults(**wrong))


async def test_a_hold_that_cannot_be_meant_is_refused(stub: Project, tmp_path: Path) -> None:
    async with hosting(stub, tmp_path / "host") as host:
        with pytest.raises(HostRefused, match=r"\(400\).*at most 600000 ms"):
            await host.hold("events.create", 1e9)


# -- ends -------------------------------------------------------------------------------------------------------------


async def test_a_stopped_host_closes_its_world_and_is_gone(stub: Project, tmp_path: Path) -> None:
    host = await Host.start(stub, tmp_path / "host")
    pid = host.pid
    await host.stop()
    assert (host.data / "closed").exists()
    assert not host.is_alive
    assert not is_running(pid)
    await host.stop()  # once more does nothing


async def test_a_killed_host_closes_nothing_and_its_successor_finds_the_store(stub: Project, tmp_path: Path) -> None:
    async with hosting(stub, tmp_path / "host") as host:
        run_id = await host.start_run(WORKLOAD, asking("stay"))
        await until(lambda: host.hook("stay"))
        first = host.pid
        await host.kill()
        assert not (host.data / "closed").exists()
        with pytest.raises(HostDied, match=rf"\(process {first}\) ended by signal 9"):
            await host.run(run_id)
        await host.restart()
        assert host.pid != first
        assert host.lives == 2
        state = await host.run(run_id)
        assert state is not None
        assert state.status == "running"


async def test_a_running_host_is_not_started_twice(stub: Project, tmp_path: Path) -> None:
    async with hosting(stub, tmp_path / "host") as host:
        with pytest.raises(UsageError, match="is running"):
            await host.restart()


async def test_a_server_that_dies_is_said_so_with_its_last_lines(stub: Project, tmp_path: Path) -> None:
    async with hosting(stub, tmp_path / "host") as host:
        run_id = await host.start_run(WORKLOAD, asking("crash"))
        await until(lambda: not host.is_alive)
        with pytest.raises(HostDied, match=r"(?s)ended with exit code 1; it said last: .*something in the SDK broke"):
            await host.run(run_id)


async def test_a_server_that_has_no_time_is_busy_and_not_dead(stub: Project, tmp_path: Path) -> None:
    async with hosting(stub, tmp_path / "host", call_s=0.5) as host:
        with contextlib.suppress(HostBusy):  # the answer may or may not get out before the hang
            await host.start_run(WORKLOAD, asking("hang"))
        await asyncio.sleep(0.2)  # until the delivery has begun
        with pytest.raises(HostBusy, match=r"did not answer /healthz within 0\.5 s"):
            await host.healthz()
        pid = host.pid
        assert host.is_alive
        await host.kill()
        assert not is_running(pid)


async def test_a_server_that_hangs_is_ended_by_its_id_when_it_is_stopped(
    stub: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_module, "STOP_SECONDS", 0.6)
    monkeypatch.setattr(host_module, "TERM_SECONDS", 0.3)
    host = await Host.start(stub, tmp_path / "host", call_s=0.5)
    with contextlib.suppress(HostBusy):
        await host.start_run(WORKLOAD, asking("hang"))
    await asyncio.sleep(0.2)
    pid = host.pid
    await host.stop()
    assert not is_running(pid)


async def test_a_server_that_does_not_come_up_is_said_so(stub: Project, tmp_path: Path) -> None:
    with pytest.raises(HostDied, match=r"(?s)exit code 1; it said last: .*no leg to stand on"):
        await Host.start(stub, tmp_path / "host", environment={"STUB_FAILS_TO_START": "1"})


async def test_a_world_that_the_runtime_refuses_is_said_so(stub: Project, tmp_path: Path) -> None:
    with pytest.raises(HostDied, match="supports Worlds with spec version 6 through 7"):
        await Host.start(stub, tmp_path / "host", environment={"STUB_MISFIT": "1"})


async def test_a_server_that_takes_too_long_to_come_up_is_ended(stub: Project, tmp_path: Path) -> None:
    (stub.folder / "host.mjs").write_text("console.log('still thinking');\nsetInterval(() => {}, 1000);\n")
    with pytest.raises(HostBusy, match=r"did not come up within 1 s; it said last: still thinking"):
        await Host.start(stub, tmp_path / "host", boot_s=1.0)


async def test_a_project_or_a_folder_that_is_not_there_is_said_so(stub: Project, tmp_path: Path) -> None:
    with pytest.raises(StoreFailure, match=r"the server of 5\.0\.0-stub\.1-local cannot be started"):
        await Host.start(replace(stub, folder=tmp_path / "gone"), tmp_path / "host")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreFailure, match="cannot be made"):
        await Host.start(stub, tmp_path / "file/host")


async def test_a_dsn_is_for_postgres_only(stub: Project, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="takes no DSN"):
        await Host.start(stub, tmp_path / "host", dsn="postgresql://x/y")
    with pytest.raises(UsageError, match="needs the DSN"):
        await Host.start(replace(stub, world="postgres"), tmp_path / "host")


def test_a_killed_parent_leaves_no_server(stub: Project, tmp_path: Path) -> None:
    """SIGKILL, so that nothing of the parent can clean up."""
    program = textwrap.dedent(
        """
        import asyncio, pickle, sys
        from pathlib import Path
        from stormctl.targets.sdk.host import Host

        async def main():
            project = pickle.loads(bytes.fromhex(sys.argv[1]))
            host = await Host.start(project, Path(sys.argv[2]))
            print(host.pid, flush=True)
            await asyncio.sleep(60)

        asyncio.run(main())
        """
    )
    told = [sys.executable, "-c", program, pickle.dumps(stub).hex(), str(tmp_path / "host")]
    with subprocess.Popen(told, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_running(pid)
        parent.send_signal(signal.SIGKILL)
    end = time.monotonic() + 5
    while is_running(pid) and time.monotonic() < end:
        time.sleep(0.02)
    assert not is_running(pid)


def test_a_host_started_by_hand_refuses(node: str, stub: Project) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STORMCTL_")}
    said = subprocess.run(
        [node, "host.mjs"], cwd=stub.folder, env=environment, capture_output=True, text=True, timeout=30, check=False
    )
    assert said.returncode == 2
    assert "started by stormctl" in said.stderr
