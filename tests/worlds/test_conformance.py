"""What every store must do alike: admission, tokens, cursors, adoption, two writers stopped between any two points."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise

import pytest

from stormctl.history import Event, ids
from stormctl.worlds import Appended, AppendRequest, Condition, Point, Refusal, Refused
from stormctl.worlds.condition import Fence, Gate, Reads
from tests.worlds.making import HOOK, HOOK_2, OTHER_RUN, RUN, STEP, STEP_2, WAIT, corr, make_run, types, want
from tests.worlds.stores import Stop, Stores, append, logged, word

FIVE = [
    *make_run(),
    want("hook_created", HOOK, token="t", writer="seed", count=2),
    want("wait_created", WAIT, resume_at=1, writer="seed", count=3),
    want("hook_received", HOOK, token="t", payload=1),
]
RECEIPT = want("hook_received", HOOK, token="t", payload=2)


def create(number: int, writer: str, count: int, cursor: str | None = None) -> AppendRequest:
    return want(
        "step_created", corr("step", 100 + number), name="s", payload=1, writer=writer, count=count, cursor=cursor
    )


def landing(stores: Stores, condition: Condition | str, requests: list[AppendRequest]) -> list[str]:
    """Where each request landed after a log of five whose last decision is the fourth event; else the refusal."""

    async def go() -> list[str]:
        async with stores:
            world = stores.open(condition)
            assert [word(answer) for answer in await append(world, FIVE)] == ["1", "2", "3", "4", "5"]
            found = [word(answer) for answer in await append(world, requests)]
            events = await logged(world, RUN)
            assert [event.position for event in events] == list(range(1, len(events) + 1))
            return found

    return asyncio.run(go())


REFUSED = str(Refusal.PRECONDITION)


class TestTheAdmissionVectors:
    def test_of_the_decision_fence_with_writer_credit(self, stores: Stores) -> None:
        requests = [
            create(1, "A", 5),
            create(2, "A", 5),
            create(3, "B", 5),
            RECEIPT,
            create(5, "B", 8),
            create(6, "A", 5),
            want("wait_completed", WAIT, writer="A", count=3),
        ]
        assert landing(stores, "seq-final", requests) == ["6", "7", REFUSED, "8", "9", REFUSED, "10"]

    def test_of_credit_by_snapshot_under_which_two_writers_with_one_cursor_interleave(self, stores: Stores) -> None:
        same = [create(1, "A", 5, "5"), create(2, "A", 5, "5"), create(3, "B", 5, "5")]
        assert landing(stores, "seq-decision-snap", same) == ["6", "7", "8"]

    def test_of_credit_by_writer_under_which_they_do_not(self, stores: Stores) -> None:
        same = [create(1, "A", 5, "5"), create(2, "A", 5, "5"), create(3, "B", 5, "5")]
        assert landing(stores, "seq-final", same) == ["6", "7", REFUSED]

    def test_of_the_tail_fence_which_a_receipt_moves(self, stores: Stores) -> None:
        requests = [create(1, "A", 5, "5"), create(2, "A", 5, "5"), create(3, "B", 5, "x"), RECEIPT]
        requests += [create(4, "B", 7, "7"), create(5, "B", 8, "8")]
        assert landing(stores, "seq-tail", requests) == ["6", "7", REFUSED, "8", REFUSED, "9"]

    def test_of_the_in_band_count_which_facts_do_not_move(self, stores: Stores) -> None:
        def counted(number: int, in_band: int) -> AppendRequest:
            request = create(number, "A", 5)
            assert request.snapshot is not None
            return replace(request, snapshot=replace(request.snapshot, in_band=in_band))

        requests = [counted(1, 0), counted(2, 1), counted(3, 1), RECEIPT, counted(4, 2), counted(5, 2)]
        assert landing(stores, "in-band", requests) == ["6", "7", REFUSED, "8", "9", REFUSED]

    def test_facts_are_fenced_where_the_gate_is_open_to_all(self, stores: Stores) -> None:
        fact = want("wait_completed", WAIT, writer="A", count=3)
        fenced = replace(stores.named("seq-final"), gate=Gate.ALL)
        assert landing(stores, fenced, [fact]) == [REFUSED]

    def test_an_append_without_a_snapshot_is_never_refused_and_moves_nothing(self, stores: Stores) -> None:
        requests = [want("step_created", STEP, name="s", payload=1), create(1, "A", 5)]
        assert landing(stores, "seq-final", requests) == ["6", "7"]


class TestABatch:
    """Two siblings of A; B, which had read the first of them, comes in between."""

    def run(self, stores: Stores, *, atomic: bool) -> list[str]:
        async def go() -> list[str]:
            condition = replace(stores.named("seq-final"), batch_atomic=atomic)
            async with stores:
                world = stores.open(condition)
                await append(world, FIVE)
                siblings = [create(1, "A", 5), create(2, "A", 5)]
                if atomic:
                    answers = await world.append_batch(siblings)
                    answers.append(await world.append(create(3, "B", 6)))
                else:
                    answers = [await world.append(siblings[0]), await world.append(create(3, "B", 6))]
                    answers.append(await world.append(siblings[1]))
                return [word(answer) for answer in answers]

        return asyncio.run(go())

    def test_that_lands_piece_by_piece_can_lose_its_second_half(self, stores: Stores) -> None:
        assert self.run(stores, atomic=False) == ["6", "7", REFUSED]

    def test_that_is_atomic_cannot(self, stores: Stores) -> None:
        assert self.run(stores, atomic=True) == ["6", "7", REFUSED]

    def test_that_is_behind_is_refused_whole(self, stores: Stores) -> None:
        async def go() -> tuple[list[str], int]:
            condition = replace(stores.named("seq-final"), batch_atomic=True)
            async with stores:
                world = stores.open(condition)
                await append(world, FIVE)
                answers = await world.append_batch([create(1, "A", 3), create(2, "A", 3)])
                return [word(answer) for answer in answers], len(await logged(world, RUN))

        assert asyncio.run(go()) == ([REFUSED, REFUSED], 5)


class TestACursor:
    @pytest.mark.parametrize("name", ["main", "seq-final", "slots-link"])
    def test_is_exclusive_and_stays_where_it_is_on_an_empty_page(self, stores: Stores, name: str) -> None:
        async def go() -> None:
            async with stores:
                world = stores.open(name)
                empty = await world.load(RUN)
                assert (empty.events, empty.cursor) == ((), None)
                await append(world, FIVE)
                whole = await world.load(RUN)
                page = await world.load(RUN, whole.cursor)
                assert (page.events, page.cursor) == ((), whole.cursor)
                await world.append(RECEIPT)
                page = await world.load(RUN, whole.cursor)
                assert types(page.events) == ["hook_received"]
                assert page.cursor != whole.cursor

        asyncio.run(go())


class TestARunFromBeforePositions:
    def test_goes_on_counting_from_the_events_that_it_has(self, stores: Stores) -> None:
        async def go() -> tuple[list[int | None], list[str]]:
            async with stores:
                before = stores.open("main")
                await append(before, make_run())
                await before.append(want("hook_created", HOOK, token="t"))
                after = stores.open("seq-final")
                answers = await append(after, [RECEIPT, create(1, "A", 4), create(2, "B", 3)])
                events = await logged(after, RUN)
                behind = await after.load(RUN, "4")
                assert [event.position for event in behind.events] == [5]
                return [event.position for event in events], [word(answer) for answer in answers]

        positions, words = asyncio.run(go())
        assert positions == [None, None, None, 4, 5]
        assert words == ["4", "5", REFUSED]

    def test_that_is_numbered_by_ulids_stays_so_under_slots(self, stores: Stores) -> None:
        async def go() -> list[int | None]:
            async with stores:
                await append(stores.open("main"), make_run())
                after = stores.open("slots-link")
                await after.append(want("hook_created", HOOK, token="t"))
                return [ids.slot_of(event.event_id or "") for event in await logged(after, RUN)]

        assert asyncio.run(go()) == [None, None, None]


class TestATokenOfTwoRuns:
    @pytest.mark.parametrize("name", ["main-local", "seq-final", "slots-link"])
    @pytest.mark.parametrize("point", [Point.VALIDATE, Point.EFFECTS, Point.PUBLISH])
    def test_has_one_owner_wherever_the_first_claimer_stops(self, stores: Stores, name: str, point: Point) -> None:
        answers = asyncio.run(self.race(stores, name, point))
        landed = sorted(answer.events[-1].type for answer in answers if isinstance(answer, Appended))
        assert landed == ["hook_conflict", "hook_created"]

    async def race(self, stores: Stores, name: str, point: Point) -> list[Appended | Refused]:
        stop = Stop(point)
        async with stores:
            first, second = stores.open(name, on_point=stop), stores.open(name)
            await append(second, [*make_run(), *make_run(OTHER_RUN)])
            slow = asyncio.create_task(first.append(want("hook_created", HOOK, token="t", writer="A")))
            assert await stop.reached(slow)
            quick = asyncio.create_task(second.append(want("hook_created", HOOK_2, token="t", run=OTHER_RUN)))
            await asyncio.wait([quick], timeout=0.1)
            stop.go_on()
            return [await slow, await quick]


def sane(events: tuple[Event, ...]) -> None:
    assert [event.position for event in events] == list(range(1, len(events) + 1))
    names = [event.event_id or "" for event in events]
    assert names == sorted(set(names))
    assert all((a.created_at or 0) <= (b.created_at or 0) for a, b in pairwise(events))


@pytest.mark.parametrize("point", list(Point))
class TestTwoWritersOfOneStep:
    """The first stops at a point, the second appends meanwhile; both write the same step from the same prefix."""

    async def race(self, stores: Stores, name: str, point: Point) -> tuple[list[Appended | Refused], tuple[Event, ...]]:
        stop = Stop(point)
        async with stores:
            first, second = stores.open(name, on_point=stop), stores.open(name)
            await append(second, make_run())
            one = want("step_created", STEP, name="a", payload=1, writer="A", count=2)
            other = want("step_created", STEP, name="b", payload=2, writer="B", count=2)
            slow = asyncio.create_task(first.append(one))
            await stop.reached(slow)
            quick = asyncio.create_task(second.append(other))
            await asyncio.wait([quick], timeout=0.1)
            stop.go_on()
            answers = [await slow, await quick]
            return answers, await logged(second, RUN)

    @pytest.mark.parametrize("name", ["seq-final", "seq-tail", "in-band"])
    def test_under_a_lock_one_wins_wherever_the_first_stops(self, stores: Stores, point: Point, name: str) -> None:
        answers, events = asyncio.run(self.race(stores, name, point))
        sane(events)
        assert sorted(type(answer).__name__ for answer in answers) == ["Appended", "Refused"]

    def test_under_slots_one_wins_and_no_slot_is_lost(self, stores: Stores, point: Point) -> None:
        answers, events = asyncio.run(self.race(stores, "slots-link", point))
        assert [event.position for event in events] == [1, 2, 3]
        assert sorted(type(answer).__name__ for answer in answers) == ["Appended", "Refused"]


@pytest.mark.parametrize("point", list(Point))
class TestTwoDecisionsFromOnePrefix:
    async def race(self, stores: Stores, condition: Condition, point: Point) -> list[str]:
        stop = Stop(point)
        async with stores:
            first, second = stores.open(condition, on_point=stop), stores.open(condition)
            await append(second, FIVE)
            slow = asyncio.create_task(first.append(create(1, "A", 5)))
            await stop.reached(slow)
            quick = asyncio.create_task(second.append(create(2, "B", 5)))
            await asyncio.wait([quick], timeout=0.1)
            stop.go_on()
            return sorted([word(await slow), word(await quick)])

    def test_cannot_both_land_behind_the_fence(self, stores: Stores, point: Point) -> None:
        assert asyncio.run(self.race(stores, stores.named("seq-final"), point)) == ["6", REFUSED]

    def test_both_land_without_it(self, stores: Stores, point: Point) -> None:
        unfenced = replace(stores.named("seq-final"), fence=Fence.NONE)
        assert asyncio.run(self.race(stores, unfenced, point)) == ["6", "7"]


class TestReads:
    async def follow(self, stores: Stores, condition: Condition) -> tuple[list[str], list[str]]:
        """What a reader saw that followed its cursor while A stood before publication, and the whole log."""
        stop = Stop(Point.PUBLISH)
        async with stores:
            first, second = stores.open(condition, on_point=stop), stores.open(condition)
            await append(second, make_run())
            slow = asyncio.create_task(first.append(want("step_created", STEP, name="a", payload=1, writer="A")))
            assert await stop.reached(slow)
            await asyncio.sleep(0.003)  # ids of one millisecond have no order between processes
            quick = asyncio.create_task(second.append(want("step_created", STEP_2, name="b", payload=1, writer="B")))
            await asyncio.wait([quick], timeout=0.1 if condition.locks else 30)
            page = await second.load(RUN)
            seen = [event.correlation_id or "" for event in page.events]
            stop.go_on()
            await slow
            await quick
            for _ in range(3):
                page = await second.load(RUN, page.cursor)
                seen += [event.correlation_id or "" for event in page.events]
            return seen, [event.correlation_id or "" for event in await logged(second, RUN)]

    def test_by_cursor_miss_for_ever_what_is_published_behind_it(self, stores: Stores) -> None:
        seen, whole = asyncio.run(self.follow(stores, replace(stores.named("main"), mint_at=Point.MINT_EARLY)))
        assert (STEP in whole, STEP in seen) == (True, False)

    def test_that_are_strong_do_not(self, stores: Stores) -> None:
        condition = replace(stores.named("main"), mint_at=Point.MINT_EARLY, reads=Reads.STRONG)
        seen, whole = asyncio.run(self.follow(stores, condition))
        assert set(seen) == set(whole)

    @pytest.mark.parametrize("name", ["seq-final", "slots-link", "slots-sql"])
    def test_by_cursor_miss_nothing_where_positions_are_given_at_publication(self, stores: Stores, name: str) -> None:
        seen, whole = asyncio.run(self.follow(stores, stores.named(name)))
        assert seen == whole

    def test_by_cursor_miss_an_event_whose_slot_was_drawn_at_entry(self, stores: Stores) -> None:
        seen, whole = asyncio.run(self.follow(stores, stores.named("mint-slot")))
        assert (STEP in whole, STEP in seen) == (True, False)

    @pytest.mark.parametrize("reads", [Reads.LAGGING, Reads.HOLE])
    def test_that_lag_show_an_event_only_when_it_is_old_enough(self, stores: Stores, reads: Reads) -> None:
        async def go() -> tuple[int, int]:
            async with stores:
                writer = stores.open("seq-final")
                await append(writer, make_run())
                late = stores.open(replace(stores.named("seq-final"), reads=reads, lag_ms=3_600_000))
                on_time = stores.open(replace(stores.named("seq-final"), reads=reads, lag_ms=0))
                return len(await logged(late, RUN)), len(await logged(on_time, RUN))

        assert asyncio.run(go()) == (0, 2)
