"""Small real storms: processes that share a folder, signals, kills, and a disk that is really full."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from stormctl.report.load import load_artefact
from stormctl.worlds.owner import driver_of
from tests.storm.processes import alive, children_of, gone, stat_of, until
from tests.storm.real import INPUT, LONG, Ended, Storm, command, environment, sweep

pytestmark = [
    pytest.mark.storm,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="these tests watch processes in /proc"),
]
PAIRS = {"pair": ["main + nets", "seq-final + dispenser"]}
Start = Callable[..., Storm]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a storm; nothing of it outlives the test."""
    started: list[Storm] = []

    def begin(*arguments: object, place: Path = tmp_path, **changes: Any) -> Storm:
        started.append(Storm.start(place, *arguments, **changes))
        return started[-1]

    yield begin
    for one in started:
        one.kill()


def reason(storm: Storm) -> str:
    text: str = json.loads((storm.folder / "storm.json").read_text())["reason"]
    return text


def is_usable(storm: Storm, at_least: int = 1) -> None:
    """What landed can be read, and swept, whatever ended the storm."""
    attempts = load_artefact(storm.folder).attempts
    assert len(attempts) >= at_least
    code, report = sweep(storm.folder)
    assert code in (0, 1, 3)
    assert {one.run_id for one in attempts} <= {log["run_id"] for log in report["logs"]}
    assert report["unreadable"] == []


@dataclass(frozen=True)
class Finished:
    storm: Storm
    ended: Ended
    workers: list[int]


