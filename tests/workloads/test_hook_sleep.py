"""hook-sleep: the control, its one resume, and a run that was never woken."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormctl.history import kinds
from stormctl.testing import LogBuilder
from stormctl.workloads import base as acts
from stormctl.workloads.base import Pressure
from stormctl.workloads.hook_sleep import HOOK_SLEEP, Input, branch_waits
from stormctl.workloads.registry import WORKLOADS
from tests.storm.stage import storm
from tests.workloads.acting import payloads, played, sleeps
from tests.workloads.virtual import Run

INPUT = Input(token="t")


def creates(log):
    return Counter(event.name or event.type for event in log if event.type in kinds.CREATES)


class TestTheDriver:
    @pytest.mark.parametrize(("drawn", "slept"), [(0.0, 15_000), (0.5, 20_000), (0.99999, 24_999)])
    def test_resumes_once_after_its_delay_and_a_part_of_its_jitter(self, drawn, slept):
        pressure = Pressure()
        seen = played(HOOK_SLEEP.driver(INPUT, pressure), uniform=iter([drawn]), now=9)
        assert sleeps(seen) == [slept]
        assert payloads(seen) == [{"sentAt": 9}]
        assert (pressure.resumes_sent, pressure.resumes_failed) == (1, 0)

    def test_leaves_a_run_that_has_ended_alone(self):
        seen = played(HOOK_SLEEP.driver(INPUT, Pressure()), ends_after=0)
        assert not any(isinstance(act, acts.Resume) for act in seen)

    def test_a_missing_hook_is_told(self):
        pressure = Pressure()
        played(HOOK_SLEEP.driver(INPUT, pressure), hooks=False)
        assert pressure.hook_missing


class TestAWholeRun:
    def test_sleeps_until_the_wake_and_returns_with_it(self):
        run = Run(HOOK_SLEEP, INPUT, seed=1)
        value = run.to_the_end()
        assert [record["branch"] for record in value["branches"]] == ["sleep", "sleep", "wake"]
        assert value["branches"][-1]["drained"] == {"iteration": 2}
        assert "sentAt" in value["branches"][-1]["event"]
        assert HOOK_SLEEP.check(value, INPUT) is None
        assert HOOK_SLEEP.infra(value, INPUT) is None

    def test_waits_in_parallel_after_every_sleep_that_won(self):
        assert branch_waits(INPUT) == [1000, 1250]
        value = Run(HOOK_SLEEP, Input(token="t", iterations=2, resume_delay_ms=60_000.0)).to_the_end()
        assert [record["branch"] for record in value["branches"]] == ["sleep", "sleep"]
        assert HOOK_SLEEP.infra(value, INPUT) == "NO_WAKE_BRANCH"
        assert HOOK_SLEEP.check(value, Input(iterations=2)) is None

    @pytest.mark.parametrize("generation", ["nets", "dispenser"])
    @pytest.mark.parametrize("seed", [1, 2])
    def test_completes_with_exact_counts(self, generation, seed):
        seen = storm("hook-sleep", "seq-final", generation, seed=seed)
        assert seen.row is not None
        assert seen.row.status == "completed"
        value = seen.row.output
        assert seen.code.check(value, seen.input) is None
        assert seen.code.infra(value, seen.input) is None
        wanted = seen.code.counts(seen.input, seen.code.stragglers(value))
        assert creates(seen.log) == {name: count for name, count in wanted.items() if count}

    def test_is_the_only_control(self):
        assert [code.name for code in WORKLOADS.values() if code.control] == ["hook-sleep"]


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 5), st.booleans(), st.integers(0, 3), st.integers(0, 20_000), st.sampled_from([0.0, 300.0]),
    st.integers(0, 3),
)  # fmt: skip
def test_the_counts_follow_from_the_sleeps(iterations, returns, waits, delay, final, seed):
    input = Input(
        token="t",
        iterations=iterations,
        return_on_wake=returns,
        sleep_branch_wait_count=waits,
        resume_delay_ms=float(delay),
        final_delay_ms=final,
    )
    run = Run(HOOK_SLEEP, input, seed=seed)
    value = run.to_the_end()
    assert HOOK_SLEEP.check(value, input) is None
    wanted = HOOK_SLEEP.counts(input, HOOK_SLEEP.stragglers(value))
    assert creates(run.log) == {name: count for name, count in wanted.items() if count}
    assert HOOK_SLEEP.roles is not None
    assert HOOK_SLEEP.roles(input, run.log).excesses == ()


class TestWhatMustHold:
    def value(self, *branches):
        return {"branches": [{"branch": branch, "iteration": place} for place, branch in enumerate(branches)]}

    def test_a_run_that_went_on_after_its_wake_is_refused_and_its_twin_passes(self):
        assert HOOK_SLEEP.check(self.value("sleep", "wake"), INPUT) is None
        assert HOOK_SLEEP.check(self.value("sleep", "wake", "sleep"), INPUT) == "the run went through 3 iterations of 2"

    def test_a_run_that_stopped_early_is_refused(self):
        assert HOOK_SLEEP.check(self.value("sleep"), INPUT) == "the run went through 1 iterations of 8"

    def test_an_iteration_out_of_its_place_is_refused(self):
        value = self.value("sleep", "wake")
        value["branches"][1]["iteration"] = 0
        assert HOOK_SLEEP.check(value, INPUT) == "iteration 1 says that it is iteration 0"

    @pytest.mark.parametrize("value", [None, {}, {"branches": [{"branch": "hook", "iteration": 0}]}])
    def test_a_value_of_another_shape_is_refused(self, value):
        assert HOOK_SLEEP.check(value, INPUT) is not None

    def test_a_second_drain_is_an_excess(self):
        log = LogBuilder().run_created().run_started().step_created(0, "drainStep")
        assert HOOK_SLEEP.roles is not None
        assert HOOK_SLEEP.roles(INPUT, log.log()).excesses == ()
        assert HOOK_SLEEP.roles(INPUT, log.step_created(1, "drainStep").log()).excesses[0].role == "drainStep"

    def test_a_resume_after_all_sleeps_is_warned_of(self):
        assert HOOK_SLEEP.warnings(INPUT) == []
        assert "are over" in HOOK_SLEEP.warnings(Input(iterations=5))[0]
