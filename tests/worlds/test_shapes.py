"""Events, rows and payloads on disk, and back."""

from __future__ import annotations

import json
import math
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.errors import UnreadableInput, UsageError
from stormctl.history import Event, Inline, kinds
from stormctl.times import iso, ms_of
from stormctl.worlds import shapes
from stormctl.worlds.encode import flatten, pack, unflatten, unpack
from stormctl.worlds.rows import Entity, Kind, RunEntity
from stormctl.worlds.store_ops import Mark, Tail, TokenOwner
from tests.worlds.making import HOOK, NOW, RUN, STEP, WAIT

SAMPLES = Path(__file__).resolve().parents[3] / "shared" / "data" / "wdk"

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
times = st.integers(0, 4_000_000_000_000)


class TestPayloads:
    def test_are_the_bytes_that_the_sdk_writes(self) -> None:
        assert pack(42) == {"__type": "Uint8Array", "data": "ZGV2bFs0Ml0="}
        assert pack([]) == {"__type": "Uint8Array", "data": "ZGV2bFtbXV0="}
        assert flatten({"a": [1, None]}) == [{"a": 1}, [2, 3], 1, None]

    def test_read_what_only_javascript_has(self) -> None:
        assert unflatten([{"a": -1, "b": 1, "c": 1}, "same"]) == {"a": None, "b": "same", "c": "same"}
        assert unflatten(-1) is None
        assert math.isnan(unpack(pack(math.nan)))
        assert unpack(pack([-math.inf])) == [-math.inf]

    @given(values)
    def test_come_back_as_they_were(self, value: object) -> None:
        assert unpack(pack(value)) == value

    def test_that_json_cannot_say_are_refused(self) -> None:
        with pytest.raises(UsageError, match="a set"):
            pack({"x": {1, 2}})

    @pytest.mark.parametrize("flat", [[], "x", [{"a": 7}], [[0]]])
    def test_that_are_damaged_are_refused(self, flat: object) -> None:
        with pytest.raises(UnreadableInput):
            unflatten(flat)

    def test_that_are_encrypted_are_refused(self) -> None:
        with pytest.raises(UnreadableInput, match="not plain"):
            unpack({"__type": "Uint8Array", "data": "ZW5jcg=="})


class TestTimes:
    def test_are_iso_with_milliseconds(self) -> None:
        assert iso(1_796_050_487_309) == "2026-11-30T14:54:47.309Z"
        assert iso(0) == "1970-01-01T00:00:00.000Z"

    @given(times)
    def test_come_back_as_they_were(self, ms: int) -> None:
        assert ms_of(iso(ms)) == ms


events = st.builds(
    Event,
    type=st.sampled_from(sorted(kinds.ALL_TYPES)),
    run_id=st.just(RUN),
    event_id=st.just("evnt_01M8PGBZ73XKQZNQ8YH95RZ9WT"),
    correlation_id=st.none() | st.just(STEP),
    position=st.none() | st.integers(1, 999),
    created_at=times,
    name=st.none() | st.text(min_size=1, max_size=8),
    token=st.none() | st.text(max_size=8),
    resume_at=st.none() | times,
    spec=st.just(5),
    payload=st.none() | values.map(Inline),
    data=st.dictionaries(
        st.sampled_from(["attempt", "error", "output", "payload", "token", "errorCode", "changes", "ownerMessageId"]),
        st.integers(0, 9) | st.text(max_size=5) | st.lists(st.integers(0, 3), max_size=2),
        max_size=4,
    ),
)


