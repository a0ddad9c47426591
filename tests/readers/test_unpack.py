"""Packed files and other encodings are read as what is in them; what packs too well is refused."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from stormctl.errors import UnreadableInput
from stormctl.history import Capture
from stormctl.readers import Unreadable, open_captures
from stormctl.readers.unpack import bare_name, open_plain
from tests.readers.samples import a_run, dumped, ndjson_log

PLAIN = dumped(a_run(), indent=2)


def read(path: Path, content: bytes) -> bytes:
    path.write_bytes(content)
    with open_plain(path) as file:
        return file.read()


@pytest.mark.parametrize(
    "packed",
    [
        PLAIN,
        gzip.compress(PLAIN),
        gzip.compress(PLAIN[:100]) + gzip.compress(PLAIN[100:]),
        zstandard.compress(PLAIN),
        zstandard.compress(PLAIN[:100]) + zstandard.compress(PLAIN[100:]),
        b"\xef\xbb\xbf" + PLAIN,
        gzip.compress(b"\xef\xbb\xbf" + PLAIN),
        b"\xff\xfe" + PLAIN.decode().encode("utf-16-le"),
        b"\xfe\xff" + PLAIN.decode().encode("utf-16-be"),
    ],
    ids=["plain", "gzip", "gzip twice in a row", "zstd", "zstd twice in a row", "BOM", "packed BOM", "LE", "BE"],
)
def test_what_is_inside_comes_out(tmp_path: Path, packed: bytes) -> None:
    assert read(tmp_path / "a", packed) == PLAIN
    (found,) = open_captures([tmp_path / "a"])
    assert isinstance(found, Capture)
    assert [event.position for event in found.log] == [1, 2, 3, 4, 5, 6]


@given(st.binary(max_size=3000), st.sampled_from([bytes, gzip.compress, zstandard.compress]))
def test_any_bytes_come_back(tmp_path_factory: pytest.TempPathFactory, content: bytes, pack: object) -> None:
    marks = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
    content = content if not content.startswith(marks) else b" " + content
    assert callable(pack)
    assert read(tmp_path_factory.mktemp("any") / "a", pack(content)) == content


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=2000), st.sampled_from(["le", "be"]))
def test_any_text_of_utf_16_comes_as_utf_8(tmp_path_factory: pytest.TempPathFactory, text: str, end: str) -> None:
    mark = b"\xff\xfe" if end == "le" else b"\xfe\xff"
    content = mark + f" {text}".encode(f"utf-16-{end}")
    assert read(tmp_path_factory.mktemp("any") / "a", content) == f" {text}".encode()


def test_windows_line_ends_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_bytes(ndjson_log().replace(b"\n", b"\r\n"))
    (found,) = open_captures([path])
    assert isinstance(found, Capture)
    assert len(found.log) == 3


def test_a_packed_log_of_ours_finds_its_meta_file(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson.gz").write_bytes(gzip.compress(ndjson_log()))
    (tmp_path / "a.meta.json").write_text(json.dumps({"schema": "stormctl.log/1", "run_id": "wrun_x", "events": 3}))
    (found,) = open_captures([tmp_path / "a.ndjson.gz"])
    assert isinstance(found, Capture)
    assert found.log.run_id == "wrun_x"


def test_a_bomb_is_refused_while_it_is_read(tmp_path: Path) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    content = b"".join([packer.compress(b" " * (1 << 20)) for _ in range(200)]) + packer.flush()
    assert len(content) < 1 << 20
    path = tmp_path / "a.json.gz"
    path.write_bytes(content)
    with open_plain(path) as file, pytest.raises(UnreadableInput, match="unpacks to more than 200 times its size"):
        file.read()
    bomb = zstandard.compress(b"[" + b" " * (200 << 20), 19)
    (tmp_path / "b.json").write_bytes(bomb)
    (found,) = open_captures([tmp_path / "b.json"])
    assert isinstance(found, Unreadable)


def test_a_long_log_of_one_row_over_and_over_is_no_bomb(tmp_path: Path) -> None:
    row = b'{"position":1,"type":"noop","created_at":"2026-01-02T12:00:00.001Z"}\n'
    assert read(tmp_path / "a.gz", gzip.compress(row * 200_000)) == row * 200_000


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_a_packed_file_that_is_cut_off_says_so(tmp_path: Path, pack: object) -> None:
    assert callable(pack)
    content = pack(dumped(a_run() * 50, indent=2))
    path = tmp_path / "a.json"
    path.write_bytes(content[: len(content) // 2])
    (found,) = open_captures([path])
    assert isinstance(found, Unreadable)
    assert "cut off" in found.error or "not whole" in found.error


def test_the_name_inside_a_packed_files_name() -> None:
    assert [bare_name(Path(name)) for name in ("a.csv.gz", "a.json.zst", "a.json", "gz")] == [
        "a.csv", "a.json", "a.json", "gz",
    ]  # fmt: skip
