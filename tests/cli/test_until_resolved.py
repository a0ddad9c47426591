"""``run --until-resolved``: two arms in turn until they are told apart, what is printed, kept and exited with."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from stormctl.storm import driver
from stormctl.storm.attempt import Attempt
from stormctl.storm.outcome import Outcome
from stormctl.storm.run import Announce, AttemptRun
from tests.report.folders import NEW, OLD
from tests.storm.making import SMALL, attempt

Run = Callable[..., Any]


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "three-arms.yaml"
    body = {key: value for key, value in SMALL.items() if key not in ("condition", "generation")}
    arms = {"pair": [OLD, "seq-tail + dispenser", NEW]}
    path.write_text(yaml.safe_dump({**body, "matrix": arms, "attempts": 24, "concurrency": 2}))
    return path


@pytest.fixture
def corrupted(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let attempts land at once; those of the condition that is named are corrupted. No pictures are drawn."""
    monkeypatch.setattr("stormctl.report.pictures.write_plots", lambda artefact: ())

    def under(condition: str) -> None:
        class Quick(AttemptRun):
            async def run(self, announce: Announce) -> Attempt:
                await announce(str(self._subject.run_id))
                await asyncio.sleep(0)
                outcome = Outcome.CORRUPTED if self._lab.cell.condition == condition else Outcome.COMPLETED
                return attempt(self._number, outcome, cell=self._lab.cell, run_id=self._subject.run_id)

        monkeypatch.setattr(driver, "AttemptRun", Quick)

    return under


def newest(out: Path) -> Path:
    return (out / "small" / "latest").resolve()


def test_stops_once_it_is_told_and_says_what_it_concluded(
    stormctl: Run, plan: Path, corrupted: Callable[[str], None], tmp_path: Path
) -> None:
    corrupted("main")
    ran = stormctl("run", plan, "--out", tmp_path / "out", "--until-resolved", OLD, NEW)
    assert (ran.code, ran.err) == (1, "")  # the old arm's attempts were corrupted, and gate as in any storm
    lines = ran.out.splitlines()
    assert lines[0] == "small, seed 3: 48 attempts in 2 cells"
    assert lines[-1] == (
        "resolved: main + nets corrupts more after 7 of 24 pairs (7 corrupted under main + nets only, 0 under "
        "seq-final + dispenser only); equal arms are called different in at most 5 % of storms"
    )
    assert "the arms are told apart" in ran.out
    assert " of 48 attempts landed, its arms were told apart" in ran.out
    assert sum(line.startswith("note: pair ") for line in lines) >= 2
    folder = newest(tmp_path / "out")
    assert 14 <= len((folder / "attempts.ndjson").read_text().splitlines()) <= 16
    kept = json.loads((folder / "until.json").read_text())
    assert (kept["schema"], kept["arms"], kept["more"]) == ("stormctl.until/1", [OLD, NEW], OLD)
    compared = stormctl("diff", folder)
    assert compared.code == 0
    assert "stopped early, or could have been (--until-resolved)" in " ".join(compared.out.split())
    again = stormctl("run", "--resume", folder)
    assert (again.code, "there is nothing to resume" in again.err) == (2, True)


def test_runs_to_the_end_of_the_plan_where_nothing_is_told_and_exits_3(
    stormctl: Run, plan: Path, corrupted: Callable[[str], None], tmp_path: Path
) -> None:
    corrupted("none")
    ran = stormctl("run", plan, "--out", tmp_path / "out", "--until-resolved", OLD, NEW)
    assert ran.code == 3
    assert ran.out.splitlines()[-1] == (
        "not resolved after 24 of 24 pairs (0 corrupted under main + nets only, 0 under seq-final + dispenser only), "
        "at an error rate of 5 %"
    )
    assert len((newest(tmp_path / "out") / "attempts.ndjson").read_text().splitlines()) == 48


def test_counts_what_it_is_told_to(stormctl: Run, plan: Path, corrupted: Callable[[str], None], tmp_path: Path) -> None:
    corrupted("seq-final")
    ran = stormctl("run", plan, "--out", tmp_path / "out", "--until-resolved", OLD, NEW, "--outcome", "completed")
    assert "resolved: main + nets completes more often after 7 of 24 pairs" in ran.out.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--until-resolved", OLD, "seq-fnal + dispenser"], "there is no arm 'seq-fnal + dispenser'. Did you mean"),
        (["--until-resolved", OLD, OLD], "share a cell. Name two different arms."),
        (["--outcome", "stuck"], "--outcome says what --until-resolved compares. Give both, or neither."),
    ],
)
def test_what_cannot_be_meant_is_one_sentence_and_exit_2(
    stormctl: Run, plan: Path, tmp_path: Path, arguments: list[str], said: str
) -> None:
    ran = stormctl("run", plan, "--out", tmp_path / "out", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert not (tmp_path / "out").exists()


def test_a_dry_run_shows_the_two_arms_alone(stormctl: Run, plan: Path) -> None:
    ran = stormctl("run", plan, "--dry-run", "--until-resolved", NEW, OLD)
    assert ran.code == 0
    assert "2 cells of 24 attempts: 48 in all" in ran.out
    assert "seq-tail" not in ran.out
