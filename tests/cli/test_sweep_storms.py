"""The logs of our own storms: one that flips, one corrupted, and a clean control of each scenario.

``step-storm-flips`` is a storm on the memory world in virtual time, and is made again here; the others were captured
from storms on the local world.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormctl.readers import open_captures
from tests.storm.stage import Latency, storm

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    from stormctl.sweeps import LogReport, SweepPlan, sweep_paths, sweep_report

    plan = SweepPlan(profile="workflow@5", engines=("nets", "dispenser"))
    logs = Path(__file__).resolve().parents[2] / "fixtures" / "storms" / "logs"
    found = [item for item in sweep_paths([logs], plan, processes=2) if isinstance(item, LogReport)]
    document = json.loads(json.dumps(sweep_report(found, ())))
    return {Path(log["source"]).stem: log for log in document["logs"]}


def verdicts(report: dict[str, Any]) -> dict[str, str]:
    return {sweep["sweep"]: sweep["verdict"] for sweep in report["sweeps"]}


@pytest.mark.parametrize("name", ["step-storm-clean", "hook-storm-clean"])
def test_a_control_has_no_finding_at_any_prefix_under_either_generation(
    reports: dict[str, dict[str, Any]], name: str
) -> None:
    report = reports[name]
    assert (report["verdict"], report["reasons"]) == ("clean", [])
    assert set(verdicts(report).values()) == {"clean"}
    for replay in report["rebinding"]:
        assert (replay["prefixes"], replay["clean_through"]) == (report["events"], report["events"])
        assert (replay["flips"], replay["divergence"]) == ([], None)


def test_a_run_that_called_itself_completed_flips_under_the_generation_that_wrote_it(
    reports: dict[str, dict[str, Any]],
) -> None:
    report = reports["step-storm-flips"]
    nets, dispenser = report["rebinding"]
    found = verdicts(report)
    assert {name for name, verdict in found.items() if verdict != "clean"} == {"log-order", "rebinding"}
    assert {"dense", "id-order", "one-body", "lifecycle", "roles", "ledger"} <= set(found)
    assert [(flip["from"], flip["to"], flip["rank"], flip["was"], flip["now"]) for flip in nets["flips"]] == [
        (66, 67, 19, "step:releaseStep", "step:finalizeStep"),
        (66, 67, 20, "step:finalizeStep", "step:releaseStep"),
        (66, 67, 21, "step:releaseStep", "step:finalizeStep"),
        (66, 67, 22, "step:finalizeStep", "step:releaseStep"),
    ]
    assert (nets["clean_through"], nets["divergence"]) == (228, None)
    assert dispenser["flips"] == []
    assert (dispenser["clean_through"], dispenser["divergence"]["position"]) == (69, 70)


def test_a_corrupted_run_diverges_offline_where_it_was_told(reports: dict[str, dict[str, Any]], root: Path) -> None:
    report = reports["hook-storm-corrupted"]
    (capture,) = open_captures([root / "fixtures" / "storms" / "logs" / "hook-storm-corrupted.ndjson"])
    told = capture.run.error_message  # type: ignore[union-attr]
    nets, _ = report["rebinding"]
    assert told.endswith(nets["divergence"]["text"])
    assert nets["divergence"]["rank"] == 16
    fired = {name for name, verdict in verdicts(report).items() if verdict == "violated"}
    assert fired == {"commit-order", "one-body", "rebinding"}, "twins are inert there, and repeats too"


def test_the_flipping_log_is_what_its_storm_writes_on_any_machine(root: Path) -> None:
    seen = storm(
        "step-storm",
        "seq-final",
        "nets",
        seed=1010,
        cap_s=60,
        latency=Latency(median_ms=40),
        rounds=2,
        width=6,
        step_delay_ms=1800.0,
        jitter_buckets=7,
        poke_interval_ms=100.0,
    )
    (capture,) = open_captures([root / "fixtures" / "storms" / "logs" / "step-storm-flips.ndjson"])
    kept = capture.log  # type: ignore[union-attr]
    assert [(e.type, e.correlation_id, e.created_at) for e in seen.log] == [
        (e.type, e.correlation_id, e.created_at) for e in kept
    ]


def test_the_first_screen_names_the_flip(stormctl: Run, stored: Callable[[str, str], None]) -> None:
    ran = stormctl("sweep", "fixtures/storms/logs/step-storm-flips.ndjson", "--engine", "nets")
    assert ran.code == 1
    stored("storm-that-flips.txt", ran.out)
