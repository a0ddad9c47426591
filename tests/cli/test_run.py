"""The run command: what it says before it runs, bad plans, exit codes, and what it shows of a storm."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stormctl.cli import run_output
from stormctl.cli.exit_code import combine
from stormctl.cli.overrides import parse_overrides
from stormctl.errors import StoreFailure, UsageError
from stormctl.report.load import Artefact, SweptLog
from stormctl.storm import after, driver
from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.events import AttemptLanded, StormFinished, StormStarted
from stormctl.storm.folder import StormFolder
from stormctl.storm.outcome import Outcome
from stormctl.storm.plan import Plan, load_plan
from stormctl.workloads.registry import WORKLOADS
from stormctl.worlds import condition_named
from stormctl.worlds.local import LocalWorld

Run = Callable[..., Any]
CELL = Cell("step-storm", "memory", "seq-final", "dispenser")
STORMCTL = [sys.executable, "-c", "import sys; from stormctl.cli import main; sys.exit(main(sys.argv[1:]))"]
PLAN: dict[str, Any] = {
    "schema": "stormctl.plan/1",
    "name": "small",
    "seed": 11,
    "scenario": "step-storm",
    "world": "memory",
    "condition": "seq-final",
    "generation": "dispenser",
    "attempts": 2,
    "concurrency": 2,
    "processes": 1,
    "time_scale": 0.01,
    "storage_scale": 0.01,
    "cap": "2400s",
    "input": {"rounds": 1, "width": 4, "jitter_buckets": 7},
}


def attempt(number: int, outcome: Outcome = Outcome.COMPLETED, cell: Cell = CELL, **changes: Any) -> Attempt:
    return Attempt(cell, number, f"wrun_{number}", outcome, **changes)


@pytest.fixture
def plan(tmp_path: Path) -> Callable[..., Path]:
    """A plan file: the small one, changed."""

    def write(**changes: Any) -> Path:
        path = tmp_path / "small.yaml"
        path.write_text(yaml.safe_dump({**PLAN, **changes}))
        return path

    return write


@pytest.fixture
def canned(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let a storm land these attempts (and then raise), without running anything, and draw no pictures of it."""
    monkeypatch.setattr("stormctl.report.pictures.write_plots", lambda artefact: ())

    def can(*attempts: Attempt, then: BaseException | None = None) -> None:
        async def storm(plan: Plan, folder: StormFolder, **_more: Any) -> AsyncIterator[Any]:
            yield StormStarted(plan.name, plan.seed, folder.path, dict.fromkeys(plan.cells, plan.attempts))
            for one in attempts:
                folder.record(one)
                yield AttemptLanded(one)
            if then is not None:
                raise then
            yield StormFinished(folder.path, len(attempts), plan.total, "done", 1.0)

        monkeypatch.setattr(driver, "run_storm", storm)

    return can


class TestDryRun:
    def test_says_what_the_plan_would_do_and_does_nothing(
        self, stormctl: Run, stored: Callable[[str, str], None], plan: Callable[..., Path], tmp_path: Path
    ) -> None:
        matrix = {"scenario": ["step-storm", "hook-storm"], "pair": ["main + nets", "seq-final + dispenser"]}
        path = plan(world="local", processes=2, time_scale=0.1, attempts=8, concurrency=4, cap="240s", matrix=matrix)
        ran = stormctl("run", path, "--dry-run", "--out", tmp_path / "out")
        assert (ran.code, ran.err) == (0, "")
        assert not (tmp_path / "out").exists()
        stored("run-dry.txt", ran.out)

    @pytest.mark.parametrize("name", ["storm.yaml", "quick.yaml"])
    def test_takes_every_plan_of_the_project(self, stormctl: Run, name: str) -> None:
        ran = stormctl("run", f"configs/{name}", "--dry-run")
        assert ran.code == 0
        assert ran.out.startswith(f"plan {name.removesuffix('.yaml')}, seed ")
        assert max(map(len, ran.out.splitlines())) <= 120

    def test_shows_overrides_and_the_seed_as_they_will_be_used(self, stormctl: Run, plan: Callable[..., Path]) -> None:
        ran = stormctl(
            "run", plan(), "--dry-run", "--seed", 5, "-P", "attempts=3", "-P", "scenario=step-storm,hook-storm"
        )
        assert "plan small, seed 5" in ran.out
        assert "2 cells of 3 attempts: 6 in all" in ran.out

    def test_imports_nothing_that_only_a_report_needs(self, root: Path) -> None:
        heavy = {"pandas", "numpy", "matplotlib", "scipy", "pyarrow", "psycopg", "jinja2"}
        text = (
            "import sys; from stormctl.cli import main; code = main(['run', 'configs/storm.yaml', '--dry-run']);"
            f" sys.exit(code or ' '.join({heavy} & set(sys.modules)) or 0)"
        )
        ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False, cwd=root)
        assert (ran.returncode, ran.stderr) == (0, "")


