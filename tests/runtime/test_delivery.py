"""One delivery, request by request: what it writes, in which order, and how it ends."""

from __future__ import annotations

import pytest

from stormctl.history import kinds
from stormctl.runtime import ops
from stormctl.runtime.delivery import Ending
from stormctl.runtime.rules import Rules
from stormctl.worlds.base import AppendRequest, Refusal
from tests.runtime import bodies
from tests.runtime.bodies import scenario
from tests.runtime.driving import RUN, Stage
from tests.runtime.refusing import refuse

# -- a healthy run ----------------------------------------------------------------------------------------------------


def test_the_first_three_steps_are_created_with_their_start_and_run_inline_the_rest_go_to_the_queue() -> None:
    stage = Stage(scenario(bodies.five_steps))
    delivery = stage.deliver()
    assert delivery.ending is Ending.PARKED
    created = [request.payload for request in stage.appended if request.type == kinds.STEP_CREATED]
    lazy = [request.payload for request in stage.appended if request.lazy]
    assert (created, lazy) == ([[3], [4]], [[0], [1], [2]])
    background = [sent.message.step_id for sent in stage.sent if sent.message.step_id]
    assert background == [event.correlation_id for event in stage.events if event.type == kinds.STEP_CREATED][:2]


def test_the_last_background_step_brings_the_run_to_its_end() -> None:
    stage = Stage(scenario(bodies.five_steps))
    stage.deliver()
    first, last = (
        stage.deliver(step_id=sent.message.step_id, step_name=sent.message.step_name, data=sent.message.data)
        for sent in stage.sent
        if sent.message.step_id
    )
    assert (first.ending, last.ending) == (Ending.PARKED, Ending.COMPLETED)
    end = stage.events[-1]
    assert end.payload is not None
    assert end.payload.load() == [[0], [1], [2], [3], [4]]


def test_a_suspension_writes_hooks_first_and_then_steps_waits_and_attributes_and_lazy_starts_last() -> None:
    stage = Stage(scenario(bodies.one_of_each))
    stage.deliver()
    kinds_written = [request.type for request in stage.appended][1:]
    first_pass = kinds_written[: kinds_written.index(kinds.ATTR_SET) + 2]
    assert first_pass == [kinds.HOOK_CREATED, kinds.WAIT_CREATED, kinds.ATTR_SET, kinds.STEP_CREATED]


def test_every_write_derived_from_a_view_says_what_was_read_and_facts_say_nothing() -> None:
    stage = Stage(scenario(bodies.five_steps))
    stage.deliver()
    with_snapshot = {request.type for request in stage.appended if request.snapshot is not None}
    without = {request.type for request in stage.appended if request.snapshot is None}
    assert with_snapshot == {kinds.STEP_CREATED, kinds.STEP_STARTED}
    assert without == {kinds.RUN_STARTED, kinds.STEP_COMPLETED}
    first = next(request for request in stage.appended if request.snapshot is not None)
    assert first.snapshot is not None
    assert (first.snapshot.count, first.snapshot.cursor, first.snapshot.writer) == (2, "2", "wrt_1")


def test_between_reading_and_the_first_write_the_duration_of_the_pass_goes_by() -> None:
    stage = Stage(scenario(bodies.five_steps), rules=Rules(pass_scale=10.0))
    stage.deliver()
    of_interest = [op for op in stage.asked if isinstance(op, (ops.Load, ops.Sleep, ops.Append))]
    load = next(index for index, op in enumerate(of_interest) if isinstance(op, ops.Load))
    slept = of_interest[load + 1]
    assert isinstance(slept, ops.Sleep)
    assert (slept.reason, slept.ms > 0) == ("pass", True)
    assert isinstance(of_interest[load + 2], ops.Append)


def test_a_wait_gets_one_wake_message_and_the_delivery_that_it_brings_completes_it() -> None:
    stage = Stage(scenario(bodies.nap))
    assert stage.deliver().ending is Ending.PARKED
    wake = stage.sent[-1]
    assert 0 < wake.delay_ms <= 1_000
    stage.now += 1_000
    assert stage.deliver().ending is Ending.COMPLETED
    wait, completed = (event for event in stage.events if event.kind == kinds.WAIT)
    assert completed.resume_at == wait.resume_at


def test_a_wait_is_not_completed_before_its_time() -> None:
    stage = Stage(scenario(bodies.nap))
    stage.deliver()
    assert stage.deliver().ending is Ending.PARKED
    assert kinds.WAIT_COMPLETED not in stage.types


def test_a_finished_run_leaves_creates_but_starts_nothing() -> None:
    stage = Stage(scenario(bodies.leaves_something))
    assert stage.deliver().ending is Ending.COMPLETED
    tail = stage.types[stage.types.index(kinds.STEP_COMPLETED) + 1 :]
    assert tail == [kinds.HOOK_DISPOSED, kinds.WAIT_CREATED, kinds.STEP_CREATED, kinds.RUN_COMPLETED]


