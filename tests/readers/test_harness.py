"""The results file of upstream's harness, alone and beside the store of its runs."""

from __future__ import annotations

import json
from pathlib import Path

from stormctl.history import Capture
from stormctl.readers import Unreadable, open_captures
from tests.readers.samples import OTHER, RUN, dumped, harness_results, store_files, write_files


def captures(path: Path) -> list[Capture]:
    found = list(open_captures([path]))
    assert all(isinstance(one, Capture) for one in found), found
    return [one for one in found if isinstance(one, Capture)]


def test_each_attempt_that_names_its_run_says_how_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "event-log-race-repro-results.json"
    path.write_bytes(dumped(harness_results()))
    first, second = captures(path)
    assert (first.log.run_id, second.log.run_id) == (RUN, OTHER)
    assert second.run is not None
    assert (second.run.status, second.run.error_code, second.run.workload) == (
        "failed", "CORRUPTED_EVENT_LOG", "hook-storm",
    )  # fmt: skip
    assert second.data["attempt"]["progress"]["events"] == 7
    assert "secret" not in json.dumps(dict(second.data))
    assert all(one.evidence.truncated for one in (first, second))
    assert "1 of its 3 attempts name no run" in first.evidence.notes


def test_with_the_store_beside_it_each_attempt_has_its_log(tmp_path: Path) -> None:
    write_files(tmp_path / ".workflow-data", store_files())
    path = tmp_path / "results.json"
    path.write_bytes(dumped(harness_results()))
    first, second = captures(path)
    assert (len(first.log), len(second.log)) == (6, 0)
    assert first.data["attempt"]["outcome"] == "completed"
    assert any("the harness saw it completed" in note for note in first.evidence.notes)


def test_a_run_id_that_is_a_path_leads_nowhere(tmp_path: Path) -> None:
    write_files(tmp_path / ".workflow-data", store_files())
    (tmp_path / "secret.json").write_text('{"runId": "x", "status": "failed"}')
    results = harness_results()
    results["results"][0]["runId"] = "../../secret"
    path = tmp_path / "results.json"
    path.write_bytes(dumped(results))
    first, _ = captures(path)
    assert (first.log.run_id, len(first.log)) == ("../../secret", 0)
    assert first.run is not None
    assert first.run.status == "completed"


def test_a_file_in_which_no_attempt_names_a_run_says_so(tmp_path: Path) -> None:
    results = harness_results()
    results["results"] = results["results"][2:]
    path = tmp_path / "results.json"
    path.write_bytes(dumped(results))
    (found,) = open_captures([path])
    assert isinstance(found, Unreadable)
    assert "names no run" in found.error
