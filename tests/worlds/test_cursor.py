"""Following a log by its cursor, while a writer is slow between minting and publishing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from stormctl.errors import UsageError
from stormctl.history import Event
from stormctl.worlds import MAIN, SEQ_FINAL, AppendRequest, Condition, Point
from tests.worlds.making import RUN, STEP, STEP_2, joined, local, make_run, memory, want


def follow(folder: Path, condition: Condition, point: Point) -> tuple[list[Event], list[Event]]:
    """What a reader saw that followed the cursor, and what the log holds; writer A stops at the point meanwhile."""

    async def go() -> tuple[list[Event], list[Event]]:
        there, go_on = asyncio.Event(), asyncio.Event()

        async def pause(at: Point, request: AppendRequest) -> None:
            if at is point and request.writer == "A":
                there.set()
                await go_on.wait()

        writer = local(folder, condition, on_point=pause)
        for request in make_run():
            await writer.append(request)
        other = joined(folder)
        slow = asyncio.create_task(writer.append(want("step_created", STEP, name="a", payload=1, writer="A")))
        await there.wait()
        await asyncio.sleep(0.003)  # ids of one millisecond have no order between processes
        quick = asyncio.create_task(other.append(want("step_created", STEP_2, name="b", payload=2, writer="B")))
        # without a lock the quick writer always gets through, however busy the machine; under one it may have to wait
        await asyncio.wait([quick], timeout=30 if condition is MAIN else 0.05)
        page = await other.load(RUN)
        seen = list(page.events)
        go_on.set()
        await slow
        await quick
        while (page := await other.load(RUN, page.cursor)).events:
            seen += page.events
        whole = list((await other.load(RUN)).events)
        await other.close()
        await writer.close()
        return seen, whole

    return asyncio.run(go())


class TestUnderMain:
    def test_an_event_published_behind_the_cursor_is_missed_for_ever(self, tmp_path: Path) -> None:
        seen, whole = follow(tmp_path, MAIN, Point.PUBLISH)
        assert [event.correlation_id for event in whole if event not in seen] == [STEP]
        assert whole.index(next(event for event in whole if event.correlation_id == STEP)) == 2

    def test_a_writer_that_is_slow_before_minting_is_not_missed(self, tmp_path: Path) -> None:
        seen, whole = follow(tmp_path, MAIN, Point.ENTER)
        assert seen == whole


class TestUnderSeqFinal:
    @pytest.mark.parametrize("point", list(Point))
    def test_a_follower_sees_the_whole_log_wherever_a_writer_stops(self, tmp_path: Path, point: Point) -> None:
        seen, whole = follow(tmp_path, SEQ_FINAL, point)
        assert seen == whole
        assert len(whole) == 4


class TestACursor:
    def test_stays_where_it_is_on_an_empty_page(self) -> None:
        async def go() -> None:
            world = memory(MAIN)
            assert (await world.load(RUN)).cursor is None
            for request in make_run():
                await world.append(request)
            page = await world.load(RUN)
            last = page.events[-1]
            assert page.cursor == f"{last.created_at}|{last.event_id}"
            again = await world.load(RUN, page.cursor)
            assert (again.events, again.cursor) == ((), page.cursor)

        asyncio.run(go())

    def test_of_a_numbered_log_is_the_number(self) -> None:
        async def go() -> None:
            world = memory(SEQ_FINAL)
            for request in make_run():
                await world.append(request)
            assert (await world.load(RUN)).cursor == "2"
            assert [event.position for event in (await world.load(RUN, "1")).events] == [2]

        asyncio.run(go())

    def test_that_makes_no_sense_is_an_error_with_a_remedy(self) -> None:
        async def go() -> None:
            world = memory(SEQ_FINAL)
            await world.append(make_run()[0])
            with pytest.raises(UsageError, match="not a cursor"):
                await world.load(RUN, "yesterday")

        asyncio.run(go())


def test_a_publication_between_two_looks_leaves_no_hole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first file of a pair was looked for before it was linked, the second after: both are read."""

    async def go() -> list[int | None]:
        writer = local(tmp_path, SEQ_FINAL)
        for request in make_run():
            await writer.append(request)
        reader = joined(tmp_path)
        await reader.load(RUN)
        await writer.append(want("step_created", STEP, name="a", payload=1, writer="A"))
        await writer.append(want("step_created", STEP_2, name="b", payload=2, writer="A"))
        files = reader.store.logs._files
        read, looks = files.read, []

        def late(path: Path) -> bytes:
            looks.append(path)
            if len(looks) == 1:
                raise FileNotFoundError(path)
            return read(path)

        monkeypatch.setattr(files, "read", late)
        page = await reader.load(RUN)
        monkeypatch.undo()
        await reader.close()
        await writer.close()
        assert looks
        return [event.position for event in page.events]

    positions = asyncio.run(go())
    assert positions == list(range(1, len(positions) + 1))
