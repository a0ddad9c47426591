"""Temporal histories as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stormctl.history import Capture, Facet, kinds
from stormctl.readers import Unreadable, open_captures
from stormctl.readers.temporal import READER
from stormctl.sweeps import SweepPlan, sweep_log

HISTORY = Path(__file__).resolve().parents[2] / "fixtures" / "tables" / "temporal-history.json"


def opened(path: Path) -> Capture:
    (found,) = open_captures([path])
    assert isinstance(found, Capture), found
    return found


def written(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.fixture
def history() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(HISTORY.read_text())
    return content


class TestAHistory:
    def test_is_one_run_with_its_own_id_and_positions(self) -> None:
        found = opened(HISTORY)
        assert found.log.run_id == "6b1f0f0e-4a37-4c5d-9a6f-0d5a8a1f2c33"
        assert [event.position for event in found.log] == list(range(1, 16))
        assert found.data["workflow"] == "Order"
        assert found.run is not None
        assert found.run.status == "completed"
        assert not found.evidence.live

    def test_turns_activities_and_children_into_steps_and_timers_into_waits(self) -> None:
        log = opened(HISTORY).log
        told = [(event.type, event.correlation_id, event.name) for event in log if event.type in kinds.ALL_TYPES]
        assert told == [
            ("run_created", None, None),
            ("step_created", "step_5", "Charge"),
            ("wait_created", "wait_6", None),
            ("step_created", "step_7", "Mail"),
            ("step_started", "step_5", None),
            ("step_completed", "step_5", None),
            ("step_started", "step_7", "Mail"),
            ("step_completed", "step_7", "Mail"),
            ("wait_completed", "wait_6", None),
            ("run_completed", None, None),
        ]

    def test_keeps_what_has_no_counterpart_under_its_own_type(self) -> None:
        found = {event.type: event for event in opened(HISTORY).log if kinds.is_foreign(event.type)}
        assert set(found) == {
            "temporal:workflow_task_scheduled", "temporal:workflow_task_started", "temporal:workflow_task_completed",
            "temporal:workflow_execution_signaled", "temporal:marker_recorded",
        }  # fmt: skip
        assert found["temporal:workflow_execution_signaled"].data["name"] == "hurry"

    def test_knows_when_a_timer_is_due(self) -> None:
        wait = next(event for event in opened(HISTORY).log if event.type == kinds.WAIT_CREATED)
        assert wait.created_at is not None
        assert wait.resume_at == wait.created_at + 1500

    def test_is_sound_for_every_sweep_and_unknown_where_it_cannot_tell(self) -> None:
        report = sweep_log(opened(HISTORY), SweepPlan())
        assert not [finding for one in report.sweeps for finding in one.findings]
        told = {one.sweep: one.verdict for one in report.sweeps}
        assert (told["dense"], told["lifecycle"], told["one-body"]) == ("clean", "clean", "clean")
        assert told["id-order"] == "unknown"


class TestForms:
    def test_the_same_in_every_form(self, tmp_path: Path, history: dict[str, Any]) -> None:
        events = history["events"]
        forms = [
            written(tmp_path / "array.json", events),
            written(tmp_path / "lines.ndjson", "".join(json.dumps(event) + "\n" for event in events)),
            written(tmp_path / "newest-first.json", {"events": events[::-1]}),
        ]
        assert [opened(path).log.events for path in forms] == [opened(HISTORY).log.events] * 3

    def test_the_spelling_of_older_tools(self, tmp_path: Path, history: dict[str, Any]) -> None:
        for event in history["events"]:
            words = event["eventType"].removeprefix("EVENT_TYPE_").split("_")
            event["eventType"] = "".join(word.capitalize() for word in words)
            event["eventId"] = int(event["eventId"])
        assert opened(written(tmp_path / "old.json", history)).log.events == opened(HISTORY).log.events

    def test_plain_values_in_place_of_payloads_have_the_same_digest(
        self, tmp_path: Path, history: dict[str, Any]
    ) -> None:
        scheduled = history["events"][4]["activityTaskScheduledEventAttributes"]
        scheduled["input"] = ["o-1", 30]
        plain, packed = opened(written(tmp_path / "plain.json", history)).log[4], opened(HISTORY).log[4]
        assert plain.payload is not None
        assert packed.payload is not None
        assert plain.payload.digest == packed.payload.digest
        assert packed.payload.load() == ["o-1", 30]

    def test_a_payload_that_is_encrypted_is_a_digest(self, tmp_path: Path, history: dict[str, Any]) -> None:
        sealed = {"payloads": [{"metadata": {"encoding": "YmluYXJ5L2VuY3J5cHRlZA=="}, "data": "c2VjcmV0"}]}
        history["events"][4]["activityTaskScheduledEventAttributes"]["input"] = sealed
        payload = opened(written(tmp_path / "a.json", history)).log[4].payload
        assert payload is not None
        assert "secret" not in repr(payload)

    def test_times_in_nanoseconds_of_cadence(self, tmp_path: Path) -> None:
        rows = [
            {"eventId": 1, "timestamp": 1_767_355_200_123_456_789, "eventType": "WorkflowExecutionStarted"},
            {"eventId": 2, "timestamp": 1_767_355_200_999_999_999, "eventType": "DecisionTaskScheduled"},
        ]
        log = opened(written(tmp_path / "cadence.json", rows)).log
        assert [event.created_at for event in log] == [1_767_355_200_123, 1_767_355_200_999]
        assert [event.type for event in log] == ["run_created", "temporal:decision_task_scheduled"]

    def test_a_page_that_is_not_the_last_is_truncated(self, tmp_path: Path, history: dict[str, Any]) -> None:
        history["nextPageToken"] = "dG9rZW4="
        found = opened(written(tmp_path / "a.json", history))
        assert found.evidence.truncated


class TestFaults:
    def lost(self, history: dict[str, Any], *numbers: int) -> dict[str, Any]:
        return {"events": [event for event in history["events"] if int(event["eventId"]) not in numbers]}

    def kinds_of(self, path: Path) -> set[str]:
        report = sweep_log(opened(path), SweepPlan(profile="strict"))
        return {"/".join(finding.key.split("/")[:2]) for one in report.sweeps for finding in one.fatal}

    def test_a_gap(self, tmp_path: Path, history: dict[str, Any]) -> None:
        assert self.kinds_of(written(tmp_path / "a.json", self.lost(history, 11))) == {"dense/gap"}

    def test_a_completion_without_a_start(self, tmp_path: Path, history: dict[str, Any]) -> None:
        lost = self.kinds_of(written(tmp_path / "a.json", self.lost(history, 8)))
        assert lost == {"dense/gap", "lifecycle/end-without-start"}

    @pytest.mark.parametrize("word", ["ACTIVITY_TASK_TIMED_OUT", "ACTIVITY_TASK_CANCELED"])
    def test_an_end_that_needs_no_start_is_none(self, tmp_path: Path, history: dict[str, Any], word: str) -> None:
        events = self.lost(history, 9)["events"]
        events[7]["eventType"] = f"EVENT_TYPE_{word}"
        for place, event in enumerate(events, 1):
            event["eventId"] = str(place)
        events[7] = {**events[7], "activityTaskTimedOutEventAttributes": {"scheduledEventId": "5"}}
        events[7].pop("activityTaskStartedEventAttributes")
        assert "lifecycle/end-without-start" not in self.kinds_of(written(tmp_path / "a.json", {"events": events}))

    def test_a_run_that_goes_on_is_live_and_lacks_its_rows(self, tmp_path: Path, history: dict[str, Any]) -> None:
        found = opened(written(tmp_path / "a.json", self.lost(history, 15)))
        assert found.evidence.live
        assert Facet.ROWS in found.evidence.missing


class TestWhatItIsNot:
    def test_events_of_the_workflow_sdk(self) -> None:
        assert not READER.recognises(b'[{"eventType":"step_created","runId":"wrun_1"}', Path("a.json"))

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ('{"events":[{"eventId":"x","eventType":"EVENT_TYPE_TIMER_FIRED"}]}', "no number in 'eventId'"),
            ('{"events":[{"eventId":"1","eventType":"EVENT_TYPE_TIMER_FIRED","eventTime":"soon"}]}', "no time"),
            ('{"events":[{"eventId":"1","eventType":"EVENT_TYPE_TIMER_FIRED"},7]}', "not an object"),
            ('{"events":[{"eventId":"1","eventType":"EVENT_TYPE_TIMER_FIRED"}', "cut off"),
        ],
    )
    def test_damaged(self, tmp_path: Path, content: str, said: str) -> None:
        (found,) = open_captures([written(tmp_path / "a.json", content)])
        assert isinstance(found, Unreadable)
        assert said in found.error
