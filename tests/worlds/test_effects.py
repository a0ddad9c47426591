"""What an accepted append changes besides the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from stormctl.history import kinds
from stormctl.worlds import MAIN, SEQ_FINAL, Appended, Condition, Refusal, Refused
from stormctl.worlds.local import LocalWorld
from stormctl.worlds.memory import MemoryWorld
from tests.worlds.making import (
    ATTR,
    HOOK,
    HOOK_2,
    NOW,
    OTHER_RUN,
    RUN,
    STEP,
    WAIT,
    FakeClock,
    local,
    make_run,
    memory,
    types,
    want,
)

Make = Callable[[FakeClock], MemoryWorld | LocalWorld]


@pytest.fixture(params=["memory main", "memory seq-final", "local main", "local seq-final"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    world, condition_name = request.param.split()
    condition: Condition = MAIN if condition_name == "main" else SEQ_FINAL
    if world == "memory":
        return lambda clock: memory(condition, clock=clock)
    return lambda clock: local(tmp_path, condition, clock=clock)


class TestALazyStart:
    def test_lands_as_create_and_start_and_only_the_create_carries_the_input(self, make: Make) -> None:
        async def go() -> None:
            world = make(FakeClock())
            for request in make_run():
                await world.append(request)
            lazy = want(
                "step_started", STEP, name="step//x//work", payload=[7], lazy=True, data={"ownerMessageId": "msg_1"}
            )
            answer = await world.append(lazy)
            assert isinstance(answer, Appended)
            created, started = answer.events
            assert (created.type, started.type) == (kinds.STEP_CREATED, kinds.STEP_STARTED)
            assert created.payload is not None
            assert created.payload.load() == [7]
            assert started.payload is None
            assert started.data == {"ownerMessageId": "msg_1"}
            assert created.event_id is not None
            assert started.event_id is not None
            assert created.event_id < started.event_id
            loser = await world.append(lazy)
            assert isinstance(loser, Refused)
            assert loser.refusal is Refusal.CONFLICT
            page = await world.load(RUN)
            assert page.events[-2:] == answer.events
            await world.close()

        asyncio.run(go())


class TestTheRunRow:
    def test_follows_the_run(self, make: Make) -> None:
        async def go() -> None:
            clock = FakeClock()
            world = make(clock)
            assert await world.run(RUN) is None
            created, started = make_run()
            await world.append(created)
            row = await world.run(RUN)
            assert row is not None
            assert (row.status, row.workload, row.input) == ("pending", "step-storm", {"rounds": 2})
            await world.append(started)
            clock.now += 5
            failed = want("run_failed", data={"errorCode": "CORRUPTED_EVENT_LOG", "error": "no place for it"})
            assert isinstance(await world.append(failed), Appended)
            row = await world.run(RUN)
            assert row is not None
            assert (row.status, row.error_code, row.error_message) == (
                "failed",
                "CORRUPTED_EVENT_LOG",
                "no place for it",
            )
            await world.close()

        asyncio.run(go())

    def test_keeps_the_returned_value(self, make: Make) -> None:
        async def go() -> None:
            world = make(FakeClock())
            for request in [*make_run(), want("run_completed", payload={"ledger": [1, None, "x"]})]:
                await world.append(request)
            row = await world.run(RUN)
            assert row is not None
            assert (row.status, row.output) == ("completed", {"ledger": [1, None, "x"]})
            await world.close()

        asyncio.run(go())


class TestAttributes:
    def test_are_merged_and_null_removes(self, make: Make) -> None:
        async def go() -> None:
            world = make(FakeClock())
            for request in make_run():
                await world.append(request)
            change = want("attr_set", ATTR, data={"changes": [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}]})
            await world.append(change)
            by_step = want("attr_set", data={"changes": [{"key": "a", "value": None}], "writer": {"type": "step"}})
            assert isinstance(await world.append(by_step), Appended)
            assert isinstance(await world.append(by_step), Appended), "a step may write the same twice"
            store = world.store
            row = store.runs[RUN] if isinstance(world, MemoryWorld) else store.read_run(RUN)  # type: ignore[union-attr]
            assert row is not None
            assert dict(row.attributes) == {"b": "2"}
            await world.close()

        asyncio.run(go())


class TestTheEndOfARun:
    def test_frees_its_hooks_and_waits(self, make: Make) -> None:
        async def go() -> None:
            world = make(FakeClock())
            begin = [*make_run(), *make_run(OTHER_RUN)]
            begin += [want("hook_created", HOOK, token="t"), want("wait_created", WAIT, resume_at=NOW + 5)]
            for request in begin:
                await world.append(request)
            found = await world.hook("t")
            assert found is not None
            assert (found.run_id, found.correlation_id) == (RUN, HOOK)
            await world.append(want("run_completed"))
            assert await world.hook("t") is None
            late = await world.append(want("hook_received", HOOK, token="t", payload=1))
            assert isinstance(late, Refused)
            assert late.refusal is Refusal.NOT_FOUND
            again = await world.append(want("hook_created", HOOK_2, token="t", run=OTHER_RUN))
            assert isinstance(again, Appended)
            assert types(again.events) == ["hook_created"]
            await world.close()

        asyncio.run(go())

    def test_frees_a_token_also_when_the_hook_was_disposed_of(self, make: Make) -> None:
        async def go() -> None:
            world = make(FakeClock())
            for request in [*make_run(), *make_run(OTHER_RUN), want("hook_created", HOOK, token="t")]:
                await world.append(request)
            await world.append(want("hook_disposed", HOOK))
            again = await world.append(want("hook_created", HOOK_2, token="t", run=OTHER_RUN))
            assert isinstance(again, Appended)
            assert types(again.events) == ["hook_created"]
            await world.close()

        asyncio.run(go())


class TestATakenToken:
    def test_lands_as_a_conflict_that_names_the_owner(self, make: Make) -> None:
        async def go() -> None:
            world = make(FakeClock())
            for request in [*make_run(), *make_run(OTHER_RUN), want("hook_created", HOOK, token="t")]:
                await world.append(request)
            answer = await world.append(want("hook_created", HOOK_2, token="t", run=OTHER_RUN, payload={"m": 1}))
            assert isinstance(answer, Appended)
            (event,) = answer.events
            assert (event.type, event.token, event.data) == ("hook_conflict", "t", {"conflictingRunId": RUN})
            assert event.payload is None
            received = await world.append(want("hook_received", HOOK_2, run=OTHER_RUN, token="t", payload=1))
            assert isinstance(received, Refused), "a conflict makes no hook"
            await world.close()

        asyncio.run(go())


class TestARetry:
    def test_is_too_early_before_its_time(self, make: Make) -> None:
        async def go() -> None:
            clock = FakeClock()
            world = make(clock)
            steps = [want("step_created", STEP, name="s", payload=1), want("step_started", STEP)]
            for request in [*make_run(), *steps, want("step_retrying", STEP, data={"retryAfter": NOW + 1000})]:
                await world.append(request)
            early = await world.append(want("step_started", STEP))
            assert isinstance(early, Refused)
            assert (early.refusal, early.retry_after_ms) == (Refusal.TOO_EARLY, 1000.0)
            clock.now += 1000
            assert isinstance(await world.append(want("step_started", STEP)), Appended)
            await world.close()

        asyncio.run(go())


class TestIdsAndPositions:
    def test_under_main_ids_ascend_within_a_process_and_there_is_no_position(self) -> None:
        world = memory(MAIN, clock=FakeClock())
        asyncio.run(_fill(world))
        events = world.store.log(RUN).events()
        assert [event.position for event in events] == [None] * len(events)
        found = [event.event_id or "" for event in events]
        assert found == sorted(found)
        assert {event.created_at for event in events} == {NOW}

    def test_under_seq_final_positions_are_dense_and_times_strictly_ascend(self) -> None:
        world = memory(SEQ_FINAL, clock=FakeClock())
        asyncio.run(_fill(world))
        events = world.store.log(RUN).events()
        assert [event.position for event in events] == list(range(1, len(events) + 1))
        assert [event.created_at for event in events] == [NOW + index for index in range(len(events))]
        found = [event.event_id or "" for event in events]
        assert found == sorted(found)


async def _fill(world: MemoryWorld) -> None:
    lazy = want("step_started", STEP, name="s", payload=1, lazy=True)
    for request in [*make_run(), lazy, want("step_completed", STEP, payload=2), want("run_completed")]:
        assert isinstance(await world.append(request), Appended)
