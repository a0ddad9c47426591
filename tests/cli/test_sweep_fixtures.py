"""The whole command over every small log, with its stored output."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormctl.readers import write_capture

Run = Callable[..., Any]


def _fixtures() -> Any:
    """The module beside this one: tests are not a package."""
    path = Path(__file__).with_name("fixture_logs.py")
    spec = importlib.util.spec_from_file_location("fixture_logs", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


fixtures = _fixtures()

#: What each log must be told to be, under the strict profile: verdict, exit code, and the sweeps that fire.
EXPECTED: dict[str, tuple[str, int, set[str]]] = {
    "clean-step-storm": ("clean", 0, set()),
    "clean-hook-storm": ("clean", 0, set()),
    "clean-step-storm-without-positions": ("unknown", 3, set()),
    "2029-step-bound-to-another-name": ("violated", 1, {"log-order", "rebinding"}),
    "2039-step-created-twice": ("violated", 1, {"lifecycle"}),
    "2228-id-behind-position": ("violated", 1, {"id-order"}),
    "2331-step-started-after-its-end": ("violated", 1, {"lifecycle"}),
    "2331-step-started-again-after-a-retry": ("unknown", 3, set()),
    "3147-published-late": ("violated", 1, {"commit-order"}),
    "3492-position-lost": ("violated", 1, {"dense"}),
    "3543-finalized-twice": ("violated", 1, {"roles", "rebinding"}),
    "3656-slot-and-ulid-ids": ("violated", 1, {"id-order"}),
    "3696-one-rank-step-and-wait": ("violated", 1, {"one-body"}),
    "4017-failed-with-a-clean-log": ("unknown", 3, set()),
    "4199-step-started-twice-and-lost": ("violated", 1, {"lifecycle"}),
    "4199-step-started-twice-and-ended": ("unknown", 3, set()),
}


def arguments(name: str) -> list[str]:
    """How the fixture is swept: logs of a storm with a replay, others without a workload."""
    engine = ["--engine", "dispenser"] if fixtures.capture_of(name).run.workload else []
    return ["sweep", f"fixtures/logs/{name}.ndjson", *engine]


def test_every_fixture_is_expected_to_be_something() -> None:
    assert set(EXPECTED) == set(fixtures.CAPTURES)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_log_on_disk_is_the_one_that_is_made(name: str, root: Path, tmp_path: Path) -> None:
    log = write_capture(fixtures.capture_of(name), tmp_path)
    wanted = [
        (log, root / "fixtures" / "logs" / f"{name}.ndjson"),
        (log.with_suffix(".meta.json"), root / "fixtures" / "logs" / f"{name}.meta.json"),
    ]
    audit = tmp_path / "audit" / log.name
    if audit.exists():
        wanted.append((audit, root / "fixtures" / "audit" / f"{name}.ndjson"))
    for made, kept in wanted:
        if os.environ.get("STORMCTL_UPDATE"):
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(made, kept)
        assert made.read_text() == kept.read_text()


@pytest.mark.parametrize("name", EXPECTED)
def test_the_table_says_what_is_wrong(name: str, stormctl: Run, stored: Callable[[str, str], None]) -> None:
    verdict, code, _ = EXPECTED[name]
    ran = stormctl(*arguments(name))
    assert (ran.code, ran.err) == (code, "")
    assert ran.out.startswith(f"{verdict}  fixtures/logs/{name}.ndjson\n")
    assert all(len(line) <= 80 for line in ran.out.splitlines())
    assert "\x1b" not in ran.out
    stored(f"{name}.txt", ran.out)


@pytest.mark.parametrize("name", EXPECTED)
def test_only_the_sweeps_that_should_fire_do(name: str, stormctl: Run) -> None:
    report = json.loads(stormctl(*arguments(name), "--format", "json").out)
    (log,) = report["logs"]
    fired = {one["sweep"] for one in log["sweeps"] if one["verdict"] == "violated"}
    assert fired == EXPECTED[name][2]


def test_the_json_report_is_stored_whole(stormctl: Run, stored: Callable[[str, str], None]) -> None:
    ran = stormctl(*arguments("3543-finalized-twice"), "--format", "json")
    stored("3543-finalized-twice.json", ran.out)


def test_a_profile_turns_a_repeated_create_inert(stormctl: Run, stored: Callable[[str, str], None]) -> None:
    log = "fixtures/logs/2039-step-created-twice.ndjson"
    assert stormctl("sweep", log, "--profile", "strict").code == 1
    ran = stormctl("sweep", log, "--profile", "workflow@5")
    assert ran.code == 3, "nothing fatal is left, and no workload was named to judge the rest"
    stored("2039-step-created-twice-on-5.txt", ran.out)


def test_all_of_them_at_once_give_a_summary_first(stormctl: Run) -> None:
    ran = stormctl("sweep", *(f"fixtures/logs/{name}.ndjson" for name in EXPECTED))
    assert ran.code == 1
    assert ran.out.splitlines()[0] == "violated  2 clean, 10 violated, 4 unknown of 16 logs"
    for name, (verdict, _, _) in EXPECTED.items():
        assert f"\n{verdict}  fixtures/logs/{name}.ndjson\n" in ran.out
