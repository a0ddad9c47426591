"""Store folders of a local world: in the store's own order, beside what is broken, while a server writes."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import tarfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormctl.errors import UnreadableInput
from stormctl.history import COMMIT_TIMES, Capture, Facet
from stormctl.readers import Unreadable, open_captures, reader_for, write_capture
from stormctl.readers.worldlocal import read_run, read_store, store_at
from stormctl.sweeps import SweepPlan, Verdict, sweep_log, sweep_paths
from stormctl.testing import LogBuilder
from tests.readers.store_folder import V4, V5, bytes_of, write, write_store

RUN = "wrun_01KE0000000000000000000000"


@pytest.fixture
def four(root: Path, tmp_path: Path) -> Path:
    """A copy of the committed store of 4.8."""
    return shutil.copytree(root / "fixtures" / "stores" / "sdk-4.8", tmp_path / "four")


@pytest.fixture
def five(root: Path, tmp_path: Path) -> Path:
    """A copy of the committed store of 5.0."""
    return shutil.copytree(root / "fixtures" / "stores" / "sdk-5.0", tmp_path / "five")


@pytest.fixture
def unpacked(shared_data: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Unpacks one of the real store folders: ``unpacked("local-v4", "d4")``."""

    def unpack(name: str, inner: str) -> Path:
        archive = shared_data / "wdk" / f"{name}.tgz"
        if not archive.is_file():
            pytest.skip(f"{name}.tgz is not beside this clone")
        with tarfile.open(archive) as tar:
            tar.extractall(tmp_path / name, filter="data")
        return next(path for path in (tmp_path / name).rglob(inner) if path.is_dir())

    return unpack


def captures(folder: Path) -> list[Capture]:
    return [one for one in read_store(folder) if isinstance(one, Capture)]


def a_store(folder: Path, *, slots: bool = False, run_id: str = RUN) -> Path:
    builder = LogBuilder(run_id).run_created().run_started().step(1, "settle", {"r": 0}).wait_created(2)
    return write_store(folder, builder.log(), "stepStorm", {"token": "t", "rounds": 1}, slots=slots)


def event_files(folder: Path) -> list[Path]:
    return sorted((folder / "events").iterdir())


class TestTheCommittedFolders:
    def test_a_run_of_4_8_is_read_with_all_that_it_has(self, four: Path) -> None:
        (found,) = captures(four)
        assert len(found.log) == 37
        assert not found.log.has_positions
        assert found.run is not None
        assert (found.run.status, found.run.workload) == ("completed", "capture-step-storm")
        assert found.run.input["watchdog_ms"] == 1200
        assert found.run.output["lates"] == [1]
        assert found.evidence.origin == f"local world {V4}"
        assert not found.evidence.live
        assert Facet.INPUTS not in found.evidence.missing
        assert found.data["workflow"] == "workflow//./workflows/storms//stepStorm"

    def test_a_run_of_5_0_has_its_slots_as_positions(self, five: Path) -> None:
        (found,) = captures(five)
        assert [event.position for event in found.log] == list(range(1, 38))
        assert found.evidence.origin == f"local world {V5}"

    def test_step_inputs_are_the_arguments_and_names_are_short(self, five: Path) -> None:
        (found,) = captures(five)
        settles = [event for event in found.log if event.type == "step_created" and event.short_name == "settle"]
        assert [event.payload and event.payload.load() for event in settles] == [
            [{"r": 0, "b": 0, "ms": 1100}],
            [{"r": 0, "b": 1, "ms": 1300}],
        ]

    def test_rows_and_claims_are_kept_without_values_and_tokens(self, four: Path) -> None:
        (found,) = captures(four)
        rows, claims = found.data["rows"], found.data["claims"]
        assert {row["stepName"].rpartition("//")[2] for row in rows.values()} >= {"settle", "release", "reconcile"}
        assert not any({"input", "output", "token"} & row.keys() for row in rows.values())
        assert sum(claim.endswith(".terminal") for claim in claims) == 8
        assert sum(claim.endswith(".disposed") for claim in claims) == 1

    def test_the_sweep_opens_a_folder_and_tells_the_wrong_branch(self, four: Path, five: Path) -> None:
        wrong, right = sweep_paths([four, five], SweepPlan())
        assert not isinstance(wrong, Unreadable)
        assert not isinstance(right, Unreadable)
        assert wrong.fatal_by_sweep() == {"log-order": 1}
        assert right.verdict is Verdict.CLEAN

    def test_one_run_is_opened_by_its_row_or_by_one_of_its_events(self, four: Path) -> None:
        row = next((four / "runs").iterdir())
        for path in (row, event_files(four)[3]):
            assert reader_for(path).name == "world-local"
            (found,) = open_captures([path])
            assert isinstance(found, Capture)
            assert len(found.log) == 37

    def test_the_folder_of_the_app_will_do(self, four: Path, tmp_path: Path) -> None:
        app = tmp_path / "app"
        shutil.copytree(four, app / ".workflow-data")
        assert store_at(app) == app / ".workflow-data"
        assert [len(one.log) for one in open_captures([app]) if isinstance(one, Capture)] == [37]


