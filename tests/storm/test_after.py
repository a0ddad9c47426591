"""After a storm: its logs are swept and replayed by the generation that wrote them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from stormctl.errors import StoreFailure
from stormctl.history import Capture, Evidence
from stormctl.readers import write_capture
from stormctl.readers.evidence import missing_from
from stormctl.storm.after import sweep_storm
from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.folder import StormFolder
from stormctl.storm.outcome import Outcome
from tests.storm.making import attempt, plan
from tests.storm.processes import gone, until
from tests.storm.stage import Latency, Seen, storm

OLD = Cell("step-storm", "memory", "main", "nets")
NEW = Cell("step-storm", "memory", "seq-final", "dispenser")
PLAN = plan(matrix={"pair": ["main + nets", "seq-final + dispenser"]})


def run(cell: Cell, ends: str) -> Seen:
    """The first run of the cell, on a slow store, that ends so."""
    for seed in range(9):
        seen = storm(cell.scenario, cell.condition, cell.generation, seed=seed, latency=Latency(), rounds=2, width=4)
        assert seen.row is not None
        if seen.row.status == ends:
            return replace(seen, row=replace(seen.row, workload=cell.scenario, input=asdict(seen.input)))
    raise AssertionError(f"no run of {cell.label} {ends}")


@pytest.fixture(scope="module")
def runs() -> dict[Cell, Seen]:
    return {OLD: run(OLD, "failed"), NEW: run(NEW, "completed")}


@pytest.fixture
def folder(tmp_path: Path) -> StormFolder:
    return StormFolder.create(PLAN, tmp_path)


def keep(folder: StormFolder, cell: Cell, seen: Seen, number: int = 1) -> Attempt:
    """Keep a run in the folder as an attempt would."""
    run_id = f"{seen.log.run_id[:-4]}{cell.condition[:1].upper()}{number:03d}"
    audit = tuple(replace(record, run_id=run_id) for record in seen.audit)
    missing = missing_from(seen.log.events, has_rows=False, has_audit=True, has_result=True)
    log = type(seen.log)(seen.log.events, run_id)
    write_capture(Capture("", log, Evidence("test", missing=missing), run=seen.row, audit=audit), folder.path)
    failed = seen.row is not None and seen.row.status == "failed"
    return attempt(number, Outcome.CORRUPTED if failed else Outcome.COMPLETED, cell=cell, run_id=run_id)


def report(folder: StormFolder) -> Any:
    return json.loads((folder.path / "sweeps.json").read_text())


class TestTheSweepsOfAStorm:
    def test_find_what_corrupted_the_old_pair_and_nothing_in_the_new_one(
        self, folder: StormFolder, runs: dict[Cell, Seen]
    ) -> None:
        attempts = [keep(folder, cell, seen, number) for cell, seen in runs.items() for number in (1, 2)]
        assert Counter(one.outcome for one in attempts) == {Outcome.CORRUPTED: 2, Outcome.COMPLETED: 2}
        swept = {one.run_id: one for one in sweep_storm(PLAN, folder, attempts)}
        assert set(swept) == {one.run_id for one in attempts}
        for one in attempts:
            told = swept[one.run_id or ""]
            assert told.cell == one.cell
            if one.cell == OLD:
                assert told.verdict == "violated"
                assert told.findings["rebinding"] >= 1
                assert {"dense", "id-order"} <= set(told.unknown)
            else:
                assert (told.verdict, dict(told.findings), told.unknown) == ("clean", {}, ())

    def test_replay_each_log_by_the_generation_of_its_cell(self, folder: StormFolder, runs: dict[Cell, Seen]) -> None:
        attempts = [keep(folder, cell, seen) for cell, seen in runs.items()]
        list(sweep_storm(PLAN, folder, attempts))
        engines = {
            log["run_id"]: [(one["engine"], one["workload"]) for one in log["rebinding"]]
            for log in report(folder)["logs"]
        }
        assert engines == {one.run_id: [(one.cell.generation, "step-storm")] for one in attempts}

    def test_are_kept_as_the_report_of_the_sweep_command(self, folder: StormFolder, runs: dict[Cell, Seen]) -> None:
        list(sweep_storm(PLAN, folder, [keep(folder, OLD, runs[OLD])]))
        kept = report(folder)
        assert (kept["schema"], len(kept["logs"]), kept["unreadable"]) == ("stormctl.sweep/1", 1, [])
        (rebinding,) = kept["logs"][0]["rebinding"]
        assert rebinding["prefixes"] == len(runs[OLD].log)
        assert rebinding["divergence"]["text"]

    def test_leave_out_attempts_that_left_no_log(self, folder: StormFolder, runs: dict[Cell, Seen]) -> None:
        kept = keep(folder, NEW, runs[NEW])
        lost = [attempt(2, Outcome.INFRA, run_id=None), attempt(3, Outcome.INFRA, run_id="wrun_never_written")]
        assert [one.run_id for one in sweep_storm(PLAN, folder, [kept, *lost])] == [kept.run_id]

    def test_of_a_storm_without_any_are_an_empty_report(self, folder: StormFolder) -> None:
        assert list(sweep_storm(PLAN, folder, [])) == []
        assert report(folder) == {"schema": "stormctl.sweep/1", "logs": [], "unreadable": []}

    def test_name_a_log_that_cannot_be_read_and_sweep_the_rest(
        self, folder: StormFolder, runs: dict[Cell, Seen]
    ) -> None:
        attempts = [keep(folder, NEW, runs[NEW], number) for number in (1, 2)]
        (folder.path / "logs" / f"{attempts[0].run_id}.ndjson").write_bytes(b"\x00\xff no log")
        assert [one.run_id for one in sweep_storm(PLAN, folder, attempts)] == [attempts[1].run_id]
        (unreadable,) = report(folder)["unreadable"]
        assert attempts[0].run_id in unreadable["source"]

    def test_that_the_disk_does_not_take_are_one_sentence(
        self, folder: StormFolder, runs: dict[Cell, Seen], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuses(*_: Any) -> Any:
            raise OSError(28, "No space left on device")

        attempts = [keep(folder, NEW, runs[NEW])]
        monkeypatch.setattr(Path, "replace", refuses)
        with pytest.raises(StoreFailure, match=r"sweeps\.json could not be written to .*: No space left on device"):
            list(sweep_storm(PLAN, folder, attempts))


SLEEPER = """
import sys
from stormctl.sweeps import SweepPlan, sweep_paths
from tests.storm.sleeping import sleeps

