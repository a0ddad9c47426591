"""Captures of the SDK as JSON, and which scenario a run is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stormctl.history import COMMIT_TIMES, Capture, Event, Facet, kinds
from stormctl.readers import Unreadable, open_captures
from stormctl.readers.sdk_workloads import input_for, name_of, scenario_of
from stormctl.workloads.registry import WORKLOADS


def event(place: int, type: str, correlation_id: str | None = None, **data: Any) -> dict[str, Any]:
    body: dict[str, Any] = {
        "eventType": type,
        "specVersion": 7,
        "runId": "wrun_a",
        "eventId": f"evnt_{place:026d}",
        "createdAt": "2026-01-02T12:00:00.000Z",
    }
    if correlation_id is not None:
        body["correlationId"] = correlation_id
    return {**body, "eventData": data} if data else body


def opened(path: Path, content: Any) -> list[Capture | Unreadable]:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return list(open_captures([path]))


class TestForms:
    EVENTS = (event(1, "run_created", workflowName="w", input={"$bytes": "ZGV2bFtbXV0="}), event(2, "run_started"))

    @pytest.mark.parametrize(
        "wrap", [list, lambda found: {"events": found}, lambda found: {"data": found, "cursor": 1}]
    )
    def test_an_array_or_an_object_that_holds_one(self, tmp_path: Path, wrap: Any) -> None:
        (found,) = opened(tmp_path / "a.json", wrap(list(self.EVENTS)))
        assert isinstance(found, Capture)
        assert [one.position for one in found.log] == [1, 2]
        assert found.run is not None
        assert (found.run.status, found.run.workload) == ("running", "w")

    def test_a_run_row_beside_the_events_says_how_the_run_ended(self, tmp_path: Path) -> None:
        row = {"runId": "wrun_a", "workflowName": "w", "status": "failed", "error": {"message": "m", "code": "C"}}
        (found,) = opened(tmp_path / "a.json", {"run": row, "events": list(self.EVENTS)})
        assert isinstance(found, Capture)
        assert found.run is not None
        assert (found.run.error_code, found.run.error_message) == ("C", "m")
        assert Facet.ROWS not in found.evidence.missing

    def test_commit_times_of_a_capture_from_postgres_are_kept(self, tmp_path: Path) -> None:
        stamped = {**self.EVENTS[0], "_xmin": 7, "_committedAt": "2026-01-02 12:00:00.000001+00"}
        (found,) = opened(tmp_path / "a.json", [stamped])
        assert isinstance(found, Capture)
        assert found.data[COMMIT_TIMES] == {f"evnt_{1:026d}": 1_767_355_200_000_001}
        assert found.log[0].data["_xmin"] == 7

    def test_two_runs_of_one_file_are_two_captures(self, tmp_path: Path) -> None:
        other = {**event(1, "run_created"), "runId": "wrun_b"}
        found = opened(tmp_path / "a.json", [*self.EVENTS, other])
        assert [one.log.run_id for one in found if isinstance(one, Capture)] == ["wrun_a", "wrun_b"]

    @pytest.mark.parametrize(
        "content",
        [
            '[{"eventType": "run_created"}]',
            '[{"eventType": "run_created", "runId": 1, "eventId": "e"}]',
            '[{"eventType": "x", "runId": "r", "eventId": "e", "createdAt": "yesterday"}]',
            '{"runId": "r", "workflowName": "w"}',
            '{"runId": "r", "workflowName": "w", "events": []}',
            '{"runId": "r", "workflowName": "w", "events": [1]}',
            '[{"eventType": "x", ',
        ],
    )
    def test_what_is_damaged_is_named(self, tmp_path: Path, content: str) -> None:
        (found,) = opened(tmp_path / "a.json", content)
        assert isinstance(found, Unreadable)
        assert "a.json" in found.error


class TestWhichScenario:
    @pytest.mark.parametrize(
        ("workflow", "name"),
        [
            ("workflow//./workflows/storms//stepStorm", "step-storm"),
            ("workflow//./src/a//stepStormReproWorkflow", "step-storm"),
            ("workflow//./workflows/storms//captureHookStorm", "capture-hook-storm"),
            ("workflow//./workflows/stormctl-storms//hookSleepWorkflow", "hook-sleep"),
            ("workflow//./w//dag_runner", "dag-runner"),
            ("step-storm", "step-storm"),
        ],
    )
    def test_the_name_inside_a_workflow_id(self, workflow: str, name: str) -> None:
        assert name_of(workflow) == name

    @pytest.mark.parametrize(
        ("function", "step", "workload"),
        [
            ("stepStorm", "settleStep", "step-storm"),
            ("stepStorm", "settle", "capture-step-storm"),
            ("hookStorm", "finalizeStep", "hook-storm"),
            ("hookStorm", "release", "capture-hook-storm"),
            ("captureStepStorm", "settle", "capture-step-storm"),
            ("wakeLoop", "verifyStep", "wake-loop"),
        ],
    )
    def test_the_first_step_tells_two_storms_of_one_name_apart(self, function: str, step: str, workload: str) -> None:
        events = [Event(kinds.STEP_CREATED, name=f"step//./w//{step}")]
        assert scenario_of(f"workflow//./w//{function}", [], events)[0] == workload

    def test_before_the_first_step_the_input_does(self) -> None:
        ours = {"token": "t", "rounds": 1, "stepDelayMs": 5, "attrWrites": 0}
        theirs = {"token": "t", "rounds": 1, "workMs": 5, "reconcileMin": 2}
        for given, workload in ((ours, "step-storm"), (theirs, "capture-step-storm")):
            assert scenario_of("workflow//./w//stepStorm", [given], [])[0] == workload

    def test_a_strangers_workflow_of_that_name_stays_a_strangers(self) -> None:
        events = [Event(kinds.STEP_CREATED, name="step//./w//charge")]
        workflow = "workflow//./w//stepStorm"
        assert scenario_of(workflow, [{"orderId": 7}], events) == (workflow, {"orderId": 7})
        assert scenario_of(None, None, events) == (None, {})

    def test_inputs_get_the_names_that_the_workload_knows(self) -> None:
        given = {"watchdogMs": 1, "attrWrites": 0, "token": "t", "nobodyKnows": 1}
        assert input_for(WORKLOADS["step-storm"], given) == {"watchdog_ms": 1, "attr_writes": 0, "token": "t"}
        assert input_for(WORKLOADS["inline-hang"], {"killUntilMs": 5, "killWindowMs": 6}) == {
            "kill_until": 5,
            "kill_window_ms": 6,
        }

    @pytest.mark.parametrize("name", WORKLOADS)
    def test_every_input_of_every_scenario_comes_back_from_camel_case(self, name: str) -> None:
        workload = WORKLOADS[name]
        names = list(workload.input_type.__dataclass_fields__)
        camel = {"".join(part.title() if at else part for at, part in enumerate(one.split("_"))): one for one in names}
        assert input_for(workload, camel) == {one: one for one in names}


def test_every_real_capture_is_opened_and_recognised(shared_data: Path) -> None:
    folder = shared_data / "sdk"
    if not folder.is_dir():
        pytest.skip("the captures of the real SDK are not beside this clone")
    found = list(open_captures([folder]))
    assert len(found) == len(list(folder.rglob("*.json")))
    for one in found:
        assert isinstance(one, Capture), one
        assert one.run is not None
        assert one.run.workload in ("capture-step-storm", "capture-hook-storm")
        WORKLOADS[one.run.workload].parse_input(one.run.input)
        words = {"corrupted": "failed", "completed": "completed", "livelock": "running"}
        for word, status in words.items():
            if word in one.source:
                assert one.run.status == status
        if one.run.status == "failed":
            assert one.run.error_code == "CORRUPTED_EVENT_LOG"
            assert "Replay divergence" in (one.run.error_message or "")