class TestABadPlan:
    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"atempts": 3}, "has an unknown key 'atempts'. Did you mean 'attempts'?"),
            ({"scenario": "step-strom"}, "there is no scenario 'step-strom'. Did you mean 'step-storm'?"),
            ({"condition": "seq-fnial"}, "there is no condition 'seq-fnial'. Did you mean 'seq-final'?"),
            ({"generation": "net"}, "there is no generation 'net'. Did you mean 'nets'?"),
            ({"world": "lokal"}, "there is no world 'lokal'. Did you mean 'local'?"),
            (
                {"budget": "10 minutes"},
                "budget is '10 minutes', not a duration. Write a number with ms, s, m or h: 240s.",
            ),
            ({"cap": 240}, "cap is 240, not a duration. Write a number with ms, s, m or h: 240s."),
            ({"input": {"ronuds": 3}}, "no scenario of the plan has an input 'ronuds'. Did you mean 'rounds'?"),
            ({"input": {"rounds": 0}}, "input 'rounds' of step-storm is 0. Give it 1 or more."),
            ({"processes": 2}, "the memory world lives in one process. Set `processes: 1`, or name another world."),
        ],
    )
    def test_is_one_sentence_with_its_remedy_and_exit_2(
        self, stormctl: Run, plan: Callable[..., Path], tmp_path: Path, changes: dict[str, Any], said: str
    ) -> None:
        ran = stormctl("run", plan(**changes), "--out", tmp_path / "out")
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.endswith(f"{said}\n")
        assert ran.err.startswith("stormctl: ")
        assert ran.err.count("\n") == 1
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("", "is not a plan"),
            ("schema: [1", "is not readable as YAML: line 1"),
            ("\x00", "is not readable as YAML"),
            ("schema: stormctl.plan/2", "is written for a newer stormctl (stormctl.plan/2). Upgrade stormctl."),
        ],
    )
    def test_that_is_no_plan_at_all_is_named(self, stormctl: Run, tmp_path: Path, text: str, said: str) -> None:
        path = tmp_path / "plan.yaml"
        path.write_text(text)
        ran = stormctl("run", path)
        assert ran.code == 2
        assert f"stormctl: {path} {said}" in ran.err

    def test_that_is_absent_is_named(self, stormctl: Run, tmp_path: Path) -> None:
        ran = stormctl("run", tmp_path / "none.yaml")
        assert ran.code == 2
        assert ran.err == (
            f"stormctl: {tmp_path}/none.yaml cannot be read: No such file or directory. "
            "Name a plan file, such as configs/storm.yaml.\n"
        )