class TestASmallStorm:
    @pytest.fixture(scope="class")
    def finished(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
        storm = Storm.start(
            tmp_path_factory.mktemp("storm"),
            pictures=True,
            matrix=PAIRS,
            concurrency=4,
            storage_scale=0.001,
            cap="1000s",
            input=INPUT | {"rounds": 2},
        )
        try:
            workers = storm.workers()
            yield Finished(storm, storm.end(), workers)
        finally:
            storm.kill()

    def test_lands_every_attempt(self, finished: Finished) -> None:
        cells = [(row["condition"], row["number"]) for row in finished.storm.attempts()]
        assert sorted(cells) == [("main", 1), ("main", 2), ("seq-final", 1), ("seq-final", 2)]
        assert {row["outcome"] for row in finished.storm.attempts() if row["condition"] == "seq-final"} == {"completed"}
        assert reason(finished.storm) == "done"

    def test_exits_as_its_attempts_and_sweeps_say(self, finished: Finished) -> None:
        attempts = finished.storm.attempts()
        verdicts = {log["verdict"] for log in json.loads((finished.storm.folder / "sweeps.json").read_text())["logs"]}
        assert finished.ended.err == ""
        if "violated" in verdicts or any(row["outcome"] not in ("completed", "infra") for row in attempts):
            assert finished.ended.code == 1
        else:  # main has no positions, so that some sweep lacks its evidence
            assert finished.ended.code == 3

    def test_leaves_the_whole_artefact_behind(self, finished: Finished) -> None:
        folder = finished.storm.folder
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        wanted = {"plan.yaml", "env.json", "attempts.ndjson", "sweeps.json", "summary.md", "storm.json"}
        assert wanted <= {entry.name for entry in folder.iterdir()}
        for row in finished.storm.attempts():
            for place in ("logs/{}.ndjson", "logs/{}.meta.json", "audit/{}.ndjson"):
                assert (folder / place.format(row["run_id"])).stat().st_size > 0
        assert {"durations.png", "durations.svg"} <= {entry.name for entry in (folder / "plots").iterdir()}

    def test_logs_of_the_new_pair_are_dense_and_their_ids_are_in_order(self, finished: Finished) -> None:
        for row in finished.storm.attempts():
            if row["condition"] != "seq-final":
                continue
            log = (finished.storm.folder / "logs" / f"{row['run_id']}.ndjson").read_text().splitlines()
            events = [json.loads(line) for line in log]
            assert [event["position"] for event in events] == list(range(1, row["events"] + 1))
            ids = [event["event_id"] for event in events]
            assert ids == sorted(set(ids))

    def test_is_the_work_of_both_processes_and_neither_outlives_it(self, finished: Finished) -> None:
        assert len(finished.workers) == 2
        gone(finished.workers, 0)
        for index in range(2):
            place = finished.storm.folder / "workers"
            assert (place / f"{index}.log").read_text() == ""
            assert (place / f"{index}.ndjson").read_text().count("\n") > 0

    def test_gives_its_stores_back(self, finished: Finished) -> None:
        stores = list((finished.storm.folder / "stores").iterdir())
        assert len(stores) == 2
        assert [driver_of(store) for store in stores] == [None, None]

    def test_prints_plain_lines_with_the_seed_at_head_and_foot(self, finished: Finished) -> None:
        lines = finished.ended.out.splitlines()
        assert lines[0] == "small, seed 11: 4 attempts in 2 cells"
        assert re.fullmatch(r"\[1/4\] step-storm, (main \+ nets|seq-final \+ dispenser), attempt [12]: .*", lines[1])
        foot = lines.index("small, seed 11: 4 of 4 attempts landed")
        assert foot > 5
        assert lines[-1] == f"artefact: {finished.storm.folder}"
        assert "\x1b" not in finished.ended.out

    def test_can_be_swept_again_and_says_the_same(self, finished: Finished) -> None:
        kept = json.loads((finished.storm.folder / "sweeps.json").read_text())
        _, again = sweep(finished.storm.folder)

        def found(report: Any) -> dict[str, list[Any]]:
            return {
                log["run_id"]: [one for one in log["sweeps"] if one["sweep"] != "rebinding"] for log in report["logs"]
            }

        assert found(again) == found(kept)
        assert len(found(again)) == 4


class TestAStormThatIsInterrupted:
    def test_by_ctrl_c_in_a_terminal_keeps_what_landed_and_leaves_no_worker(self, start: Start) -> None:
        """A terminal sends it to the workers as well."""
        storm = start(**LONG)
        workers = storm.workers()
        storm.wait_for(1)
        os.killpg(storm.process.pid, signal.SIGINT)
        is_interrupted(storm, storm.end(), workers)
        is_usable(storm)

    def test_by_sigterm_does_the_same_and_another_one_of_the_same_plan_had_a_folder_of_its_own(
        self, start: Start
    ) -> None:
        storms = [start(**LONG)]
        folders = [storms[0].folder]
        storms.append(start(**LONG))
        until(lambda: storms[1].folder != folders[0])
        folders.append(storms[1].folder)
        for storm, folder in zip(storms, folders, strict=True):
            workers = storm.workers()
            until(lambda folder=folder: load_artefact(folder).attempts)  # type: ignore[misc]
            storm.process.terminate()
            is_interrupted(storm, storm.end(), workers, folder)
            attempts = {one.run_id for one in load_artefact(folder).attempts}
            assert attempts <= {log.stem for log in (folder / "logs").glob("*.ndjson")}
        logs = [set(os.listdir(folder / "logs")) for folder in folders]
        assert not logs[0] & logs[1]

    def test_before_anything_landed_says_so(self, start: Start) -> None:
        storm = start(**LONG, time_scale=1.0)
        workers = storm.workers()
        os.kill(storm.process.pid, signal.SIGINT)
        ended = storm.end()
        is_interrupted(storm, ended, workers)
        assert "0 of 400 attempts landed, interrupted" in ended.out
        assert load_artefact(storm.folder).attempts == ()

    def test_while_its_logs_are_swept_keeps_them(self, start: Start) -> None:
        storm = start(attempts=4, concurrency=4, input=INPUT | {"rounds": 2, "width": 4})
        until(lambda: (storm.folder / "storm.json").exists(), 60)
        os.kill(storm.process.pid, signal.SIGINT)
        ended = storm.end()
        assert (ended.code, ended.err) == (130, "")
        assert reason(storm) == "done"
        assert "note: sweeps.json is absent" in ended.out
        is_usable(storm, at_least=4)


def is_interrupted(storm: Storm, ended: Ended, workers: list[int], folder: Path | None = None) -> None:
    """The storm ended as an interrupted one should."""
    folder = folder or storm.folder
    gone(workers, 0)
    assert (ended.code, ended.err) == (130, "")
    assert ended.out.endswith("interrupted: what landed is kept in the artefact folder\n")
    assert re.search(r"^small, seed 11: \d+ of 400 attempts landed, interrupted$", ended.out, re.M)
    assert json.loads((folder / "storm.json").read_text())["reason"] == "interrupted"
    assert (folder / "summary.md").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a stopped process with its parent")
def test_no_worker_outlives_a_killed_driver_not_even_a_stopped_one(start: Start) -> None:
    storm = start(**LONG)
    workers = storm.workers()
    storm.wait_for(1)
    os.kill(workers[0], signal.SIGSTOP)
    storm.process.kill()
    gone(workers, 60)
    storm.end()
    is_usable(storm)


class TestAWorkerThatDies:
    def test_has_a_successor_and_its_storm_ends_as_if_nothing_had_been(self, start: Start) -> None:
        storm = start("--report-only", attempts=4, concurrency=2)
        workers = storm.workers()
        storm.wait_for(1)
        os.kill(workers[1], signal.SIGKILL)
        until(lambda: not alive(workers[1]))
        ended = storm.end(60)
        assert (ended.code, ended.err) == (0, "")
        told = r"^worker ([01]) was killed by signal 9; \d+ messages went back, worker \1-1 took its place$"
        assert re.search(told, ended.out, re.M)
        assert {row["outcome"] for row in storm.attempts()} == {"completed"}
        assert len(storm.attempts()) == 4
        assert children_of(storm.process.pid) == []

    def test_or_cannot_do_its_work_is_quoted(self, start: Start) -> None:
        """The plan in the folder is spoilt between the start of the driver and that of its workers."""
        storm = start(**LONG, time_scale=1.0)
        (storm.folder / "plan.yaml").write_text("schema: stormctl.plan/9\n")
        ended = storm.end()
        assert ended.code == 4
        said = r"stormctl: worker [01] ended with code 2: stormctl: \S+plan\.yaml is written for a newer"
        assert re.match(said, ended.err)
        assert ended.err.count("\n") == 1


class TestFaults:
    def test_kills_at_named_points_lose_no_event_of_a_run(self, start: Start) -> None:
        kill = {"kill": "worker", "at": "publish", "every": 25, "limit": 3}
        storm = start("--report-only", attempts=3, concurrency=2, faults=[kill])
        storm.workers()
        ended = storm.end(120)
        assert (ended.code, ended.err) == (0, "")
        returned = re.findall(r"; (\d+) messages went back, worker \S+ took its place$", ended.out, re.M)
        assert len(returned) == 3
        assert "0" not in returned, "the append during which a worker was killed had a message"
        assert "faults fired: kill worker at publish 3" in ended.out
        assert {row["outcome"] for row in storm.attempts()} == {"completed"}
        for row in storm.attempts():
            log = (storm.folder / "logs" / f"{row['run_id']}.ndjson").read_text().splitlines()
            positions = [json.loads(line)["position"] for line in log]
            assert positions == list(range(1, len(positions) + 1))

    def test_a_stopped_lock_holder_goes_on_and_nothing_stays_stopped(self, start: Start) -> None:
        stop = {"stop": "holder", "at": "allocate", "for": "700ms", "every": 20, "limit": 2}
        storm = start("--report-only", attempts=2, concurrency=1, faults=[stop])
        workers = storm.workers()
        until(lambda: any(stat_of(pid)[:1] == ["T"] for pid in workers), 60)
        ended = storm.end(120)
        gone(workers, 0)
        assert (ended.code, ended.err) == (0, "")
        assert "faults fired: stop holder at allocate 2" in ended.out
        assert " took its place" not in ended.out
        assert {row["outcome"] for row in storm.attempts()} == {"completed"}

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a stopped process with its parent")
    def test_a_storm_that_is_killed_meanwhile_leaves_neither_the_stopped_worker_nor_what_would_wake_it(
        self, start: Start
    ) -> None:
        storm = start(**LONG, faults=[{"stop": "holder", "at": "allocate", "for": "60s", "every": 5, "limit": 1}])
        workers = storm.workers()
        until(lambda: any(stat_of(pid)[:1] == ["T"] for pid in workers), 60)
        wakers = [child for pid in workers for child in children_of(pid)]
        assert len(wakers) == 1
        storm.process.kill()
        gone([*workers, *wakers], 60)


class TestResuming:
    def test_a_killed_storm_keeps_what_landed_and_makes_the_rest(self, start: Start) -> None:
        storm = start("--report-only", attempts=6, concurrency=2)
        storm.workers()
        storm.wait_for(2)
        storm.process.kill()
        gone(storm.seen_workers, 60)
        kept = storm.attempts()
        with (storm.folder / "attempts.ndjson").open("a") as file:
            file.write('{"schema": "stormctl.attempt/1", "scen')
        ran = subprocess.run(
            command("run", "--resume", storm.folder, "--report-only"),
            capture_output=True,
            text=True,
            env=environment(),
            check=False,
            timeout=120,
        )
        assert (ran.returncode, ran.stderr) == (0, "")
        attempts = storm.attempts()
        assert attempts[: len(kept)] == kept
        assert sorted(row["number"] for row in attempts) == list(range(1, 7))
        assert {row["outcome"] for row in attempts} == {"completed"}
        again = [row["note"] for row in attempts if "note" in row]
        assert 1 <= len(again) <= 2
        assert all(re.fullmatch(r"tried again: the driver ended during wrun_\w+", note) for note in again)
        assert "6 of 6 attempts landed" in ran.stdout
        assert reason(storm) == "done"

    def test_a_storm_that_is_running_or_done_is_refused(self, start: Start) -> None:
        storm = start("--report-only", attempts=2, concurrency=1, time_scale=0.1)
        storm.workers()
        resume = command("run", "--resume", storm.folder)
        ran = subprocess.run(resume, capture_output=True, text=True, env=environment(), check=False)
        assert ran.returncode == 2
        assert re.match(rf"stormctl: the storm in \S+ is running: pid {storm.process.pid} on ", ran.stderr)
        storm.end()
        ran = subprocess.run(resume, capture_output=True, text=True, env=environment(), check=False)
        assert ran.returncode == 2
        assert "is done: there is nothing to resume" in ran.stderr


class TestADiskThatIsReallyFull:
    @pytest.fixture
    def small_disk(self, tmp_path: Path) -> Iterator[Path]:
        """A disk of a megabyte and a half."""
        place = tmp_path / "disk"
        place.mkdir()
        made = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1500k", "stormctl-test", str(place)], capture_output=True, check=False
        )
        if made.returncode != 0:
            pytest.skip("no disk can be mounted here (that takes root)")
        try:
            yield place
        finally:
            subprocess.run(["umount", "--lazy", str(place)], check=True)

    def test_ends_the_storm_with_one_sentence_and_keeps_what_landed(self, start: Start, small_disk: Path) -> None:
        storm = start(**LONG, concurrency=1, place=small_disk)
        workers = storm.workers()
        ended = storm.end(60)
        gone(workers, 0)
        assert ended.code == 4
        assert "No space left on device" in ended.err
        assert re.fullmatch(r"stormctl: [^\n]+\. [^\n]+\.\n", ended.err)
        attempts = load_artefact(storm.folder).attempts
        assert len(attempts) >= 1
        for one in attempts:
            assert (storm.folder / "logs" / f"{one.run_id}.ndjson").exists()
