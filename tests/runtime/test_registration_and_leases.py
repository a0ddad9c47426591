"""What a delivery sends on for a hook whose registration is awaited and for a step whose owner died; and kills."""

from __future__ import annotations

from typing import Any

import pytest

from stormctl.engine.generations import REGISTERED
from stormctl.engine.workflow import Workflow
from stormctl.history import kinds
from stormctl.runtime import ops
from stormctl.runtime.rules import Rules
from stormctl.runtime.steps import Call, run_step
from stormctl.worlds.base import AppendRequest
from tests.runtime.bodies import Nothing, scenario
from tests.runtime.driving import RUN, Stage


async def binds(wf: Workflow, _input: Nothing) -> str:
    step = wf.step("work", 1)
    hook = wf.hook("door")
    assert await hook.conflict() is None
    await step
    return "bound"


async def one_step(wf: Workflow, _input: Nothing) -> Any:
    return await wf.step("work", 1)


class TestARegistration:
    def test_is_handed_back_through_the_queue_and_nothing_runs_inline(self):
        stage = Stage(scenario(binds), rules=Rules(generation=REGISTERED))
        stage.deliver()
        assert kinds.HOOK_CREATED in stage.types
        assert kinds.STEP_STARTED not in stage.types
        flows = [sent for sent in stage.sent if sent.message.step_id is None]
        steps = [sent for sent in stage.sent if sent.message.step_id is not None]
        assert [(sent.delay_ms, len(flows)) for sent in flows] == [(0, 1)]
        assert [sent.message.step_name for sent in steps] == ["work"]
        stage.deliver(step_id=steps[0].message.step_id, step_name="work", data={"input": [1]})
        assert stage.types[-1] == kinds.RUN_COMPLETED

    def test_that_is_there_already_sends_nothing(self):
        stage = Stage(scenario(binds), rules=Rules(generation=REGISTERED))
        stage.deliver()
        stage.sent.clear()
        stage.deliver()
        assert [sent for sent in stage.sent if sent.message.step_id is None] == []


class TestADeadOwner:
    def stage(self, lease_ms: float) -> Stage:
        stage = Stage(scenario(one_step), rules=Rules(lease_ms=lease_ms))
        stage.land(AppendRequest(RUN, kinds.RUN_STARTED, "x"))
        first = Stage(scenario(one_step))
        first.deliver()
        step = next(event for event in first.events if event.type == kinds.STEP_CREATED)
        stage.land(
            AppendRequest(
                RUN, kinds.STEP_STARTED, "x", step.correlation_id, "work", data={"ownerMessageId": "dead"}, lazy=True,
                payload=[1],
            )
        )  # fmt: skip
        return stage

    def test_keeps_its_step_for_a_lease(self):
        stage = self.stage(10_000.0)
        stage.deliver()
        (sent,) = stage.sent
        assert (sent.message.step_id, sent.delay_ms) == (None, 10_000.0)

    def test_loses_it_afterwards_to_the_queue_once(self):
        stage = self.stage(10_000.0)
        stage.now += 10_000
        stage.deliver()
        stage.deliver()
        (sent,) = stage.sent
        assert (sent.message.step_name, sent.delay_ms) == ("work", 0)
        stage.deliver(step_id=sent.message.step_id, step_name="work", data={"input": [1]})
        assert stage.types.count(kinds.STEP_STARTED) == 2
        assert stage.types[-1] == kinds.RUN_COMPLETED


class TestAStepThatKillsItsWorker:
    @pytest.mark.parametrize(("attempt", "killed"), [(1, True), (2, False)])
    def test_asks_for_the_kill_after_its_start_and_before_any_outcome(self, attempt, killed):
        from stormctl.workloads.inline_hang import INLINE_HANG

        call = Call(RUN, "step_1", "taskStep", (2500.0, RUN, 2, 16, float(1 << 50), 1), attempt)
        requests = run_step(call, INLINE_HANG, Rules(), "wrt")
        asked: list[ops.Op] = []
        reply: Any = None
        while True:
            try:
                op = requests.send(reply)
            except StopIteration:
                break
            asked.append(op)
            reply = 5 if isinstance(op, ops.Now) else None
            if isinstance(op, ops.Kill):
                break
        assert isinstance(asked[0], ops.Append)
        assert asked[1] == ops.Sleep(2500.0, "step body")
        assert (asked[-1] == ops.Kill(f"task 2 of {RUN}, attempt 1")) is killed
        ends = [op.request.type for op in asked if isinstance(op, ops.Append)][1:]
        assert ends == ([] if killed else [kinds.STEP_COMPLETED])
