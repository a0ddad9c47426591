"""The target url against the real SDK: a host of the target sdk is an app like any other, with these routes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormctl.errors import StormctlError
from stormctl.history import COMMIT_TIMES
from stormctl.storm.outcome import Outcome
from stormctl.targets.sdk.host import Host
from stormctl.targets.sdk.node import find_tools
from stormctl.targets.sdk.projects import Project, ensure, find
from stormctl.targets.sdk.workflows import twin
from tests.targets.url.test_url_target import Storm, plan

GOOD, BAD = "5.0.0-beta.55", "4.8.9"
SCENARIO = "capture-hook-storm"

pytestmark = [pytest.mark.sdk, pytest.mark.timeout(600)]


@pytest.fixture
def real() -> Callable[[str], Project]:
    def get(version: str) -> Project:
        try:
            find_tools()
            return find(version) or ensure(version)
        except StormctlError as error:
            pytest.skip(f"the real SDK cannot be installed here: {error}")

    return get


def document(host: Host, log: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """What the file of such a host would say."""
    return {
        "name": "host",
        "url": f"http://127.0.0.1:{host.port}",
        "version": host.project.version,
        "workflows": {SCENARIO: twin(SCENARIO).workflow_name},
        "headers": {"x-stormctl-token": "${HOST_TOKEN}"},
        "start": {"path": "/start", "body": {"workflow": "{workflow}", "input": "{input}"}},
        "resume": {"path": "/resume", "body": {"token": "{token}", "payload": "{payload}"}},
        "hook": {"path": "/hook?token={token}", "run": "runId"},
        "status": "/run?id={run}",
        "cancel": {"path": "/cancel", "body": {"runId": "{run}"}},
        "log": log,
        **changes,
    }


@pytest.mark.parametrize("version", [GOOD, BAD])
@pytest.mark.parametrize("hooks", ["by-route", "by-log"])
async def test_a_storm_lands_with_whole_logs(
    real: Callable[[str], Project], tmp_path: Path, version: str, hooks: str
) -> None:
    project = await asyncio.to_thread(real, version)
    async with await Host.start(project, tmp_path / "host") as host:
        changes = {"hook": None} if hooks == "by-log" else {}
        app = {key: value for key, value in document(host, {"folder": str(host.data)}, **changes).items() if value}
        small = {"rounds": 1, "width": 2, "watchdog_ms": 900, "gap_ms": 100}
        wanted = plan(app, scenario=SCENARIO, attempts=2, time_scale=1, cap="60s", input=small)
        storm = await Storm(tmp_path, wanted, {"HOST_TOKEN": host._token}).run()
        assert host.is_alive
    outcomes = {one.outcome for one in storm.attempts}
    allowed = {Outcome.COMPLETED} if version == GOOD else {Outcome.COMPLETED, Outcome.CORRUPTED}
    assert outcomes <= allowed, [(one.outcome, one.error_message) for one in storm.attempts]
    assert all(one.pressure["resumes_sent"] for one in storm.attempts), storm.notes
    captures = [one for one in storm.captures() if one.log.ended]
    assert len(captures) == 2
    assert all(one.data["workflow"] == twin(SCENARIO).workflow_name for one in captures)
    assert all(one.data[COMMIT_TIMES] for one in captures)
    kept = [file for file in storm.folder.path.rglob("*") if file.is_file()]
    assert not [file for file in kept if host._token.encode() in file.read_bytes()]
