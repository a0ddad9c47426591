"""Storms on real server processes: the real host on a stub of the SDK, and the real SDK where it can be had."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from stormctl.history import kinds
from stormctl.storm.after import sweep_storm
from stormctl.storm.events import LogSwept
from stormctl.storm.outcome import Outcome
from stormctl.targets.sdk.host import Host
from stormctl.targets.sdk.projects import Project
from stormctl.targets.sdk.target import SdkTarget
from tests.targets.sdk.test_target import Storm, plan, until

#: the one workflow that the stub has
STUBBED: dict[str, Any] = {"scenario": "capture-hook-storm", "input": {"rounds": 1, "width": 2}, "cap": "2000s"}


def is_running(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return not Path("/proc/self").exists()


def pid_of(folder: Path) -> int | None:
    for ready in folder.glob("**/stores/*/*/server-1/ready.json"):
        with suppress(OSError, ValueError):
            return int(json.loads(ready.read_text())["pid"])
    return None


def on_stub(folder: Path, stub: Project, **changes: Any) -> Storm:
    """A storm whose runs never end: the stub keeps no run rows as files."""
    from tests.targets.sdk.fake_sdk import FakeSdk

    storm = Storm(folder, FakeSdk(), plan(**{**STUBBED, **changes}))
    storm.target = SdkTarget(ensure=lambda *_asked, **_more: stub, start=Host.start)
    return storm


@pytest.mark.storm
async def test_a_server_that_is_killed_from_outside_is_told_and_never_a_wall_of_stuck(
    stub: Project, tmp_path: Path
) -> None:
    storm = on_stub(tmp_path, stub, attempts=4)
    running = asyncio.create_task(storm.run())
    await until(lambda: pid_of(tmp_path) is not None and bool(list(storm.folder.started_file.parent.glob("started*"))))
    pid = pid_of(tmp_path)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await asyncio.wait_for(running, 30)
    assert [one.outcome for one in storm.attempts] == [Outcome.INFRA] * 4
    assert f"server 1 (process {pid}) ended by itself" in storm.notes


@pytest.mark.storm
def test_a_driver_that_is_killed_leaves_no_server(stub: Project, tmp_path: Path) -> None:
    facts = tmp_path / "stub.json"
    fields = {name: str(value) for name, value in ((f, getattr(stub, f)) for f in Project.__dataclass_fields__)}
    facts.write_text(json.dumps({**fields, "spec_version": 9, "exact": True, "light": True, "attributes": True}))
    code = f"""
        import asyncio, json, sys
        from contextlib import aclosing
        from pathlib import Path
        from stormctl.storm.driver import run_storm
        from stormctl.storm.folder import StormFolder
        from stormctl.storm.plan import parse_plan
        from stormctl.targets.sdk.projects import Project
        from stormctl.targets.sdk.target import SdkTarget

        given = json.loads(Path({str(facts)!r}).read_text())
        project = Project(**{{**given, "folder": Path(given["folder"])}})
        plan = parse_plan(json.loads({json.dumps({**SMALL_STUB})!r}), "x")
        folder = StormFolder.create(plan, Path({str(tmp_path / "out")!r}))

        async def main():
            target = SdkTarget(ensure=lambda *a, **k: project)
            async with aclosing(run_storm(plan, folder, target=target)) as events:
                async for _ in events:
                    pass

        asyncio.run(main())
    """
    driver = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: pid_of(tmp_path / "out") is not None or driver.poll() is not None, 30)
        pid = pid_of(tmp_path / "out")
        assert pid is not None, driver.communicate()[1]
        assert is_running(pid)
        driver.kill()
        driver.wait(10)
        wait_until(lambda: not is_running(pid), 10)
    finally:
        driver.kill()
        driver.communicate()


SMALL_STUB = {
    "schema": "stormctl.plan/1",
    "name": "stub",
    "target": "sdk",
    "version": "5.0.0-stub.1",
    "attempts": 1,
    **STUBBED,
}


def wait_until(wanted: Callable[[], bool], limit_s: float) -> None:
    end = time.monotonic() + limit_s
    while not wanted():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.05)


# -- the real SDK -----------------------------------------------------------------------------------------------------


def of_real(folder: Path, **changes: Any) -> Storm:
    from stormctl.targets.sdk import projects
    from tests.targets.sdk.fake_sdk import FakeSdk

    inputs = {"rounds": 1, "width": 2, "watchdog_ms": 1200, "between_round_sleep_ms": 300, "resume": "burst"}
    storm = Storm(folder, FakeSdk(), plan(**{"time_scale": 1, "cap": "40s", "input": inputs, **changes}))
    storm.target = SdkTarget(ensure=projects.ensure)
    return storm


@pytest.mark.sdk
@pytest.mark.timeout(400)
@pytest.mark.parametrize("version", ["4.8.9", "5.0.0-beta.55"])
async def test_a_small_storm_on_a_published_version(
    version: str, real: Callable[[str], Project], tmp_path: Path
) -> None:
    await asyncio.to_thread(real, version)
    storm = await of_real(tmp_path, version=version).run()
    outcomes = {one.outcome for one in storm.attempts}
    assert outcomes <= ({Outcome.COMPLETED} if version.startswith("5") else {Outcome.COMPLETED, Outcome.CORRUPTED})
    for number, landed in enumerate(storm.attempts):
        capture = storm.capture(number)
        assert landed.pressure["resumes_sent"] == 2
        assert landed.work["deliveries"] >= 3
        assert capture.log.ended
        assert capture.audit is not None
        acknowledged = {record.event_id for record in capture.audit if record.admitted}
        # 5.x lets one call write two events: a lazy start its step's creation, a first start its run's
        alone = {event.event_id for event in capture.log if event.type not in (kinds.STEP_CREATED, kinds.RUN_CREATED)}
        assert alone <= acknowledged  # the host saw whatever the log has
    swept = list(sweep_storm(storm.plan, storm.folder, storm.attempts, storm.target))
    assert all("acknowledged" not in one.findings for one in swept if isinstance(one, LogSwept))


@pytest.mark.sdk
@pytest.mark.timeout(400)
async def test_no_acknowledged_event_is_lost_when_the_server_is_killed_and_started_again(
    real: Callable[[str], Project], tmp_path: Path
) -> None:
    await asyncio.to_thread(real, "5.0.0-beta.55")
    inputs = {"rounds": 2, "width": 3}
    wanted = {"version": "5.0.0-beta.55", "attempts": 1, "cap": "90s", "scenario": "capture-step-storm"}
    storm = of_real(tmp_path, **wanted, input=inputs, host_faults={"kill_after": "1s"})
    await storm.run()
    assert "was killed, as the plan has it" in storm.notes
    assert [one.outcome for one in storm.attempts] == [Outcome.COMPLETED]
    (swept,) = list(sweep_storm(storm.plan, storm.folder, storm.attempts, storm.target))
    assert isinstance(swept, LogSwept)
    assert "acknowledged" not in swept.findings
    assert "acknowledged" not in swept.unknown
