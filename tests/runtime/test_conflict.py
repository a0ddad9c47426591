"""A create that exists already: passed over, compared, or taken for a divergence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stormctl.engine.generations import DISPENSER
from stormctl.history import Inline, kinds
from stormctl.runtime import ops
from stormctl.runtime.delivery import Delivery, Ending
from stormctl.runtime.rules import OnConflict, Rules
from stormctl.worlds.base import Appended, AppendRequest, Refusal, Refused
from tests.runtime import bodies
from tests.runtime.bodies import scenario
from tests.runtime.driving import RUN, Stage


def stage_with(policy: OnConflict, body: Any = bodies.five_steps) -> Stage:
    return Stage(scenario(body), rules=Rules(generation=DISPENSER, on_conflict=policy))


def beaten(stage: Stage, wanted: str, *, lands: bool = True, **changed: Any) -> None:
    """Another writer's create of the first entity of a type comes first, with some of its fields changed."""
    left = [1]

    def answer(request: AppendRequest) -> Appended | Refused | None:
        if request.type != wanted or not left[0]:
            return None
        left[0] -= 1
        if lands:
            stage.land(replace(request, writer="another", **changed))
        return Refused(Refusal.CONFLICT, "it exists already")

    stage.answer = answer


def verdicts(stage: Stage) -> list[str]:
    return [note["verdict"] for note in stage.notes("conflict")]


def diverged(stage: Stage, delivery: Delivery) -> bool:
    return delivery.ending is Ending.RECOVERING and stage.sent[-1].message.divergences == 1


class TestSwallowing:
    def test_looks_at_nothing(self) -> None:
        stage = stage_with(OnConflict.SWALLOW)
        beaten(stage, kinds.STEP_CREATED, payload=[99])
        stage.deliver()
        whole_reads = sum(isinstance(op, ops.Load) and op.after is None for op in stage.asked)
        assert (verdicts(stage), whole_reads, stage.notes("divergence")) == ([], 1, [])


class TestComparing:
    @pytest.mark.parametrize(
        ("body", "type"),
        [
            (bodies.five_steps, kinds.STEP_CREATED),
            (bodies.five_steps, kinds.STEP_STARTED),
            (bodies.one_of_each, kinds.WAIT_CREATED),
            (bodies.one_of_each, kinds.HOOK_CREATED),
            (bodies.one_of_each, kinds.ATTR_SET),
        ],
    )
    def test_goes_on_where_both_meant_the_same(self, body: Any, type: str) -> None:
        stage = stage_with(OnConflict.COMPARE, body)
        beaten(stage, type)
        assert stage.deliver().ending is Ending.PARKED
        assert verdicts(stage) == ["same"]

    @pytest.mark.parametrize(
        ("body", "type", "changed", "words"),
        [
            (
                bodies.five_steps,
                kinds.STEP_CREATED,
                {"name": "other"},
                "the log calls other, and the workflow calls work",
            ),
            (bodies.five_steps, kinds.STEP_CREATED, {"payload": [99]}, "has another input"),
            (bodies.five_steps, kinds.STEP_STARTED, {"payload": [99]}, "has another input"),
            (bodies.one_of_each, kinds.HOOK_CREATED, {"token": "gate"}, "has another token"),
            (bodies.one_of_each, kinds.ATTR_SET, {"data": {"changes": []}}, "sets other attributes"),
            (bodies.one_of_each, kinds.WAIT_CREATED, {"type": kinds.STEP_CREATED}, "holds a step_created"),
        ],
    )
    def test_takes_a_difference_for_a_divergence(
        self, body: Any, type: str, changed: dict[str, Any], words: str
    ) -> None:
        stage = stage_with(OnConflict.COMPARE, body)
        beaten(stage, type, **changed)
        delivery = stage.deliver()
        assert diverged(stage, delivery)
        assert verdicts(stage)[-1] == "different"
        (note,) = stage.notes("divergence")
        assert words in note["text"]
        create = next(event for event in stage.events if event.event_id == note["at"])
        assert create.correlation_id in note["text"]

    def test_passes_over_a_create_that_is_claimed_and_not_in_the_log(self) -> None:
        stage = stage_with(OnConflict.COMPARE)
        beaten(stage, kinds.STEP_CREATED, lands=False)
        stage.deliver()
        assert verdicts(stage) == ["unseen"]
        assert not stage.notes("divergence")

    def test_does_not_mind_another_time_of_the_same_wait(self) -> None:
        stage = stage_with(OnConflict.COMPARE, bodies.nap)
        beaten(stage, kinds.WAIT_CREATED, resume_at=stage.now + 5_000)
        stage.deliver()
        assert verdicts(stage) == ["same"]

    def test_takes_the_token_of_another_run_for_no_difference(self) -> None:
        stage = stage_with(OnConflict.COMPARE, bodies.one_of_each)
        beaten(stage, kinds.HOOK_CREATED, type=kinds.HOOK_CONFLICT)
        stage.deliver()
        assert verdicts(stage)[0] == "same"

    def test_climbs_the_ladder_to_a_corrupted_log(self) -> None:
        stage = stage_with(OnConflict.COMPARE)
        beaten(stage, kinds.STEP_CREATED, payload=[99])
        assert stage.deliver(divergences=3).ending is Ending.FAILED
        assert stage.events[-1].data["errorCode"] == "CORRUPTED_EVENT_LOG"

    def test_ends_quietly_when_the_creates_were_refused_because_the_run_had_ended(self) -> None:
        stage = stage_with(OnConflict.COMPARE)

        def answer(request: AppendRequest) -> Refused | None:
            if request.type != kinds.STEP_CREATED:
                return None
            if kinds.RUN_CANCELLED not in stage.types:
                stage.land(AppendRequest(RUN, kinds.RUN_CANCELLED, "somebody"))
            return Refused(Refusal.CONFLICT, "the run has ended")

        stage.answer = answer
        assert stage.deliver().ending is Ending.ENDED
        assert verdicts(stage) == ["ended"]


class TestDiverging:
    @pytest.mark.parametrize("type", [kinds.STEP_CREATED, kinds.STEP_STARTED])
    def test_takes_every_existing_create_for_a_divergence(self, type: str) -> None:
        stage = stage_with(OnConflict.DIVERGE)
        beaten(stage, type)
        assert diverged(stage, stage.deliver())
        assert verdicts(stage) == ["refused"]

    def test_lets_the_recovery_delivery_go_on_from_the_log(self) -> None:
        stage = stage_with(OnConflict.DIVERGE)
        beaten(stage, kinds.STEP_CREATED)
        stage.deliver()
        assert stage.deliver(divergences=1).ending is Ending.PARKED

    def test_does_not_mind_facts_that_came_second(self) -> None:
        stage = stage_with(OnConflict.DIVERGE, bodies.nap)
        stage.deliver()
        stage.now += 1_000
        beaten(stage, kinds.WAIT_COMPLETED)
        assert stage.deliver().ending is Ending.COMPLETED


def test_a_payload_is_compared_by_its_digest_and_not_by_its_form() -> None:
    stage = stage_with(OnConflict.COMPARE)
    beaten(stage, kinds.STEP_CREATED)
    stage.deliver()
    created = next(event for event in stage.events if event.type == kinds.STEP_CREATED)
    assert created.payload == Inline([3])
    assert verdicts(stage) == ["same"]
