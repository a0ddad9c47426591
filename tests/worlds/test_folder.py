"""Whose a store folder is."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stormctl.errors import StoreBusy, StoreForeign, UsageError
from stormctl.worlds import MAIN, SEQ_FINAL, condition_named, open_world
from stormctl.worlds.local import LocalWorld
from stormctl.worlds.owner import driver_of
from stormctl.worlds.process import whoami
from tests.worlds.making import RUN, joined, local, make_run


def close(*worlds: LocalWorld) -> None:
    for world in worlds:
        asyncio.run(world.close())


class TestANewFolder:
    def test_becomes_a_store_that_says_what_it_is(self, tmp_path: Path) -> None:
        world = local(tmp_path / "deep" / "store", SEQ_FINAL)
        assert (tmp_path / "deep" / "store" / "version.txt").read_text() == "stormctl-local@1"
        assert world.notes == ()
        close(world)

    def test_may_exist_and_be_empty(self, tmp_path: Path) -> None:
        close(local(tmp_path, MAIN))
        assert (tmp_path / "version.txt").read_text().startswith("stormctl")

    def test_is_taken_up_again_after_it_was_closed(self, tmp_path: Path) -> None:
        async def go() -> None:
            world = local(tmp_path, MAIN)
            for request in make_run():
                await world.append(request)
            await world.close()
            again = local(tmp_path, MAIN)
            assert len((await again.load(RUN)).events) == 2
            assert again.notes == ()
            await again.close()

        asyncio.run(go())


class TestAFolderThatIsNotOurs:
    @pytest.mark.parametrize("name", ["notes.txt", "version.txt"])
    def test_is_refused_and_left_alone(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).write_text("@workflow/world-local@4.4.1")
        with pytest.raises(StoreForeign) as refusal:
            local(tmp_path, MAIN)
        assert refusal.value.exit_code == 2
        assert "empty folder" in refusal.value.remedy
        assert os.listdir(tmp_path) == [name]

    def test_of_a_newer_stormctl_is_refused(self, tmp_path: Path) -> None:
        close(local(tmp_path, MAIN))
        (tmp_path / "version.txt").write_text("stormctl-local@2")
        with pytest.raises(StoreForeign, match="newer"):
            local(tmp_path, MAIN)

    def test_cannot_be_joined(self, tmp_path: Path) -> None:
        with pytest.raises(StoreForeign):
            joined(tmp_path / "nowhere")

    def test_under_another_condition_is_refused(self, tmp_path: Path) -> None:
        close(local(tmp_path, MAIN))
        with pytest.raises(UsageError, match="made under condition main"):
            local(tmp_path, SEQ_FINAL)
        with pytest.raises(UsageError, match="made under condition main"):
            LocalWorld.join(tmp_path, SEQ_FINAL)


class TestAFolderInUse:
    def test_is_refused_to_a_second_driver_by_name(self, tmp_path: Path) -> None:
        first = local(tmp_path, MAIN)
        with pytest.raises(StoreBusy) as refusal:
            local(tmp_path, MAIN)
        assert f"pid {os.getpid()} on {whoami()['host']}" in str(refusal.value)
        worker = joined(tmp_path)
        owner = driver_of(tmp_path)
        assert owner is not None
        assert owner["pid"] == os.getpid()
        close(worker, first)
        assert driver_of(tmp_path) is None
        close(local(tmp_path, MAIN))

    def test_by_a_driver_on_another_machine_is_refused_until_it_is_silent_for_a_minute(self, tmp_path: Path) -> None:
        close(local(tmp_path, MAIN))
        lock = tmp_path / "storm.lock"
        lock.write_text(json.dumps({"pid": 4711, "host": "elsewhere", "space": "other"}))
        with pytest.raises(StoreBusy, match="pid 4711 on elsewhere"):
            local(tmp_path, MAIN)
        silent = time.time() - 61
        os.utime(lock, (silent, silent))
        world = local(tmp_path, MAIN)
        (note,) = world.notes
        assert "pid 4711 on elsewhere" in note
        close(world)

    def test_by_a_driver_that_was_killed_is_taken_over_with_a_note(self, tmp_path: Path) -> None:
        close(local(tmp_path, MAIN))
        child = subprocess.Popen([sys.executable, "-c", "pass"])
        child.wait()
        (tmp_path / "storm.lock").write_text(json.dumps(whoami() | {"pid": child.pid}))
        world = local(tmp_path, MAIN)
        assert f"pid {child.pid}" in world.notes[0]
        with pytest.raises(StoreBusy):
            local(tmp_path, MAIN)
        close(world)

    def test_a_driver_that_lost_its_lock_does_not_remove_the_next_ones(self, tmp_path: Path) -> None:
        first = local(tmp_path, MAIN)
        (tmp_path / "storm.lock").unlink()
        second = local(tmp_path, MAIN)
        close(first)
        assert driver_of(tmp_path) is not None
        close(second)


class TestOpeningByName:
    def test_finds_worlds_and_conditions(self, tmp_path: Path) -> None:
        driver = open_world("local", tmp_path, "seq-final", storage_scale=0)
        worker = open_world("local", tmp_path, "seq-final", role="worker", worker="w1", storage_scale=0)
        memory = open_world("memory", None, "main")
        assert (driver.condition, worker.condition, memory.condition) == (SEQ_FINAL, SEQ_FINAL, MAIN)
        assert [driver.name, memory.name] == ["local", "memory"]
        for world in (worker, driver, memory):
            asyncio.run(world.close())

    def test_lists_what_there_is_when_a_name_is_unknown(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError) as world:
            open_world("cloud", tmp_path, "main")
        assert "local, memory, postgres" in world.value.remedy
        with pytest.raises(UsageError) as condition:
            condition_named("seq-finl")
        assert "'seq-final'" in condition.value.remedy
        with pytest.raises(UsageError, match="needs a folder"):
            open_world("local", None, "main")
