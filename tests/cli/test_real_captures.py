"""`stormctl sweep` over what the real SDK left behind: the published counts of its races, as a person reads them.

The captures are not in the repository; what the sweeps count on them is held up in tests/sweeps/test_real_worlds.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def captured(shared_data: Path) -> Path:
    if not (shared_data / "wdk").is_dir():
        pytest.skip("the captures of the real worlds are not beside this clone")
    return shared_data / "wdk"


def kinds(printed: str) -> dict[str, tuple[int, int]]:
    """The findings and the logs of each kind, off the table."""
    found = {}
    for kind, findings, logs in re.findall(r"^  \w+  (\S+|of any kind) +([\d,]+) +([\d,]+)$", printed, re.MULTILINE):
        found[kind] = (int(findings.replace(",", "")), int(logs.replace(",", "")))
    return found


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "race-v4",
            {
                "lifecycle/repeat-step-created": (8, 1),
                "lifecycle/repeat-wait-created": (8, 1),
                "lifecycle/run-started-repeat": (8, 8),
                "lifecycle/second-run-end": (8, 8),
            },
        ),
        (
            "term-v4",
            {
                "lifecycle/receive-after-end": (121, 28),
                "lifecycle/event-after-end": (61, 40),
                "of any kind": (182, 45),
            },
        ),
        ("term-v5", {"lifecycle/event-after-end": (14, 3)}),
        ("pg-v4-events", {"lifecycle/run-started-repeat": (19, 19)}),
    ],
)
def test_the_table_says_how_often_each_race_was_lost(
    stormctl: Run, captured: Path, name: str, expected: dict[str, tuple[int, int]]
) -> None:
    (path,) = captured.glob(f"{name}.*")
    printed = stormctl("sweep", path).out
    found = kinds(printed)
    assert {kind: found.get(kind) for kind in expected} == expected
    assert max(len(line) for line in printed.splitlines() if str(path) not in line) <= 80


def test_the_same_race_on_5_x_loses_none(stormctl: Run, captured: Path) -> None:
    found = kinds(stormctl("sweep", captured / "race-v5.tgz").out)
    assert found
    assert not [kind for kind in found if kind.startswith("lifecycle/")]


def test_a_follower_before_its_create_is_told_of_each_step_and_wait(stormctl: Run, captured: Path) -> None:
    (log,) = json.loads(stormctl("sweep", captured / "follow-v5.tgz", "--format", "json").out)["logs"]
    early = [
        one["key"].split("/")[2]
        for sweep in log["sweeps"]
        for one in sweep["findings"]
        if "before-create" in one["key"]
    ]
    assert sorted(key.partition("_")[0] for key in early) == ["step"] * 4 + ["wait"] * 4


def test_a_dump_of_postgres_says_how_far_created_at_runs_back_and_not_how_commits_went(
    stormctl: Run, captured: Path
) -> None:
    logs = json.loads(stormctl("sweep", captured / "pg-v4-events.csv.gz", "--format", "json").out)["logs"]
    long = [log for log in logs if log["events"] == 363]
    back = [
        one["message"].partition(" of 363 events were created before")[0]
        for log in long
        for sweep in log["sweeps"]
        for one in sweep["findings"]
        if "/created-behind/" in one["key"]
    ]
    assert sorted(back, key=int) == ["97", "102"]
    orders = [sweep for log in logs for sweep in log["sweeps"] if sweep["sweep"] == "commit-order"]
    assert len(orders) == len(logs)
    assert {(one["verdict"], *one["missing"]) for one in orders} == {("unknown", "commit times")}


def test_a_file_of_many_runs_is_told_run_by_run(stormctl: Run, captured: Path) -> None:
    printed = stormctl("sweep", captured / "pg-v4-events.csv.gz").out
    named = re.findall(r"^violated  .*pg-v4-events\.csv\.gz\n  run (wrun_\w+): lifecycle/", printed, re.MULTILINE)
    assert len(set(named)) == 5
