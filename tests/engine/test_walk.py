"""The walk over the log: who gets an event, what is stepped over, set aside or refused."""

from __future__ import annotations

import pytest

from stormctl.engine.door import Outcome, Pass
from stormctl.engine.walk import GRACE_MS
from stormctl.history import ids, kinds
from stormctl.testing import RUN_ID, LogBuilder
from tests.engine.writing import labels, opened, replay

BOTH = pytest.mark.parametrize("generation", ["nets", "dispenser"])


async def one_step(wf, _input):
    return await wf.step("a")


async def one_sleep(wf, _input):
    await wf.sleep(1000)
    return "slept"


async def step_then_hook(wf, _input):
    await wf.step("a")
    return await wf.hook("door").next()


async def reading_a_hook(wf, _input):
    return await wf.hook("door").next()


def diverged(one: Pass, reason: str):
    assert one.outcome is Outcome.DIVERGED
    assert one.divergence is not None
    assert one.divergence.reason == reason
    return one.divergence


class TestSteppingOver:
    def test_an_empty_log_suspends_at_the_first_thing_that_the_body_awaits(self):
        one = replay(one_step, LogBuilder())
        assert (one.outcome, one.consumed, labels(one)) == (Outcome.SUSPENDED, 0, ["step:a"])

    def test_a_second_start_of_the_run_is_inert(self):
        log = opened().run_started().step_created(0, "a").run_started().step_started(0).step_completed(0, "x")
        one = replay(one_step, log.run_started())
        assert (one.outcome, one.value) == (Outcome.COMPLETED, "x")

    @pytest.mark.parametrize("end", ["run_completed", "run_failed", "run_cancelled"])
    def test_the_end_of_the_run_asks_nothing_of_the_workflow(self, end):
        log = opened().step_created(0, "a")
        getattr(log, end)()
        one = replay(one_step, log)
        assert (one.outcome, one.consumed, one.parked) == (Outcome.SUSPENDED, 4, ())

    def test_a_noop_seals_a_position_and_means_nothing(self):
        one = replay(one_step, opened().event(kinds.NOOP).step(0, "a"))
        assert one.outcome is Outcome.COMPLETED

    def test_an_attribute_that_a_step_wrote_is_nobodys_and_moves_the_clock(self):
        async def body(wf, _input):
            await wf.step("a")
            return wf.now()

        log = opened().step_created(0, "a").step_started(0).attr_set(None, settle="0/0/0").step_completed(0)
        began = replay(body, log).value
        assert replay(body, log.changed(5, created_at=began + 90_000)).value == began + 90_000
        assert replay(body, log.changed(6, created_at=began + 70_000)).value == began + 70_000

    def test_what_opens_the_run_does_not_move_the_clock(self):
        async def body(wf, _input):
            return wf.now()

        late = {"created_at": ids.ulid_ms(RUN_ID) + 90_000}
        log = opened().changed(1, **late).changed(2, **late).run_completed().changed(3, **late)
        assert replay(body, log).value == replay(body, LogBuilder()).value == ids.ulid_ms(RUN_ID)

    def test_an_attribute_under_the_runs_own_id_is_nobodys_either(self):
        log = opened().event(kinds.ATTR_SET, correlation_id=RUN_ID, data={"changes": []})
        one = replay(one_step, log.step(0, "a"))
        assert one.outcome is Outcome.COMPLETED