if __name__ == "__main__":
    try:
        list(sweep_paths(sys.argv[1:], SweepPlan(engines=("nets",), open=sleeps), processes=2))
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc, and only Linux kills a process with its parent")
class TestTheProcessesOfASweep:
    """The sweeps after a storm are spread over processes: they must end with whoever started them."""

    @pytest.fixture
    def sweeping(
        self, folder: StormFolder, runs: dict[Cell, Seen], root: Path, tmp_path: Path
    ) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
        """A sweep that takes for ever: its process, and the two that work for it."""
        for number in (1, 2):
            keep(folder, NEW, runs[NEW], number)
        began = tmp_path / "began"
        began.mkdir()
        parent = subprocess.Popen(
            [sys.executable, "-c", SLEEPER, str(folder.path / "logs")],
            env={**os.environ, "PYTHONPATH": str(root), "SLEEPING": str(began)},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            until(lambda: len(os.listdir(began)) == 2)
            yield parent, [int(name) for name in os.listdir(began)]
        finally:
            parent.kill()
            parent.communicate()

    def test_end_when_it_is_killed(self, sweeping: tuple[subprocess.Popen[str], list[int]]) -> None:
        parent, children = sweeping
        parent.kill()
        gone(children, 60)

    @pytest.mark.parametrize("whom", ["the sweep alone", "its whole group, as a terminal does"])
    def test_end_at_once_and_silently_with_ctrl_c(
        self, sweeping: tuple[subprocess.Popen[str], list[int]], whom: str
    ) -> None:
        parent, children = sweeping
        (os.kill if whom == "the sweep alone" else os.killpg)(parent.pid, signal.SIGINT)
        _, said = parent.communicate(timeout=60)
        gone(children, 60)
        assert (parent.returncode, said) == (130, "")
