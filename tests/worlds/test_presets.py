"""The defect of each condition that history knew, on the smallest script that shows it, and the twin that closes it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from stormctl.history import Event, ids
from stormctl.worlds import Appended, AppendRequest, Condition, Point, Refused, World
from stormctl.worlds.condition import Breaking, Guard, PostReads, Release, Rescan
from stormctl.worlds.wire import event_from_wire
from tests.worlds.making import HOOK, RUN, STEP, STEP_2, WAIT, corr, make_run, types, want
from tests.worlds.stores import Stop, Stores, append, logged, word

FILES_ONLY = "a database gives a lock back by itself, and rolls back"


def create(number: int, writer: str, count: int | None = None) -> AppendRequest:
    return want("step_created", corr("step", 100 + number), name="s", payload=1, writer=writer, count=count)


def positions(events: tuple[Event, ...]) -> list[int | None]:
    return [event.position for event in events]


async def stalled(
    stores: Stores,
    condition: Condition,
    point: Point,
    first: AppendRequest,
    meanwhile: Callable[[World], Coroutine[Any, Any, None]],
    before: list[AppendRequest],
) -> tuple[Event, ...]:
    """Writer A stops at the point, others do what ``meanwhile`` does, A goes on: the log afterwards."""
    stop = Stop(point)
    async with stores:
        slow, other = stores.open(condition, on_point=stop), stores.open(condition)
        await append(other, before)
        task = asyncio.create_task(slow.append(first))
        assert await stop.reached(task)
        await meanwhile(other)
        stop.go_on()
        await asyncio.gather(task, return_exceptions=True)
        return await logged(other, RUN)


class TestALockThatIsBrokenUnderItsHolder:
    """The holder of the lock is slower than its limit; limits are a tenth of a second here."""

    def log(self, stores: Stores, name: str, point: Point) -> tuple[Event, ...]:
        if stores.kind == "postgres":
            pytest.skip(FILES_ONLY)
        condition = replace(stores.named(name), stale_ms=100)

        async def meanwhile(other: World) -> None:
            await other.append(want("step_created", STEP_2, name="b", payload=1, writer="B"))

        first = want("step_created", STEP, name="a", payload=1, writer="A")
        return asyncio.run(stalled(stores, condition, point, first, meanwhile, make_run()))

    def test_gives_one_seq_twice_under_upstreams_rules(self, stores: Stores) -> None:
        assert positions(self.log(stores, "seq-upstream", Point.PUBLISH)) == [1, 2, 3, 3]

    def test_gives_it_once_where_the_holder_looks_before_it_publishes(self, stores: Stores) -> None:
        assert positions(self.log(stores, "seq-final", Point.PUBLISH)) == [1, 2, 3]


class TestReadsUnderALock:
    """A reads under the lock for too long, B breaks it, A then unlinks B's lock, and C comes in beside B."""

    def log(self, stores: Stores, condition: Condition) -> tuple[Event, ...]:
        async def go() -> tuple[Event, ...]:
            reading, publishing = Stop(Point.POST_READ, "A"), Stop(Point.PUBLISH, "B")
            async with stores:
                a, b, c = (stores.open(condition, on_point=stop) for stop in (reading, publishing, None))
                await append(c, make_run())
                first = asyncio.create_task(a.append(create(1, "A", 2)))
                assert await reading.reached(first)
                second = asyncio.create_task(b.append(create(2, "B")))
                assert await publishing.reached(second)
                reading.go_on()
                await first
                third = asyncio.create_task(c.append(create(3, "C")))
                await asyncio.wait([third], timeout=0.05)
                publishing.go_on()
                # a careful holder that was held up for too long fails here rather than publish
                await asyncio.gather(second, third, return_exceptions=True)
                return await logged(c, RUN)

        return asyncio.run(go())

    def test_end_in_36_followed_by_36(self, stores: Stores) -> None:
        if stores.kind == "postgres":
            pytest.skip(FILES_ONLY)
        buggy = replace(stores.named("seq-buggy-30s"), stale_ms=100)
        assert positions(self.log(stores, buggy)) == [1, 2, 3, 4, 4]

    def test_do_no_harm_outside_of_it(self, stores: Stores) -> None:
        # nobody breaks a lock here; a short time to do so would let a slow machine break B's
        outside = replace(stores.named("seq-buggy-30s"), stale_ms=10_000, post_reads=PostReads.OUTSIDE)
        assert positions(self.log(stores, outside)) == [1, 2, 3, 4, 5]

    def test_nor_where_a_lock_is_given_back_by_its_owner_only(self, stores: Stores) -> None:
        careful = replace(stores.named("seq-final"), post_reads=PostReads.INSIDE, stale_ms=400)
        if stores.kind == "postgres":
            pytest.skip(FILES_ONLY)
        events = self.log(stores, careful)
        assert positions(events) == list(range(1, len(events) + 1))
        assert len(events) >= 4