class TestOverrides:
    def test_are_lists_by_key(self) -> None:
        assert parse_overrides(["attempts=4", "scenario=a, b", "pair=main + nets"]) == {
            "attempts": ["4"],
            "scenario": ["a", "b"],
            "pair": ["main + nets"],
        }

    @pytest.mark.parametrize("text", ["attempts", "=4", "attempts=", " = "])
    def test_that_are_no_key_and_value_are_refused(self, text: str) -> None:
        with pytest.raises(UsageError, match="is no key=value"):
            parse_overrides([text])

    @pytest.mark.parametrize(
        ("given_overrides", "said"),
        [
            (["attempts"], "-P 'attempts' is no key=value. Write it as -P attempts=4 or -P scenario=a,b."),
            (["attempts=1", "attempts=2"], "-P names 'attempts' twice. Give all its values at once: -P key=a,b."),
            (["atempts=1"], "-P has an unknown key 'atempts'. Did you mean 'attempts'?"),
            (["attempts=1,2"], "-P attempts takes one value, not 2. Only scenario, world, condition, generation"),
            (["attempts=many"], "attempts is 'many', not a whole number. Give one from 1 to 10000."),
            (["input.=3"], "-P input. names no input. Write input.rounds=4, or inputs.step-storm.rounds=4"),
        ],
    )
    def test_that_cannot_be_meant_are_one_sentence_and_exit_2(
        self, stormctl: Run, plan: Callable[..., Path], given_overrides: list[str], said: str
    ) -> None:
        ran = stormctl("run", plan(), "--dry-run", *(part for one in given_overrides for part in ("-P", one)))
        assert ran.code == 2
        assert ran.err.startswith(f"stormctl: {said}")
        assert ran.err.count("\n") == 1

    @given(st.dictionaries(st.text("abc._-", min_size=1), st.lists(st.text("xyz01.", min_size=1), min_size=1)))
    def test_come_back_as_they_were_written(self, wanted: dict[str, list[str]]) -> None:
        assert parse_overrides([f"{key}={','.join(values)}" for key, values in wanted.items()]) == wanted

    def test_commas_between_the_knobs_of_a_condition_are_the_conditions_own(self) -> None:
        given = ["condition=main,seq-final[stale_ms=2000,reads=strong],seq-tail"]
        assert parse_overrides(given)["condition"] == ["main", "seq-final[stale_ms=2000,reads=strong]", "seq-tail"]


