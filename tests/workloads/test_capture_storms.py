"""The storms whose real runs were captured: the port against the TypeScript, and against the captures."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.engine.door import Outcome
from stormctl.engine.engines import engine_for
from stormctl.testing import LogBuilder
from stormctl.workloads import base as acts
from stormctl.workloads.base import Pressure
from stormctl.workloads.capture_storms import CAPTURE_HOOK_STORM, CAPTURE_STEP_STORM, Input, work_for


def work_in_typescript(width: int, work: float, spread: float, r: int, b: int) -> int:
    """``Math.max(0, Math.round(work + off * spread))``, written down once more; Math.round takes halves up."""
    slot = (b * 3 + r * 2) % width
    off = slot / (width - 1) - 0.5 if width > 1 else 0
    return max(0, math.floor(work + off * spread + 0.5))


class TestWorkingTimes:
    @given(
        st.integers(1, 12),
        st.integers(0, 5000),
        st.integers(0, 4000),
        st.integers(0, 9),
        st.integers(0, 11),
    )
    def test_are_those_of_the_typescript(self, width, work, spread, round, branch):
        input = Input(width=width, work_ms=float(work), spread_ms=float(spread))
        assert work_for(input, round, branch % width) == work_in_typescript(width, work, spread, round, branch % width)

    def test_of_the_published_input_lie_on_both_sides_of_the_watchdog(self):
        times = [work_for(Input(), 0, branch) for branch in range(6)]
        assert times == [900, 1200, 900, 1200, 900, 1200]
        assert [work_for(Input(), 1, branch) for branch in range(6)] == [1100, 1400, 1100, 1400, 1100, 1400]

    def test_halves_round_up(self):
        assert work_for(Input(width=2, work_ms=1000.0, spread_ms=1.0), 0, 0) == 1000  # 999.5
        assert work_for(Input(width=2, work_ms=1000.0, spread_ms=1.0), 0, 1) == 1001  # 1000.5

    def test_are_never_negative(self):
        assert work_for(Input(work_ms=10.0, spread_ms=900.0), 0, 0) == 0

    def test_of_a_single_branch_are_the_base(self):
        assert work_for(Input(width=1), 3, 0) == 1150


class TestCalls:
    def first_calls(self, code) -> list[tuple[str | None, object]]:
        input = code.parse_input({"token": "t", "width": 2, "rounds": 1})
        log = LogBuilder().run_created().run_started().log()
        (one,) = engine_for("dispenser", code, input).passes(log, [2])
        return [(draw.name or draw.kind, draw.arguments) for draw in one.draws]

    def test_a_step_takes_one_object(self):
        assert self.first_calls(CAPTURE_STEP_STORM) == [
            ("hook", "t:poke"),
            ("settle", ({"r": 0, "b": 0, "ms": 900},)),
            ("wait", 1200.0),
            ("settle", ({"r": 0, "b": 1, "ms": 1400},)),
            ("wait", 1200.0),
        ]

    def test_hooks_are_created_together_before_the_watchdogs(self):
        assert self.first_calls(CAPTURE_HOOK_STORM) == [
            ("hook", "t:0:0"),
            ("hook", "t:0:1"),
            ("wait", 1200.0),
            ("wait", 1200.0),
        ]

    def settled_and_late(self) -> list[str]:
        """One round of two branches: branch 0 settles, branch 1 is late."""
        input = CAPTURE_STEP_STORM.parse_input({"token": "t", "width": 2, "rounds": 1})
        log = LogBuilder().run_created().run_started()
        log.step_created(1, "settle").step_completed(1).wait_created(4).wait_completed(4)
        log.step(5, "release").step(6, "recover").step(7, "finalize")
        (one,) = engine_for("dispenser", CAPTURE_STEP_STORM, input).passes(log.log(), [len(log.events)])
        assert one.outcome is Outcome.SUSPENDED, one.divergence
        return [draw.label for draw in one.draws[5:]]

    def test_release_is_called_on_the_settled_path_only(self):
        assert self.settled_and_late() == ["step:release", "step:recover", "step:finalize", *["step:reconcile"] * 3]


class TestDrivers:
    def test_pokes_count_up(self):
        driver = CAPTURE_STEP_STORM.driver(Input(token="t"), Pressure())
        assert driver.send(None) == acts.WaitForHook("t:poke", 60_000.0)
        assert isinstance(driver.send("hook_1"), acts.RunEnded)
        for number in (1, 2):
            assert driver.send(False) == acts.Resume("t:poke", {"n": number})
            assert isinstance(driver.send(True), acts.Uniform)
            assert driver.send(0.5) == acts.Sleep(300 + 50)
            assert isinstance(driver.send(None), acts.RunEnded)

    def test_hooks_are_resumed_in_a_burst(self):
        driver = CAPTURE_HOOK_STORM.driver(Input(token="t"), Pressure())
        seen = [driver.send(None), driver.send(False), driver.send("hook_1"), driver.send(2_200), driver.send(1_000)]
        assert [type(act) for act in seen] == [
            acts.RunEnded,
            acts.WaitForHook,
            acts.LastWait,
            acts.Now,
            acts.Together,
        ]
        assert [one.send(None).ms for one in seen[-1].drivers] == [1120, 1152, 1184, 1216, 1248, 1280]


class TestTheCheck:
    @pytest.mark.parametrize(
        ("value", "problem"),
        [
            (None, "the run did not return 3 counts of late branches"),
            ({"lates": [1, 2]}, "the run did not return 3 counts of late branches"),
            ({"lates": [1, 2, 7]}, "a round reports 7 late branches of 6"),
            ({"lates": [1, -1, 9]}, "a round reports -1 late branches of 6"),
            ({"lates": [1, "x", 0]}, "a round reports x late branches of 6"),
            ({"lates": [0, 6, 3]}, None),
        ],
    )
    def test_names_the_first_disagreement(self, value, problem):
        assert CAPTURE_STEP_STORM.check(value, Input()) == problem


class TestRoles:
    @pytest.mark.parametrize(
        ("code", "opener"), [(CAPTURE_STEP_STORM, "settle"), (CAPTURE_HOOK_STORM, "hook")], ids=["step", "hook"]
    )
    def test_a_branch_is_released_or_recovered_at_most_once(self, code, opener):
        log = LogBuilder().run_created().run_started()
        for rank in range(2):
            log.step_created(rank, "settle") if opener == "settle" else log.hook_created(rank, f"t:0:{rank}")
        log.step_created(2, "release").step_created(3, "release")
        assert code.roles(Input(width=2), log.log()).excesses == ()
        (excess,) = code.roles(Input(width=2), log.step_created(4, "release").log()).excesses
        assert (excess.index, excess.role, excess.limit) == (6, "release", 2)
