"""The results file of upstream's harness stands in the same tables; tokens stand nowhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stormctl.errors import UnreadableInput
from stormctl.history import digest_value
from stormctl.report.facts import storm_facts
from stormctl.report.lane import Lane
from stormctl.report.load import load_artefact
from stormctl.report.results import FILE, load_any
from stormctl.report.step_summary import step_summary
from stormctl.report.tally import outcome_rows
from stormctl.storm.outcome import Outcome
from tests.readers.samples import dumped, harness_results
from tests.report.logs import lay_log
from tests.report.synthetic import build

TOKEN = "storm-step-storm-1796077182142-5-10e691"


def results(path: Path, **changes: Any) -> Path:
    document = harness_results()
    document.update(changes)
    file = path / FILE
    file.write_bytes(dumped(document))
    return file


def test_every_attempt_counts_also_one_without_a_run(tmp_path: Path) -> None:
    found = load_any(results(tmp_path), "vercel")
    assert (found.name, found.planned, found.reason) == ("event-log-race-repro", 3, "done")
    rows = {(row.cell.scenario, row.cell.world): row for row in outcome_rows(found)}
    assert rows["step-storm", "vercel"].completed == 1
    hook = rows["hook-storm", "vercel"]
    assert (hook.corrupted, hook.infra, hook.n) == (1, 1, 1)


def test_the_folder_that_holds_it_will_do(tmp_path: Path) -> None:
    results(tmp_path)
    assert len(load_any(tmp_path).attempts) == 3


def test_it_goes_through_the_same_tables(tmp_path: Path) -> None:
    found = load_any(results(tmp_path, partial=True, budgetExhausted=True, plannedAttempts=14))
    lane = Lane("vercel", found)
    text = step_summary([(lane, storm_facts(found))])
    assert "| hook-storm | upstream + as deployed | 1 | 0 | 1/1 (100 %, 21 to 100) | 0 | 0 | 1 |" in text
    assert "3 of 14 attempts landed, the launch budget ran out" in text
    assert lane.counts.verdict == ("1 of 2 failed: 1 corrupted; 1 infra; 3 of 14 planned attempts, launch budget spent")


def test_what_the_harness_does_not_tell_is_said(tmp_path: Path) -> None:
    rows = [{"attempt": 1, "scenario": "step-storm", "runId": "w", "outcome": "stuck", "durationMs": 240_000,
             "progress": {"events": 88, "lastEventType": "step_started"}}]  # fmt: skip
    found = load_any(results(tmp_path, results=rows))
    assert found.attempts[0].outcome is Outcome.DORMANT
    assert any("does not tell slow from dormant" in note for note in found.notes)
    (stuck,) = storm_facts(found).stuck
    assert (stuck.events, stuck.last_event) == (88, "step_started")


def test_its_tokens_stand_nowhere(tmp_path: Path) -> None:
    row = {"attempt": 1, "scenario": "hook-storm", "token": TOKEN, "outcome": "infra", "durationMs": 1,
           "errorMessage": f"Hook token '{TOKEN}:0:1' of {TOKEN} was not found"}  # fmt: skip
    found = load_any(results(tmp_path, results=[row]))
    text = step_summary([(Lane("x", found), storm_facts(found))])
    assert TOKEN not in text
    assert digest_value(TOKEN)[:8] in text


@pytest.mark.parametrize(
    "row",
    [
        {"outcome": ["x"], "attempt": "one", "scenario": 5, "durationMs": None, "pressure": 3, "progress": []},
        {"outcome": "invented", "errorCode": 7, "runId": {}, "errorMessage": 1.5},
        {},
    ],
)
def test_a_row_of_another_shape_is_some_other_failure(tmp_path: Path, row: dict[str, Any]) -> None:
    found = load_any(results(tmp_path, results=[row]))
    assert [one.outcome for one in found.attempts] == [Outcome.OTHER]
    assert storm_facts(found).outcomes


def test_what_is_no_attempt_is_counted(tmp_path: Path) -> None:
    found = load_any(results(tmp_path, results=[1, "x", {"outcome": "completed"}]))
    assert len(found.attempts) == 1
    assert found.notes == (f"{FILE}: 2 of its results are no attempts",)


def test_a_missing_or_foreign_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInput, match="there are no results"):
        load_any(tmp_path / "nothing.json")
    other = tmp_path / "other.json"
    other.write_text("{}")
    with pytest.raises(UnreadableInput, match="is not a results file"):
        load_any(other)
    with pytest.raises(UnreadableInput, match=r"no attempts\.ndjson"):
        load_any(tmp_path)


class TestOurOwn:
    """The same of an artefact folder: a text is shown without the tokens that the run's log holds."""

    RUN = "wrun_step-storm-main-01"

    def changed(self, folder: Path, message: str) -> Path:
        path = folder / "attempts.ndjson"
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        rows[0]["error_message"] = message
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return folder

    def test_a_token_of_the_log_is_a_digest_in_the_message(self, tmp_path: Path) -> None:
        folder = build(tmp_path)
        log = lay_log(folder, self.RUN, ["0 run_created", "1 hook_created h"])
        lines = log.read_text().splitlines()
        lines[1] = json.dumps({**json.loads(lines[1]), "token": f"{TOKEN}:poke"})
        log.write_text("\n".join(lines) + "\n")
        self.changed(folder, f"hook {TOKEN}:poke of {TOKEN} is taken")
        text = load_artefact(folder).attempts[0].error_message or ""
        assert TOKEN not in text
        assert digest_value(f"{TOKEN}:poke")[:8] in text

    def test_what_a_text_calls_a_token_is_one(self, tmp_path: Path) -> None:
        folder = self.changed(build(tmp_path), 'Hook token "my-secret-1" is already in use')
        assert "my-secret-1" not in (load_artefact(folder).attempts[0].error_message or "")

    def test_a_digest_of_ours_stays_as_it_is(self, tmp_path: Path) -> None:
        said = "hook_created at position 4 belongs to another token than the hook that the workflow created with its id"
        folder = self.changed(build(tmp_path), said)
        assert load_artefact(folder).attempts[0].error_message == said