class TestARescan:
    """A decision was admitted; then a lock is broken. B, which had not read the decision, writes."""

    def answers(self, stores: Stores, condition: Condition) -> list[str]:
        async def go() -> list[str]:
            stop = Stop(Point.VALIDATE, "dead")
            async with stores:
                dying, other = stores.open(condition, on_point=stop), stores.open(condition)
                await append(other, make_run())
                assert word(await other.append(create(1, "A", 2))) == "3"
                dead = asyncio.create_task(dying.append(want("hook_created", HOOK, token="t", writer="dead")))
                assert await stop.reached(dead)
                answers = [word(await other.append(create(2, "B", 2)))]
                dead.cancel()
                await asyncio.gather(dead, return_exceptions=True)
                return answers

        if stores.kind == "postgres":
            pytest.skip(FILES_ONLY)
        return asyncio.run(go())

    def test_that_forgets_the_fence_lets_a_stale_decision_in(self, stores: Stores) -> None:
        assert self.answers(stores, replace(stores.named("seq-upstream"), stale_ms=100)) == ["4"]

    def test_that_restores_it_does_not(self, stores: Stores) -> None:
        restoring = replace(stores.named("seq-upstream"), stale_ms=100, rescan=Rescan.RESTORES)
        assert self.answers(stores, restoring) == ["precondition"]
        assert self.answers(Stores(stores.kind, stores._folder / "again", None), self.final(stores)) == ["precondition"]

    def final(self, stores: Stores) -> Condition:
        return replace(stores.named("seq-final"), stale_ms=100)


class TestAdmissionAfterTheEffects:
    def after(self, stores: Stores, condition: Condition) -> tuple[list[str], list[str]]:
        """B's stale step and stale end are refused; then the step is run, and a payload comes for the hook."""

        async def go() -> tuple[list[str], list[str]]:
            async with stores:
                world = stores.open(condition)
                await append(world, [*make_run(), want("hook_created", HOOK, token="t", writer="A", count=2)])
                await world.append(create(1, "A", 2))
                stale = [
                    want("step_created", STEP, name="s", payload=1, writer="B", count=2),
                    want("run_completed", payload=1, writer="B", count=2),
                ]
                assert [word(answer) for answer in await append(world, stale)] == ["precondition"] * 2
                then = [
                    want("step_started", STEP, name="s"),
                    want("step_completed", STEP, payload=1),
                    want("hook_received", HOOK, token="t", payload=1),
                ]
                words = [word(answer) for answer in await append(world, then)]
                return words, types(await logged(world, RUN))

        return asyncio.run(go())

    def test_strands_a_step_and_wedges_the_run_in_a_store_that_cannot_roll_back(self, stores: Stores) -> None:
        if stores.kind == "postgres":
            pytest.skip(FILES_ONLY)
        words, log = self.after(stores, stores.named("seq-buggy-admit"))
        assert words == ["5", "6", "expired"]
        assert log[-2:] == ["step_started", "step_completed"]  # of a step that no event created

    def test_does_no_harm_in_one_that_can(self, stores: Stores) -> None:
        from stormctl.worlds.condition import Rollback

        if stores.kind == "local":
            pytest.skip("a folder cannot roll back")
        rolled_back = replace(stores.named("seq-buggy-admit"), rollback=Rollback.FULL)
        assert self.after(stores, rolled_back)[0] == ["not-found", "not-found", "5"]

    def test_does_not_happen_before_any_effect(self, stores: Stores) -> None:
        assert self.after(stores, stores.named("seq-final"))[0] == ["not-found", "not-found", "5"]