class TestAsAnArtefact:
    @pytest.mark.parametrize("with_payloads", [True, False])
    def test_what_is_written_again_is_judged_the_same(self, four: Path, tmp_path: Path, with_payloads: bool) -> None:
        (found,) = captures(four)
        (again,) = open_captures([write_capture(found, tmp_path / "artefact", with_payloads=with_payloads)])
        assert isinstance(again, Capture)
        assert [event.event_id for event in again.log] == [event.event_id for event in found.log]
        assert again.data == found.data
        first, second = (sweep_log(one, SweepPlan()) for one in (found, again))
        assert first.sweeps == second.sweeps
        assert first.fatal_by_sweep() == {"log-order": 1}

    def test_a_damaged_payload_does_not_stop_the_writing(self, tmp_path: Path) -> None:
        store = a_store(tmp_path / "store")
        created = event_files(store)[2]
        body = json.loads(created.read_text())
        body["eventData"]["input"] = bytes_of(b"gzipbroken")
        created.write_text(json.dumps(body))
        (found,) = captures(store)
        (again,) = open_captures([write_capture(found, tmp_path / "artefact", with_payloads=True)])
        assert isinstance(again, Capture)
        assert again.log[2].payload is not None
        assert found.log[2].payload is not None
        assert again.log[2].payload.digest == found.log[2].payload.digest


class TestOrder:
    def test_ulid_runs_go_by_creation_time_and_then_id(self, tmp_path: Path) -> None:
        store = a_store(tmp_path)
        late = json.loads(event_files(store)[3].read_text())
        event_files(store)[3].write_text(json.dumps({**late, "createdAt": "2026-01-02T12:00:00.015Z"}))
        (found,) = captures(store)
        assert [event.type for event in found.log][:3] == ["run_created", "step_started", "run_started"]

    def test_two_events_of_one_millisecond_go_by_id(self, tmp_path: Path) -> None:
        store = a_store(tmp_path)
        for path in event_files(store):
            path.write_text(json.dumps({**json.loads(path.read_text()), "createdAt": "2026-01-02T12:00:00.000Z"}))
        (found,) = captures(store)
        assert [event.event_id for event in found.log] == sorted(event.event_id or "" for event in found.log)

    def test_one_ulid_makes_the_whole_run_one_of_ulids(self, tmp_path: Path) -> None:
        store = a_store(tmp_path, slots=True)
        last = event_files(store)[-1]
        body = {**json.loads(last.read_text()), "eventId": "evnt_01KE0000000000000000000000"}
        last.unlink()
        write(store / "events" / f"{RUN}-evnt_01KE0000000000000000000000.json", body)
        (found,) = captures(store)
        assert not found.log.has_positions
        assert all(event.position is None for event in found.log)
        report = sweep_log(found, SweepPlan())
        assert "id-order" in report.fatal_by_sweep()

    def test_our_own_stores_are_read_by_their_seq(self, tmp_path: Path) -> None:
        store = a_store(tmp_path)
        write(store / "version.txt", "stormctl-local@1")
        for place, path in enumerate(reversed(event_files(store)), 1):
            path.write_text(json.dumps({**json.loads(path.read_text()), "seq": place}))
        (found,) = captures(store)
        assert [event.position for event in found.log] == list(range(1, len(found.log) + 1))
        assert found.log[0].type == "wait_created"