class TestRepeatsOfAClassAreInert:
    @pytest.mark.parametrize("again", ["created", "started", "completed"])
    def test_of_a_step_that_has_ended(self, again):
        log = opened().step_created(0, "a").step_started(0).step_completed(0, "first")
        if again == "created":
            log.step_created(0, "a")
        elif again == "started":
            log.step_started(0)
        else:
            log.step_completed(0, "second")

        async def body(wf, _input):
            first = await wf.step("a")
            await wf.step("b")
            return first

        one = replay(body, log.step(1, "b"))
        assert (one.outcome, one.value) == (Outcome.COMPLETED, "first")
        assert one.duration_ms < GRACE_MS

    def test_of_a_wait_that_has_ended(self):
        async def body(wf, _input):
            await wf.sleep(10)
            await wf.step("b")

        log = opened().wait_created(0).wait_completed(0).wait_completed(0).event(kinds.WAIT_CREATED, 0)
        one = replay(body, log.step(1, "b"))
        assert one.outcome is Outcome.COMPLETED

    def test_a_failure_after_a_completion_is_inert_too(self):
        log = opened().step(0, "a").step_failed(0)
        assert replay(one_step, log).outcome is Outcome.COMPLETED

    def test_but_a_payload_is_never_a_repeat(self):
        async def body(wf, _input):
            hook = wf.hook("door")
            return [await hook.next(), await hook.next()]

        log = opened().hook_created(0, "door").hook_received(0, 1).hook_received(0, 1)
        assert replay(body, log).value == [1, 1]

    def test_unless_it_carries_the_same_resume_id(self):
        async def body(wf, _input):
            hook = wf.hook("door")
            return [await hook.next(), await hook.next()]

        log = opened().hook_created(0, "door").hook_received(0, 1, resumeId="r1").hook_received(0, 1, resumeId="r1")
        assert replay(body, log).outcome is Outcome.SUSPENDED
        assert replay(body, log.hook_received(0, 2, resumeId="r2")).value == [1, 2]


class TestParking:
    @BOTH
    def test_a_payload_that_comes_before_its_hook_is_kept_for_it(self, generation):
        log = opened().step_created(0, "a").step_started(0).hook_received(1, "early").step_completed(0)
        one = replay(step_then_hook, log.hook_created(1, "door"), generation)
        assert (one.outcome, one.value, one.parked) == (Outcome.COMPLETED, "early", ())
        assert one.duration_ms >= GRACE_MS

    @BOTH
    def test_parked_events_are_offered_oldest_first(self, generation):
        async def body(wf, _input):
            await wf.step("a")
            hook = wf.hook("door")
            return [await hook.next(), await hook.next()]

        log = opened().step_created(0, "a").hook_received(1, "one").hook_received(1, "two").step_completed(0)
        assert replay(body, log, generation).value == ["one", "two"]

    def test_what_nobody_asks_for_stays_parked_and_the_pass_suspends(self):
        one = replay(one_step, opened().wait_completed(7).step_created(0, "a"))
        assert (one.outcome, one.parked, one.consumed) == (Outcome.SUSPENDED, (2,), 4)

    def test_only_once_the_grace_period_is_over(self):
        quick = replay(one_step, opened().step_created(0, "a"))
        slow = replay(one_step, opened().step_created(0, "a").hook_received(9))
        assert quick.duration_ms < GRACE_MS <= slow.duration_ms < 2 * GRACE_MS

    def test_two_parked_events_cost_two_grace_periods(self):
        one = replay(one_step, opened().hook_received(8).hook_received(9))
        assert one.parked == (2, 3)
        assert one.duration_ms >= 2 * GRACE_MS

    def test_an_end_of_a_wait_that_has_ended_is_stepped_over_and_not_parked(self):
        async def body(wf, _input):
            await wf.sleep(10)
            await wf.step("b")

        one = replay(body, opened().wait_created(0).wait_completed(0).wait_completed(0))
        assert (one.outcome, one.parked) == (Outcome.SUSPENDED, ())


