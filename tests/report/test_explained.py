"""Explanations of failed runs: within a time, kept, and without secrets."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import pytest

from stormctl.report.explained import FILE, MOST_TEXT, explained
from stormctl.report.html.failing import failing_attempts
from stormctl.report.load import Artefact, load_artefact
from tests.report.with_logs import RUNS, build_with_logs


@pytest.fixture
def artefact(tmp_path: Path, root: Path) -> Artefact:
    return load_artefact(build_with_logs(tmp_path / "storm", root))


def test_each_failed_run_with_a_log_is_explained_and_the_others_say_why_not(artefact: Artefact) -> None:
    attempts, _ = failing_attempts(artefact)
    found = explained(artefact, attempts, seconds=120)
    assert all(found[run].text for run in RUNS)
    first = found[RUNS[0]]
    assert first.answer in ("explained", "unclassified", "open")
    assert first.headline in " ".join(first.text.split())
    assert f"logs/{RUNS[0]}.ndjson" in first.text
    assert str(artefact.folder) not in first.text
    without = next(one for one in attempts if one.cell.scenario == "step-storm" and one.run_id)
    assert found[without.run_id or ""].why == "its log is not in the artefact"


def test_what_was_worked_out_is_kept_and_is_worked_out_again_when_the_log_changes(
    artefact: Artefact, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = [attempt for attempt in artefact.attempts if attempt.run_id == RUNS[1]]
    before = explained(artefact, one, seconds=120)
    (row,) = map(json.loads, (artefact.folder / FILE).read_text().splitlines())
    assert row["run_id"] == RUNS[1]
    with monkeypatch.context() as patched:
        patched.setattr("stormctl.report.explained.explain", lambda *_: pytest.fail("it was kept"))
        assert explained(artefact, one, seconds=0) == before
    log = artefact.folder / "logs" / f"{RUNS[1]}.ndjson"
    log.write_text("".join(line + "\n" for line in log.read_text().splitlines()[:-1]))
    assert explained(artefact, one, seconds=0)[RUNS[1]].why == "the report's time for explanations was up"


def test_when_the_time_is_up_one_of_each_kind_has_been_told(artefact: Artefact) -> None:
    ticks = count(0, 10)
    attempts, _ = failing_attempts(artefact)
    found = explained(artefact, attempts, seconds=11, clock=lambda: float(next(ticks)))
    assert sum(bool(found[run].text) for run in RUNS) == 1
    assert sum(found[run].why == "the report's time for explanations was up" for run in RUNS) == len(RUNS) - 1


def test_a_token_of_a_hook_is_shown_as_its_digest(artefact: Artefact) -> None:
    log = artefact.folder / "logs" / f"{RUNS[2]}.ndjson"
    token = next(json.loads(line)["token"] for line in log.read_text().splitlines() if '"token"' in line)
    meta = log.with_suffix(".meta.json")
    told = json.loads(meta.read_text())
    told["run"]["error_message"] = f"the hook {token} is taken"
    meta.write_text(json.dumps(told))
    found = explained(artefact, [one for one in artefact.attempts if one.run_id == RUNS[2]], seconds=120)
    assert token not in found[RUNS[2]].text + found[RUNS[2]].headline


def test_a_damaged_file_of_kept_ones_and_a_folder_that_takes_none_are_no_obstacle(
    artefact: Artefact, monkeypatch: pytest.MonkeyPatch
) -> None:
    (artefact.folder / FILE).mkdir()
    one = [attempt for attempt in artefact.attempts if attempt.run_id == RUNS[0]]
    assert explained(artefact, one, seconds=120)[RUNS[0]].text
    (artefact.folder / FILE).rmdir()
    (artefact.folder / FILE).write_text('not json\n[1]\n{"schema": "stormctl.explained/2"}\n')
    assert explained(artefact, one, seconds=0)[RUNS[0]].why


def test_a_long_text_is_cut_and_says_so(artefact: Artefact, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stormctl.report.explained.explain_text", lambda *_, **__: "a line\n" * 4000)
    one = [attempt for attempt in artefact.attempts if attempt.run_id == RUNS[0]]
    text = explained(artefact, one, seconds=120)[RUNS[0]].text
    assert len(text) < MOST_TEXT + 200
    assert text.endswith(f"stormctl explain logs/{RUNS[0]}.ndjson says all")
