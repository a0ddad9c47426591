"""A path may be a file, a storm's artefact folder, or a folder of logs."""

from __future__ import annotations

from pathlib import Path

from stormctl.history import Capture
from stormctl.readers import Unreadable, open_captures, reader_for, write_capture
from stormctl.testing import LogBuilder


def runs(*paths: Path) -> list[str]:
    return [one.log.run_id if isinstance(one, Capture) else one.error for one in open_captures(paths)]


def a_log(folder: Path, run_id: str) -> Path:
    return write_capture(LogBuilder(run_id).run_created().capture(), folder)


def test_an_artefact_folder_stands_for_its_logs_and_nothing_else(tmp_path: Path) -> None:
    a_log(tmp_path, "wrun_b")
    a_log(tmp_path, "wrun_a")
    (tmp_path / "attempts.ndjson").write_text('{"schema": "stormctl.attempt/1"}\n')
    (tmp_path / "sweeps.json").write_text("{}")
    assert runs(tmp_path) == ["wrun_a", "wrun_b"]


def test_the_folder_of_a_plan_stands_for_its_latest_storm(tmp_path: Path) -> None:
    a_log(tmp_path / "old", "wrun_old")
    a_log(tmp_path / "new", "wrun_new")
    (tmp_path / "latest").symlink_to("new")
    assert runs(tmp_path) == ["wrun_new"]


def test_a_folder_of_logs_stands_for_the_logs_in_it(tmp_path: Path) -> None:
    log = a_log(tmp_path, "wrun_a")
    assert runs(log.parent) == ["wrun_a"]


def test_a_folder_without_logs_says_so(tmp_path: Path) -> None:
    (tmp_path / "readme.txt").write_text("hello")
    (found,) = open_captures([tmp_path])
    assert isinstance(found, Unreadable)
    assert "holds no event log" in found.error


def test_paths_are_opened_in_the_order_given(tmp_path: Path) -> None:
    first, second = a_log(tmp_path, "wrun_b"), a_log(tmp_path, "wrun_a")
    assert runs(first, second, first) == ["wrun_b", "wrun_a", "wrun_b"]


def test_a_reader_is_found_by_content(tmp_path: Path) -> None:
    log = a_log(tmp_path, "wrun_a")
    renamed = log.rename(log.with_name("whatever.txt"))
    assert reader_for(renamed).name == "stormctl"
