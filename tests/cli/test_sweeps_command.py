"""The list of sweeps, and two captures of one run swept together."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stormctl.history import EventLog
from stormctl.readers import write_capture
from stormctl.sweeps import PROFILES, SWEEPS
from stormctl.testing import LogBuilder

Run = Callable[..., Any]


class TestList:
    def test_it_is_stored_whole(self, stormctl: Run, stored: Callable[[str, str], None]) -> None:
        ran = stormctl("sweeps")
        assert (ran.code, ran.err) == (0, "")
        assert all(len(line) <= 80 for line in ran.out.splitlines())
        stored("sweeps.txt", ran.out)

    def test_named_sweeps_show_their_severities_by_profile(
        self, stormctl: Run, stored: Callable[[str, str], None]
    ) -> None:
        ran = stormctl("sweeps", "dense", "rows")
        assert all(len(line) <= 80 for line in ran.out.splitlines())
        stored("sweeps-dense-rows.txt", ran.out)

    def test_json_holds_every_sweep_kind_and_profile(self, stormctl: Run) -> None:
        report = json.loads(stormctl("sweeps", "--format", "json").out)
        assert report["schema"] == "stormctl.sweeps/1"
        listed = {one["name"]: one for one in report["sweeps"]}
        assert set(SWEEPS) | {"rebinding", "perturbation"} == set(listed)
        assert [one["name"] for one in report["profiles"]] == list(PROFILES)
        for name, sweep in SWEEPS.items():
            assert set(listed[name]["kinds"]) == set(sweep.kinds)
            for severities in listed[name]["kinds"].values():
                assert list(severities) == list(PROFILES)
        assert listed["dense"]["without"] == "unknown"
        assert listed["rows"]["without"] == "left out"

    def test_an_unknown_name_is_answered_with_a_likely_one(self, stormctl: Run) -> None:
        ran = stormctl("sweeps", "lifecicle")
        assert ran.code == 2
        assert "there is no sweep 'lifecicle'. Did you mean 'lifecycle'?" in ran.err


@pytest.fixture
def captured(tmp_path: Path) -> Callable[[str, LogBuilder], Path]:
    def write(folder: str, built: LogBuilder) -> Path:
        capture = built.capture()
        return write_capture(replace(capture, log=EventLog(capture.log.events, built.run_id)), tmp_path / folder)

    return write


def log() -> LogBuilder:
    return LogBuilder().run_created().run_started().hook_created(0).hook_received(0).hook_received(0)


def sweep_named(report: str, name: str) -> dict[str, Any]:
    (one,) = json.loads(report)["logs"]
    return next(found for found in one["sweeps"] if found["sweep"] == name)


class TestEarlier:
    def test_a_capture_that_has_only_grown_is_clean(
        self, stormctl: Run, captured: Callable[[str, LogBuilder], Path]
    ) -> None:
        earlier, later = captured("one", log().until(3)), captured("two", log())
        ran = stormctl("sweep", later, "--earlier", earlier, "--format", "json")
        assert sweep_named(ran.out, "append-only")["verdict"] == "clean"

    def test_an_event_that_came_between_is_told(
        self, stormctl: Run, captured: Callable[[str, LogBuilder], Path]
    ) -> None:
        earlier, later = captured("one", log().without(4)), captured("two", log())
        ran = stormctl("sweep", later, "--earlier", earlier.parent.parent, "--format", "json")
        assert ran.code == 1
        (finding,) = sweep_named(ran.out, "append-only")["findings"]
        assert finding["key"].startswith("append-only/inserted/")

    def test_an_earlier_capture_of_another_run_leaves_the_question_open(
        self, stormctl: Run, captured: Callable[[str, LogBuilder], Path]
    ) -> None:
        other = LogBuilder("wrun_01KE0000000000000000000009").run_created().run_started()
        earlier, later = captured("one", other), captured("two", log())
        ran = stormctl("sweep", later, "--earlier", earlier, "--format", "json")
        assert sweep_named(ran.out, "append-only")["verdict"] == "unknown"

    def test_one_that_cannot_be_read_is_said_at_once(
        self, stormctl: Run, captured: Callable[[str, LogBuilder], Path], tmp_path: Path
    ) -> None:
        ran = stormctl("sweep", captured("two", log()), "--earlier", tmp_path / "gone.ndjson")
        assert ran.code == 4
        assert ran.err.startswith("stormctl: no earlier capture can be read: ")
        assert ran.out == ""


def test_a_log_says_which_profile_it_is_read_by(stormctl: Run, root: Path) -> None:
    from stormctl.history import Capture
    from stormctl.readers import open_captures

    store = root / "fixtures" / "stores" / "sdk-4.8"
    captures = [item for item in open_captures([store]) if isinstance(item, Capture)]
    ran = stormctl("sweep", store, "--format", "json")
    logs = json.loads(ran.out)["logs"]
    assert len(logs) == len(captures)
    assert {one["profile"] for one in logs} == {"workflow@4.8-local"}
    assert {one["profile_from"] for one in logs} == {"log"}
    assert "profile workflow@4.8-local" in stormctl("sweep", store).out
