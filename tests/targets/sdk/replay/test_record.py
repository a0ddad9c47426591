"""What a capture must hold for a replay, what is made of it, and that our own artefacts keep it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.history import Capture, Damaged, Inline, Sealed, ids
from stormctl.readers import write_capture
from stormctl.readers.ndjson import READER as OURS
from stormctl.readers.payloads import payload_of
from stormctl.readers.sdk_capture import RUN_FACTS
from stormctl.readers.sdk_json import READER as SDK_JSON
from stormctl.targets.sdk.replay import MissingEvidence, record_of
from tests.targets.sdk.replay.tiny import RUN, STARTED, WAIT, WORKFLOW, capture, devl, event, tiny_events


def test_a_record_has_the_run_and_every_event_as_its_store_had_them() -> None:
    record = record_of(capture(tiny_events(1)))
    assert (record.workflow, record.started_at, record.started_by, record.spec) == (WORKFLOW, STARTED, "row", 3)
    assert (record.era, record.length, record.core_version) == ("ulid", 4, None)
    assert record.run == {
        "runId": RUN,
        "deploymentId": "dpl_tiny",
        "workflowName": WORKFLOW,
        "specVersion": 3,
        "executionContext": {},
        "createdAt": STARTED - 3,
        "updatedAt": STARTED - 3,
        "startedAt": STARTED,
        "input": devl("[[1],7]"),
    }
    assert record.events[2] == {
        "eventType": "step_created",
        "runId": RUN,
        "eventId": "evnt_01M8PJ0K000000000000000003",
        "createdAt": STARTED + 30,
        "specVersion": 3,
        "correlationId": "step_0",
        "eventData": {"stepName": "step//./tiny//add", "input": devl("[0]")},
    }
    assert json.loads(record.body) == {"run": record.run, "slots": False, "events": list(record.events)}


def test_records_of_one_run_have_one_digest_and_others_another() -> None:
    assert record_of(capture(tiny_events(2))).digest == record_of(capture(tiny_events(2))).digest
    assert record_of(capture(tiny_events(2))).digest != record_of(capture(tiny_events(3))).digest


def test_the_era_shows_in_the_ids_of_events() -> None:
    assert record_of(capture(tiny_events(2, slots=True))).era == "slot"
    mixed = [*tiny_events(2, slots=True)[:-1], event(6, "step_completed", correlation_id="step_1", payload=devl("[1]"))]
    assert record_of(capture(mixed)).era == "ulid"


def test_what_the_row_does_not_say_the_log_does() -> None:
    """A capture without a run row: 4.x draws its ids at the run's start."""
    drawn = event(3, "wait_created", correlation_id=WAIT, resume_at=STARTED + 5)
    record = record_of(capture([*tiny_events(0), drawn], facts={}))
    assert (record.workflow, record.run["deploymentId"], record.spec) == (WORKFLOW, "dpl_tiny", 3)
    assert ids.ulid_ms(WAIT) == STARTED
    assert (record.started_at, record.started_by) == (STARTED, "ids")


def test_in_a_local_world_the_event_tells_the_start_too() -> None:
    record = record_of(capture(tiny_events(1), facts={}))
    assert (record.started_at, record.started_by) == (STARTED + 20, "event")


def test_fields_that_stand_beside_the_data_stay_there_and_notes_of_a_capture_are_left_out() -> None:
    received = event(
        3, "hook_received", correlation_id="hook_1", token="t", payload=devl("[1]"), data={"resumeId": "r", "_xmin": 5}
    )
    row = record_of(capture([*tiny_events(0), received])).events[2]
    assert (row["resumeId"], row["eventData"]) == ("r", {"token": "t", "payload": devl("[1]")})


# -- what lacks ------------------------------------------------------------------------------------------------------


