"""The interpreter: every request of a delivery, answered by a world and by time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.engine.door import CALM
from stormctl.errors import StoreFailure
from stormctl.runtime import ops
from stormctl.storm.interpreter import Interpreter
from stormctl.storm.virtual import EPOCH_MS, run_virtually
from stormctl.worlds import Appended, Message, Refusal, Refused, condition_named
from tests.worlds.making import RUN, STEP, make_run, memory, types, want

Requests = Generator[ops.Op, Any, Any]


def answered(*requests: ops.Op, run: Requests | None = None) -> tuple[list[Any], Interpreter, Any, float]:
    """The replies to requests made one after another (or what ``run`` returns), the interpreter, the world, seconds."""

    async def main(clock: Callable[[], int]) -> Any:
        world = memory(condition_named("seq-final"), clock=clock)
        for request in make_run():
            await world.append(request)
        interpreter = Interpreter(world, clock)
        replies = await interpreter.run(run or _each(requests))
        return replies, interpreter, world, asyncio.get_running_loop().time()

    return run_virtually(main)  # type: ignore[no-any-return]


def _each(requests: tuple[ops.Op, ...]) -> Requests:
    replies = []
    for request in requests:
        replies.append((yield request))
    return replies


class TestTheStore:
    def test_an_append_is_answered_by_the_store(self) -> None:
        created = want("step_created", STEP, name="settleStep", payload=[1])
        replies, *_ = answered(ops.Append(created), ops.Append(created))
        assert isinstance(replies[0], Appended)
        assert isinstance(replies[1], Refused)
        assert replies[1].refusal is Refusal.CONFLICT

    def test_a_load_is_a_page_whole_or_behind_a_cursor(self) -> None:
        created = want("step_created", STEP, name="settleStep", payload=[1])

        def run() -> Requests:
            whole = yield ops.Load(RUN)
            yield ops.Append(created)
            return whole, (yield ops.Load(RUN, whole.cursor))

        (whole, rest), *_ = answered(run=run())
        assert types(whole.events) == ["run_created", "run_started"]
        assert types(rest.events) == ["step_created"]

    def test_a_message_is_sent_once_per_key_and_after_its_delay(self) -> None:
        async def main(clock: Callable[[], int]) -> Any:
            world = memory(condition_named("main"), clock=clock)
            send = ops.Enqueue(Message(RUN), 500, key="k")
            await Interpreter(world, clock).run(_each((send, send)))
            early = await world.queue.receive(9)
            await asyncio.sleep(0.5)
            return early, await world.queue.receive(9)

        early, late = run_virtually(main)
        assert (early, len(late)) == ([], 1)


class TestTimeAndChance:
    def test_a_sleep_takes_its_time_and_now_tells_it(self) -> None:
        replies, *_, seconds = answered(ops.Sleep(1_500, "pass"), ops.Now())
        assert replies == [None, EPOCH_MS + 1_500]
        assert seconds == 1.5

    def test_every_delivery_draws_a_writer_of_its_own(self) -> None:
        (first, second), *_ = answered(ops.Draw("writer"), ops.Draw("writer"))
        assert first != second
        assert first.startswith("wrt_")

    def test_a_storm_perturbs_no_pass(self) -> None:
        assert answered(ops.Draw("perturbation"))[0] == [CALM]

    def test_notes_are_counted_by_name(self) -> None:
        _, interpreter, *_ = answered(ops.Note("pass"), ops.Note("divergence"), ops.Note("pass"))
        assert interpreter.counts == {"pass": 2, "divergence": 1}


class TestTogether:
    @given(st.lists(st.integers(0, 3_000), max_size=6))
    def test_replies_come_in_order_when_the_slowest_is_done(self, delays: list[int]) -> None:
        def part(index: int, ms: int) -> Requests:
            yield ops.Sleep(ms, "body")
            return index

        replies, *_, seconds = answered(ops.Together(tuple(part(i, ms) for i, ms in enumerate(delays))))
        assert replies == [list(range(len(delays)))]
        assert seconds == pytest.approx(max(delays, default=0) / 1000)

    def test_an_error_in_one_is_raised_when_the_others_are_done(self) -> None:
        done = []

        def fails() -> Requests:
            yield ops.Now()
            raise LookupError("one of them")

        def works() -> Requests:
            yield ops.Sleep(2_000, "body")
            done.append("works")

        with pytest.raises(LookupError):
            answered(ops.Together((fails(), works())))
        assert done == ["works"]


class TestWhenTheStoreFails:
    def test_the_generator_is_closed_before_the_error_is_passed_on(self) -> None:
        left = []

        def run() -> Requests:
            try:
                yield ops.Load(RUN)
            finally:
                left.append("closed")

        async def main(clock: Callable[[], int]) -> None:
            world = memory(condition_named("main"), clock=clock)

            async def fails(*_: Any) -> Any:
                raise StoreFailure("the disk is full", remedy="Make room.")

            world.load = fails  # type: ignore[method-assign, assignment]
            await Interpreter(world, clock).run(run())

        with pytest.raises(StoreFailure):
            run_virtually(main)
        assert left == ["closed"]

    def test_a_delivery_that_is_cancelled_is_closed_too(self) -> None:
        left = []

        def run() -> Requests:
            try:
                yield ops.Sleep(60_000, "step body")
            finally:
                left.append("closed")

        async def main(clock: Callable[[], int]) -> None:
            task = asyncio.create_task(Interpreter(memory(condition_named("main"), clock=clock), clock).run(run()))
            await asyncio.sleep(1)
            task.cancel()
            await task

        with pytest.raises(asyncio.CancelledError):
            run_virtually(main)
        assert left == ["closed"]