class TestExitCodes:
    """Of the parts of a storm: attempts, swept logs, cells."""

    @pytest.mark.parametrize(
        ("outcomes", "code"),
        [
            ([Outcome.COMPLETED], 0),
            *(([Outcome.COMPLETED, outcome], 1) for outcome in Outcome if outcome.gates),
            ([Outcome.COMPLETED, Outcome.INFRA], 0),
            ([Outcome.INFRA], 3),
            ([], 3),
        ],
    )
    def test_gating_outcomes_are_violations_and_a_cell_without_a_judged_attempt_is_unknown(
        self, outcomes: list[Outcome], code: int
    ) -> None:
        attempts = tuple(attempt(number, outcome) for number, outcome in enumerate(outcomes))
        assert combine(run_output.codes(Artefact(Path(), attempts))) == code

    @pytest.mark.parametrize("flag", ["vacuous", "pressure-lost"])
    def test_attempts_that_prove_nothing_do_not_make_a_cell_judged(self, flag: str) -> None:
        void = attempt(1, flags=(flag,))
        assert combine(run_output.codes(Artefact(Path(), (void,)))) == 3
        assert combine(run_output.codes(Artefact(Path(), (void, attempt(2))))) == 0
        corrupted = attempt(1, Outcome.CORRUPTED, flags=(flag,))
        assert combine(run_output.codes(Artefact(Path(), (corrupted,)))) == 1

    def test_what_fails_where_a_control_fails_is_unknown_and_no_violation(self) -> None:
        control = next(name for name, workload in WORKLOADS.items() if workload.control)
        calm, storm = attempt(1, Outcome.DORMANT), attempt(2, Outcome.CORRUPTED)
        calm = replace(calm, cell=replace(calm.cell, scenario=control))
        log = SweptLog(storm.run_id or "", "violated", 10, (), ())
        assert combine(run_output.codes(Artefact(Path(), (calm, storm), logs=(log,)))) == 3
        elsewhere = replace(storm, cell=replace(storm.cell, condition="main"))
        assert combine(run_output.codes(Artefact(Path(), (calm, elsewhere)))) == 1

    def test_a_planned_cell_of_which_nothing_landed_is_unknown(self, plan: Callable[..., Path]) -> None:
        wanted = load_plan(plan(matrix={"condition": ["main", "seq-final"]}))
        landed = tuple(attempt(1, cell=cell) for cell in wanted.cells)
        assert combine(run_output.codes(Artefact(Path(), landed, wanted))) == 0
        assert combine(run_output.codes(Artefact(Path(), landed[:1], wanted))) == 3

    @pytest.mark.parametrize(("verdict", "code"), [("clean", 0), ("violated", 1), ("unknown", 3)])
    def test_the_verdict_on_a_log_counts_as_it_does_for_sweep(self, verdict: str, code: int) -> None:
        log = SweptLog("wrun_1", verdict, 10, (), ())
        assert combine(run_output.codes(Artefact(Path(), (attempt(1),), logs=(log,)))) == code

    def test_a_log_of_ours_that_cannot_be_read_outranks_everything(self) -> None:
        artefact = Artefact(Path(), (attempt(1, Outcome.CORRUPTED),), unreadable=("logs/a.ndjson: damaged",))
        assert combine(run_output.codes(artefact)) == 4
        assert combine(run_output.codes(artefact), report_only=True) == 4

    @pytest.mark.parametrize(
        ("outcome", "code", "reported"), [(Outcome.COMPLETED, 0, 0), (Outcome.CORRUPTED, 1, 0), (Outcome.INFRA, 3, 0)]
    )
    def test_report_only_lets_them_pass(
        self,
        stormctl: Run,
        plan: Callable[..., Path],
        tmp_path: Path,
        canned: Callable[..., None],
        outcome: Outcome,
        code: int,
        reported: int,
    ) -> None:
        canned(attempt(1, outcome))
        assert stormctl("run", plan(), "--out", tmp_path / "out").code == code
        assert stormctl("run", plan(), "--out", tmp_path / "out", "--report-only").code == reported


class TestAStormOnTheMemoryWorld:
    def test_ends_clean_and_leaves_its_artefact(self, stormctl: Run, plan: Callable[..., Path], tmp_path: Path) -> None:
        ran = stormctl("run", plan(), "--out", tmp_path / "out")
        folder = (tmp_path / "out" / "small" / "latest").resolve()
        attempts = [json.loads(line) for line in (folder / "attempts.ndjson").read_text().splitlines()]
        assert [row["outcome"] for row in attempts] == ["completed"] * 2
        judged = any(not row["flags"] for row in attempts)
        assert (ran.code, ran.err) == (0 if judged else 3, "")
        assert {"plan.yaml", "env.json", "sweeps.json", "summary.md", "storm.json", "plots"} <= set(os.listdir(folder))
        assert {"durations.png", "outcomes.svg"} <= set(os.listdir(folder / "plots"))
        lines = ran.out.splitlines()
        assert lines[0] == "small, seed 11: 2 attempts in 1 cell"
        assert "small, seed 11: 2 of 2 attempts landed" in lines
        assert lines[-1] == f"artefact: {folder}"
        assert "\x1b" not in ran.out

    def test_the_seed_of_the_command_line_is_shown_at_head_and_foot_and_kept(
        self, stormctl: Run, plan: Callable[..., Path], tmp_path: Path, canned: Callable[..., None]
    ) -> None:
        canned(attempt(1))
        lines = stormctl("run", plan(), "--out", tmp_path / "out", "--seed", 77).out.splitlines()
        assert lines[0].startswith("small, seed 77: ")
        assert [line for line in lines[1:] if "seed 77" in line]
        assert load_plan(tmp_path / "out" / "small" / "latest" / "plan.yaml").seed == 77

    def test_a_reader_that_goes_away_does_not_end_it(
        self, plan: Callable[..., Path], tmp_path: Path, root: Path
    ) -> None:
        """``stormctl run ... | head -1``"""
        reader, writer = os.pipe()
        os.close(reader)
        arguments = ["run", str(plan()), "--report-only", "--out", str(tmp_path / "out")]
        ran = subprocess.run(
            [*STORMCTL, *arguments],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            cwd=root,
        )
        os.close(writer)
        assert (ran.returncode, ran.stderr) == (0, "")
        assert (tmp_path / "out" / "small" / "latest" / "sweeps.json").exists()


