"""A small storm on the real SDK whose logs are replayed by the real engine: it says again what the SDK said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from stormctl.targets.sdk import projects

pytestmark = [pytest.mark.sdk, pytest.mark.timeout(900)]

PLAN = {
    "schema": "stormctl.plan/1",
    "name": "replayed",
    "seed": 5,
    "target": "sdk",
    "version": ["4.8.9", "5.0.0-beta.55"],
    "environment": [{"WORKFLOW_LOG_ORDER_DRAWS": "0"}],
    "attempts": 2,
    "concurrency": 1,
    "budget": "5m",
    "cap": "60s",
    "scenario": "hook-storm",
    "sweeps": ["all", "sdk:own"],
    "input": {
        "rounds": 1,
        "width": 2,
        "watchdog_ms": 1200,
        "between_round_sleep_ms": 300,
        "resume": "burst",
        "burst_width_ms": 160,
    },
}


def stormctl(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "stormctl", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "100"},
    )


def test_every_run_ends_in_its_replay_as_it_was_recorded(real: Callable[..., object], tmp_path: Path) -> None:
    for version in PLAN["version"]:  # type: ignore[attr-defined]
        if projects.find(version) is None:
            real(version)
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(PLAN))
    ran = stormctl("run", tmp_path / "plan.yaml", "--out", tmp_path / "out", "--report-only")
    assert ran.returncode == 0, ran.stderr
    folder = tmp_path / "out" / "replayed" / "latest"
    found = json.loads((folder / "replays.json").read_text())
    engines = {row["engine"] for row in found["cells"]}
    assert engines == {
        "sdk:4.8.9[WORKFLOW_LOG_ORDER_DRAWS=0]",
        "sdk:5.0.0-beta.55[WORKFLOW_LOG_ORDER_DRAWS=0]",
    }
    ended = [one for one in found["logs"] if one["outcome"] in ("completed", "corrupted")]
    assert ended
    assert [one["why"] for one in ended] == [""] * len(ended)
    assert all(one["as_recorded"] and one["flips"] is not None for one in ended)
    assert all(row["apart"] == 0 for row in found["cells"])
    for engine in engines:
        assert engine in ran.stdout
    again = stormctl("sweep", folder, "--engine", "sdk:own", "--prefixes", "decisions", "--format", "json")
    assert len(json.loads(again.stdout)["logs"]) == len(found["logs"])
