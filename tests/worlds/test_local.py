"""The local world as a whole: files that the real tools could read, several processes, callers that go away."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path

import pytest

from stormctl.errors import StoreFailure
from stormctl.worlds import MAIN, SEQ_FINAL, Appended, AppendRequest, Condition, Point
from stormctl.worlds.process import whoami
from tests.worlds.making import HOOK, RUN, STEP, WAIT, FakeClock, corr, joined, local, make_run, memory, types, want


class TestTheFolder:
    def test_has_one_file_per_event_and_the_rows_and_claims_beside_them(self, tmp_path: Path) -> None:
        async def go() -> None:
            world = local(tmp_path, SEQ_FINAL)
            script = [
                *make_run(),
                want("hook_created", HOOK, token="t"),
                want("wait_created", WAIT, resume_at=1),
                want("step_created", STEP, name="step//x//work", payload=[]),
                want("step_completed", STEP, payload=42),
            ]
            events = [(await world.append(request)).events[0] for request in script]  # type: ignore[union-attr]
            await world.close()
            names = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
            assert {f"events/{RUN}-{event.event_id}.json" for event in events} <= names
            assert {
                f"runs/{RUN}.json",
                f"steps/{RUN}-{STEP}.json",
                f"waits/{RUN}-{WAIT}.json",
                f"hooks/{HOOK}.json",
            } <= names
            assert {f".locks/steps/{RUN}-{STEP}.created", f".locks/steps/{RUN}-{STEP}.terminal"} <= names
            assert not [name for name in names if ".tmp." in name or name.endswith(".lock")]
            step = json.loads((tmp_path / "steps" / f"{RUN}-{STEP}.json").read_text())
            assert (step["status"], step["stepName"]) == ("completed", "step//x//work")
            assert step["output"] == {"__type": "Uint8Array", "data": "ZGV2bFs0Ml0="}

        asyncio.run(go())

    def test_of_a_run_whose_journal_is_lost_is_read_by_listing_it(self, tmp_path: Path) -> None:
        async def go() -> None:
            world = local(tmp_path, MAIN)
            for request in make_run():
                await world.append(request)
            Path(world.store.layout.journal(RUN)).unlink()
            await world.close()
            reader = joined(tmp_path)
            assert types((await reader.load(RUN)).events) == ["run_created", "run_started"]
            await reader.close()

        asyncio.run(go())

    def test_with_a_damaged_event_says_which_file(self, tmp_path: Path) -> None:
        async def go() -> None:
            world = local(tmp_path, MAIN)
            await world.append(make_run()[0])
            await world.close()
            (event,) = (tmp_path / "events").iterdir()
            event.write_bytes(b"{")
            reader = joined(tmp_path)
            with pytest.raises(StoreFailure, match=event.name):
                await reader.load(RUN)
            await reader.close()

        asyncio.run(go())


class TestSeveralWriters:
    @pytest.mark.parametrize("condition", [MAIN, SEQ_FINAL], ids=lambda condition: condition.name)
    def test_of_one_run_lose_nothing(self, tmp_path: Path, condition: Condition) -> None:
        async def go() -> None:
            worlds = [local(tmp_path, condition), joined(tmp_path)]
            for request in make_run():
                await worlds[0].append(request)

            async def lane(world_number: int, lane_number: int) -> None:
                for number in range(8):
                    step = corr("step", 1000 * lane_number + 100 * world_number + number)
                    world = worlds[world_number]
                    for request in (
                        want("step_created", step, name="s", payload=number),
                        want("step_started", step),
                        want("step_completed", step, payload=number),
                    ):
                        assert isinstance(await world.append(request), Appended)

            await asyncio.gather(*(lane(world, number) for world in (0, 1) for number in (1, 2, 3)))
            pages = [await world.load(RUN) for world in worlds]
            assert pages[0].events == pages[1].events
            assert len(pages[0].events) == 2 + 2 * 3 * 8 * 3
            if condition.dense:
                assert [event.position for event in pages[0].events] == list(range(1, 147))
            for world in reversed(worlds):
                await world.close()

        asyncio.run(go())


class TestALockThatIsNotGivenBack:
    def test_is_an_error_after_the_limit(self, tmp_path: Path) -> None:
        async def go() -> None:
            world = local(tmp_path, SEQ_FINAL, lock_limit_ms=20)
            body = whoami() | {"nonce": "n", "left": [], "append": {"type": "noop"}}
            lock = Path(world.store.layout.lock(RUN))
            lock.write_text(json.dumps(body))
            with pytest.raises(StoreFailure, match="stayed taken") as failure:
                await world.append(make_run()[0])
            assert "worker" in failure.value.remedy
            silent = time.time() - 121
            os.utime(lock, (silent, silent))
            assert isinstance(await world.append(make_run()[0]), Appended)
            await world.close()

        asyncio.run(go())


@pytest.mark.parametrize("condition", [MAIN, SEQ_FINAL], ids=lambda condition: condition.name)
@pytest.mark.parametrize("point", list(Point))
class TestACallerThatGoesAway:
    def check(self, make, point: Point) -> None:  # type: ignore[no-untyped-def]
        async def go() -> None:
            there = asyncio.Event()
            stop = False

            async def pause(at: Point, request: AppendRequest) -> None:
                if stop and at is point:
                    there.set()
                    await asyncio.Event().wait()

            world = make(pause)
            for request in make_run():
                await world.append(request)
            stop = True
            create = want("step_created", STEP, name="s", payload=1)
            task = asyncio.create_task(world.append(create))
            await there.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            stop = False
            await world.append(create)
            page = await world.load(RUN)
            assert types(page.events) == ["run_created", "run_started", "step_created"]
            assert isinstance(await world.append(want("step_started", STEP)), Appended)
            await world.close()

        asyncio.run(go())

    def test_leaves_a_folder_in_order(self, tmp_path: Path, condition: Condition, point: Point) -> None:
        self.check(lambda pause: local(tmp_path, condition, on_point=pause), point)

    def test_leaves_memory_in_order(self, condition: Condition, point: Point) -> None:
        self.check(lambda pause: memory(condition, on_point=pause, clock=FakeClock()), point)