class TestAWriterThatDiesBeforeItPublishes:
    def log(self, stores: Stores, name: str) -> list[int | None]:
        async def go() -> list[int | None]:
            stop = Stop(Point.PUBLISH)
            async with stores:
                dying, other = stores.open(name, on_point=stop), stores.open(name)
                await append(other, make_run())
                task = asyncio.create_task(dying.append(want("hook_created", HOOK, token="t", writer="A")))
                assert await stop.reached(task)
                await append(other, [want("wait_created", WAIT, resume_at=1), want("wait_completed", WAIT)])
                found = positions(await logged(other, RUN))
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                return found

        return asyncio.run(go())

    def test_leaves_a_hole_for_ever_where_staged_files_are_named_by_their_slot(self, stores: Stores) -> None:
        if stores.kind == "postgres":
            pytest.skip("a database stages nothing")
        assert self.log(stores, "slots-stage-shared") == [1, 2, 4, 5]

    @pytest.mark.parametrize("name", ["slots-reserve", "mint-slot"])
    def test_leaves_a_hole_where_slots_are_reserved(self, stores: Stores, name: str) -> None:
        assert self.log(stores, name) == [1, 2, 4, 5]

    @pytest.mark.parametrize("name", ["slots-link", "slots-sql"])
    def test_leaves_none_where_only_a_publication_takes_a_slot(self, stores: Stores, name: str) -> None:
        assert self.log(stores, name) == [1, 2, 3, 4]


class TestSlots:
    def test_tell_a_writer_what_it_skipped(self, stores: Stores) -> None:
        async def go() -> list[tuple[str, list[str], bool]]:
            async with stores:
                world = stores.open("slots-link")
                await append(world, make_run())
                requests = [create(1, "A", 2), create(2, "B", 2), create(3, "A", 4)]
                answers = [await world.append(request) for request in requests]
                return [
                    (word(answer), types(answer.skipped), answer.more_skipped)
                    for answer in answers
                    if isinstance(answer, Appended)
                ]

        assert asyncio.run(go()) == [("3", [], False), ("4", ["step_created"], False), ("5", [], False)]

    def test_keep_the_time_of_entry_when_they_are_bumped(self, stores: Stores) -> None:
        async def meanwhile(other: World) -> None:
            await asyncio.sleep(0.005)
            await other.append(want("wait_created", WAIT, resume_at=1, writer="B"))

        first = want("step_created", STEP, name="a", payload=1, writer="A")
        events = asyncio.run(stalled(stores, stores.named("slots-link"), Point.EFFECTS, first, meanwhile, make_run()))
        assert types(events)[2:] == ["wait_created", "step_created"]
        assert (events[2].created_at or 0) > (events[3].created_at or 0)

    def test_stay_dense_when_many_write_at_once(self, stores: Stores) -> None:
        async def go() -> list[int | None]:
            async with stores:
                worlds = [stores.open("slots-sql") for _ in range(3)]
                await append(worlds[0], make_run())
                await asyncio.gather(*(worlds[n % 3].append(create(n, f"w{n}")) for n in range(18)))
                return positions(await logged(worlds[0], RUN))

        assert asyncio.run(go()) == list(range(1, 21))


