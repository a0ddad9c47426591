"""What cannot be read is answered with one sentence and a remedy, and never hides what can."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.history import Capture
from stormctl.readers import Unreadable, open_captures, text, write_capture
from stormctl.testing import LogBuilder

GOOD = b'{"position":1,"type":"run_created"}\n'
COMPACT = b'[{"s":3,"t":"hook_created","k":"hook","r":0,"n":""}'


def refused(path: Path) -> Unreadable:
    (found,) = open_captures([path])
    assert isinstance(found, Unreadable), found
    assert "\n" not in found.error
    assert found.remedy.endswith(".")
    return found


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.ndjson", b"", "a.ndjson is empty"),
        ("a.ndjson", b" \n\n", "a.ndjson is empty"),
        ("a.json", b"\x00\x01\x02", "is binary"),
        ("a.json", b"caf\xe9 au lait", "is not UTF-8 text"),
        ("a.json", b"hello", "is not an event log that stormctl knows"),
        ("a.json", b'{"events": 3}', "is not an event log that stormctl knows"),
        ("a.json", b"[1, 2, 3]", "is not an event log that stormctl knows"),
        ("a.ndjson", GOOD + b'{"position":2,"ty', "line 2 of a.ndjson is cut off"),
        ("a.ndjson", GOOD + b"nonsense\n", "line 2 of a.ndjson is not JSON"),
        ("a.ndjson", GOOD + b"[1]\n", "line 2 of a.ndjson is not a JSON object"),
        ("a.ndjson", GOOD + b'{"position":2}\n', "line 2 of a.ndjson lacks 'type'"),
        ("a.ndjson", GOOD + b'{"type":"noop","position":"2"}\n', "has '2' in 'position', which takes a whole number"),
        ("a.ndjson", GOOD + b'{"type":"noop","position":true}\n', "has True in 'position'"),
        ("a.ndjson", GOOD + b'{"type":"noop","position":NaN}\n', "NaN is not JSON"),
        ("a.ndjson", GOOD + b'{"type":"noop","position":-1}\n', "has a position below 0"),
        ("a.ndjson", GOOD + b'{"type":"noop","position":9999999999999999999999}\n', "is too large"),
        ("a.ndjson", GOOD + b'{"type":"noop","position":' + b"9" * 5000 + b"}\n", "a number has too many digits"),
        ("a.ndjson", GOOD + b'{"type":"noop","created_at":"yesterday"}\n', "has no time in 'created_at'"),
        ("a.ndjson", GOOD + b'{"type":"noop","name":"\\ud800"}\n', "is not Unicode"),
        ("a.ndjson", GOOD + b'{"type":"noop","data":' + b"[" * 100_000 + b"\n", "is nested too deeply"),
        ("a.json", COMPACT, "a.json is cut off at row 1"),
        ("a.json", COMPACT + b',{"s":4,"t":"no', "a.json is cut off at row 2"),
        ("a.json", COMPACT + b" {}]", "has '{' where a comma belongs"),
        ("a.json", COMPACT + b"] trailing", "has text after the end of its array"),
        ("a.json", COMPACT + b"," + b"[" * 100_000, "row 2 of a.json is nested too deeply"),
        ("a.json", COMPACT + b',{"s":NaN}]', "NaN is not JSON"),
        ("a.json", COMPACT + b",{'s':3}" + b" " * 100 + b"]", "row 2 of a.json is not JSON"),
    ],
)
def test_damage_is_named_with_its_place(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    assert said in refused(tmp_path / name).error


@pytest.mark.parametrize(
    ("meta", "said"),
    [
        ('{"schema": "stormctl.log/2"}', "this stormctl reads up to stormctl.log/1"),
        ('{"schema": "stormctl.log/99999999999"}', "this stormctl reads up to stormctl.log/1"),
        ('{"schema": "other/1"}', "has the schema 'other/1', not stormctl.log/1"),
        ("{}", "has the schema None, not stormctl.log/1"),
        ("[]", "is not a JSON object"),
        ("{", "is not JSON"),
        ("", "is empty"),
        ('{"schema": "stormctl.log/1", "run": {"status": 3}}', "has 3 in 'status', which takes text"),
        ('{"schema": "stormctl.log/1", "evidence": []}', "in 'evidence', which takes an object"),
    ],
)
def test_a_meta_file_that_cannot_be_trusted_refuses_its_log(tmp_path: Path, meta: str, said: str) -> None:
    (tmp_path / "a.ndjson").write_bytes(GOOD)
    (tmp_path / "a.meta.json").write_text(meta)
    assert said in refused(tmp_path / "a.ndjson").error


def test_an_audit_that_is_damaged_refuses_its_log(tmp_path: Path) -> None:
    builder = LogBuilder().run_created()
    log = write_capture(builder.capture(audit=builder.published()), tmp_path)
    (tmp_path / "audit" / log.name).write_text('{"run_id": "r"}\n')
    assert "lacks 'writer'" in refused(log).error


def test_a_path_that_is_not_there_says_so(tmp_path: Path) -> None:
    assert refused(tmp_path / "nowhere.ndjson").error.endswith("nowhere.ndjson does not exist")


def test_a_pipe_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.ndjson")
    assert "is not a regular file" in refused(tmp_path / "pipe.ndjson").error


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_bytes(GOOD)
    path.chmod(0)
    assert "permission denied" in refused(path).error


def test_one_bad_file_does_not_hide_the_rest(tmp_path: Path) -> None:
    for number in range(3):
        write_capture(LogBuilder(f"wrun_{number}").run_created().capture(), tmp_path)
    (tmp_path / "logs" / "wrun_1.ndjson").write_bytes(b"{")
    found = list(open_captures([tmp_path]))
    assert [type(one) for one in found] == [Capture, Unreadable, Capture]


@given(st.binary(max_size=300), st.sampled_from(["a.ndjson", "a.json"]), st.sampled_from([b"", GOOD, COMPACT + b","]))
def test_no_bytes_crash_a_reader(tmp_path_factory: pytest.TempPathFactory, tail: bytes, name: str, head: bytes) -> None:
    path = tmp_path_factory.mktemp("bytes") / name
    path.write_bytes(head + tail)
    for found in open_captures([path]):
        assert isinstance(found, (Capture, Unreadable))


@pytest.mark.parametrize(
    ("name", "content"), [("a.ndjson", GOOD * 4), ("a.json", COMPACT + (COMPACT[1:] + b"]").join([b",", b""]))]
)
def test_a_log_longer_than_any_engine_replays_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes
) -> None:
    monkeypatch.setattr(text, "MAX_EVENTS", 1)
    (tmp_path / name).write_bytes(content)
    assert f"{name} holds more than 1 events of one run" in refused(tmp_path / name).error
