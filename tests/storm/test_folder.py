"""The artefact folder: private, never shared, readable after a kill, and honest about a disk that refuses."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from stormctl.errors import EXIT_INTERNAL, StoreFailure
from stormctl.report.load import load_artefact
from stormctl.storm import folder as folders
from stormctl.storm.folder import StormFolder
from stormctl.storm.outcome import Outcome
from stormctl.storm.plan import load_plan
from tests.storm.making import CELL, attempt, plan


@pytest.fixture
def folder(tmp_path: Path) -> StormFolder:
    return StormFolder.create(plan(), tmp_path)


def full(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class TestANewFolder:
    def test_is_its_owners_alone_and_so_is_everything_in_it(self, folder: StormFolder) -> None:
        """Logs hold hook tokens, and whoever has a token may resume the run."""
        assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
        for entry in folder.path.iterdir():
            assert stat.S_IMODE(entry.stat().st_mode) & 0o077 == 0, entry.name

    def test_holds_the_resolved_plan_and_what_was_known_of_the_machine(self, folder: StormFolder) -> None:
        assert load_plan(folder.path / "plan.yaml").cells == plan().cells
        environment = json.loads((folder.path / "env.json").read_text())
        assert environment["cores"] == os.cpu_count()
        assert {"stormctl", "python", "platform", "load", "argv", "started_at"} <= set(environment)

    def test_is_where_latest_points_and_a_later_one_takes_the_link_over(self, tmp_path: Path) -> None:
        first, second = (StormFolder.create(plan(), tmp_path) for _ in range(2))
        latest = tmp_path / "small" / "latest"
        assert first.path != second.path
        assert latest.is_symlink()
        assert latest.resolve() == second.path
        assert not os.path.isabs(os.readlink(latest))  # so that the whole tree can be moved
        assert not [name for name in os.listdir(tmp_path / "small") if name.startswith(".latest")]

    def test_is_never_a_folder_that_is_there_already(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("ulid.ULID", lambda: "01M8PWZT6CHR9J8CKBE5BS6D8V")
        monkeypatch.setattr(folders, "datetime", _Stopped)
        StormFolder.create(plan(), tmp_path)
        with pytest.raises(StoreFailure, match="cannot be written: File exists"):
            StormFolder.create(plan(), tmp_path)

    def test_on_a_root_that_is_a_file_is_refused_with_a_remedy(self, tmp_path: Path) -> None:
        (tmp_path / "out").write_text("mine")
        with pytest.raises(StoreFailure, match="Not a directory") as told:
            StormFolder.create(plan(), tmp_path / "out")
        assert "--out" in told.value.remedy
        assert (tmp_path / "out").read_text() == "mine"

    def test_on_a_full_disk_is_refused_with_a_remedy(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Path, "write_text", full)
        with pytest.raises(StoreFailure, match="No space left on device") as told:
            StormFolder.create(plan(), tmp_path)
        assert told.value.exit_code == EXIT_INTERNAL


class _Stopped:
    """A clock that stands still."""

    @staticmethod
    def now(zone: Any) -> Any:
        from datetime import datetime

        return datetime(2026, 1, 2, tzinfo=zone)


class TestAttempts:
    def test_are_rows_that_come_back_as_they_were(self, folder: StormFolder) -> None:
        kept = [attempt(1, duration_ms=12.5, flags=("vacuous",)), attempt(2, Outcome.CORRUPTED, error_message="café\n")]
        for one in kept:
            folder.record(one)
        assert load_artefact(folder.path).attempts == tuple(kept)
        assert len(folder.attempts_file.read_text().splitlines()) == 2

    def test_survive_a_last_row_that_was_cut_off(self, folder: StormFolder) -> None:
        folder.record(attempt(1))
        folder.record(attempt(2))
        raw = folder.attempts_file.read_bytes()
        folder.attempts_file.write_bytes(raw[:-20])
        artefact = load_artefact(folder.path)
        assert artefact.attempts == (attempt(1),)
        assert "attempts.ndjson: the last line was cut off; it is left out" in artefact.notes

    def test_that_a_full_disk_took_half_of_do_not_spoil_the_next(
        self, folder: StormFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder.record(attempt(1))
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)  # what was written so far may be in the file
            with pytest.raises(StoreFailure, match="No space left") as told:
                folder.record(attempt(2))
        assert "attempts.ndjson" in str(told.value)
        assert "kept" in told.value.remedy
        folder.record(attempt(3))
        assert [one.number for one in load_artefact(folder.path).attempts] == [1, 3]


class TestJson:
    def test_is_written_whole_or_not_at_all(self, folder: StormFolder, monkeypatch: pytest.MonkeyPatch) -> None:
        folder.write_json("storm.json", {"reason": "done"})
        with monkeypatch.context() as patched:
            patched.setattr(Path, "replace", full)
            with pytest.raises(StoreFailure, match=r"storm\.json could not be written"):
                folder.write_json("storm.json", {"reason": "budget"})
        assert json.loads((folder.path / "storm.json").read_text()) == {"reason": "done"}

    def test_is_private_too(self, folder: StormFolder) -> None:
        folder.write_json("sweeps.json", {})
        assert stat.S_IMODE((folder.path / "sweeps.json").stat().st_mode) == 0o600


class TestTheWorkersJournal:
    def test_is_read_back_over_all_workers_without_a_half_row(self, folder: StormFolder) -> None:
        for index in range(2):
            with folder.journal(str(index)) as journal:
                journal({"run": "a", "passes": index})
        with (folder.path / "workers" / "1.ndjson").open("a") as file:
            file.write('{"run": "a", "pas')
        assert list(folder.work_rows("a")) == [{"run": "a", "passes": 0}, {"run": "a", "passes": 1}]

    def test_tells_of_a_disk_that_refuses(self, folder: StormFolder, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Path, "open", full)
        with pytest.raises(StoreFailure, match=r"0\.ndjson could not be written"), folder.journal("0"):
            pass


def test_every_cell_has_a_store_of_its_own(folder: StormFolder) -> None:
    cells = plan(matrix={"condition": ["main", "seq-final"], "scenario": ["step-storm", "hook-storm"]}).cells
    assert len({folder.store(cell) for cell in cells}) == 4
    assert folder.store(CELL).parent == folder.path / "stores"