def test_a_step_body_may_write_attributes_and_they_are_facts_of_the_step() -> None:
    stage = Stage(scenario(bodies.leaves_something))
    stage.deliver()
    attribute = next(request for request in stage.appended if request.type == kinds.ATTR_SET)
    assert attribute.correlation_id is None
    assert attribute.snapshot is None
    assert attribute.data["writer"]["type"] == "step"


# -- what others did meanwhile  ---------------


def test_a_run_that_has_ended_is_left_alone() -> None:
    stage = Stage(scenario(bodies.five_steps))
    stage.land(AppendRequest(RUN, kinds.RUN_CANCELLED, "somebody"))
    assert stage.deliver().ending is Ending.ENDED
    assert [request.type for request in stage.appended] == [kinds.RUN_STARTED]


def test_a_create_that_somebody_else_wrote_is_passed_over_without_comparing() -> None:
    stage = Stage(scenario(bodies.five_steps), answer=refuse(Refusal.CONFLICT, kinds.STEP_CREATED))
    assert stage.deliver().ending is Ending.COMPLETED
    assert [request.payload for request in stage.appended if request.lazy][:3] == [[0], [1], [2]]


def test_a_delivery_that_loses_every_claim_parks_and_leaves_a_backstop() -> None:
    stage = Stage(scenario(bodies.five_steps), answer=refuse(Refusal.CONFLICT, kinds.STEP_STARTED))
    delivery = stage.deliver()
    assert (delivery.ending, delivery.passes) == (Ending.PARKED, 1)
    assert stage.sent[-1].delay_ms == stage.rules.lease_ms


def test_a_background_step_that_the_store_does_not_know_yet_is_looked_for_again_but_not_for_ever() -> None:
    stage = Stage(scenario(bodies.five_steps), answer=refuse(Refusal.NOT_FOUND, kinds.STEP_STARTED))
    stage.deliver(step_id="step_unseen", step_name="work", data={"input": [7]})
    again = stage.sent[-1]
    assert (again.message.step_id, again.message.data) == ("step_unseen", {"input": [7], "looks": 1})
    stage.deliver(step_id="step_unseen", step_name="work", data={"input": [7], "looks": stage.rules.looks})
    assert stage.sent[-1] is again


def test_a_background_step_runs_although_its_create_was_claimed_and_is_not_in_the_log_yet() -> None:
    stage = Stage(scenario(bodies.five_steps))
    stage.deliver(step_id="step_unseen", step_name="work", data={"input": [7]})
    assert stage.types[-2:] == [kinds.STEP_STARTED, kinds.STEP_COMPLETED]
    assert stage.appended[-1].payload == [7]


# -- a log that the workflow cannot follow  ---------------


def diverging() -> Stage:
    stage = Stage(scenario(bodies.five_steps))
    stage.deliver()
    created = next(event for event in stage.events if event.type == kinds.STEP_CREATED)
    place = stage.events.index(created)
    stage.events[place] = type(created)(
        created.type, RUN, created.event_id, created.correlation_id, created.position, created.created_at, "other"
    )
    return stage


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_divergence_is_tried_again_by_a_fresh_delivery_three_times(count: int) -> None:
    stage = diverging()
    assert stage.deliver(divergences=count).ending is Ending.RECOVERING
    assert (stage.sent[-1].message.divergences, stage.sent[-1].delay_ms) == (count + 1, 0)


def test_the_fourth_divergence_says_that_the_log_is_corrupted() -> None:
    stage = diverging()
    assert stage.deliver(divergences=3).ending is Ending.FAILED
    end = stage.events[-1]
    assert end.payload is not None
    assert (end.type, end.data["errorCode"]) == (kinds.RUN_FAILED, "CORRUPTED_EVENT_LOG")
    assert "diverged 4 times after 3 recovery replays" in end.payload.load()
    assert "belongs to other" in end.payload.load()


def test_a_gap_in_the_positions_is_a_broken_contract_of_the_world() -> None:
    stage = Stage(scenario(bodies.five_steps))
    stage.deliver()
    del stage.events[4]
    assert stage.deliver().ending is Ending.FAILED
    end = stage.events[-1]
    assert end.payload is not None
    assert end.data["errorCode"] == "WORLD_CONTRACT_ERROR"
    assert "4 followed by 6" in end.payload.load()


# -- failures of the user's code  ---------------


def test_a_step_that_raises_is_retried_and_fails_for_good_at_its_last_attempt() -> None:
    stage = Stage(scenario(bodies.breaks))
    stage.deliver()
    assert stage.events[-1].type == kinds.STEP_RETRYING
    step = stage.events[-1].correlation_id
    for _ in range(2):
        stage.now += 2_000
        stage.deliver(step_id=step, step_name="broken")
    assert stage.types[-2:] == [kinds.STEP_FAILED, kinds.RUN_FAILED]
    assert stage.events[-1].data["errorCode"] == "USER_ERROR"


def test_a_workflow_that_raises_fails_its_run() -> None:
    stage = Stage(scenario(bodies.raises))
    assert stage.deliver().ending is Ending.FAILED
    end = stage.events[-1]
    assert end.payload is not None
    assert end.payload.load() == "RuntimeError: the workflow itself is wrong"
