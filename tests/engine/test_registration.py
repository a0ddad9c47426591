"""A hook whose registration the workflow waits for: what the pass asks for, and when the news reaches the body."""

from __future__ import annotations

import pytest

from stormctl.engine.door import Create, Outcome
from stormctl.engine.generations import DISPENSER, GENERATIONS, NETS, REGISTERED
from stormctl.engine.replay import ReplayEngine
from stormctl.history import kinds
from stormctl.testing import LogBuilder

every = pytest.mark.parametrize("generation", GENERATIONS.values(), ids=lambda one: one.name)


def replay(body, log, generation=REGISTERED):
    built = log.log()
    (one,) = ReplayEngine(body, None, generation).passes(built, [len(built)])
    return one


def opened():
    return LogBuilder().run_created().run_started()


def refused():
    return opened().event(kinds.HOOK_CONFLICT, 0, token="door", data={"conflictingRunId": "wrun_other"})


async def asks(wf, _input):
    return await wf.hook("door").conflict()


@every
class TestTheConflictQuery:
    def test_suspends_until_the_store_has_answered(self, generation):
        one = replay(asks, opened(), generation)
        assert one.outcome is Outcome.SUSPENDED
        assert [(item.create, item.awaited) for item in one.pending] == [(Create.HOOK, True)]

    def test_is_none_when_the_hook_is_registered(self, generation):
        one = replay(asks, opened().hook_created(0, "door"), generation)
        assert (one.outcome, one.value) == (Outcome.COMPLETED, None)

    def test_is_the_run_that_owns_the_token(self, generation):
        assert replay(asks, refused(), generation).value == "wrun_other"

    def test_asked_later_and_twice_answers_the_same(self, generation):
        async def body(wf, _input):
            hook = wf.hook("door")
            await wf.step("first")
            return [await hook.conflict(), await hook.conflict()]

        log = opened().hook_created(0, "door").step_created(1, "first").step_started(1).step_completed(1)
        assert replay(body, log, generation).value == [None, None]

    def test_and_a_read_of_one_hook_do_not_disturb_each_other(self, generation):
        async def body(wf, _input):
            hook = wf.hook("door")
            read = hook.next()
            return [await hook.conflict(), await read]

        log = opened().hook_created(0, "door")
        assert replay(body, log, generation).outcome is Outcome.SUSPENDED
        assert replay(body, log.hook_received(0, "in"), generation).value == [None, "in"]


@every
class TestASuspensionThatWaitsForARegistration:
    async def body(self, wf, _input):
        steps = [wf.step("work", index) for index in range(4)]
        hook = wf.hook("door")
        await hook.conflict()
        await wf.all(steps)

    def test_runs_no_step_inline(self, generation):
        one = replay(lambda wf, given: self.body(wf, given), opened(), generation)
        assert [item.create for item in one.pending] == [Create.EAGER] * 4 + [Create.HOOK]

    def test_and_its_twin_whose_hook_is_there_runs_three(self, generation):
        one = replay(lambda wf, given: self.body(wf, given), opened().hook_created(4, "door"), generation)
        assert [item.create for item in one.pending] == [Create.LAZY] * 3 + [Create.EAGER, None]


async def save_or_start(wf, _input):
    """Two branches: one reads and then saves, the other sleeps, binds a hook and then starts."""

    async def reader():
        await wf.step("read")
        await wf.step("save")

    async def binder():
        await wf.sleep(1000)
        hook = wf.hook("door")
        await hook.conflict()
        await wf.step("start")

    await wf.all([reader(), binder()])


class TestTheOrderOfTheLog:
    """vercel/workflow #4215: a result parked behind a wait was overtaken by the registration that follows it."""

    def shorter(self):
        log = opened().step_created(0, "read").step_started(0).wait_created(1, 1000).wait_completed(1)
        return log.step_completed(0, "text")

    def drawn(self, generation, *, registered):
        log = self.shorter()
        if registered:
            log.hook_created(2, "door")
        one = replay(save_or_start, log, generation)
        return [draw.label for draw in one.draws]

    @every
    def test_before_the_registration_the_reader_saves(self, generation):
        assert set(self.drawn(generation, registered=False)) == {"step:read", "wait", "hook", "step:save"}

    def test_a_registration_behind_a_barrier_leaves_what_was_drawn_as_it_was(self):
        short = self.drawn(REGISTERED, registered=False)
        assert self.drawn(REGISTERED, registered=True) == [*short, "step:start"]

    @pytest.mark.parametrize("generation", [NETS, DISPENSER], ids=lambda one: one.name)
    def test_through_the_promise_queue_it_takes_the_id_that_was_the_save_s(self, generation):
        assert self.drawn(generation, registered=False)[3] == "step:save"
        assert self.drawn(generation, registered=True)[3] == "step:start"
