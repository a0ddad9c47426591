"""What a path stands for: files, folders of many shapes, databases; and what a folder does not stand for."""

from __future__ import annotations

from pathlib import Path

import pytest

from stormctl.errors import UsageError
from stormctl.history import Capture
from stormctl.readers import Unreadable, files_at, open_captures
from stormctl.readers.beside import belongs_to_events, companions
from stormctl.readers.workflow_dsn import Database
from tests.readers.samples import a_run, dumped, ndjson_log, store_files, write_files


def names(folder: Path) -> list[str]:
    return [
        str(one.source if isinstance(one, Unreadable) else one).removeprefix(f"{folder}/") for one in files_at(folder)
    ]


def test_a_folder_stands_for_the_logs_in_it_and_below(tmp_path: Path) -> None:
    files = ["b.json", "a.ndjson.gz", "deep/er/c.csv", "deep/d.tgz", "node_modules/x.json", ".git/y.json", "notes.md",
             "a.meta.json", ".hidden.json"]  # fmt: skip
    write_files(tmp_path, dict.fromkeys(files, b"{}"))
    assert names(tmp_path) == ["a.ndjson.gz", "b.json", "deep/d.tgz", "deep/er/c.csv"]


def test_stores_below_a_folder_are_found(tmp_path: Path) -> None:
    write_files(tmp_path, store_files("one/") | store_files("two/.workflow-data/"))
    assert names(tmp_path) == ["one", "two/.workflow-data"]
    assert all(isinstance(one, Capture) for one in open_captures([tmp_path]))


def test_a_folder_that_leads_into_itself_is_not_followed(tmp_path: Path) -> None:
    write_files(tmp_path, {"in/a.ndjson": ndjson_log()})
    (tmp_path / "in" / "again").symlink_to(tmp_path)
    assert names(tmp_path) == ["in/a.ndjson"]


def test_links_are_told_of_and_not_read(tmp_path: Path) -> None:
    write_files(tmp_path, {"in/a.ndjson": ndjson_log(), "out/b.ndjson": ndjson_log()})
    (tmp_path / "in" / "b.ndjson").symlink_to(tmp_path / "out" / "b.ndjson")
    found = list(open_captures([tmp_path / "in"]))
    assert [type(one) for one in found] == [Capture, Unreadable]
    assert isinstance(found[1], Unreadable)
    assert "is a link, which is not followed" in found[1].error


def test_very_deep_folders_are_not_searched_to_the_end(tmp_path: Path) -> None:
    write_files(tmp_path, {"/".join("abcdefgh") + "/x.json": b"{}", "a/y.json": b"{}"})
    assert names(tmp_path) == ["a/y.json"]


def test_files_named_alike_belong_together(tmp_path: Path) -> None:
    present = ["pg-v4-events.csv.gz", "pg-v4-runs.csv.gz", "workflow_events.csv", "workflow_steps.csv", "events.json",
               "events-data.json", "runs.json", "other-runs.json", "eventsruns.json"]  # fmt: skip
    write_files(tmp_path, dict.fromkeys(present, b"{}"))

    def beside(name: str) -> list[str]:
        return [one.name for one in companions(tmp_path / name)]

    assert beside("pg-v4-events.csv.gz") == ["pg-v4-runs.csv.gz"]
    assert beside("workflow_events.csv") == ["workflow_steps.csv"]
    assert beside("events.json") == ["runs.json"]
    assert beside("events-data.json") == ["runs.json"]
    assert beside("runs.json") == []
    assert [name for name in present if belongs_to_events(tmp_path / name)] == [
        "pg-v4-runs.csv.gz", "workflow_steps.csv", "runs.json",
    ]  # fmt: skip


def test_a_log_that_is_only_named_like_a_companion_is_read(tmp_path: Path) -> None:
    write_files(tmp_path, {"events.json": dumped(a_run()), "runs.json": dumped(a_run())})
    assert names(tmp_path) == ["events.json", "runs.json"]


class TestDsn:
    def test_a_dsn_stands_for_its_database_and_is_shown_without_its_password(self) -> None:
        (found,) = files_at("postgres://me:secret@localhost:5432/app")
        assert isinstance(found, Database)
        assert str(found) == "postgresql://me@localhost:5432/app"
        assert "secret" not in repr(found)

    def test_one_that_postgresql_cannot_read_is_bad_usage_and_is_not_repeated(self) -> None:
        with pytest.raises(UsageError) as caught:
            list(files_at("postgres://me:se@cret@localhost/app"))
        assert "cret" not in str(caught.value)

    def test_a_database_that_is_not_there_does_not_hide_the_rest(self, tmp_path: Path) -> None:
        path = tmp_path / "a.ndjson"
        path.write_bytes(ndjson_log())
        found = list(open_captures(["postgres://me:secret@127.0.0.1:1/app", path]))
        assert [type(one) for one in found] == [Unreadable, Capture]
        assert isinstance(found[0], Unreadable)
        assert "secret" not in found[0].text + found[0].source
