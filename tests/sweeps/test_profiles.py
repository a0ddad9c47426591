"""Profiles: which one a log asks for, and the strictest reading where it does not say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stormctl.errors import UsageError
from stormctl.history import Capture, EventLog, Evidence, ids
from stormctl.readers import open_captures
from stormctl.sweeps import PROFILES, SWEEPS, Severity, SweepPlan, profile_named, sweep_log
from stormctl.sweeps.profiles import LINES
from stormctl.sweeps.reading import From, core_version, reading_of
from stormctl.testing import START_MS, LogBuilder

WEVT = f"wevt_{ids.compose(START_MS, 1)}"
EVNT = f"evnt_{ids.compose(START_MS, 1)}"
SLOT = ids.slot_id(1)


def log(
    event_id: str, *, version: str | None = None, spec: int | None = None, origin: str = "x", **data: Any
) -> Capture:
    context = {} if version is None else {"executionContext": {"workflowCoreVersion": version}}
    built = LogBuilder(positions=event_id == SLOT)
    built.event("run_created", event_id=event_id, spec=spec, data={**context, **data})
    return Capture("x", EventLog(built.events), Evidence(origin))


ASKED = [
    (log(EVNT, version="4.6.1"), "workflow@4.6-local"),
    (log(EVNT, version="4.8.9"), "workflow@4.8-local"),
    (log(WEVT, version="4.8.9"), "workflow@4.8-postgres"),
    (log(EVNT, version="5.0.0-beta.35"), "workflow@5-ulid-local"),
    (log(WEVT, version="5.0.0-beta.35"), "workflow@5-ulid-postgres"),
    (log(SLOT, version="5.0.0-beta.55"), "workflow@5"),
    (log(SLOT, version="5.0.0-beta.55", origin="local world @workflow/world-local@5"), "workflow@5-local"),
    (log(SLOT, version="5.0.0-beta.55", origin="Postgres world"), "workflow@5-postgres"),
    (log(EVNT, spec=3), "workflow@4.8-local"),
    (log(EVNT, spec=5), "workflow@5-ulid-local"),
    (log(SLOT, spec=7), "workflow@5"),
]


@pytest.mark.parametrize(("capture", "name"), ASKED, ids=[name for _, name in ASKED])
def test_a_log_that_says_its_release_is_read_by_it(capture: Capture, name: str) -> None:
    reading = reading_of(capture, "auto")
    assert (reading.profile.name, reading.source) == (name, From.LOG)
    assert reading.told


SILENT = {
    "nothing that tells": log(EVNT),
    "a version that nobody knows": log(EVNT, version="9.1.0"),
    "no version": log(EVNT, version="latest"),
    "a log of our own worlds": log(EVNT, spec=5, deploymentId="stormctl"),
    "an empty log": Capture("x", EventLog(()), Evidence("x")),
    "positions beside ULIDs": LogBuilder().event("run_created", spec=5).capture(),
}


@pytest.mark.parametrize("name", SILENT)
def test_one_that_does_not_is_read_most_strictly(name: str) -> None:
    reading = reading_of(SILENT[name], "auto")
    assert (reading.profile.name, reading.source) == ("strict", From.STRICTEST)


def test_a_store_that_counts_beside_its_ids_is_read_by_its_own_rules() -> None:
    context = {"executionContext": {"workflowCoreVersion": "5.0.0-beta.40"}}
    assert reading_of(LogBuilder().event("run_created", data=context).capture(), "auto").profile.line == "workflow@seq"


def test_a_name_goes_before_what_the_log_says() -> None:
    reading = reading_of(log(EVNT, version="4.8.9"), "strict")
    assert (reading.profile.name, reading.source, reading.told) == ("strict", From.NAMED, "")


def test_the_report_says_where_its_profile_comes_from() -> None:
    report = sweep_log(log(EVNT, version="4.8.9\x1b[2J"), SweepPlan(profile="auto"))
    assert (report.profile, report.profile_from) == ("workflow@4.8-local", From.LOG)
    assert report.told == "4.8.9\\x1b[2J"
    assert report.to_json()["profile_from"] == "log"
    assert sweep_log(log(EVNT), SweepPlan(profile="auto")).to_json()["profile_from"] == "strictest"
    assert sweep_log(log(EVNT), SweepPlan()).to_json()["profile_from"] == "named"


def test_the_row_of_a_run_may_say_its_release_too() -> None:
    capture = LogBuilder().run_started().capture(data={"executionContext": {"workflowCoreVersion": "4.8.9"}})
    assert core_version(capture) == "4.8.9"


@pytest.mark.parametrize("data", [{"executionContext": 4}, {"executionContext": {"workflowCoreVersion": 4}}, {}])
def test_a_context_that_is_none_says_nothing(data: dict[str, Any]) -> None:
    assert core_version(log(EVNT, **data)) is None


def test_strict_forgives_nothing_that_some_line_of_releases_forbids() -> None:
    """But for what one kind of store forbids: that is not held against every log."""
    raised = [(sweep.name, kind) for sweep in SWEEPS.values() for kind in sweep.kinds]
    seq = {("credit", "stale-decision"), ("rows", "run-row-ended")}
    for fault in raised:
        if fault not in seq and profile_named("strict").severity(*fault) is not Severity.FATAL:
            assert all(line.severity(*fault) is not Severity.FATAL for line in LINES), fault


def test_each_line_of_releases_has_both_kinds_of_store() -> None:
    for line in LINES[1:]:
        assert {f"{line.name}-local", f"{line.name}-postgres"} <= set(PROFILES)
        assert PROFILES[f"{line.name}-local"].line == line.name


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UsageError) as refused:
        reading_of(SILENT["nothing that tells"], "lax")
    assert "auto, strict, workflow@4.6" in refused.value.remedy


def test_captures_of_the_real_sdk_ask_for_their_own_release(shared_data: Path) -> None:
    files = sorted((shared_data / "sdk").rglob("*.json"))
    if not files:
        pytest.skip("the captures of the real SDK are not beside this clone")
    for capture in open_captures(files):
        assert isinstance(capture, Capture)
        reading = reading_of(capture, "auto")
        assert reading.source is From.LOG
        assert reading.profile.name.startswith("workflow@4.8" if reading.told.startswith("4") else "workflow@5")