def with_payload(index: int, payload: Any) -> Capture:
    """A tiny capture in which one payload is another."""
    events = tiny_events(2)
    events[index] = replace(events[index], payload=payload)
    return capture(events)


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (capture([]), "lacks its events"),
        (capture(tiny_events(2)[1:]), "lacks its run_created, which carries the run's input"),
        (capture(tiny_events(2), truncated=True), "lacks a part of its events"),
        (capture(tiny_events(2), omitted=(3,)), "lacks a part of its events"),
        (with_payload(0, Sealed("d")), r"lacks the run's input \(event 1\), which was not captured"),
        (with_payload(0, None), r"lacks the run's input \(event 1\), which was not captured"),
        (with_payload(3, Sealed("d")), r"lacks a step's result \(event 4\), which was not captured"),
        (with_payload(3, None), r"lacks a step's result \(event 4\), which was not captured"),
        (with_payload(3, Inline("[redacted]")), r"step's result .* only as a value that a tool has made of its bytes"),
        (with_payload(3, Damaged("it is cut off")), r"step's result .* which cannot be read: it is cut off"),
        (with_payload(3, payload_of(b"encr1234")), r"step's result \(event 4\), which is encrypted"),
        (with_payload(3, payload_of("\N{LOCK} Encrypted")), r"step's result .* hidden by the tool that printed it"),
        (
            capture([*tiny_events(0), event(3, "hook_received", correlation_id="hook_1", payload=b"encp")]),
            r"a hook's payload \(event 3\), which is encrypted",
        ),
        (capture([replace(one, created_at=None) for one in tiny_events(1)]), "lacks the time of event 1"),
        (capture([replace(one, event_id=None) for one in tiny_events(1)]), "lacks the id of event 1"),
        (capture([replace(tiny_events(0)[0], data={})], facts={}), "lacks the workflow's name"),
        (
            capture([replace(one, event_id=f"w{one.event_id}") for one in tiny_events(1)], facts={}),
            "lacks startedAt of the run, which seeds every id",
        ),
        (
            capture([*tiny_events(0), event(3, "wait_created", correlation_id=WAIT)], facts={"startedAt": 7}),
            "lacks the true start of the run: its row says 1970-01-01T00:00:00.007Z, and its ids were drawn at 2026-",
        ),
    ],
)  # fmt: skip
def test_what_lacks_for_a_replay_is_named(found: Capture, says: str) -> None:
    with pytest.raises(MissingEvidence, match=says) as error:
        record_of(found)
    assert error.value.remedy.endswith(".")
    assert "\n" not in str(error.value)


def test_what_a_replay_does_not_read_may_lack() -> None:
    events = [*tiny_events(1), event(5, "run_failed", payload=None), event(6, "step_retrying", correlation_id="step_0")]
    events[2] = replace(events[2], payload=Sealed("the engine makes a step's input itself"))
    record = record_of(capture(events))
    assert "input" not in record.events[2]["eventData"]


def test_errors_that_a_store_keeps_as_plain_values_stay_plain() -> None:
    failed = event(3, "step_failed", correlation_id="step_9", payload={"message": "no", "stack": "at"})
    assert record_of(capture([*tiny_events(0), failed])).events[2]["eventData"]["error"]["message"] == "no"


def test_runs_before_bytes_have_plain_payloads() -> None:
    plain = [replace(one, spec=1, payload=Inline(one.payload.load())) if one.payload else one for one in tiny_events(1)]
    record = record_of(capture(plain, facts={"startedAt": STARTED, "specVersion": 1}))
    assert record.run["input"] == [7]


# -- our own artefacts keep it ---------------------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=60), max_size=5), st.booleans())
def test_payload_bytes_survive_our_own_format(
    tmp_path_factory: pytest.TempPathFactory, values: list[bytes], slots: bool
) -> None:
    folder = tmp_path_factory.mktemp("kept")
    events = tiny_events(len(values), slots=slots)
    for number, value in enumerate(values):
        payload = payload_of(b"devl" + json.dumps([value.hex()]).encode())
        events[2 * number + 3] = replace(events[2 * number + 3], payload=payload)
    before = capture(events, facts={"startedAt": STARTED, "executionContext": {"workflowCoreVersion": "4.8.9"}})
    (after,) = OURS.read(write_capture(before, folder, with_payloads=True))
    assert after.data[RUN_FACTS] == before.data[RUN_FACTS]
    assert record_of(after).body == record_of(before).body
    assert record_of(after).core_version == "4.8.9"


def test_without_payloads_our_own_format_is_no_evidence_for_a_replay(tmp_path: Path) -> None:
    (after,) = OURS.read(write_capture(capture(tiny_events(1)), tmp_path))
    with pytest.raises(MissingEvidence, match="the run's input"):
        record_of(after)


def test_every_captured_run_survives_our_own_format(shared_data: Path, tmp_path: Path) -> None:
    """The runs of the real SDK, byte for byte."""
    files = sorted((shared_data / "sdk").rglob("*.json"))
    assert files
    for file in files:
        for before in SDK_JSON.read(file):
            (after,) = OURS.read(write_capture(before, tmp_path / file.stem, with_payloads=True))
            assert outcome(after) == outcome(before)
            assert [one.digest for one in _payloads(after)] == [one.digest for one in _payloads(before)]


def test_the_start_of_every_captured_run_is_what_its_row_says(shared_data: Path) -> None:
    for file in sorted((shared_data / "sdk/runs").glob("*.json")):
        (found,) = SDK_JSON.read(file)
        record = record_of(found)
        assert record.started_by == "row"
        bare = replace(found, data={key: value for key, value in found.data.items() if key != RUN_FACTS})
        assert record_of(bare).started_at == record.started_at


def outcome(found: Capture) -> bytes | str:
    """The record, or what lacks: arrays of events from a database do not tell when a run of 5.x was started."""
    if (found.log[0].event_id or "").startswith("wevt_") and found.log[0].spec == 5:
        with pytest.raises(MissingEvidence, match="lacks startedAt") as lack:
            record_of(found)
        return str(lack.value)
    return record_of(found).body


def _payloads(found: Capture) -> list[Any]:
    return [one.payload for one in found.log if one.payload is not None]
