"""The pressure pump: a scenario's driver carried out on a world, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.errors import StoreFailure
from stormctl.storm.embedded import EmbeddedRun
from stormctl.storm.pump import Pump
from stormctl.storm.virtual import EPOCH_MS, run_virtually
from stormctl.workloads import base as acts
from stormctl.worlds import condition_named
from stormctl.worlds.memory import MemoryWorld
from tests.worlds.making import HOOK, HOOK_2, OTHER_RUN, RUN, WAIT, corr, make_run, memory, want

Driver = Generator[acts.Act, Any, None]
TOKEN = "t:poke"


def hook_created(run: str = RUN, hook: str = HOOK) -> Any:
    return want("hook_created", hook, run=run, token=TOKEN)


class Stage:
    """A memory world with one started run, and a pump on it."""

    def __init__(self, clock: Callable[[], int], world: MemoryWorld, seed: int = 1) -> None:
        self.world = world
        self.pump = Pump(EmbeddedRun(world, RUN), seed, 250, clock)

    async def happen(self, after: float, *requests: Any) -> None:
        """Append, some seconds from now."""
        await asyncio.sleep(after)
        for request in requests:
            await self.world.append(request)

    async def ends(self, after: float) -> None:
        await asyncio.sleep(after)
        self.pump.ended.set()

    async def replies(self, *wanted: acts.Act) -> list[Any]:
        """What the pump replies to these acts, one after another."""
        got: list[Any] = []

        def driver() -> Driver:
            for act in wanted:
                got.append((yield act))

        await self.pump.run(driver())
        return got


def on_stage(play: Callable[[Stage], Awaitable[Any]], *, seed: int = 1) -> Any:
    """Play in virtual time: what the play replies, and the seconds it took."""

    async def main(clock: Callable[[], int]) -> Any:
        world = memory(condition_named("seq-final"), clock=clock)
        for request in make_run():
            await world.append(request)
        began = asyncio.get_running_loop().time()
        found = await play(Stage(clock, world, seed))
        return found, asyncio.get_running_loop().time() - began

    return run_virtually(main)


class TestAResume:
    def test_is_a_receipt_in_the_log_and_a_delivery_of_the_run(self) -> None:
        async def play(stage: Stage) -> Any:
            await stage.happen(0, hook_created())
            sent = await stage.replies(acts.Resume(TOKEN, {"index": 3}))
            events = (await stage.world.load(RUN)).events
            return sent, events[-1], await stage.world.queue.receive(9)

        (sent, receipt, messages), _ = on_stage(play)
        assert sent == [True]
        assert (receipt.type, receipt.correlation_id, receipt.payload.load()) == ("hook_received", HOOK, {"index": 3})
        assert [one.message.run_id for one in messages] == [RUN]

    def test_of_a_hook_that_is_gone_is_false_and_wakes_nobody(self) -> None:
        async def play(stage: Stage) -> Any:
            await stage.happen(0, hook_created(), want("hook_disposed", HOOK, token=TOKEN))
            return await stage.replies(acts.Resume(TOKEN, None)), await stage.world.queue.depth()

        assert on_stage(play)[0] == ([False], 0)

    def test_of_a_run_that_has_ended_is_false(self) -> None:
        async def play(stage: Stage) -> Any:
            await stage.happen(0, hook_created(), want("run_completed", payload=None))
            return await stage.replies(acts.Resume(TOKEN, None))

        assert on_stage(play)[0] == [False]

    def test_without_a_payload_writes_none(self) -> None:
        async def play(stage: Stage) -> Any:
            await stage.happen(0, hook_created())
            await stage.replies(acts.Resume(TOKEN, None))
            return (await stage.world.load(RUN)).events[-1]

        assert on_stage(play)[0].payload is None


class TestWaitingForAHook:
    def test_ends_when_the_hook_appears(self) -> None:
        async def play(stage: Stage) -> Any:
            later = asyncio.create_task(stage.happen(2.1, hook_created()))
            got = await stage.replies(acts.WaitForHook(TOKEN, 60_000))
            await later
            return got

        got, seconds = on_stage(play)
        assert got == [HOOK]
        assert 2.1 <= seconds <= 2.1 + 0.25

    def test_ends_after_its_time_with_none(self) -> None:
        got, seconds = on_stage(lambda stage: stage.replies(acts.WaitForHook(TOKEN, 3_000)))
        assert got == [None]
        assert seconds == pytest.approx(3.0, abs=0.26)

    def test_ends_with_the_run(self) -> None:
        async def play(stage: Stage) -> Any:
            ending = asyncio.create_task(stage.ends(1.01))
            got = await stage.replies(acts.WaitForHook(TOKEN, 60_000), acts.RunEnded())
            await ending
            return got

        got, seconds = on_stage(play)
        assert got == [None, True]
        assert seconds == pytest.approx(1.01)

    def test_does_not_mistake_another_runs_hook_for_its_own(self) -> None:
        async def play(stage: Stage) -> Any:
            await stage.happen(0, *make_run(OTHER_RUN), hook_created(OTHER_RUN, HOOK_2))
            return await stage.replies(acts.WaitForHook(TOKEN, 1_000))

        assert on_stage(play)[0] == [None]


class TestTheLastWait:
    def test_is_the_latest_recorded_end_among_pending_waits(self) -> None:
        waits = [WAIT, corr("wait", 7), corr("wait", 8)]

        async def play(stage: Stage) -> Any:
            for wait, at in zip(waits, (5_000, 9_000, 7_000), strict=True):
                await stage.happen(0, want("wait_created", wait, resume_at=EPOCH_MS + at))
            first = await stage.replies(acts.LastWait(1_000))
            await stage.happen(9, want("wait_completed", waits[1], resume_at=EPOCH_MS + 9_000))
            return first + await stage.replies(acts.LastWait(1_000))

        assert on_stage(play)[0] == [EPOCH_MS + 9_000, EPOCH_MS + 7_000]

    def test_is_none_when_no_wait_appears_in_time(self) -> None:
        assert on_stage(lambda stage: stage.replies(acts.LastWait(1_000)))[0] == [None]


class TestTime:
    def test_a_sleep_is_cut_short_by_the_end_of_the_run(self) -> None:
        async def play(stage: Stage) -> Any:
            ending = asyncio.create_task(stage.ends(4.0))
            got = await stage.replies(acts.Sleep(1_500), acts.RunEnded(), acts.Sleep(60_000), acts.RunEnded())
            await ending
            return got

        assert on_stage(play) == ([None, False, None, True], 4.0)

    def test_now_is_the_worlds_clock(self) -> None:
        assert on_stage(lambda stage: stage.replies(acts.Sleep(1_250), acts.Now()))[0][-1] == EPOCH_MS + 1_250

    @given(
        st.recursive(
            st.integers(0, 5_000), lambda inner: st.tuples(st.booleans(), st.lists(inner, max_size=4)), max_leaves=12
        )
    )
    def test_acts_in_a_row_add_up_and_drivers_together_take_as_long_as_the_longest(self, tree: Any) -> None:
        def driver(node: Any) -> Driver:
            if isinstance(node, int):
                yield acts.Sleep(node)
            elif node[0]:
                yield acts.Together(tuple(driver(one) for one in node[1]))
            else:
                for one in node[1]:
                    yield from driver(one)

        def length(node: Any) -> int:
            if isinstance(node, int):
                return node
            lengths = [length(one) for one in node[1]]
            return max(lengths, default=0) if node[0] else sum(lengths)

        _, seconds = on_stage(lambda stage: stage.pump.run(driver(tree)))
        assert seconds == pytest.approx(length(tree) / 1000)


def test_the_same_seed_draws_the_same_numbers_and_another_seed_others() -> None:
    def draws(seed: int) -> list[float]:
        return on_stage(lambda stage: stage.replies(*[acts.Uniform()] * 5), seed=seed)[0]  # type: ignore[no-any-return]

    assert draws(7) == draws(7) != draws(8)
    assert all(0 <= one < 1 for one in draws(7))


def test_a_driver_cannot_write_attributes() -> None:
    with pytest.raises(TypeError, match="cannot write attributes"):
        on_stage(lambda stage: stage.replies(acts.SetAttributes({"a": "b"})))


@pytest.mark.parametrize("act", [acts.StepAttempt(), acts.KillWorker("no")])
def test_a_driver_cannot_do_what_only_a_step_body_can(act: acts.Act) -> None:
    with pytest.raises(TypeError, match="for step bodies"):
        on_stage(lambda stage: stage.replies(act))


def test_a_store_that_fails_under_one_of_several_drivers_is_told_when_the_others_are_done() -> None:
    """Whoever watches the run must hear of it, and no driver may be left behind that still writes."""
    done: list[str] = []

    async def play(stage: Stage) -> Any:
        async def no_hook(_token: str) -> Any:
            raise StoreFailure("the store is gone", remedy="Mend it.")

        stage.world.hook = no_hook  # type: ignore[method-assign, assignment]

        def failing() -> Driver:
            yield acts.Resume(TOKEN, None)

        def slow() -> Driver:
            yield acts.Sleep(2_000)
            done.append("slow")

        def both() -> Driver:
            yield acts.Together((failing(), slow()))

        await stage.pump.run(both())

    with pytest.raises(StoreFailure):
        on_stage(play)
    assert done == ["slow"]
