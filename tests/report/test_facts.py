"""The data behind every table, from folders whose numbers are known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from stormctl.report.facts import (
    APPEND_MS,
    APPENDS,
    EVENTS,
    PRECONDITIONS,
    REFUSED,
    RESTARTS,
    SECONDS,
    StormFacts,
    diverged,
    storm_facts,
)
from stormctl.report.latency import FIRST_STEP, HOP, INLINE
from stormctl.report.load import Artefact, load_artefact
from stormctl.storm.outcome import Outcome
from tests.report.logs import SEQUENTIAL, lay_log, tried
from tests.report.synthetic import build

RUN = "wrun_step-storm-seq-final-01"
BAD = "wrun_step-storm-main-01"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return build(tmp_path)


def facts_of(folder: Path) -> StormFacts:
    return storm_facts(load_artefact(folder))


def value(facts: StormFacts, quantity: str, condition: str) -> object:
    found = [row for row in facts.quantities if row.quantity == quantity and row.cell.condition == condition]
    return {row.cell.scenario: row.values for row in found}


def changed(folder: Path, of: str, /, **values: object) -> None:
    path = folder / "attempts.ndjson"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        if row["run_id"] == of:
            row.update(values)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_folder_without_logs_has_what_its_attempts_tell(folder: Path) -> None:
    facts = facts_of(folder)
    assert facts.logs == 0
    assert next((row.signature.text, row.count) for row in facts.signatures) == (
        "step_created: log has releaseStep, workflow calls finalizeStep",
        10,
    )
    assert facts.signatures[0].positions == (132,) * 10
    assert facts.signatures[0].example.run_id == BAD
    assert {row.quantity for row in facts.quantities} == {SECONDS, EVENTS, RESTARTS}
    assert facts.latencies == facts.refusals == ()


def test_findings_go_with_outcomes(folder: Path) -> None:
    rows = {row.sweep: row.cells for row in facts_of(folder).findings_by_outcome}
    assert str(rows["roles"]["corrupted"]) == "10/10"
    assert str(rows["roles"]["completed"]) == "0/19"
    assert str(rows["rebinding"]["corrupted"]) == "10/10"
    assert "dense" not in rows  # it found nothing


def test_findings_go_with_worlds(folder: Path) -> None:
    rows = {row.sweep: row.cells for row in facts_of(folder).findings_by_world}
    assert str(rows["roles"]["local"]) == "20 in 10 of 31 logs"


def test_infra_is_in_no_number(folder: Path) -> None:
    found = value(facts_of(folder), SECONDS, "main")
    assert {scenario: values.n for scenario, values in found.items()} == {"step-storm": 8, "hook-storm": 7}  # type: ignore[attr-defined]


def test_a_log_gives_latencies_split_by_who_wrote(folder: Path) -> None:
    audit = [tried(RUN, 4, "w1"), tried(RUN, 5, "w1", "step_completed"), tried(RUN, 7, "w1")]
    lay_log(folder, RUN, SEQUENTIAL, audit=audit)
    facts = facts_of(folder)
    found = {row.latency: row for row in facts.latencies}
    assert (found[FIRST_STEP].values.p50, found[INLINE].values.p50) == (30.0, 25.0)
    assert HOP not in found
    assert sum(found[INLINE].histogram.counts) == 1
    assert facts.logs == 1

    audit[2] = tried(RUN, 7, "w2")
    lay_log(folder, RUN, SEQUENTIAL, audit=audit)
    assert {row.latency for row in facts_of(folder).latencies} >= {HOP}


def test_an_audit_gives_appends_and_refusals(folder: Path) -> None:
    audit = [
        tried(RUN, 4, "w1", took_ms=2),
        tried(RUN, 5, "w1", took_ms=4),
        tried(RUN, 6, "w1", reason="conflict: the wait is completed already"),
        tried(RUN, 6, "w2", reason="precondition: the writer had read 218 events"),
        {"reader": "w1", "full": True, "last_event_id": None, "count": 3, "began": 1, "returned": 2},
    ]
    lay_log(folder, RUN, SEQUENTIAL, audit=audit)
    facts = facts_of(folder)
    by_name = {row.quantity: row.values for row in facts.quantities if row.cell.condition == "seq-final"}
    assert (by_name[APPENDS].max, by_name[REFUSED].max, by_name[PRECONDITIONS].max) == (4, 2, 1)
    assert (by_name[APPEND_MS].n, by_name[APPEND_MS].p50) == (2, 3.0)
    assert facts.refusals[0].reasons == {"conflict": 1, "precondition": 1}


def test_an_event_that_a_text_names_is_found_in_the_log(folder: Path) -> None:
    text = (
        f"Workflow replay diverged 4 times after 3 recovery replays; latest divergent event was evnt_{BAD}_6. "
        'Last divergence: Replay divergence: step event step_created for step_b belongs to "a//x", '
        'but the current step consumer is "a//y"'
    ).replace("-", "_")
    log = lay_log(folder, BAD, SEQUENTIAL)
    log.write_text(log.read_text().replace(f"evnt_{BAD}_6", f"evnt_{BAD}_6".replace("-", "_")))
    changed(folder, BAD, error_message=text)
    found = {row.example.run_id: row for row in facts_of(folder).signatures}
    assert found[BAD].positions == (6,)


def test_divergences_count_those_that_recovered_and_those_that_only_the_error_tells(folder: Path) -> None:
    changed(folder, RUN, work={"passes": 3, "divergences": 2})
    changed(folder, BAD, error_message="Workflow replay diverged 4 times after 3 recovery replays")
    facts = facts_of(folder)
    by_cell = {(row.cell.scenario, row.cell.condition): row for row in facts.warnings}
    recovered = by_cell["step-storm", "seq-final"]
    assert (recovered.warned, recovered.recovered, recovered.warnings, recovered.most) == (1, 1, 2, 2)
    assert (by_cell["step-storm", "main"].warned, by_cell["step-storm", "main"].recovered) == (1, 0)
    assert [(run.attempt.run_id, run.warnings) for run in facts.warned] == [(BAD, 4), (RUN, 2)]


def test_without_any_divergence_there_is_no_table_of_them(folder: Path) -> None:
    assert facts_of(folder).warnings == facts_of(folder).warned == ()


def test_stuck_runs_say_how_far_they_came(folder: Path) -> None:
    changed(folder, "wrun_hook-storm-seq-final-08", progress={"last_event": "step_started", "quiet_ms": 2976})
    slow, dormant = sorted(facts_of(folder).stuck, key=lambda run: not run.slow)
    assert (slow.slow, slow.last_event, slow.quiet_ms) == (True, "step_started", 2976.0)
    assert (dormant.slow, dormant.last_event, dormant.quiet_ms) == (False, "", None)


def test_a_torn_log_is_measured_as_far_as_it_goes_and_named(folder: Path) -> None:
    log = lay_log(folder, RUN, SEQUENTIAL)
    log.write_bytes(log.read_bytes()[:-30] + b"\n\xff\xfe\n[1]\n{}")
    facts = facts_of(folder)
    assert facts.notes == (f"logs/{RUN}.ndjson: 4 lines could not be read",)
    assert {row.latency for row in facts.latencies} >= {FIRST_STEP}


@pytest.mark.parametrize("run_id", ["../../secret", "a/b", "..", "x\0y", "n" * 5000, "\x1b[2J"])
def test_a_run_id_that_is_a_path_leads_nowhere(folder: Path, run_id: str) -> None:
    (folder.parent / "secret.ndjson").write_text("{}")
    changed(folder, RUN, run_id=run_id)
    assert facts_of(folder).logs == 0


def test_no_attempts_make_no_rows(folder: Path) -> None:
    empty: Artefact = replace(load_artefact(folder), attempts=(), logs=(), plan=None)
    facts = storm_facts(empty)
    assert facts.outcomes == facts.signatures == facts.quantities == facts.stuck == ()


def test_only_failures_have_signatures(folder: Path) -> None:
    found = load_artefact(folder)
    done = replace(found.attempts[0], outcome=Outcome.COMPLETED)
    assert diverged(done) == 0
    assert storm_facts(replace(found, attempts=(done,))).signatures == ()