class TestAStormThatIsCutShort:
    @pytest.mark.parametrize("how", [KeyboardInterrupt(), asyncio.CancelledError()])
    def test_shows_and_keeps_what_landed_and_exits_130(
        self,
        stormctl: Run,
        plan: Callable[..., Path],
        tmp_path: Path,
        canned: Callable[..., None],
        how: BaseException,
    ) -> None:
        canned(attempt(1), attempt(2, Outcome.CORRUPTED), then=how)
        ran = stormctl("run", plan(attempts=9), "--out", tmp_path / "out", "--report-only")
        assert (ran.code, ran.err) == (130, "")
        assert "small, seed 11: 2 of 9 attempts landed" in ran.out
        assert ran.out.endswith("interrupted: what landed is kept in the artefact folder\n")
        assert (tmp_path / "out" / "small" / "latest" / "summary.md").exists()

    def test_while_it_is_swept_exits_130_too(
        self,
        stormctl: Run,
        plan: Callable[..., Path],
        tmp_path: Path,
        canned: Callable[..., None],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        def sweep(*_: Any) -> Any:
            yield from ()
            raise KeyboardInterrupt

        canned(attempt(1))
        monkeypatch.setattr(after, "sweep_storm", sweep)
        ran = stormctl("run", plan(), "--out", tmp_path / "out")
        assert ran.code == 130
        assert "1 of 2 attempts landed" in ran.out

    def test_by_a_store_that_fails_shows_what_landed_before_its_one_sentence(
        self, stormctl: Run, plan: Callable[..., Path], tmp_path: Path, canned: Callable[..., None]
    ) -> None:
        canned(attempt(1), then=StoreFailure("the store failed at x: No space left on device", remedy="Free space."))
        ran = stormctl("run", plan(), "--out", tmp_path / "out", "--report-only")
        assert (ran.code, ran.err) == (4, "stormctl: the store failed at x: No space left on device. Free space.\n")
        assert "1 of 2 attempts landed" in ran.out

    def test_by_a_store_that_fails_at_once_shows_no_empty_tables(
        self, stormctl: Run, plan: Callable[..., Path], tmp_path: Path, canned: Callable[..., None]
    ) -> None:
        canned(then=StoreFailure("the store failed", remedy="Free space."))
        ran = stormctl("run", plan(), "--out", tmp_path / "out")
        assert ran.code == 4
        assert "attempts landed" not in ran.out

    def test_by_a_disk_that_takes_no_summary_prints_the_results_first(
        self,
        stormctl: Run,
        plan: Callable[..., Path],
        tmp_path: Path,
        canned: Callable[..., None],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        def full(*_: Any) -> Any:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        canned(attempt(1))
        monkeypatch.setattr("stormctl.report.summary.write_summary", full)
        ran = stormctl("run", plan(), "--out", tmp_path / "out")
        assert ran.code == 4
        assert "small, seed 11: 1 of 2 attempts landed" in ran.out
        assert re.fullmatch(
            r"stormctl: the summary of the storm could not be written to \S+: No space left on device\. "
            r"Make room on the disk; the attempts and their logs are kept\.\n",
            ran.err,
        )


class TestAPlaceThatCannotBeHad:
    def test_an_out_that_is_a_file(self, stormctl: Run, plan: Callable[..., Path], tmp_path: Path) -> None:
        (tmp_path / "out").write_text("mine")
        ran = stormctl("run", plan(), "--out", tmp_path / "out")
        assert ran.code == 4
        assert re.match(r"stormctl: the storm's folder \S+ cannot be written: Not a directory\. .*--out\.\n", ran.err)

    @pytest.fixture
    def taken(self, plan: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """The store folder of the next storm's only cell."""
        wanted = load_plan(plan(world="local"))
        folder = StormFolder.create(wanted, tmp_path / "out")
        monkeypatch.setattr(StormFolder, "create", lambda *_: folder)
        return folder.store(wanted.cells[0])

    def test_a_store_that_another_storm_uses(self, stormctl: Run, taken: Path, tmp_path: Path) -> None:
        holder = LocalWorld.create(taken, condition_named("seq-final"))
        try:
            ran = stormctl("run", tmp_path / "small.yaml")
        finally:
            asyncio.run(holder.close())
        assert ran.code == 2
        assert re.fullmatch(
            rf"stormctl: the store in \S+ is in use by pid {os.getpid()} on \S+ \(last sign of life \d+ s ago\)\. "
            r"Wait until that storm ends, stop it, or give this one another folder\.\n",
            ran.err,
        )

    def test_a_store_that_is_not_ours(self, stormctl: Run, taken: Path, tmp_path: Path) -> None:
        taken.mkdir()
        (taken / "thesis.txt").write_text("mine")
        ran = stormctl("run", tmp_path / "small.yaml")
        assert ran.code == 2
        assert ran.err.endswith(
            "is not empty and no store of stormctl. Give the store an empty folder or one that stormctl made.\n"
        )
        assert os.listdir(taken) == ["thesis.txt"]


class TestTheWorkerCommand:
    @pytest.mark.parametrize("content", [None, "not a plan"])
    def test_in_a_folder_that_is_no_storm_is_one_sentence_and_exit_2(
        self, root: Path, tmp_path: Path, content: str | None
    ) -> None:
        if content is not None:
            (tmp_path / "plan.yaml").write_text(content)
        ran = worker(root, tmp_path)
        assert ran.returncode == 2
        assert re.fullmatch(r"stormctl: \S+plan\.yaml (cannot be read|is not a plan)[^\n]*\n", ran.stderr)

    def test_in_a_storm_whose_store_is_not_ours_is_one_sentence_and_exit_2(
        self, root: Path, plan: Callable[..., Path], tmp_path: Path
    ) -> None:
        folder = StormFolder.create(load_plan(plan(world="local")), tmp_path / "out")
        ran = worker(root, folder.path)
        assert ran.returncode == 2
        assert re.fullmatch(r"stormctl: the folder \S+ is no store of stormctl\. [^\n]+\n", ran.stderr)


def worker(root: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """A worker process whose parent keeps its standard input open for as long as it lives."""
    reader, writer = os.pipe()
    try:
        return subprocess.run(
            [*STORMCTL, "worker", "--storm", str(folder)],
            stdin=reader,
            capture_output=True,
            text=True,
            check=False,
            cwd=root,
            timeout=30,
        )
    finally:
        os.close(reader)
        os.close(writer)


def test_a_worker_ends_when_its_standard_input_does(root: Path, plan: Callable[..., Path], tmp_path: Path) -> None:
    folder = StormFolder.create(load_plan(plan(world="local")), tmp_path / "out")
    cell = Cell("step-storm", "local", "seq-final", "dispenser")
    asyncio.run(LocalWorld.create(folder.store(cell), condition_named("seq-final")).close())
    ran = subprocess.run(
        [*STORMCTL, "worker", "--storm", str(folder.path)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        cwd=root,
        timeout=30,
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_every_storm_is_told_apart_from_the_last(
    stormctl: Run, plan: Callable[..., Path], tmp_path: Path, canned: Callable[..., None]
) -> None:
    canned(attempt(1))
    for _ in range(2):
        stormctl("run", plan(), "--out", tmp_path / "out")
    assert len([name for name in os.listdir(tmp_path / "out" / "small") if name != "latest"]) == 2