class TestWhatIsBroken:
    def test_a_broken_event_is_reported_and_hides_nothing_else(self, four: Path) -> None:
        victim = event_files(four)[5]
        victim.write_text('{"eventType": "step_cre')
        capture, problem = read_store(four)
        assert isinstance(capture, Capture)
        assert isinstance(problem, Unreadable)
        assert (len(capture.log), capture.evidence.truncated) == (36, True)
        assert problem.source == str(victim)
        assert "is not JSON" in problem.error
        assert capture.evidence.notes == (f"{victim.name} cannot be read",)

    @pytest.mark.parametrize(
        "content", ["", "[]", "null", "\x00\x01", '{"eventType": 1}', '{"eventType": "x"}', "[" * 9_000, "1" * 9_000]
    )
    def test_an_event_file_may_hold_anything(self, tmp_path: Path, content: str) -> None:
        store = a_store(tmp_path)
        event_files(store)[2].write_text(content)
        found = list(read_store(store))
        assert [type(one) for one in found] == [Capture, Unreadable]

    def test_a_broken_row_leaves_the_log(self, four: Path) -> None:
        next((four / "runs").iterdir()).write_text("{")
        capture, problem = read_store(four)
        assert isinstance(capture, Capture)
        assert isinstance(problem, Unreadable)
        assert capture.run is not None
        assert (capture.run.status, capture.run.workload) == ("completed", "capture-step-storm")
        assert Facet.ROWS in capture.evidence.missing
        assert not capture.evidence.truncated

    def test_a_broken_step_row_is_told(self, four: Path) -> None:
        victim = sorted((four / "steps").iterdir())[0]
        victim.write_text("no JSON")
        _, problem = read_store(four)
        assert isinstance(problem, Unreadable)
        assert problem.source == str(victim)

    def test_an_event_of_another_run_is_refused(self, tmp_path: Path) -> None:
        store = a_store(tmp_path)
        body = json.loads(event_files(store)[0].read_text())
        event_files(store)[0].write_text(json.dumps({**body, "runId": "wrun_other"}))
        _, problem = read_store(store)
        assert isinstance(problem, Unreadable)
        assert "holds an event of run 'wrun_other'" in problem.error

    def test_a_link_is_not_followed(self, tmp_path: Path) -> None:
        store = a_store(tmp_path / "store")
        secret = write(tmp_path / "secret.json", "{}")
        (store / "events" / f"{RUN}-evnt_01KE00000000000000000000ZZ.json").symlink_to(secret)
        (found,) = read_store(store)
        assert isinstance(found, Capture)
        assert len(found.log) == 6

    def test_temporary_files_are_counted_and_not_read(self, tmp_path: Path) -> None:
        store = a_store(tmp_path)
        write(store / "events" / f"{RUN}-evnt_01KE00000000000000000000ZZ.json.tmp.01KE0000000000000000000000", "{")
        (found,) = read_store(store)
        assert isinstance(found, Capture)
        assert found.evidence.notes == ("1 temporary event files lie beside the log",)

    def test_a_run_without_events_and_one_without_a_row_are_both_there(self, tmp_path: Path) -> None:
        store = a_store(tmp_path)
        row = json.loads((store / "runs" / f"{RUN}.json").read_text())
        write(
            store / "runs" / "wrun_01KE0000000000000000000009.json", {**row, "runId": "wrun_01KE0000000000000000000009"}
        )
        (store / "runs" / f"{RUN}.json").unlink()
        assert [(one.log.run_id, len(one.log)) for one in captures(store)] == [
            (RUN, 6),
            ("wrun_01KE0000000000000000000009", 0),
        ]

    def test_a_run_that_is_not_there_says_so(self, four: Path) -> None:
        with pytest.raises(UnreadableInput, match="holds no run wrun_none"):
            read_run(four, "wrun_none")

    def test_a_tag_is_no_part_of_an_id(self, tmp_path: Path) -> None:
        store = a_store(tmp_path)
        for path in [*event_files(store), store / "runs" / f"{RUN}.json"]:
            path.rename(path.with_name(path.name.replace(".json", ".vitest-3.json")))
        (found,) = captures(store)
        assert (len(found.log), found.run and found.run.status) == (6, "running")

    def test_encrypted_payloads_are_sealed_and_damaged_ones_named(self, tmp_path: Path) -> None:
        store = a_store(tmp_path)
        created = event_files(store)[2]
        body = json.loads(created.read_text())
        for raw, kind in ((b"encr1234", "Sealed"), (b"gzip" + gzip.compress(b"devl[1")[:-4], "Damaged")):
            body["eventData"]["input"] = bytes_of(raw)
            created.write_text(json.dumps(body))
            (found,) = captures(store)
            assert type(found.log[2].payload).__name__ == kind


