"""Barriers: the log decides who is first, and a payload that nobody reads holds nothing back for ever."""

from __future__ import annotations

from itertools import pairwise

import pytest

from stormctl.engine.door import Outcome, Perturbation
from stormctl.testing import LogBuilder
from tests.engine.writing import engine, labels, opened, replay, table

BOTH = pytest.mark.parametrize("generation", ["nets", "dispenser"])


def longer(promise, hops: int):
    for _ in range(hops):
        promise = promise.then(lambda value: value)
    return promise


class TestTheLogDecidesARace:
    """Step against sleep, with 0 to 5 more hops on either side: the first in the log wins."""

    @BOTH
    @pytest.mark.parametrize("first", ["step", "wait"])
    @pytest.mark.parametrize(("step_hops", "wait_hops"), [(0, 0), (5, 0), (0, 5), (3, 2)])
    def test_and_not_the_number_of_hops(self, generation, first, step_hops, wait_hops):
        async def body(wf, _input):
            return await wf.race(
                longer(wf.step("work").then(lambda _: "step"), step_hops),
                longer(wf.sleep(1000).then(lambda _: "wait"), wait_hops),
            )

        log = opened().step_created(0, "work").wait_created(1).step_started(0)
        if first == "step":
            log.step_completed(0).wait_completed(1)
        else:
            log.wait_completed(1).step_completed(0)
        assert replay(body, log, generation).value == first

    @BOTH
    @pytest.mark.parametrize("first", ["hook", "wait"])
    @pytest.mark.parametrize(("hook_hops", "wait_hops"), [(0, 0), (5, 0), (0, 5)])
    def test_of_a_hook_against_a_sleep(self, generation, first, hook_hops, wait_hops):
        async def body(wf, _input):
            hook = wf.hook("door")
            return await wf.race(
                longer(hook.next().then(lambda _: "hook"), hook_hops),
                longer(wf.sleep(1000).then(lambda _: "wait"), wait_hops),
            )

        log = opened().hook_created(0, "door").wait_created(1)
        if first == "hook":
            log.hook_received(0).wait_completed(1)
        else:
            log.wait_completed(1).hook_received(0)
        assert replay(body, log, generation).value == first

    @BOTH
    def test_steps_that_end_together_draw_in_the_order_in_which_they_ended(self, generation):
        async def branch(wf, index, hops):
            await longer(wf.step("work", index), hops)
            await wf.step("after", index)

        async def body(wf, _input):
            await wf.all([branch(wf, 0, 6), branch(wf, 1, 0)])

        log = opened().step_created(0, "work").step_created(1, "work").step_completed(0).step_completed(1)
        assert [draw.arguments for draw in replay(body, log, generation).draws[2:]] == [(0,), (1,)]

    @BOTH
    def test_a_payload_kept_before_the_watchdog_beats_it_although_it_is_read_later(self, generation):
        async def body(wf, _input):
            hook = wf.hook("door")
            watchdog = wf.sleep(1000).then(lambda _: "watchdog")
            await wf.step("prepare")
            return await wf.race(hook.next().then(lambda _: "hook"), watchdog)

        log = opened().hook_created(0, "door").wait_created(1).step_created(2, "prepare").step_started(2)
        log.hook_received(0).step_completed(2).wait_completed(1)
        assert replay(body, log, generation).value == "hook"


