"""``stormctl run`` with a plan for the target sdk: its dry run, its output and its exit code, with a server played in
Python."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from stormctl.targets.sdk import target
from tests.targets.sdk.fake_sdk import FakeSdk
from tests.targets.sdk.test_target import SMALL

Run = Callable[..., Any]


@pytest.fixture
def sdk(monkeypatch: pytest.MonkeyPatch) -> FakeSdk:
    made = FakeSdk()
    real = target.SdkTarget

    def played(server: Any, **more: Any) -> Any:
        return real(server, ensure=made.ensure, start=made.start, **more)

    monkeypatch.setattr(target, "SdkTarget", played)
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "plan.yaml"
    file.write_text(yaml.safe_dump(SMALL))
    return file


def test_a_storm_that_corrupts_says_so_and_whether_it_was_predicted(
    stormctl: Run, sdk: FakeSdk, path: Path, tmp_path: Path
) -> None:
    sdk.outcome = "corrupted"
    ran = stormctl("run", path, "--out", tmp_path / "out")
    assert ran.code == 1, ran.err
    assert "hook-storm, workflow 4.8.9 + as published, attempt 1: corrupted" in ran.out
    assert "note: workflow 4.8.9: the generation opposite predicts the divergence that the SDK printed in" in ran.out
    rows = [json.loads(line) for line in (tmp_path / "out/small/latest/attempts.ndjson").read_text().splitlines()]
    assert {(row["condition"], row["generation"]) for row in rows} == {("workflow 4.8.9", "as published")}


def test_one_that_completes_does_not(stormctl: Run, sdk: FakeSdk, path: Path, tmp_path: Path) -> None:
    ran = stormctl("run", path, "--out", tmp_path / "out", "--report-only")
    assert ran.code == 0, ran.err
    assert "corrupted 0/2" in ran.out
    assert "note: workflow 4.8.9: 0 of 2 attempts corrupted, nothing to predict" in ran.out
    assert json.loads((tmp_path / "out/small/latest/predictions.json").read_text())["logs"] == []


def test_the_share_is_told_for_every_version_in_the_tables_too(
    stormctl: Run, sdk: FakeSdk, path: Path, tmp_path: Path
) -> None:
    sdk.corrupts = ("4.8.9",)
    ran = stormctl("run", path, "--out", tmp_path / "out", "-P", "version=4.8.9,5.0.0-beta.55")
    assert ran.code == 1, ran.err
    assert "note: workflow 4.8.9: the generation opposite predicts the divergence that the SDK printed in" in ran.out
    assert "note: workflow 5.0.0-beta.55: 0 of 2 attempts corrupted, nothing to predict" in ran.out
    summary = (tmp_path / "out/small/latest/summary.md").read_text()
    assert "| workflow 4.8.9 | opposite | 2/2 |" in summary
    assert "| workflow 5.0.0-beta.55 | rearm | 0/2 | nothing to predict |" in summary
    assert summary.count("not predicted: ") == 2
    told = json.loads((tmp_path / "out/small/latest/predictions.json").read_text())
    assert [(one["version"], one["corrupted"]) for one in told["versions"]] == [
        ("workflow 4.8.9", 2),
        ("workflow 5.0.0-beta.55", 0),
    ]
    assert all(one["why"] for one in told["logs"])


def test_its_corrupted_logs_are_each_explained_from_the_storms_folder(
    stormctl: Run, sdk: FakeSdk, path: Path, tmp_path: Path
) -> None:
    """What is found in each is told. These were made up: their logs are sound, so that no class can be given to them,
    and that is said, with the engine that has to answer for it."""
    sdk.outcome = "corrupted"
    stormctl("run", path, "--out", tmp_path / "out")
    ran = stormctl("explain", tmp_path / "out/small/latest", "--format", "json")
    logs = json.loads(ran.out)["logs"]
    assert len(logs) == 2
    assert [(one["answer"], one["class"], one["written_by"]["engine"]) for one in logs] == [
        ("open", None, "opposite")
    ] * 2
    assert all(any(why.startswith("engine suspect") for why in one["open"]) for one in logs)


def test_a_storms_folder_with_a_corrupted_log_is_explained_with_its_class(stormctl: Run) -> None:
    logs = json.loads(stormctl("explain", "fixtures/storms", "--format", "json").out)["logs"]
    classes = {Path(one["source"]).stem: one["class"] for one in logs}
    assert classes["hook-storm-corrupted"]
    assert classes["hook-storm-clean"] is None


def test_a_dry_run_starts_and_installs_nothing(stormctl: Run, sdk: FakeSdk, path: Path) -> None:
    ran = stormctl("run", path, "--dry-run", "-P", "version=4.6.1,5.0.0-beta.55")
    assert (ran.code, ran.err) == (0, "")
    assert "2 cells of 2 attempts: 4 in all" in ran.out
    assert "hook-storm     local/workflow 5.0.0-beta.55 + as published" in ran.out
    assert sdk.ensured == []


def test_a_database_that_no_cell_could_use_is_refused(stormctl: Run, sdk: FakeSdk, path: Path, tmp_path: Path) -> None:
    ran = stormctl("run", path, "--out", tmp_path / "out", "--dsn", "postgresql://localhost/x")
    assert ran.code == 2
    assert "no cell of the plan lies in a database" in ran.err
