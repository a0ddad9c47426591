"""Promises cost the hops that JavaScript's cost, and coroutines that are left waiting leave nothing behind."""

from __future__ import annotations

import gc
import warnings

import pytest

from stormctl.engine.loop import Loop
from stormctl.engine.promise import (
    FULFILLED,
    PENDING,
    REJECTED,
    PassOver,
    Promise,
    Task,
    close_tasks,
    gather,
    race,
    start,
)


def settled(loop: Loop, value=1) -> Promise:
    promise = Promise(loop)
    promise.resolve(value)
    return promise


def failed(loop: Loop, error: BaseException) -> Promise:
    promise = Promise(loop)
    promise.reject(error)
    return promise


def run(loop: Loop, coroutine) -> Task:
    return Task(loop, coroutine, set())


def same(value):
    return value


async def returning(value):
    return value


#: measured with Node 20: how many microtasks of a chain queued just before run until the frame goes on
HOPS_OF_NODE_20 = {
    "await of a settled promise": (1, lambda loop: settled(loop)),
    "await of an async function that returns a value": (1, lambda loop: run(loop, returning(1))),
    "await of an async function that returns a promise": (3, lambda loop: run(loop, returning(settled(loop)))),
    "await of a then": (2, lambda loop: settled(loop).then(same)),
    "await of a then that returns a promise": (4, lambda loop: settled(loop).then(lambda _: settled(loop))),
    "await of all of two": (2, lambda loop: gather(loop, [settled(loop), settled(loop)])),
    "await of all of none": (1, lambda loop: gather(loop, [])),
    "await of a race of two": (2, lambda loop: race(loop, [settled(loop), settled(loop)])),
    "await of a race with a then in it": (3, lambda loop: race(loop, [settled(loop).then(same)])),
}


def hops(body) -> int:
    """How far a chain of microtasks got when the body had gone through its awaits."""
    loop = Loop()
    state = {"hops": 0, "done": False}

    def link(_first, _second):
        if not state["done"]:
            state["hops"] += 1
            loop.micros.append((link, None, None))

    async def frame():
        await body(loop)
        state["done"] = True

    loop.micros.append((link, None, None))
    run(loop, frame())
    loop.drain()
    return state["hops"]


class TestHopsAreThoseOfNode20:
    @pytest.mark.parametrize("what", HOPS_OF_NODE_20)
    def test_awaiting(self, what):
        expected, make = HOPS_OF_NODE_20[what]

        async def body(loop):
            await make(loop)

        assert hops(body) == expected, what

    def test_two_awaits_one_after_the_other(self):
        async def body(loop):
            await settled(loop)
            await settled(loop)

        assert hops(body) == 2


class TestSettling:
    def test_only_the_first_settlement_counts(self):
        loop = Loop()
        promise = settled(loop, "first")
        promise.resolve("second")
        promise.reject(ValueError())
        assert (promise.state, promise.value) == (FULFILLED, "first")

    def test_reactions_run_in_the_order_in_which_they_were_registered(self):
        loop, seen = Loop(), []
        promise = Promise(loop)
        for name in "abc":
            promise.react(lambda _state, value, name=name: seen.append(name + value))
        promise.resolve("!")
        assert seen == []
        loop.drain()
        assert seen == ["a!", "b!", "c!"]

    def test_a_promise_resolved_with_a_promise_follows_it_to_its_error(self):
        loop = Loop()
        follower, leader = Promise(loop), Promise(loop)
        follower.resolve(leader)
        leader.reject(KeyError("gone"))
        loop.drain()
        assert follower.state == REJECTED
        assert isinstance(follower.value, KeyError)

    def test_all_gives_the_values_in_order_whatever_order_they_come_in(self):
        loop = Loop()
        parts = [Promise(loop) for _ in range(3)]
        result = gather(loop, parts)
        for index in (2, 0, 1):
            assert result.state == PENDING
            parts[index].resolve(index * 10)
            loop.drain()
        assert (result.state, result.value) == (FULFILLED, [0, 10, 20])

    def test_all_rejects_with_the_first_error_and_ignores_the_rest(self):
        loop = Loop()
        one, other = Promise(loop), Promise(loop)
        result = gather(loop, [one, other])
        other.reject(ValueError("other"))
        one.reject(ValueError("one"))
        loop.drain()
        assert result.state == REJECTED
        assert str(result.value) == "other"

    def test_the_loser_of_a_race_goes_on(self):
        loop = Loop()
        winner, loser = Promise(loop), Promise(loop)
        result = race(loop, [loser, winner])
        winner.resolve("w")
        loser.resolve("l")
        loop.drain()
        assert result.value == "w"
        assert loser.value == "l"