class TestAPayloadThatNobodyReads:
    async def body(self, wf, _input):
        wf.hook("poke")
        await wf.sleep(1000)
        await wf.step("after")
        return "done"

    @BOTH
    @pytest.mark.parametrize("pokes", [1, 2, 40])
    def test_is_let_go_so_that_what_comes_after_it_gets_through(self, generation, pokes):
        log = opened().hook_created(0, "poke").wait_created(1)
        for _ in range(pokes):
            log.hook_received(0)
        one = replay(self.body, log.wait_completed(1).step(2, "after"), generation)
        assert (one.outcome, one.value) == (Outcome.COMPLETED, "done")

    @BOTH
    def test_forty_of_them_do_not_outlast_the_grace_period(self, generation):
        """One retirement per turn would: the end of the wait would be taken for unconsumed and the step diverge."""
        log = opened().hook_created(0, "poke").wait_created(1)
        for _ in range(40):
            log.hook_received(0)
        log.wait_completed(1).step_created(2, "after")
        one = replay(self.body, log, generation)
        assert one.outcome is Outcome.SUSPENDED
        assert one.duration_ms < 100

    @BOTH
    def test_holds_a_wait_back_until_it_is_let_go_but_never_a_step(self, generation):
        async def body(wf, _input):
            wf.hook("poke")
            return await wf.race(wf.sleep(1000).then(lambda _: "wait"), wf.step("work").then(lambda _: "step"))

        log = opened().hook_created(0, "poke").wait_created(1).step_created(2, "work").hook_received(0)
        assert replay(body, log.step_completed(2), generation).value == "step"

    @BOTH
    def test_a_kept_payload_is_read_after_it_was_let_go(self, generation):
        async def body(wf, _input):
            hook = wf.hook("door")
            await wf.step("a")
            await wf.step("b")
            return await hook.next()

        log = opened().hook_created(0, "door").hook_received(0, "kept").step(1, "a").step(2, "b")
        assert replay(body, log, generation).value == "kept"


def four_branches():
    """Four races of a step against a watchdog beside a hook that nobody reads: the step storm, as small as it flips."""

    async def branch(wf, index):
        winner = await wf.race(wf.step("work", index).then(lambda _: "work"), wf.sleep(1000).then(lambda _: "watchdog"))
        await wf.step("recover" if winner == "watchdog" else "settled", index)
        await wf.step("release", index)

    async def body(wf, _input):
        wf.hook("poke")
        await wf.all([branch(wf, index) for index in range(4)])

    return body


def log_that_flips() -> LogBuilder:
    """Found by search over logs of a well-behaved writer, and shrunk. Work is 1, 3, 5, 7, its watchdogs 2, 4, 6, 8."""
    log = opened().hook_created(0, "poke")
    for rank in (1, 3, 5, 7):
        log.step_created(rank, "work", rank // 2)
    for rank in (2, 4, 6, 8):
        log.wait_created(rank)
    for rank in (1, 3, 5, 7):
        log.step_started(rank)
    log.wait_completed(8).hook_received(0).step_completed(7).wait_completed(4)
    log.step_created(9, "recover", 3).step_started(9)
    return log.wait_completed(2).step_created(10, "recover", 1).step_started(10).step_completed(10)


class TestExtendingALog:
    """What vercel/workflow #3543 saw at ordinal 198, on 25 events: one more event renames a call that was made."""

    def flips(self, generation: str, perturbation: Perturbation | None = None) -> list[tuple[int, int, str, str]]:
        log = log_that_flips().log()
        tables, found = [], []
        for one in engine(four_branches(), generation).passes(log, range(2, len(log) + 1), perturbation=perturbation):
            assert one.outcome is Outcome.SUSPENDED
            tables.append(labels(one))
        for length, (before, after) in enumerate(pairwise(tables), start=3):
            found += [
                (length, rank, was, now)
                for rank, (was, now) in enumerate(zip(before, after, strict=False))
                if was != now
            ]
        return found

    def test_renames_a_call_under_nets(self):
        assert self.flips("nets") == [(25, 11, "step:recover", "step:release")]

    def test_renames_nothing_under_the_dispenser(self):
        assert self.flips("dispenser") == []

    @pytest.mark.parametrize("hops", [0, 1, 8])
    def test_whatever_reading_costs_in_hops(self, hops):
        assert len(self.flips("nets", Perturbation(hydration_hops=hops))) == 1
        assert self.flips("dispenser", Perturbation(hydration_hops=hops)) == []

    def test_the_dispenser_binds_the_whole_log_alike_however_long_reading_takes(self):
        log, body = log_that_flips(), four_branches()
        calm = table(replay(body, log, "dispenser"))
        for seed in range(6):
            slow = Perturbation(hydration_hops=seed, hydration_ms=float(seed), jitter_ms=5, seed=seed)
            assert table(replay(body, log, "dispenser", perturbation=slow)) == calm