class TestDivergences:
    def test_name_a_step_event_of_another_step(self):
        log = opened().step_created(0, "b")
        found = diverged(replay(one_step, log), "name")
        assert (found.index, found.position, found.rank) == (2, 3, 0)
        assert (found.expected, found.actual) == ("step:b", "step:a")
        assert found.event_id == log.events[2].event_id
        assert "step_created at position 3 belongs to b" in found.text

    def test_a_stored_name_with_its_path_is_the_step_of_its_last_part(self):
        log = opened().step_created(0, "step//./src/storms//a")
        assert replay(one_step, log).outcome is Outcome.SUSPENDED

    def test_a_step_may_be_called_by_its_whole_stored_name(self):
        async def body(wf, _input):
            await wf.step("billing//charge")

        assert replay(body, opened().step(0, "billing//charge")).outcome is Outcome.COMPLETED

    def test_results_read_before_a_wrong_name_are_still_delivered(self):
        async def body(wf, _input):
            await wf.step("a")
            await wf.all([wf.step("b"), wf.step("c")])

        log = opened().step(0, "a").step_created(1, "b").step_created(2, "b")
        one = replay(body, log)
        diverged(one, "name")
        assert labels(one) == ["step:a", "step:b", "step:c"]

    def test_unconsumed_a_create_that_the_workflow_never_asks_for(self):
        found = diverged(replay(one_step, opened().step_created(0, "a").step_created(1, "b")), "unconsumed")
        assert (found.position, found.rank, found.expected, found.actual) == (4, 1, "step:b", "nothing")

    def test_unconsumed_a_create_of_another_kind_under_a_pending_id(self):
        found = diverged(replay(one_step, opened().event(kinds.WAIT_CREATED, 0)), "unconsumed")
        assert (found.expected, found.actual) == ("wait", "step:a")
        assert "with its id the workflow asks for step:a" in found.text

    def test_unconsumed_takes_the_grace_period(self):
        assert replay(one_step, opened().step_created(1, "b")).duration_ms >= GRACE_MS

    def test_a_log_without_positions_is_placed_by_index(self):
        log = LogBuilder(positions=False).run_created().run_started().step_created(1, "b")
        found = diverged(replay(one_step, log), "unconsumed")
        assert (found.index, found.position) == (2, None)
        assert "at position 3" in found.text

    def test_stranded_a_parked_event_when_the_workflow_has_returned(self):
        log = opened().wait_completed(7).step(0, "a")
        found = diverged(replay(one_step, log), "stranded")
        assert (found.index, found.position, found.event_type) == (2, 3, kinds.WAIT_COMPLETED)
        assert (found.expected, found.actual) == ("wait", "finished")

    def test_stranded_a_parked_event_in_a_run_that_has_ended(self):
        async def waiting_for_nothing(wf, _input):
            await wf.race()

        log = opened().wait_completed(7)
        assert replay(waiting_for_nothing, log).outcome is Outcome.SUSPENDED
        found = diverged(replay(waiting_for_nothing, log.run_completed()), "stranded")
        assert (found.index, found.position) == (2, 3)

    def test_type_an_event_that_the_entity_cannot_have(self):
        log = opened()
        step = log.id("step", 0)
        found = diverged(replay(one_step, log.event(kinds.WAIT_COMPLETED, correlation_id=step)), "type")
        assert (found.position, found.actual) == (3, "step:a")

        log = opened()
        found = diverged(replay(one_sleep, log.event("wait_paused", correlation_id=log.id("wait", 0))), "type")
        assert found.actual == "wait"

        log = opened()
        found = diverged(replay(reading_a_hook, log.event("hook_rung", correlation_id=log.id("hook", 0))), "type")
        assert found.actual == "hook"

    def test_resume_at_a_wait_that_ends_at_another_time_than_it_was_to(self):
        log = opened().wait_created(0, in_ms=500)
        due = log.events[-1].resume_at
        found = diverged(replay(one_sleep, log.wait_completed(0, resume_at=due + 5)), "resume-at")
        assert (found.position, found.rank) == (4, 0)
        assert str(due) in found.actual
        assert str(due + 5) in found.text

    def test_a_wait_that_ends_without_a_time_is_believed(self):
        log = opened().wait_created(0, in_ms=500).wait_completed(0, resume_at=None)
        assert replay(one_sleep, log).value == "slept"

    def test_a_token_is_a_secret_and_not_in_the_text(self):
        one = replay(reading_a_hook, opened().hook_created(0, "window"))
        assert "window" not in one.divergence.text
        assert "door" not in one.divergence.text

    def test_the_first_divergence_counts(self):
        log = opened().step_created(0, "b").step_created(1, "c")
        assert diverged(replay(one_step, log), "name").position == 3