class TestErrors:
    def test_an_error_is_raised_where_the_promise_is_awaited(self):
        loop = Loop()

        async def body():
            try:
                await failed(loop, ValueError("no"))
            except ValueError as error:
                return f"caught {error}"

        task = run(loop, body())
        loop.drain()
        assert task.value == "caught no"

    def test_an_error_passes_a_then_and_one_in_its_function_becomes_its_own(self):
        loop, called = Loop(), []
        passed = failed(loop, ValueError("early")).then(called.append)
        raised = settled(loop).then(lambda _: 1 // 0)
        loop.drain()
        assert called == []
        assert (passed.state, str(passed.value)) == (REJECTED, "early")
        assert isinstance(raised.value, ZeroDivisionError)

    def test_what_a_coroutine_raises_rejects_its_task(self):
        async def body():
            raise LookupError("nothing there")

        task = run(Loop(), body())
        assert (task.state, str(task.value)) == (REJECTED, "nothing there")

    def test_awaiting_something_foreign_is_a_type_error_where_it_was_awaited(self):
        class Foreign:
            def __await__(self):
                yield "not a promise"

        loop = Loop()

        async def body():
            try:
                await Foreign()
            except TypeError as error:
                return str(error)

        task = run(loop, body())
        loop.drain()
        assert task.value == "a workflow may only await what its own primitives return"

    def test_a_cleanup_that_awaits_still_runs_after_something_foreign(self):
        class Foreign:
            def __await__(self):
                yield

        loop, seen = Loop(), []

        async def body():
            try:
                await Foreign()
            finally:
                seen.append(await settled(loop, "cleaned"))

        task = run(loop, body())
        loop.drain()
        assert seen == ["cleaned"]
        assert isinstance(task.value, TypeError)

    def test_what_is_no_coroutine_cannot_be_started(self):
        with pytest.raises(TypeError, match="not int"):
            start(Loop(), 5, set())  # type: ignore[arg-type]


class TestClosing:
    def test_nothing_is_left_of_bodies_that_await_and_draw_on_their_way_out(self, recwarn):
        loop, live, seen = Loop(), set(), []
        never = Promise(loop)

        async def inner():
            try:
                await never
            finally:
                seen.append("inner")
                await settled(loop)
                seen.append("not reached")

        async def outer():
            try:
                await Task(loop, inner(), live)
            finally:
                seen.append("outer")
                try:
                    await never
                finally:
                    await settled(loop)

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Task(loop, outer(), live)
            loop.drain()
            close_tasks(loop, live)
            gc.collect()
        assert live == set()
        assert sorted(seen) == ["inner", "outer"]
        assert len(recwarn) == 0

    def test_an_error_raised_on_the_way_out_is_no_part_of_the_pass(self):
        loop, live = Loop(), set()

        async def body():
            try:
                await Promise(loop)
            finally:
                raise RuntimeError("while dying")

        task = Task(loop, body(), live)
        close_tasks(loop, live)
        assert task.state == PENDING
        assert live == set()

    def test_a_handler_for_every_exception_does_not_see_the_end_of_a_pass(self):
        loop, live, seen = Loop(), set(), []

        async def body():
            try:
                await Promise(loop)
            except Exception as error:
                seen.append(error)

        Task(loop, body(), live)
        close_tasks(loop, live)
        assert seen == []

    def test_a_closed_loop_lets_nobody_await(self):
        loop = Loop()
        loop.closed = True
        with pytest.raises(PassOver):
            settled(loop).__await__().send(None)

    def test_finished_tasks_are_not_kept(self):
        loop, live = Loop(), set()
        Task(loop, returning(3), live)
        loop.drain()
        assert live == set()
