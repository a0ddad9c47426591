"""Reported cases: each log under ``fixtures/logs`` with an ``.expect.yaml`` beside it is told what the file says."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from stormctl.history import Capture
from stormctl.readers import open_captures
from stormctl.sweeps import SWEEPS, LogReport, Severity, SweepPlan, sweep_log
from tests.sweeps.write_cases import CASES, HEADER, write

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "fixtures" / "logs"
EXPECTED = sorted(path.name.removesuffix(".expect.yaml") for path in LOGS.glob("*.expect.yaml"))
KEYS = {"source", "symptom", "twin", "engine", "workload", "earlier", "readings"}
READING = {"profile", "verdict", "fatal", "milder", "never", "unknown", "reason"}
#: Cases whose sweep or kind of finding is still to come; each must fail until it does.
PENDING: frozenset[str] = frozenset()


def expectation(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((LOGS / f"{name}.expect.yaml").read_text())
    return content


def capture_of(path: Path) -> Capture:
    (found,) = open_captures([path])
    assert isinstance(found, Capture), found
    return found


def found_in(report: LogReport, *, fatal: bool) -> set[str]:
    """``sweep/kind`` of the findings that are fatal, or of the others."""
    return {
        "/".join(finding.key.split("/")[:2])
        for one in report.sweeps
        for finding in one.findings
        if (finding.severity is Severity.FATAL) is fatal
    }


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.xfail(strict=True)] if name in PENDING else []) for name in EXPECTED],
)
def test_a_reported_case_is_told_what_it_is(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    expected = expectation(name)
    capture = capture_of(LOGS / f"{name}.ndjson")
    if "earlier" in expected:
        capture = replace(capture, earlier=capture_of(LOGS / expected["earlier"]))
    engines = (expected["engine"],) if "engine" in expected else ()
    for reading in expected["readings"]:
        plan = SweepPlan(profile=reading["profile"], workload=expected.get("workload"), engines=engines)
        report = sweep_log(capture, plan)
        fatal, milder = found_in(report, fatal=True), found_in(report, fatal=False)
        assert (report.verdict, sorted(fatal)) == (reading["verdict"], sorted(reading["fatal"])), report.reasons
        assert milder >= set(reading.get("milder", ()))
        assert not [one for one in fatal | milder if one.startswith(tuple(reading.get("never", ())) or "\0")]
        unknown = {one.sweep for one in report.sweeps if one.verdict == "unknown"}
        assert unknown >= set(reading.get("unknown", ()))
        assert "reason" not in reading or any(reading["reason"] in reason for reason in report.reasons), report.reasons


@pytest.mark.parametrize("name", EXPECTED)
def test_the_twin_of_a_case_is_no_other_case_of_the_same_kind(name: str) -> None:
    """One of the two is violated or milder than its twin, and each names the other."""
    mine = expectation(name)
    other = expectation(mine["twin"])
    assert (other["twin"], other["source"]) == (name, mine["source"])
    said = [(one["verdict"], one["fatal"], one.get("milder"), one.get("reason")) for one in (mine["readings"][0],)]
    twin = [(one["verdict"], one["fatal"], one.get("milder"), one.get("reason")) for one in (other["readings"][0],)]
    assert said != twin


@pytest.mark.parametrize("name", EXPECTED)
def test_an_expectation_speaks_of_sweeps_and_kinds_that_exist(name: str) -> None:
    expected = expectation(name)
    assert set(expected) <= KEYS
    assert re.fullmatch(r"[a-z0-9-]+", name)
    known = {f"{one.name}/{kind}" for one in SWEEPS.values() for kind in one.kinds} | {"rebinding/divergence"}
    for reading in expected["readings"]:
        assert set(reading) <= READING
        assert known >= {*reading["fatal"], *reading.get("milder", ())} or name in PENDING
        assert {one.partition("/")[0] for one in known} >= {one.partition("/")[0] for one in reading.get("never", ())}


def test_the_files_are_those_that_are_made(tmp_path: Path) -> None:
    write(tmp_path)
    made = {path.relative_to(tmp_path): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    for path, text in made.items():
        kept = LOGS / path
        assert kept.is_file(), f"{path} is missing: python -m tests.sweeps.write_cases fixtures/logs"
        assert kept.read_text() == text, f"{path} is old: python -m tests.sweeps.write_cases fixtures/logs"
    stray = [path.name for path in LOGS.glob("*.expect.yaml") if path.relative_to(LOGS) not in made]
    assert stray == []
    assert all(text.startswith(HEADER) for path, text in made.items() if path.suffix == ".yaml")


def test_every_case_is_there_and_nothing_is_pending_that_is_not() -> None:
    assert set(EXPECTED) == set(CASES)
    assert set(CASES) >= PENDING
