"""The capture command: what it says, exits with and refuses, and that a kill at any moment loses nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from stormctl.cli.app import app
from stormctl.testing import LogBuilder
from tests.readers.store_folder import write_store

Run = Callable[..., Any]


def a_store(folder: Path, runs: int = 3, events: int = 4) -> Path:
    for number in range(runs):
        built = LogBuilder(f"wrun_{number:04}", positions=False).run_created().run_started()
        built.hook_created(0, f"a-secret-token-{number}").hook_received(0, "a-secret-payload")
        write_store(folder, built.until(events).log(), "hookStorm", {})
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return a_store(tmp_path / "app" / ".workflow-data")


def test_a_store_is_captured_and_the_folder_can_be_swept(stormctl: Run, store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = stormctl("capture", "--folder", store.parent, "--out", out)
    assert (ran.code, ran.out) == (0, f"captured 3 runs: {out}\n")
    assert ran.err == "capturing: 3 runs\n"
    found = json.loads(stormctl("sweep", out, "--format", "json").out)
    assert [log["run_id"] for log in found["logs"]] == ["wrun_0000", "wrun_0001", "wrun_0002"]
    assert "secret" not in "".join(path.read_text() for path in out.rglob("*") if path.is_file())


def test_the_second_call_says_how_many_were_there(stormctl: Run, store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    stormctl("capture", "--folder", store, "--out", out, "--limit", 2)
    ran = stormctl("capture", "--folder", store, "--out", out)
    assert ran.err == "capturing: 3 runs, 2 of them there already\n"
    assert (ran.code, ran.out) == (0, f"captured 1 run, 2 there already: {out}\n")


def test_by_itself_it_makes_a_new_folder(store: Path, tmp_path: Path, root: Path) -> None:
    ran = command(root, "--folder", str(store), cwd=tmp_path)
    (made,) = (tmp_path / ".stormctl" / "captures").iterdir()
    assert re.fullmatch(r"\d{8}T\d{6}Z-[0-9A-Z]{26}", made.name)
    assert ran.stdout == f"captured 3 runs: {made.relative_to(tmp_path)}\n"


def test_twice_keeps_both_and_tells_what_append_only_says(stormctl: Run, store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = stormctl("capture", "--folder", store, "--out", out, "--twice", "--with-payloads")
    assert ran.code == 0
    assert ran.out == f"captured 3 runs, 3 again: {out}\nappend-only  3 clean of 3 runs captured twice\n"
    assert len(list((out / "earlier" / "logs").glob("*.ndjson"))) == 3
    swept = json.loads(stormctl("sweep", out, "--format", "json").out)
    verdicts = [one["verdict"] for log in swept["logs"] for one in log["sweeps"] if one["sweep"] == "append-only"]
    assert verdicts == ["clean"] * 3


@pytest.mark.parametrize("with_payloads", [False, True])
def test_the_logs_can_be_had_as_one_table(stormctl: Run, store: Path, tmp_path: Path, with_payloads: bool) -> None:
    out = tmp_path / "out"
    ran = stormctl(
        "capture", "--folder", store, "--out", out, "--parquet", *(["--with-payloads"] if with_payloads else [])
    )
    table = out / "logs.parquet"
    assert (ran.code, ran.out) == (0, f"captured 3 runs: {out}\none table of 3 runs: {table}\n")
    by_log, by_table = (json.loads(stormctl("sweep", one, "--format", "json").out)["logs"] for one in (out, table))
    for log in [*by_log, *by_table]:
        del log["source"]
    assert by_table == by_log
    assert (b"a-secret-payload" in b"".join(column_bytes(table))) is with_payloads


def column_bytes(path: Path) -> list[bytes]:
    import pyarrow.parquet as pq

    return [str(value).encode() for row in pq.read_table(path).to_pylist() for value in row.values()]


def test_a_capture_that_is_gone_on_with_has_all_its_runs_in_the_table(
    stormctl: Run, store: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    stormctl("capture", "--folder", store, "--out", out, "--limit", 2, "--parquet")
    ran = stormctl("capture", "--folder", store, "--out", out, "--twice", "--parquet")
    assert ran.code == 2  # another capture was asked for, so the table stays as it was
    ran = stormctl("capture", "--folder", store, "--out", out, "--parquet")
    assert ran.out.endswith(f"one table of 3 runs: {out / 'logs.parquet'}\n")


@pytest.mark.parametrize(
    ("seen", "code", "said"),
    [
        (True, 1, "append-only  1 violated of 1 run captured twice\nfatal  wrun_0000: hook_created "),
        (False, 0, "append-only  1 clean of 1 run captured twice\nlegal  append-only/inserted  1 time\n"),
    ],
    ids=["lost", "inserted"],
)
def test_what_changed_between_the_two_is_told_as_the_release_has_it(
    stormctl: Run, tmp_path: Path, seen: bool, code: int, said: str
) -> None:
    store, out = a_store(tmp_path / "store", runs=1), tmp_path / "out"
    (late,) = (store / "events").glob("*0003.json")
    held = tmp_path / "held"
    if not seen:
        late.rename(held)
    stormctl("capture", "--folder", store, "--out", out, "--twice")
    if seen:
        late.rename(held)
    else:
        held.rename(late)
    # what the first call would have done, had it been killed after its first pass
    journal = out / "captured.ndjson"
    journal.write_text("".join(line for line in journal.read_text().splitlines(True) if '"number": 1' in line))
    ran = stormctl("capture", "--folder", store, "--out", out, "--twice")
    assert ran.code == code
    assert said in ran.out
    assert stormctl("capture", "--folder", store, "--out", out, "--twice", "--report-only").code == 0


def test_a_run_that_cannot_be_read_stops_nothing_and_exits_4(stormctl: Run, store: Path, tmp_path: Path) -> None:
    (broken,) = (store / "events").glob("wrun_0001-*0002.json")
    broken.write_text("{")
    os.utime(broken, (1, 1))
    out = tmp_path / "out"
    ran = stormctl("capture", "--folder", store, "--out", out)
    assert ran.code == 4
    assert ran.out.startswith(f"captured 3 runs: {out}\nunreadable  {broken}\n")
    again = stormctl("capture", "--folder", store, "--out", out)
    assert (again.code, f"unreadable  {broken}" in again.out) == (4, True)
    missing = stormctl("capture", "--folder", store, "--out", tmp_path / "other", "--run", "../x", "--run", "wrun_0000")
    assert missing.code == 4
    assert missing.out.startswith("captured 1 run, 1 could not be read")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no store is named. Give --folder DIR, --dsn DSN, or set STORMCTL_DSN."),
        (["--folder", ".", "--dsn", "postgres://x/y"], "--dsn and --folder name two stores. Give one of them."),
        (["--folder", "docs"], "docs holds no store of a local world."),
        (["--dsn", "postgres://me:se@cret@x/y"], "is not a DSN that PostgreSQL can read."),
        (["--folder", "fixtures/stores/sdk-4.8", "--since", "soon"], "'soon' is no time. Give how long ago"),
        (["--folder", "fixtures/stores/sdk-4.8", "--since", "1h", "--run", "x"], "Give one of them."),
        (["--folder", "fixtures/stores/sdk-4.8", "--limit", "0"], "Invalid value for"),
        (["--folder", "fixtures/stores/sdk-4.8", "--out", "docs"], "docs holds something that is no capture."),
    ],
)
def test_bad_usage_is_one_sentence_with_a_remedy(stormctl: Run, arguments: list[str], said: str) -> None:
    ran = stormctl("capture", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert "cret" not in ran.err


def test_a_store_that_is_gone_says_so(stormctl: Run, tmp_path: Path) -> None:
    ran = stormctl("capture", "--dsn", "postgresql://me:secret@127.0.0.1:9/none", "--out", tmp_path / "out")
    assert ran.code == 4
    assert ran.err.startswith("stormctl: no PostgreSQL server listens at ")
    assert "secret" not in ran.err
    assert not (tmp_path / "out").exists()


def command(root: Path, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "stormctl", "capture", *arguments],
        cwd=cwd or root,
        env={**os.environ, "PYTHONPATH": str(root)},
        text=True,
        capture_output=True,
        check=False,
    )


@pytest.mark.storm
@pytest.mark.parametrize(("number", "twice"), [(signal.SIGKILL, False), (signal.SIGKILL, True), (signal.SIGINT, True)])
def test_killed_at_any_moment_it_goes_on(root: Path, tmp_path: Path, number: signal.Signals, twice: bool) -> None:
    runs = 30
    store, out = a_store(tmp_path / "store", runs=runs), tmp_path / "out"
    arguments = ["--folder", str(store), "--out", str(out), *(["--twice"] if twice else [])]
    journal, lines = out / "captured.ndjson", 0
    for stop in (5, 40 if twice else 20):
        with subprocess.Popen(
            [sys.executable, "-m", "stormctl", "capture", *arguments],
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            deadline = time.monotonic() + 60
            while process.poll() is None and time.monotonic() < deadline:
                lines = len(journal.read_bytes().splitlines()) if journal.exists() else 0
                if lines >= stop:
                    process.send_signal(number)
                    break
                time.sleep(0.003)
            assert process.stderr is not None
            said = process.stderr.read()
        if process.returncode not in (0, -number):
            assert process.returncode == 130
            assert f"with --out {out} goes on" in said
        for log in out.rglob("logs/[!.]*.ndjson"):
            assert all(json.loads(line) for line in log.read_text().splitlines()), "whole or absent"
    ran = command(root, *arguments)
    assert ran.returncode == 0, ran.stderr
    there = int(re.search(r"(\d+) of them there already", ran.stderr)[1])  # type: ignore[index]
    assert there >= 5
    assert len(list((out / "logs").glob("*.ndjson"))) == runs
    if twice:
        assert f"{runs} clean of {runs} runs captured twice" in ran.stdout


def test_the_page_names_every_option_and_no_other(root: Path) -> None:
    command_ = typer.main.get_command(app).commands["capture"]  # type: ignore[attr-defined]
    options = {option for one in command_.params for option in one.opts if option.startswith("--")} - {"--help"}
    page = (root / "docs" / "capture.md").read_text()
    assert set(re.findall(r"`(--[a-z-]+)[^`]*`", page)) - {"--earlier", "--engine"} == options