class TestEvents:
    @given(events)
    def test_come_back_as_they_were(self, event: Event) -> None:
        assert shapes.event_of(shapes.event_bytes(event)) == event

    def test_keep_retry_after_as_milliseconds(self) -> None:
        event = Event("step_retrying", RUN, "e", STEP, created_at=NOW, data={"retryAfter": NOW + 5})
        assert json.loads(shapes.event_bytes(event))["eventData"]["retryAfter"] == iso(NOW + 5)
        assert shapes.event_of(shapes.event_bytes(event)).data == {"retryAfter": NOW + 5}

    def test_have_the_keys_of_the_real_tools(self) -> None:
        event = Event(
            "step_created",
            RUN,
            "evnt_1",
            STEP,
            3,
            NOW,
            "step//x//work",
            spec=5,
            payload=Inline([]),
            data={"attempt": 1},
        )
        assert json.loads(shapes.event_bytes(event)) == {
            "eventType": "step_created",
            "specVersion": 5,
            "correlationId": STEP,
            "eventData": {"stepName": "step//x//work", "attempt": 1, "input": pack([])},
            "runId": RUN,
            "eventId": "evnt_1",
            "createdAt": iso(NOW),
            "seq": 3,
        }

    @pytest.mark.parametrize("sample", ["local-v4.tgz", "local-v5.tgz"])
    def test_of_the_real_local_world_lose_nothing(self, sample: str) -> None:
        path = SAMPLES / sample
        if not path.exists():
            pytest.skip("the sample stores are not on this machine")
        seen = 0
        with tarfile.open(path) as archive:
            for member in archive:
                if "/events/" not in member.name or not member.isfile():
                    continue
                source = archive.extractfile(member)
                assert source is not None
                raw = source.read()
                again = json.loads(shapes.event_bytes(shapes.event_of(raw)))
                resume = again.get("eventData", {}).pop("resumeId", None)  # an envelope key, kept with the data
                if not again.get("eventData"):
                    again.pop("eventData", None)
                if resume is not None:
                    again["resumeId"] = resume
                assert again == json.loads(raw)
                seen += 1
        assert seen > 10


class TestRows:
    @pytest.mark.parametrize(
        "row",
        [
            Entity(Kind.STEP, RUN, STEP, "pending", NOW, NOW, name="s", input=Inline([1]), retry_at=NOW + 9, attempt=1),
            Entity(Kind.STEP, RUN, STEP, "completed", NOW, NOW, name="s", result=Inline({"a": 1}), completed_at=NOW),
            Entity(Kind.STEP, RUN, STEP, "failed", NOW, NOW, name="s", result=Inline("boom"), started_at=NOW),
            Entity(Kind.WAIT, RUN, WAIT, "waiting", NOW, NOW, resume_at=NOW + 5),
            Entity(Kind.HOOK, RUN, HOOK, "live", NOW, NOW, token="t", input=Inline(None)),
        ],
        ids=lambda row: f"{row.kind} {row.status}",
    )
    def test_come_back_as_they_were(self, row: Entity) -> None:
        assert shapes.entity_of(row.kind, row.id, shapes.entity_bytes(row, 5)) == row

    def test_of_runs_too(self) -> None:
        row = RunEntity(
            RUN,
            "failed",
            NOW,
            NOW,
            workload="step-storm",
            input=Inline({"rounds": 1}),
            error_code="USER_ERROR",
            error_message="boom",
            attributes={"a": "b"},
            data={"deploymentId": "d"},
        )
        assert shapes.run_of(shapes.run_bytes(row, 5)) == row


class TestTheSmallFiles:
    def test_come_back_as_they_were(self) -> None:
        owner = TokenOwner(RUN, HOOK, "evnt_1")
        assert shapes.owner_of(shapes.token_bytes("t", owner)) == owner
        tail = Tail(7, "evnt_7", 5, "writer", 4)
        assert shapes.tail_of(shapes.tail_bytes(tail)) == tail
        assert shapes.tail_of(shapes.tail_bytes(Tail())) == Tail()

    @pytest.mark.parametrize("raw", [b"", b'{"seq": 4, "la', b"[]", b"{}"])
    def test_a_damaged_counter_is_none(self, raw: bytes) -> None:
        assert shapes.tail_of(raw) is None

    def test_a_torn_journal_line_spoils_no_other(self) -> None:
        first, second = (Event("noop", RUN, f"evnt_{number}", position=number) for number in (1, 2))
        mark = Mark(fenced=True, key="w", base=3)
        raw = shapes.journal_bytes((first,), mark)[:20] + shapes.journal_bytes((second,), mark)
        assert shapes.journal_of(raw) == [("evnt_2", mark)]
