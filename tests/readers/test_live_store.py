"""A store of ours, written while it is read: nothing is broken, nothing is lost, and it ends as the world has it."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from stormctl.history import COMMIT_CLOCK, COMMIT_TIMES, Capture, EventLog
from stormctl.readers import Unreadable
from stormctl.readers.worldlocal import read_run, read_store
from stormctl.worlds import Appended, condition_named
from tests.worlds.making import RUN, STEP, corr, local, make_run, want

HOOKS = 60


async def _write(folder: Path, condition: str) -> EventLog:
    world = local(folder, condition_named(condition, "local"))
    try:
        for request in make_run():
            assert isinstance(await world.append(request), Appended)

        async def hook(number: int) -> None:
            made = await world.append(want("hook_created", corr("hook", 100 + number), token=f"t{number}"))
            assert isinstance(made, Appended)

        await asyncio.gather(*(hook(number) for number in range(HOOKS)))
        await world.append(want("step_created", STEP, name="settle", payload=[1]))
        page = await world.load(RUN)
        return EventLog(page.events, RUN)
    finally:
        await world.close()


@pytest.mark.parametrize("condition", ["main-local", "seq-final"])
def test_readers_see_whole_events_only_and_the_end_is_what_the_world_has(tmp_path: Path, condition: str) -> None:
    folder, seen, stop = tmp_path / "store", [], threading.Event()
    broken: list[Unreadable] = []

    def watch() -> None:
        while not stop.is_set():
            for one in read_store(folder):
                if isinstance(one, Capture):
                    seen.append(len(one.log))
                elif "is a store without a run" not in one.error:  # before the first event
                    broken.append(one)

    reader = threading.Thread(target=watch)
    reader.start()
    try:
        log = asyncio.run(_write(folder, condition))
    finally:
        stop.set()
        reader.join()
    assert broken == []
    assert seen == sorted(seen)
    found = read_run(folder, RUN)
    assert [event.event_id for event in found.log] == [event.event_id for event in log]
    assert [event.position for event in found.log] == [event.position for event in log]
    assert [event.payload and event.payload.digest for event in found.log] == [
        event.payload and event.payload.digest for event in log
    ]
    assert found.data[COMMIT_CLOCK] == "ctime"
    assert set(found.data[COMMIT_TIMES]) == {event.event_id for event in log}