class TestTheGuard:
    def refused(self, stores: Stores, guard: Guard, snapshot: dict[str, int]) -> tuple[str, Appended | Refused]:
        async def go() -> tuple[str, Appended | Refused]:
            async with stores:
                world = stores.open(replace(stores.named("guard"), guard=guard))
                await append(world, [*make_run(), want("hook_created", HOOK, token="t")])
                read = (await world.load(RUN)).events
                await asyncio.sleep(0.003)
                await world.append(want("hook_received", HOOK, token="t", payload=1))
                whole = (await world.load(RUN)).events
                seen = read if snapshot["read"] == 3 else whole
                watermark = max(ids.ulid_ms(event.event_id or "") or 0 for event in seen)
                request = create(1, "A", snapshot["count"])
                assert request.snapshot is not None
                request = replace(request, snapshot=replace(request.snapshot, watermark=watermark, cursor=None))
                answer = await world.append(request)
                return word(answer), answer

        return asyncio.run(go())

    def test_refuses_who_has_not_read_the_latest_receipt(self, stores: Stores) -> None:
        said, answer = self.refused(stores, Guard.WATERMARK, {"read": 3, "count": 3})
        assert said == "precondition"
        assert isinstance(answer, Refused)
        assert {"events", "recordedAtOrBelow", "stateUpdatedAt"} <= set(answer.body)
        assert answer.body["recordedAtOrBelow"] == 3
        delta = [event_from_wire(raw, RUN) for raw in answer.body["events"]]
        assert types(delta) == ["run_created", "run_started", "hook_created", "hook_received"]

    def test_refuses_who_misses_an_event_below_what_it_has_read_only_when_it_counts(self, stores: Stores) -> None:
        assert self.refused(stores, Guard.WATERMARK_COUNT, {"read": 4, "count": 3})[0] == "precondition"
        again = Stores(stores.kind, stores._folder / "again", stores._dsn)
        assert self.refused(again, Guard.WATERMARK, {"read": 4, "count": 3})[0] == "ulid"

    def test_lets_in_who_has_read_everything(self, stores: Stores) -> None:
        assert self.refused(stores, Guard.WATERMARK_COUNT, {"read": 4, "count": 4})[0] == "ulid"

    def test_cannot_see_what_lands_between_its_look_and_the_publication(self, stores: Stores) -> None:
        async def go() -> list[str]:
            condition = stores.named("guard")
            stop = Stop(Point.EFFECTS)
            async with stores:
                slow, other = stores.open(condition, on_point=stop), stores.open(condition)
                await append(other, [*make_run(), want("hook_created", HOOK, token="t")])
                read = (await other.load(RUN)).events
                watermark = max(ids.ulid_ms(event.event_id or "") or 0 for event in read)
                request = create(1, "A", 3)
                assert request.snapshot is not None
                request = replace(request, snapshot=replace(request.snapshot, watermark=watermark))
                task = asyncio.create_task(slow.append(request))
                assert await stop.reached(task)
                await other.append(want("hook_received", HOOK, token="t", payload=1))
                stop.go_on()
                return [word(await task), *types(await logged(other, RUN))[3:]]

        answer, *log = asyncio.run(go())
        assert answer == "ulid"
        assert sorted(log) == ["hook_received", "step_created"]


class TestMainOfADatabase:
    def test_leaves_an_entity_without_its_event_when_its_writer_dies_in_between(self, stores: Stores) -> None:
        async def go() -> tuple[str, list[str]]:
            stop = Stop(Point.ALLOCATE)
            async with stores:
                dying, other = stores.open("main-pg", on_point=stop), stores.open("main-pg")
                await append(other, make_run())
                task = asyncio.create_task(dying.append(want("wait_created", WAIT, resume_at=1, writer="A")))
                assert await stop.reached(task)
                again = word(await other.append(want("wait_created", WAIT, resume_at=1, writer="B")))
                log = types(await logged(other, RUN))
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                return again, log

        assert asyncio.run(go()) == ("conflict", ["run_created", "run_started"])

    def test_lets_only_one_end_of_a_run_win(self, stores: Stores) -> None:
        async def race(name: str, fresh: Stores) -> list[str]:
            stop = Stop(Point.EFFECTS)
            async with fresh:
                first, second = fresh.open(name, on_point=stop), fresh.open(name)
                await append(second, make_run())
                task = asyncio.create_task(first.append(want("run_completed", payload=1, writer="A")))
                assert await stop.reached(task)
                other = await second.append(want("run_failed", data={"error": "x", "errorCode": "X"}, writer="B"))
                stop.go_on()
                return sorted([word(await task), word(other)])

        assert asyncio.run(race("main-pg", stores)) == ["conflict", "ulid"]
        if stores.kind != "postgres":
            again = Stores(stores.kind, stores._folder / "again", None)
            assert asyncio.run(race("main-local", again)) == ["ulid", "ulid"]


def test_the_races_of_upstreams_lock_are_knobs(stores: Stores) -> None:
    condition = stores.named("seq-upstream")
    assert (condition.breaking, condition.release, condition.rescan) == (Breaking.EARLY, Release.BLIND, Rescan.FORGETS)
    final = stores.named("seq-final")
    assert (final.breaking, final.release, final.rescan) == (
        Breaking.CAREFUL,
        Release.OWNER_CHECKED,
        Rescan.RESTORES,
    )