class TestAttributesThatTheWorkflowWrites:
    async def body(self, wf, _input):
        await wf.set_attributes({"stage": "two", "old": None})
        return "set"

    def log(self, changes):
        return opened().event(kinds.ATTR_SET, 0, data={"changes": changes, "writer": {"type": "workflow"}})

    @pytest.mark.parametrize(
        "changes",
        [
            [{"key": "stage", "value": "two"}, {"key": "old", "value": None}],
            [{"key": "old"}, {"key": "stage", "value": "two"}],
            {"stage": "two", "old": None},
        ],
    )
    def test_are_recognised_as_a_list_and_as_a_mapping(self, changes):
        assert replay(self.body, self.log(changes)).value == "set"

    @pytest.mark.parametrize("changes", [[{"key": "stage", "value": "one"}], {"stage": "two"}, [], {}])
    def test_diverge_when_they_are_others(self, changes):
        found = diverged(replay(self.body, self.log(changes)), "attributes")
        assert (found.position, found.actual) == (3, "attr")

    @pytest.mark.parametrize("changes", ["stage", 7, [7], [None], [{"name": "stage"}], [["key", "stage"]]])
    def test_diverge_when_the_log_holds_what_no_workflow_writes(self, changes):
        diverged(replay(self.body, self.log(changes)), "attributes")

    def test_a_log_that_does_not_say_what_was_written_is_believed(self):
        assert replay(self.body, opened().event(kinds.ATTR_SET, 0)).value == "set"


class TestMalformedLogs:
    """Whatever a log holds, a pass ends with an outcome and never with a traceback."""

    @pytest.mark.parametrize("resume_id", [["r"], {"r": 1}, 5, ""])
    def test_a_resume_id_that_is_no_text(self, resume_id):
        log = opened().hook_created(0, "door").hook_received(0, "x", resumeId=resume_id)
        assert replay(reading_a_hook, log).value == "x"

    @pytest.mark.parametrize("retry", ["2026-01-01T00:00:00Z", None, [1]])
    def test_a_retry_time_that_is_no_number(self, retry):
        log = opened().step_created(0, "a").step_started(0).event(kinds.STEP_RETRYING, 0, data={"retryAfter": retry})
        assert replay(one_step, log).pending[0].retry_at == 0

    @pytest.mark.parametrize("id", ["step_1", "step_", "", "x", "step_" + "I" * 26, "hook_" + "Z" * 26])
    def test_an_id_that_the_run_cannot_have_drawn(self, id):
        log = opened().event(kinds.STEP_CREATED, correlation_id=id, name="a")
        assert replay(one_step, log).outcome is Outcome.DIVERGED

    def test_a_type_that_nobody_knows(self):
        diverged(replay(one_step, opened().event("run_pondered")), "unconsumed")

    def test_a_log_whose_ids_end_the_sequence(self):
        async def body(wf, _input):
            await wf.all([wf.step("a"), wf.step("b")])

        log = opened(run_id="wrun_x").event(kinds.STEP_CREATED, correlation_id="step_" + "Z" * 26, name="a")
        assert labels(replay(body, log)) == ["step:a", "step:b"]

    @pytest.mark.parametrize("writer", [None, "step", ["step"], {"type": ["step"]}])
    def test_an_attribute_whose_writer_makes_no_sense_is_set_aside(self, writer):
        log = opened().event(kinds.ATTR_SET, 5, data={"changes": [], "writer": writer})
        assert replay(one_step, log).parked == (2,)
