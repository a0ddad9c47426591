"""A disk that fails at each write in turn: one clear error, nothing acknowledged lost, later appends right."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from stormctl.errors import StoreFailure
from stormctl.history import Event, kinds
from stormctl.worlds import MAIN, SEQ_FINAL, Appended, Condition, Refused
from stormctl.worlds.rows import Kind, fold, fold_run
from tests.worlds.making import (
    ATTR,
    HOOK,
    RUN,
    STEP,
    STEP_2,
    WAIT,
    FailingFiles,
    joined,
    local,
    make_run,
    timeless,
    try_append,
    types,
    want,
)

SCRIPT = [
    *make_run(),
    want("hook_created", HOOK, token="t", count=2),
    want("step_created", STEP, name="a", payload=1, count=2),
    want("step_started", STEP_2, name="b", payload=1, lazy=True, count=2),
    want("wait_created", WAIT, resume_at=1, count=2),
    want("step_started", STEP),
    want("step_completed", STEP, payload=2),
    want("hook_received", HOOK, token="t", payload=3),
    want("wait_completed", WAIT),
    want("attr_set", ATTR, data={"changes": [{"key": "k", "value": "v"}]}),
    want("hook_disposed", HOOK, token="t"),
    want("run_completed", payload="done"),
]
REPEATABLE = {"hook_received", "step_started"}  # sent again after a failure, these may land twice


def run_script(
    folder: Path, condition: Condition, files: FailingFiles, fail_at: int | None = None
) -> tuple[tuple[Event, ...], list[Event]]:
    """The script, every failed append sent again: the log as another process reads it, and what was acknowledged."""

    async def go() -> tuple[tuple[Event, ...], list[Event]]:
        world = local(folder, condition, files=files)
        files.writes, files.fail_at = 0, fail_at
        acknowledged: list[Event] = []
        for request in SCRIPT:
            answer = await try_append(world, request)
            if isinstance(answer, StoreFailure):
                assert "No space left on device" in str(answer)
                assert "Free space" in answer.remedy
                files.mend()
                answer = await try_append(world, request)
            assert not isinstance(answer, StoreFailure), answer
            # Only half of a lazy start may have landed: a step that was created, and that nobody has started.
            assert isinstance(answer, Appended) or request.lazy or request.type not in REPEATABLE, answer
            if isinstance(answer, Appended):
                acknowledged += answer.events
        files.mend()
        used = files.writes
        assert isinstance(await world.append(want("step_created", STEP, name="late")), Refused)
        await world.close()
        files.writes = used
        reader = joined(folder)
        events = (await reader.load(RUN)).events
        assert timeless(reader.store.read_run(RUN)) == timeless(fold_run(events))
        for step in (STEP, STEP_2):
            assert timeless(reader.store.read_entity(Kind.STEP, RUN, step)) == timeless(fold(events, step))
        assert reader.store.read_entity(Kind.WAIT, RUN, WAIT) is None
        assert await reader.hook("t") is None
        await reader.close()
        return events, acknowledged

    return asyncio.run(go())


@pytest.fixture(scope="module")
def writes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """How many writes the script makes on a disk that works."""
    found = {}
    for condition in (MAIN, SEQ_FINAL):
        files = FailingFiles()
        events, acknowledged = run_script(tmp_path_factory.mktemp("calm"), condition, files)
        assert list(events) == acknowledged
        found[condition.name] = files.writes
    return found


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "until mended"])
@pytest.mark.parametrize("condition", [MAIN, SEQ_FINAL], ids=lambda condition: condition.name)
def test_a_failure_at_any_write_loses_and_doubles_nothing(
    tmp_path: Path, writes: dict[str, int], condition: Condition, lasting: bool
) -> None:
    failed = 0
    numbers = range(0, writes[condition.name], 3 if lasting else 1)
    for number in numbers:
        files = FailingFiles(lasting=lasting)
        events, acknowledged = run_script(tmp_path / str(number), condition, files, number)
        failed += files.failed > 0
        where = f"write {number} of {condition.name}: {types(events)}"
        assert [event for event in acknowledged if event not in events] == [], where
        if condition.dense:
            assert [event.position for event in events] == list(range(1, len(events) + 1)), where
            assert [event.event_id for event in events] == sorted(event.event_id or "" for event in events), where
        singles = Counter((event.type, event.correlation_id) for event in events if event.type not in REPEATABLE)
        assert max(singles.values()) == 1, where
        assert {event.type for event in events} == {request.type for request in SCRIPT} | {"step_created"}, where
        assert events[-1].type == "run_completed", where
        creates = {event.correlation_id for event in events if event.type in kinds.CREATES}
        assert creates == {HOOK, STEP, STEP_2, WAIT}, where
    assert failed == len(numbers)


def test_a_disk_that_cannot_be_read_is_a_store_failure(tmp_path: Path) -> None:
    async def go() -> None:
        world = local(tmp_path, SEQ_FINAL)
        for request in make_run():
            await world.append(request)
        row = Path(world.store.layout.run(RUN))
        row.write_bytes(b'{"runId": ')
        with pytest.raises(StoreFailure, match="damaged") as failure:
            await world.run(RUN)
        assert failure.value.remedy
        await world.close()

    asyncio.run(go())


def test_a_queue_message_that_could_not_be_written_is_not_half_there(tmp_path: Path) -> None:
    from stormctl.worlds import Message

    async def go() -> None:
        for number in range(3):
            files = FailingFiles()
            world = local(tmp_path / str(number), MAIN, files=files)
            files.writes, files.fail_at = 0, number
            message = Message(RUN)
            with pytest.raises(StoreFailure):
                await world.queue.send(message, key="k")
            assert await world.queue.receive(5) == []
            if number < 2:
                assert await world.queue.send(message, key="k")
            else:  # the key is claimed and the message was staged: recovered as that of a dead worker
                assert await world.queue.requeue_dead(world.queue.worker) == 1  # type: ignore[attr-defined]
            assert [claimed.message for claimed in await world.queue.receive(5)] == [message]
            await world.close()

    asyncio.run(go())
