"""Archives are read as the folders that they are; what leads out of them, or is too much, stays in them."""

from __future__ import annotations

import io
import tarfile
import tempfile
from pathlib import Path

import pytest

from stormctl.history import COMMIT_TIMES, Capture
from stormctl.readers import Unreadable, archive, open_captures
from tests.readers.samples import RUN, a_run, dumped, ndjson_log, store_files, tarred, zipped


def test_a_store_in_an_archive_is_read_and_nothing_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    for name, content in (("a.tgz", tarred(store_files("q/"))), ("a.zip", zipped(store_files("q/")))):
        (tmp_path / name).write_bytes(content)
        (found,) = open_captures([tmp_path / name])
        assert isinstance(found, Capture)
        assert (found.log.run_id, len(found.log)) == (RUN, 6)
        assert found.source == f"{tmp_path / name}:q/runs/{RUN}.json"
        assert COMMIT_TIMES not in found.data  # those would be the times of the unpacking
        assert list(scratch.iterdir()) == []


def test_logs_in_folders_and_archives_in_archives(tmp_path: Path) -> None:
    inner = tarred({"deep/b.ndjson": ndjson_log()})
    files = {"a.json": dumped(a_run()), "c/inner.tgz": inner, "readme.md": b"hello"}
    (tmp_path / "a.zip").write_bytes(zipped(files))
    found = list(open_captures([tmp_path / "a.zip"]))
    assert [one.source.removeprefix(f"{tmp_path}/") for one in found] == [
        "a.zip:a.json", "a.zip:c/inner.tgz:deep/b.ndjson",
    ]  # fmt: skip


def test_an_archive_in_an_archive_in_an_archive_is_not_unpacked(tmp_path: Path) -> None:
    (tmp_path / "a.tgz").write_bytes(tarred({"b.tgz": tarred({"c.tgz": tarred({"d.ndjson": ndjson_log()})})}))
    (found,) = open_captures([tmp_path / "a.tgz"])
    assert isinstance(found, Unreadable)
    assert "is an archive inside 2 others" in found.error


def test_names_that_lead_outside_and_links_are_left_in_it(tmp_path: Path) -> None:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as made:
        for name in ("../out.ndjson", "/abs.ndjson", "a/../../b.ndjson", "good.ndjson"):
            member = tarfile.TarInfo(name)
            member.size = len(ndjson_log())
            made.addfile(member, io.BytesIO(ndjson_log()))
        for name, kind, target in (
            ("link.ndjson", tarfile.SYMTYPE, "/etc/passwd"),
            ("hard.ndjson", tarfile.LNKTYPE, "good.ndjson"),
            ("pipe", tarfile.FIFOTYPE, ""),
            ("folder", tarfile.SYMTYPE, ".."),
            ("folder/through.ndjson", tarfile.REGTYPE, ""),
        ):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, target
            made.addfile(member, io.BytesIO())
    path = tmp_path / "in" / "a.tar"
    path.parent.mkdir()
    path.write_bytes(sink.getvalue())
    found = list(open_captures([path]))
    assert [one.source.rpartition(":")[2] for one in found if isinstance(one, Capture)] == ["good.ndjson"]
    told = [one.error for one in found if isinstance(one, Unreadable)]
    assert any("holds 7 entries that were left in it, the first '../out.ndjson'" in error for error in told), told
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["in"]


def test_too_many_files_and_too_many_bytes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.tgz"
    path.write_bytes(tarred({f"{number}.ndjson": ndjson_log() for number in range(20)}))
    monkeypatch.setattr(archive, "MAX_FILES", 10)
    (found,) = open_captures([path])
    assert isinstance(found, Unreadable)
    assert "more than 10 files" in found.error
    monkeypatch.setattr(archive, "MAX_FILES", 100)
    monkeypatch.setattr(archive, "MAX_BYTES", 1000)
    (found,) = open_captures([path])
    assert isinstance(found, Unreadable)
    assert "unpacks to more than" in found.error


def test_a_zip_bomb_is_refused_while_it_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(zipped({"a.ndjson": b"\n" * (100 << 20)}))
    (found,) = open_captures([path])
    assert isinstance(found, Unreadable)
    assert "unpacks to more than 200 times its size" in found.error


def test_a_tar_whose_header_wants_all_memory_is_refused(tmp_path: Path) -> None:
    member = tarfile.TarInfo("x")
    member.type, member.size = tarfile.XHDTYPE, 1 << 33
    path = tmp_path / "a.tar"
    path.write_bytes(member.tobuf(tarfile.GNU_FORMAT) + b"x" * 4096)
    (found,) = open_captures([path])
    assert isinstance(found, Unreadable)
    assert "is no whole archive" in found.error


def test_one_bad_file_in_an_archive_does_not_hide_the_rest(tmp_path: Path) -> None:
    files = {f"{number}.ndjson": ndjson_log() for number in range(3)} | {"1.ndjson": b"{"}
    path = tmp_path / "a.tgz"
    path.write_bytes(tarred(files))
    assert [type(one) for one in open_captures([path])] == [Capture, Unreadable, Capture]


def test_an_archive_without_a_log_says_so_by_its_own_name(tmp_path: Path) -> None:
    path = tmp_path / "a.tgz"
    path.write_bytes(tarred({"readme.md": b"hello"}))
    (found,) = open_captures([path])
    assert isinstance(found, Unreadable)
    assert found.error == f"{path} holds no event log"
