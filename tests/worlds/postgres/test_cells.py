"""Events and rows survive the database: what is read is what was written."""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormctl.errors import UnreadableInput
from stormctl.history import Event, Inline, ids, kinds
from stormctl.worlds.postgres import cells, shapes
from stormctl.worlds.postgres import statements as sql
from stormctl.worlds.postgres.links import Links
from stormctl.worlds.postgres.store import Facts, Store
from stormctl.worlds.rows import Entity, Kind, RunEntity
from stormctl.worlds.store_ops import (
    Mark,
    Publish,
    PutEntity,
    PutRun,
    ReadEntity,
    ReadLog,
    ReadRun,
    ReadTail,
    Tail,
    WriteTail,
)
from tests.worlds.making import HOOK, NOW, RUN, STEP, WAIT, want
from tests.worlds.postgres.making import condition, new_space, run

# What PostgreSQL's text can hold: no NUL, no half of a surrogate pair.
texts = st.text(st.characters(exclude_characters="\x00", exclude_categories=("Cs",)), max_size=20)
names = st.one_of(st.none(), texts)
times = st.integers(0, 253_402_300_799_999)
some_time = st.one_of(st.none(), times)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False, width=64), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=8,
)
payloads = st.one_of(st.none(), json_values.map(Inline))
plain_data = st.dictionaries(texts.filter(lambda key: key != "retryAfter"), json_values, max_size=4)


@st.composite
def events(draw: st.DrawFn) -> Event:
    position = draw(st.one_of(st.none(), st.integers(1, 2**62)))
    data = draw(plain_data)
    if draw(st.booleans()):
        data["retryAfter"] = draw(times)
    return Event(
        type=draw(st.sampled_from(sorted(kinds.ALL_TYPES))),
        run_id=RUN,
        event_id=f"evnt_{ids.compose(draw(st.integers(1, 2**47)), draw(st.integers(0, 2**80 - 1)))}",
        correlation_id=draw(st.one_of(st.none(), texts.map(lambda text: f"step_{text}"))),
        position=position,
        created_at=draw(times),
        name=draw(names),
        token=draw(names),
        resume_at=draw(some_time),
        spec=draw(st.one_of(st.none(), st.integers(1, 9))),
        payload=draw(payloads),
        data=data,
    )


@st.composite
def steps(draw: st.DrawFn) -> Entity:
    return Entity(
        Kind.STEP,
        RUN,
        draw(texts.map(lambda text: f"step_{text}")),
        draw(st.sampled_from(["pending", "running", "completed", "failed"])),
        created_at=draw(times),
        updated_at=draw(times),
        name=draw(names),
        attempt=draw(st.integers(0, 2**31 - 1)),
        retry_at=draw(some_time),
        started_at=draw(some_time),
        completed_at=draw(some_time),
        input=draw(payloads),
        result=draw(payloads),
    )


@st.composite
def waits(draw: st.DrawFn) -> Entity:
    return Entity(
        Kind.WAIT,
        RUN,
        draw(texts.map(lambda text: f"wait_{text}")),
        draw(st.sampled_from(["waiting", "completed"])),
        created_at=draw(times),
        updated_at=draw(times),
        resume_at=draw(some_time),
        completed_at=draw(some_time),
    )


@st.composite
def hooks(draw: st.DrawFn) -> Entity:
    at = draw(times)
    return Entity(
        Kind.HOOK, RUN, draw(texts.map(lambda text: f"hook_{text}")), "live", at, at, token=draw(names),
        input=draw(payloads),
    )  # fmt: skip


@st.composite
def run_rows(draw: st.DrawFn) -> RunEntity:
    return RunEntity(
        RUN,
        draw(st.sampled_from(["pending", "running", "completed", "failed", "cancelled"])),
        created_at=draw(times),
        updated_at=draw(times),
        workload=draw(names),
        input=draw(payloads),
        output=draw(payloads),
        started_at=draw(some_time),
        completed_at=draw(some_time),
        error_code=draw(names),
        error_message=draw(names),
        attributes=draw(st.dictionaries(texts, texts, max_size=3)),
        data=draw(plain_data),
    )


def shown(value: Any) -> Any:
    """Something that equals only what is wholly the same: payloads by their value."""
    return {
        name: (field.load(),) if hasattr(field := getattr(value, name), "load") else field
        for name in value.__dataclass_fields__
    }


def test_an_event_is_a_row_that_the_real_store_would_write() -> None:
    event = Event(
        "step_created", RUN, "evnt_01M8PGGKJ0KK40F5D0VBYKB2V7", STEP, 4, NOW, name="step//a//b", spec=5,
        payload=Inline([]),
    )  # fmt: skip
    payload = shapes.event_cells(event)[5]
    assert payload is not None
    assert payload.endswith(bytes.fromhex("d84048") + b"devl[[]]")  # a Uint8Array of the form of the real rows
    assert b"stepName" in payload


def test_an_event_without_data_has_none() -> None:
    assert shapes.event_cells(Event("run_started", RUN, "evnt_1", created_at=NOW))[5] is None


def test_a_slot_is_kept_in_the_id_alone() -> None:
    event = Event("run_started", RUN, ids.slot_id(7), position=7, created_at=NOW)
    row = shapes.event_cells(event)
    assert row[7] is None
    assert shapes.event_of((*row[:5], None, *row[5:])).position == 7


@given(events())
def test_an_event_survives_its_columns(event: Event) -> None:
    row = shapes.event_cells(event)
    assert shown(shapes.event_of((*row[:5], None, *row[5:]))) == shown(event)


