"""What lies beside the log in a local world's store: its counter, and the events that claims on hooks name."""

from __future__ import annotations

from pathlib import Path

from stormctl.history import Capture
from stormctl.readers import Unreadable, open_captures
from stormctl.readers.worldlocal import read_run
from tests.readers.samples import RUN, dumped, store_files, write_files


def store(folder: Path, files: dict[str, bytes]) -> Capture:
    return read_run(write_files(folder, store_files() | files), RUN)


def test_the_counter_is_kept_and_is_no_claim(tmp_path: Path) -> None:
    counted = {"seq": 6, "lastEventId": "evnt_6", "writerSnapshot": "a cursor"}
    found = store(tmp_path, {f".locks/runs/{RUN}.seq.json": dumped(counted), f".locks/runs/{RUN}.terminal": b""})
    assert found.data["counter"] == {"seq": 6, "lastEventId": "evnt_6"}
    assert found.data["claims"] == ["runs/terminal"]


def test_a_lock_that_nobody_gave_back_and_what_was_staged_are_kept(tmp_path: Path) -> None:
    staged = f".locks/runs/{RUN}.pending/evnt_{7:026d}.01KE0000000000000000000009.json"
    found = store(tmp_path, {f".locks/runs/{RUN}.append.lock": b"{}", staged: b"{}"})
    assert found.data["claims"] == ["runs/append.lock"]
    assert found.data["staged"] == [staged.rpartition("/")[2]]


def test_claims_on_tokens_and_resumes_name_their_events_without_the_token(tmp_path: Path) -> None:
    token = {"token": "secret", "hookId": "hook_1", "runId": RUN, "eventId": "evnt_3"}
    resume = {"runId": RUN, "resumeId": "rsm_1", "hookId": "hook_1", "eventId": "evnt_4", "payloadDigest": "sha256:aa"}
    files = {
        "hooks/tokens/aa.json": dumped(token),
        "hooks/tokens/bb.json": dumped({**token, "runId": "wrun_other"}),
        "hooks/tokens/cc.json": b"{",
        "hooks/tokens/aa.json.lock/x": b"",
        "hooks/resumes/dd.json": dumped(resume),
    }
    found = store(tmp_path, files)
    assert found.data["claimed_events"] == [
        {"claim": "token", "hookId": "hook_1", "eventId": "evnt_3"},
        {"claim": "resume", "hookId": "hook_1", "eventId": "evnt_4", "resumeId": "rsm_1"},
    ]


def test_a_counter_that_is_broken_is_told_of_and_leaves_the_log_whole(tmp_path: Path) -> None:
    write_files(tmp_path, store_files() | {f".locks/runs/{RUN}.seq.json": b"{"})
    capture, broken = open_captures([tmp_path])
    assert isinstance(capture, Capture)
    assert isinstance(broken, Unreadable)
    assert "seq.json" in broken.error
    assert (len(capture.log), capture.evidence.truncated, "counter" in capture.data) == (6, False, False)