class TestMoments:
    def test_a_folder_that_was_written_here_tells_when_each_event_got_its_name(self, tmp_path: Path) -> None:
        store = a_store(tmp_path)
        now = time.time()
        for place, path in enumerate(event_files(store)):
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{900 + place}Z"
            path.write_text(json.dumps({**json.loads(path.read_text()), "createdAt": stamp}))
        (found,) = captures(store)
        times = found.data[COMMIT_TIMES]
        assert set(times) == {event.event_id for event in found.log}
        assert all(abs(moment / 1e6 - now) < 60 for moment in times.values())
        assert Facet.COMMIT_STAMPS not in found.evidence.missing

    def test_a_copy_has_the_times_of_its_copying_and_they_are_not_taken(self, four: Path) -> None:
        (found,) = captures(four)
        assert COMMIT_TIMES not in found.data
        assert Facet.COMMIT_STAMPS in found.evidence.missing


class TestWhileAServerWrites:
    def test_a_file_that_is_half_written_is_read_again(self, tmp_path: Path) -> None:
        store = a_store(tmp_path)
        victim = event_files(store)[2]
        whole = victim.read_text()
        victim.write_text(whole[: len(whole) // 2])
        mend = threading.Timer(0.02, lambda: victim.write_text(whole))
        mend.start()
        found = list(read_store(store))
        mend.join()
        assert [type(one) for one in found] == [Capture]

    def test_a_file_that_vanishes_is_skipped(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        store = a_store(tmp_path)
        victim = event_files(store)[2]
        listed = os.open

        def gone(path: Any, flags: int, *rest: Any) -> int:
            if Path(path) == victim:
                raise FileNotFoundError(path)
            return listed(path, flags, *rest)

        monkeypatch.setattr(os, "open", gone)
        (found,) = read_store(store)
        assert isinstance(found, Capture)
        assert len(found.log) == 5

    def test_an_end_that_follows_its_row_is_waited_for(self, tmp_path: Path) -> None:
        store = a_store(tmp_path)
        row = store / "runs" / f"{RUN}.json"
        row.write_text(json.dumps({**json.loads(row.read_text()), "status": "cancelled"}))
        last = json.loads(event_files(store)[-1].read_text())
        end = {**last, "eventType": "run_cancelled", "eventId": "evnt_01KEZZZZZZZZZZZZZZZZZZZZZZ"}
        end = {key: value for key, value in end.items() if key not in ("correlationId", "eventData")}
        path = store / "events" / f"{RUN}-{end['eventId']}.json"
        coming = threading.Timer(0.02, lambda: write(path, end))
        coming.start()
        (found,) = captures(store)
        coming.join()
        assert found.log.ended
        assert not found.evidence.live

    def test_a_run_that_goes_on_is_live(self, tmp_path: Path) -> None:
        (found,) = captures(a_store(tmp_path))
        assert found.evidence.live
        assert sweep_log(found, SweepPlan()).verdict is not Verdict.CLEAN


class TestRealFolders:
    @pytest.mark.parametrize(("name", "inner", "version"), [("local-v4", "d4", "4"), ("local-v5", "d5", "5")])
    def test_the_order_is_that_of_the_sdks_own_inspect(
        self, unpacked: Callable[[str, str], Path], shared_data: Path, name: str, inner: str, version: str
    ) -> None:
        store = unpacked(name, inner)
        listed = json.loads((shared_data / "wdk" / f"inspect-v{version}" / "events.json").read_text())
        newest_first = [event["eventId"] for event in listed]
        run = read_run(store, listed[0]["runId"])
        assert [event.event_id for event in run.log] == newest_first[::-1]
        rows = json.loads((shared_data / "wdk" / f"inspect-v{version}" / "runs.json").read_text())["data"]
        for row in rows:
            found = read_run(store, row["runId"])
            assert found.run is not None
            assert found.run.status == row["status"]
            assert found.run.error_code == (row.get("errorCode") or row.get("error", {}).get("code"))
        assert run.run is not None
        assert run.run.output == "done"

    def test_a_failure_is_read_in_both_lines(self, unpacked: Callable[[str, str], Path]) -> None:
        """The run of 5.x failed with an error that says nothing: its bytes are an empty object."""
        for name, inner, message in (("local-v4", "d4", "boom"), ("local-v5", "d5", None)):
            failed = [one.run for one in captures(unpacked(name, inner)) if one.run and one.run.status == "failed"]
            assert [(run.error_code, run.error_message) for run in failed] == [("USER_ERROR", message)]

    def test_the_race_of_4_4_1_shows_what_three_processes_wrote_twice(
        self, unpacked: Callable[[str, str], Path]
    ) -> None:
        found = captures(unpacked("race-v4", "q4"))
        assert len(found) == 81
        kinds = Counter(finding.key.split("/")[1] for one in found for finding in sweep_log(one, SweepPlan()).findings)
        assert (kinds["repeat-step-created"], kinds["repeat-wait-created"], kinds["run-started-repeat"]) == (8, 8, 8)
        assert kinds["second-run-end"] == 8

    def test_the_same_race_of_beta_46_shows_none_of_it(self, unpacked: Callable[[str, str], Path]) -> None:
        found = captures(unpacked("race-v5", "q5"))
        kinds = Counter(finding.key.split("/")[1] for one in found for finding in sweep_log(one, SweepPlan()).findings)
        assert not [kind for kind in kinds if kind.startswith("repeat-") and kind.endswith("created")]
        assert not [finding for finding in kinds if finding in ("gap", "repeat")]

    @pytest.mark.parametrize(
        ("name", "inner", "runs", "events"), [("term-v4", "t4", 60, 943), ("term-v5", "t5", 60, 365)]
    )
    def test_no_event_is_lost(
        self, unpacked: Callable[[str, str], Path], name: str, inner: str, runs: int, events: int
    ) -> None:
        store = unpacked(name, inner)
        found = captures(store)
        assert (len(found), sum(len(one.log) for one in found)) == (runs, events)
        assert events == sum(1 for path in event_files(store) if re.fullmatch(r"wrun_\w+-evnt_\w+\.json", path.name))


def test_a_store_and_a_log_are_told_apart(tmp_path: Path) -> None:
    assert store_at(tmp_path) is None
    (tmp_path / "events").mkdir()
    assert store_at(tmp_path) is None
    (tmp_path / "runs").mkdir()
    assert store_at(tmp_path) == tmp_path
    (empty,) = read_store(tmp_path)
    assert isinstance(empty, Unreadable)
    assert "without a run" in empty.error
