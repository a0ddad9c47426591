"""Every divergence that upstream reports, in our words: what was expected, at which position, what came instead.

The eight cases are those of vercel/workflow's replay errors; each has its twin, the same log without the disagreement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from stormctl.engine.door import Outcome
from stormctl.engine.generations import GENERATIONS
from stormctl.history import digest_value, kinds
from stormctl.testing import LogBuilder
from tests.engine.writing import opened, replay


async def one_step(wf: Any, _input: Any) -> None:
    await wf.step("finalize")
    await wf.step("next")


async def one_sleep(wf: Any, _input: Any) -> None:
    await wf.sleep(1000)


async def one_hook(wf: Any, _input: Any) -> None:
    await wf.hook("door").next()


async def attributes(wf: Any, _input: Any) -> None:
    await wf.set_attributes({"phase": "one"})


async def nothing(_wf: Any, _input: Any) -> None: ...


@dataclass(frozen=True)
class Case:
    """``says`` is the whole sentence; ``twin`` edits the log so that nothing disagrees."""

    name: str
    body: Any
    log: Callable[[], LogBuilder]
    twin: Callable[[], LogBuilder]
    reason: str
    position: int
    expected: str
    actual: str
    says: str


CASES = [
    Case(
        "a step event that belongs to another step",
        one_step,
        lambda: opened().step_created(0, "release"),
        lambda: opened().step_created(0, "finalize"),
        "name",
        3,
        "step:release",
        "step:finalize",
        "step_created at position 3 belongs to release, but with rank 0 the workflow calls finalize",
    ),
    Case(
        "a step that is created when it is done",
        one_step,
        lambda: opened().event(kinds.STEP_COMPLETED, 0, name="finalize").step_created(0, "finalize"),
        lambda: opened().step_created(0, "finalize").step_completed(0),
        "item",
        4,
        "step:finalize",
        "settled",
        "step_created at position 4 creates finalize too late: the workflow has its result already",
    ),
    Case(
        "an event of a type that a step cannot have",
        one_step,
        lambda: opened().event(kinds.WAIT_COMPLETED, correlation_id=LogBuilder().id("step", 0)),
        lambda: opened().step_created(0, "finalize"),
        "type",
        3,
        "wait",
        "step:finalize",
        "wait_completed at position 3 is no event that a step can have",
    ),
    Case(
        "an end of a wait that was to end at another time",
        one_sleep,
        lambda: opened().event(kinds.WAIT_CREATED, 0, resume_at=5000).event(kinds.WAIT_COMPLETED, 0, resume_at=5001),
        lambda: opened().event(kinds.WAIT_CREATED, 0, resume_at=5000).event(kinds.WAIT_COMPLETED, 0, resume_at=5000),
        "resume-at",
        4,
        "wait until 5001",
        "wait until 5000",
        "wait_completed at position 4 ends a wait until 5001, but the workflow waits until 5000",
    ),
    Case(
        "a hook event under another token",
        one_hook,
        lambda: opened().hook_created(0, "window"),
        lambda: opened().hook_created(0, "door"),
        "token",
        3,
        "hook with token digest " + digest_value("window")[:8],
        "hook with token digest " + digest_value("door")[:8],
        "hook_created at position 3 belongs to another token than the hook that the workflow created with its id",
    ),
    Case(
        "an attribute write with other changes",
        attributes,
        lambda: opened().attr_set(0, phase="two"),
        lambda: opened().attr_set(0, phase="one"),
        "attributes",
        3,
        "attr",
        "attr",
        "attr_set at position 3 sets other attributes than the workflow does",
    ),
    Case(
        "an event that nobody asks for",
        one_step,
        lambda: opened().step_created(1, "next"),
        lambda: opened().step(0, "finalize").step_created(1, "next"),
        "unconsumed",
        3,
        "step:next",
        "nothing",
        "step_created at position 3 was not consumed: the workflow asks for nothing with its id",
    ),
    Case(
        "an event that nobody asks for, with something else pending at its id",
        one_sleep,
        lambda: opened().step_created(0, "finalize"),
        lambda: opened().wait_created(0),
        "unconsumed",
        3,
        "step:finalize",
        "wait",
        "step_created at position 3 was not consumed: with its id the workflow asks for wait",
    ),
    Case(
        "an event that was set aside until the replay had finished",
        one_step,
        lambda: opened().hook_received(7).step(0, "finalize").step(1, "next"),
        lambda: opened().step(0, "finalize").step(1, "next"),
        "stranded",
        3,
        "hook",
        "finished",
        "hook_received at position 3 was set aside, and the replay finished without asking for it",
    ),
]


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
class TestADisagreement:
    def test_is_told_with_what_was_expected_where_and_what_came(self, case, generation):
        one = replay(case.body, case.log(), generation)
        assert one.outcome is Outcome.DIVERGED
        found = one.divergence
        assert found is not None
        assert (found.reason, found.position, found.index + 1) == (case.reason, case.position, case.position)
        assert found.text == case.says
        assert (found.expected, found.actual) == (case.expected, case.actual)
        assert found.event_id == case.log().events[found.index].event_id

    def test_is_none_when_the_log_agrees(self, case, generation):
        assert replay(case.body, case.twin(), generation).outcome is not Outcome.DIVERGED
