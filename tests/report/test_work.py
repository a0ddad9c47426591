"""What the tables say beside the rates: work, faults, controls, and attempts that prove nothing."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from stormctl.report import tally
from stormctl.report.load import Artefact, load_artefact
from stormctl.report.storm import render_storm
from stormctl.report.summary import summary_text
from stormctl.report.work import faults_text, work_rows
from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.faults.fired import FaultFired, FolderLedger
from stormctl.storm.outcome import Outcome
from stormctl.workloads.registry import WORKLOADS
from tests.report.synthetic import build

TAIL = Cell("hook-storm", "local", "seq-tail", "nets")
FINAL = Cell("hook-storm", "local", "seq-final", "nets")
CONTROL = next(name for name, workload in WORKLOADS.items() if workload.control)


def made(cell: Cell, number: int, outcome: Outcome = Outcome.COMPLETED, **more: Any) -> Attempt:
    return Attempt(cell, number, f"wrun_{cell.condition}_{cell.scenario}_{number}", outcome, **more)


def artefact(*attempts: Attempt) -> Artefact:
    return Artefact(Path("/short"), attempts)


def shown(one: Artefact) -> str:
    console = Console(file=io.StringIO(), width=80, force_terminal=False)
    render_storm(one, console)
    return console.file.getvalue()  # type: ignore[attr-defined]


class TestWork:
    def test_a_livelock_shows_in_restarts_refusals_and_stuck_runs(self) -> None:
        busy = {
            "restarts": 40,
            "refused": 60,
            "useless": 10,
            "restart.useless": 2,
            "reread": 3,
            "reinvocation": 5,
            "divergences": 1,
        }
        one = artefact(
            made(TAIL, 1, Outcome.SLOW, work=busy), made(TAIL, 2, Outcome.SLOW, work=busy), made(FINAL, 1, work={})
        )
        tail, final = work_rows(one)
        assert (tail.restarts_per_run, tail.refused, tail.useless, tail.reinvocations, tail.stuck) == (
            40,
            120,
            24,
            10,
            2,
        )
        assert final.quiet
        text = shown(one)
        line = next(line for line in text.splitlines() if "seq-tail" in line and "(24)" in line)
        assert line.split() == "seq-tail + nets 40.0 120 (24) 10 2 6 2".split()
        assert "120 (24)" in summary_text(one).replace("\\", "")

    def test_of_which_there_is_nothing_to_tell_is_not_told(self) -> None:
        one = artefact(made(FINAL, 1, work={"deliveries": 9, "passes": 12}))
        assert work_rows(one) == []
        assert "restarts/run" not in shown(one)


class TestFaults:
    def test_are_counted_by_what_they_are(self, tmp_path: Path) -> None:
        folder = build(tmp_path / "storm")
        (folder / "audit").mkdir()
        for worker, label in (("0", "kill worker at publish"), ("1", "kill worker at publish"), ("1", "drop message")):
            FolderLedger(folder, worker).write(FaultFired(1, label, worker, 5))
        text = shown(load_artefact(folder))
        assert "faults fired: drop message 1, kill worker at publish 2" in text

    def test_that_are_in_force_all_the_time_are_not_counted(self) -> None:
        always = FaultFired(1, "delay publish", "0", 5, struck=0)
        assert faults_text([always, always]) == "faults fired: delay publish (in force)"

    def test_of_which_none_fired_are_not_told(self) -> None:
        assert faults_text(()) is None


class TestAttemptsThatProveNothing:
    def test_have_a_column_and_are_told_cell_by_cell(self) -> None:
        one = artefact(made(FINAL, 1, flags=("vacuous",)), made(FINAL, 2), made(TAIL, 1, flags=("pressure-lost",)))
        text = shown(one)
        assert "vacuous: 1 attempt (hook-storm, seq-final + nets: 1)" in text
        assert "pressure-lost: 1 attempt (hook-storm, seq-tail + nets: 1)" in text
        assert "never" in text
        row = next(row for row in tally.outcome_rows(one) if row.cell == FINAL)
        assert (row.n, row.completed, row.vacuous) == (2, 2, 1)
        assert "| vacuous |" in summary_text(one)

    def test_that_there_are_none_of_make_no_column(self) -> None:
        assert "vacuous" not in shown(artefact(made(FINAL, 1)))


class TestControls:
    @pytest.mark.parametrize("outcome", [Outcome.DORMANT, Outcome.CORRUPTED])
    def test_one_that_fails_makes_its_arm_suspect_and_no_other(self, outcome: Outcome) -> None:
        control = replace(TAIL, scenario=CONTROL)
        one = artefact(made(control, 1, outcome), made(TAIL, 1, Outcome.DORMANT), made(FINAL, 1))
        assert [one.suspect(cell) for cell in (control, TAIL, FINAL)] == [True, True, False]
        text = shown(one)
        assert "environment: a control failed under seq-tail + nets" in text
        assert "seq-tail + nets" in text
        assert "(environment)" in text
        assert "environment suspect" in text

    @pytest.mark.parametrize("outcome", [Outcome.COMPLETED, Outcome.INFRA])
    def test_one_that_does_not_leaves_the_others_failures_to_count(self, outcome: Outcome) -> None:
        control = replace(TAIL, scenario=CONTROL)
        one = artefact(made(control, 1, outcome), made(TAIL, 1, Outcome.DORMANT))
        assert not one.suspect(TAIL)
        assert "environment" not in shown(one)


def test_the_knobs_of_a_condition_are_shown_and_not_taken_for_markup() -> None:
    cells = [replace(TAIL, condition="seq-tail[stale_ms=2000]"), FINAL]
    text = shown(artefact(*(made(cell, 1, work={"restarts": 1}) for cell in cells)))
    assert text.count("seq-tail[stale_ms=2000]") >= 3


def test_several_worlds_are_each_answered_for(tmp_path: Path) -> None:
    old, new = Cell("s", "local", "main", "nets"), Cell("s", "local", "seq-final", "dispenser")
    cells = [old, new, replace(old, world="postgres"), replace(new, world="postgres")]
    line = tally.verdict_line(artefact(*(made(cell, 1) for cell in cells)))
    assert line.count("old: ") == line.count("new: ") == 2
    assert "new: postgres/seq-final + dispenser corrupted 0/1" in line


def test_each_later_arm_is_compared_with_the_first() -> None:
    cells = [Cell("s", "local", condition, "nets") for condition in ("main", "seq-tail", "seq-final")]
    found = tally.comparisons(tally.outcome_rows(artefact(*(made(cell, 1) for cell in cells))))
    assert [one.scenario for one in found] == ["s, seq-tail + nets", "s, seq-final + nets"]