@given(steps() | waits() | hooks())
def test_an_entity_survives_its_columns(row: Entity) -> None:
    assert shown(shapes.entity_of(row.kind, shapes.entity_cells(row))) == shown(row)


@given(run_rows())
def test_a_run_survives_its_columns(row: RunEntity) -> None:
    assert shown(shapes.run_of(shapes.run_cells(row))) == shown(row)


@given(times)
def test_a_time_survives_its_cell(ms: int) -> None:
    assert cells.as_ms(cells.stamp(ms)) == ms


@pytest.mark.storm
@settings(max_examples=40)
@given(event=events(), step=steps(), wait=waits(), hook=hooks(), row=run_rows())
def test_everything_survives_the_server(
    dsn: str, event: Event, step: Entity, wait: Entity, hook: Entity, row: RunEntity
) -> None:
    mark = Mark(fenced=True, key="w", base=3)
    tail = Tail(2**40, "evnt_x", 12, "key", 11, 5)

    async def main() -> None:
        links = Links.shared(dsn, 60_000)
        try:
            facts = Facts.of(condition("seq-final"), new_space(), [want("step_created", event.correlation_id)])
            store = Store(facts, links.run)
            assert await store.perform(Publish((event,), mark))
            assert not await store.perform(Publish((event,), mark))
            (back,) = await store.perform(ReadLog(RUN))
            assert shown(back) == shown(event)
            for entity in (step, wait, hook):
                for written in (entity, replace(entity, created_at=NOW, updated_at=NOW)):
                    await store.perform(PutEntity(written))
                    found = await store.perform(ReadEntity(entity.kind, RUN, entity.id))
                    assert shown(found) == shown(written)
            assert await store.perform(PutRun(row))
            assert shown(await store.perform(ReadRun(RUN))) == shown(row)
            await store.perform(WriteTail(RUN, tail))
            assert await store.perform(ReadTail(RUN, rescan=False)) == tail
            rescanned = await store.perform(ReadTail(RUN, rescan=True))
            place = event.position or 1
            assert rescanned == Tail(place, event.event_id, place, "w", 3, 0)
            forgetful = await store.perform(ReadTail(RUN, rescan=True, restore=False))
            assert forgetful == Tail(place, event.event_id)
        finally:
            await links.leave()

    run(main())


def real_rows(shared_data: Path) -> list[dict[str, str]]:
    with gzip.open(shared_data / "wdk" / "pg-v4-events.csv.gz", "rt") as file:
        return list(csv.DictReader(file))


def cell(text: str) -> bytes | None:
    return text.encode() or None


def test_the_rows_of_a_real_database_are_read_by_the_same_function(shared_data: Path) -> None:
    found = []
    for row in real_rows(shared_data):
        raw = bytes.fromhex(row["payload_cbor"][2:]) if row["payload_cbor"] else None
        found.append(
            shapes.event_of(
                (
                    cell(row["id"]),
                    cell(row["type"]),
                    cell(row["correlation_id"]),
                    None,
                    cell(row["run_id"]),
                    None,
                    raw,
                    cells.int4(int(row["spec_version"])),
                    None,
                )
            )
        )
    assert len(found) == len(real_rows(shared_data)) > 4000
    created = [event for event in found if event.type == "step_created"]
    assert created
    assert {event.name for event in created} <= {"s", "s0", "s1", "s2"}
    assert {json.dumps(event.payload.load()) for event in created if event.payload is not None} == {"[]", "1"}
    assert all(event.token for event in found if event.type == "hook_created")
    waits = [event for event in found if event.type == "wait_created"]
    assert all(isinstance(event.resume_at, int) and event.resume_at > 1_600_000_000_000 for event in waits)
    assert not [key for event in found for key, value in event.data.items() if isinstance(value, bytes)]
    assert Counter(event.type for event in found).most_common(1)[0][0] in kinds.ALL_TYPES


@pytest.mark.parametrize("damaged", [b"\xff", b"\x01", b"\xb9\x00\x03"])
def test_damaged_data_are_unreadable_input(damaged: bytes) -> None:
    with pytest.raises(UnreadableInput):
        shapes.event_of((b"evnt_1", b"run_started", None, None, b"r", None, damaged, None, None))


def test_an_encrypted_payload_is_unreadable_only_when_somebody_asks_for_it() -> None:
    import cbor2

    raw = cbor2.dumps({"input": cbor2.CBORTag(64, b"encr....")})
    event = shapes.event_of((b"evnt_1", b"step_created", None, None, b"r", None, raw, None, None))
    assert event.payload is not None
    with pytest.raises(UnreadableInput):
        event.payload.load()


def test_legacy_rows_keep_their_data_as_json() -> None:
    raw = cells.jsonb(b'{"stepName":"s","resumeAt":"2026-11-30T15:14:47.309Z","more":[1]}')
    event = shapes.event_of((b"evnt_1", b"step_created", None, None, b"r", raw, None, None, None))
    assert (event.name, event.resume_at, event.data) == ("s", 1_796_051_687_309, {"more": [1]})


def test_the_statements_name_the_columns_in_the_order_of_the_values() -> None:
    samples = {Kind.STEP: STEP, Kind.WAIT: WAIT, Kind.HOOK: HOOK}
    for kind, identity in samples.items():
        row = Entity(kind, RUN, identity, "pending", 1, 1)
        assert len(shapes.entity_cells(row)) == len(sql.COLUMNS[kind].split(","))
    assert len(shapes.run_cells(RunEntity(RUN, "pending", 1, 1))) == len(shapes.RUN_COLUMNS.split(","))
