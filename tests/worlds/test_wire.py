"""Events on the wire, and what is not one of this run's."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormctl.history import Event, Inline, ids, kinds
from stormctl.worlds.base import Page
from stormctl.worlds.encode import pack
from stormctl.worlds.wire import event_from_wire, event_to_wire, refusal_body
from tests.worlds.making import HOOK, NOW, RUN, STEP, WAIT

ID = f"evnt_{ids.compose(NOW, 7)}"


def of(type: str, **fields: Any) -> Event:
    return Event(type, RUN, ID, created_at=NOW, **fields)


EVENTS = [
    of(kinds.RUN_CREATED, payload=Inline({"rounds": 6}), data={"workflowName": "step-storm"}),
    of(kinds.RUN_STARTED),
    of(kinds.STEP_CREATED, correlation_id=STEP, name="work", payload=Inline([1, None])),
    of(
        kinds.STEP_STARTED, correlation_id=STEP, name="work", data={"attempt": 1, "ownerMessageId": "msg_1"}, position=4
    ),
    of(kinds.STEP_COMPLETED, correlation_id=STEP, payload=Inline(None)),
    of(kinds.STEP_RETRYING, correlation_id=STEP, payload=Inline("no"), data={"retryAfter": NOW + 1_000}),
    of(kinds.HOOK_CREATED, correlation_id=HOOK, token="door", spec=5),
    of(kinds.HOOK_RECEIVED, correlation_id=HOOK, payload=Inline({"poke": 1})),
    of(kinds.WAIT_CREATED, correlation_id=WAIT, resume_at=NOW + 5_000),
    of(kinds.ATTR_SET, data={"changes": [{"key": "a", "value": None}], "writer": {"type": "workflow"}}),
    of(kinds.RUN_FAILED, payload=Inline("why"), data={"errorCode": "USER_ERROR"}),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.type)
def test_an_event_comes_back_as_it_was_sent(event: Event) -> None:
    over_the_wire = json.loads(json.dumps(event_to_wire(event)))
    assert event_from_wire(over_the_wire, RUN) == event


def test_a_slot_is_its_position_whether_the_store_says_so_or_not() -> None:
    sent = {**event_to_wire(of(kinds.RUN_STARTED)), "eventId": ids.slot_id(8)}
    assert event_from_wire(sent, RUN).position == 8
    assert event_from_wire({**sent, "seq": 8}, RUN).position == 8
    with pytest.raises(ValueError, match="slot 8 and says 9"):
        event_from_wire({**sent, "seq": 9}, RUN)


def test_fields_that_nobody_knows_survive() -> None:
    sent = {**event_to_wire(of(kinds.RUN_STARTED)), "region": "fra1", "eventData": {"colour": "red"}}
    assert event_from_wire(sent, RUN).data == {"region": "fra1", "colour": "red"}


CREATED = event_to_wire(EVENTS[2])
INPUT = CREATED["eventData"]["input"]


def with_data(**fields: Any) -> dict[str, Any]:
    return {**CREATED, "eventData": {**CREATED["eventData"], **fields}}


def without(key: str, body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name != key}


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (None, "not an object"),
        ([CREATED], "not an object"),
        ("step_created", "not an object"),
        ({**CREATED, "runId": "wrun_other"}, "belongs to run 'wrun_other'"),
        (without("runId", CREATED), "belongs to run None"),
        (without("eventId", CREATED), "eventId is not a string"),
        ({**CREATED, "eventId": 7}, "eventId is not a string"),
        ({**CREATED, "eventId": ""}, "eventId is not a string"),
        ({**CREATED, "eventType": "step_exploded"}, "no event type 'step_exploded'"),
        (without("eventType", CREATED), "eventType is not a string"),
        (without("correlationId", CREATED), "correlationId is not a string"),
        ({**CREATED, "correlationId": 7}, "correlationId is not a string"),
        (without("createdAt", CREATED), "createdAt is not a time"),
        ({**CREATED, "createdAt": NOW}, "createdAt is not a time"),
        ({**CREATED, "createdAt": "2026-02-30T00:00:00Z"}, "createdAt is not a time"),
        ({**CREATED, "createdAt": "2026-02-03T00:00:00"}, "createdAt is not a time"),
        ({**CREATED, "createdAt": "0001-01-01T00:00:00+23:59"}, "createdAt is not a time"),
        ({**CREATED, "occurredAt": "soon"}, "occurredAt is not a time"),
        ({**CREATED, "seq": 0}, "seq is not a whole number"),
        ({**CREATED, "seq": True}, "seq is not a whole number"),
        ({**CREATED, "seq": "3"}, "seq is not a whole number"),
        ({**CREATED, "specVersion": "5"}, "specVersion is not a whole number"),
        ({**CREATED, "eventData": []}, "eventData is not an object"),
        ({**CREATED, "eventData": "x"}, "eventData is not an object"),
        (without("eventData", CREATED), "input is missing"),
        (with_data(stepName=7), "stepName is not a string"),
        (with_data(stepName=None), "stepName is not a string"),
        (with_data(resumeAt="later"), "resumeAt is not a time"),
        (with_data(retryAfter=7), "retryAfter is not a time"),
        (event_to_wire(of(kinds.WAIT_CREATED, correlation_id=WAIT)), "resumeAt is not a time"),
        (event_to_wire(of(kinds.HOOK_CREATED, correlation_id=HOOK)), "token is not a string"),
        (event_to_wire(of(kinds.STEP_COMPLETED, correlation_id=STEP)), "result is missing"),
        (event_to_wire(of(kinds.HOOK_RECEIVED, correlation_id=HOOK)), "payload is missing"),
    ],
)
def test_anything_foreign_is_refused_with_its_reason(sent: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        event_from_wire(sent, RUN)


@pytest.mark.parametrize("key", ["input", "output", "error", "result", "metadata", "payload"])
@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"0": 100, "1": 101, "2": 118}, id="mangled by JSON"),
        pytest.param("ZGV2bFs0Ml0=", id="base64 alone"),
        pytest.param([100, 101], id="numbers"),
        pytest.param(None, id="null"),
        pytest.param({"__type": "Uint8Array"}, id="no data"),
        pytest.param({"__type": "Uint8Array", "data": [1]}, id="data that is no text"),
        pytest.param({"__type": "Uint8Array", "data": "not base64!"}, id="data that is no base64"),
        pytest.param({"__type": "Buffer", "data": "ZGV2bFs0Ml0="}, id="another type"),
    ],
)
def test_payload_fields_hold_bytes_or_the_event_is_refused(key: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"its {key} is not"):
        event_from_wire(with_data(**{key: value}), RUN)


@pytest.mark.parametrize(
    "data",
    [b"encr-and-so-on", b"devl", b"devl{", b"devl[[0]]", b"devl" + b"[" * 5_000, b"devl[[1],[0]]"],
    ids=["encrypted", "empty", "torn", "its own part", "deep", "a circle"],
)
def test_bytes_that_cannot_be_read_are_refused_too(data: bytes) -> None:
    value = {"__type": "Uint8Array", "data": base64.b64encode(data).decode()}
    with pytest.raises(ValueError, match="cannot be read"):
        event_from_wire(with_data(input=value), RUN)


@settings(max_examples=200)
@given(st.sampled_from(EVENTS), st.data())
def test_whatever_one_field_is_changed_to_only_a_value_error_comes_of_it(event: Event, data: st.DataObject) -> None:
    sent = event_to_wire(event)
    inner = sent.get("eventData")
    place = data.draw(st.sampled_from([sent, inner] if inner else [sent]))
    junk = (
        st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.just({"__type": "Uint8Array", "data": ""})
    )
    place[data.draw(st.sampled_from(sorted(place)))] = data.draw(junk | st.lists(junk, max_size=2))
    try:
        assert event_from_wire(sent, RUN).run_id == RUN
    except ValueError:
        return


class TestTheBodyOfARefusal:
    def test_holds_events_and_cursor_where_a_delta_is_told(self) -> None:
        body = refusal_body(Page((EVENTS[1],), "c2"), None)
        assert body == {"events": [event_to_wire(EVENTS[1])], "cursor": "c2"}

    def test_holds_counts_where_they_are_told(self) -> None:
        assert refusal_body(None, (7, NOW)) == {"recordedAtOrBelow": 7, "stateUpdatedAt": NOW}

    def test_holds_nothing_where_nothing_is(self) -> None:
        assert refusal_body(None, None) == {}

    def test_claims_completeness_even_of_nothing(self) -> None:
        assert refusal_body(Page((), None), None) == {"events": []}


def test_payload_bytes_are_those_of_the_files() -> None:
    assert INPUT == pack([1, None])
