"""Whole runs of every scenario, in virtual time: how often each thing is done, what comes back, what the checks say."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormctl.engine.door import Outcome
from stormctl.engine.engines import engine_for
from stormctl.history import EventLog, kinds
from stormctl.workloads.base import Workload
from stormctl.workloads.registry import WORKLOADS, workload
from tests.workloads.virtual import Run


def slow(_name: str, _arguments: tuple[Any, ...]) -> float:
    """Queues and stores take time, so that a round's tail outlasts the last resume, as it does upstream."""
    return 150.0


def creates(log: EventLog) -> Counter[str]:
    """Distinct creates by step name, and by event type for the rest."""
    seen: Counter[str] = Counter()
    for event in log:
        if event.type in kinds.CREATES or event.type == kinds.ATTR_SET:
            seen[event.name or event.type] += 1
    return seen


CASES = {
    "step storm, upstream-exact": ("step-storm", {}),
    "step storm, spread delays": ("step-storm", {"jitter_buckets": 7}),
    "step storm without sleeps between rounds": ("step-storm", {"between_round_sleep_ms": 0, "rounds": 2}),
    "hook storm, staggered": ("hook-storm", {}),
    "hook storm, burst": ("hook-storm", {"resume": "burst"}),
    "blocked branch": ("blocked-branch", {}),
    "wake loop": ("wake-loop", {"step_payload_bytes": 64}),
    "inline hang that nobody kills": ("inline-hang", {}),
    "control": ("hook-sleep", {}),
    "captured step storm": ("capture-step-storm", {}),
    "captured hook storm": ("capture-hook-storm", {}),
    "captured step storm without gaps": ("capture-step-storm", {"gap_ms": 0, "rounds": 2, "width": 3}),
}


@pytest.fixture(scope="module")
def finished() -> dict[str, tuple[Workload, Any, Run, Any]]:
    """One completed run per case."""
    runs = {}
    for case, (name, given_input) in CASES.items():
        code = workload(name)
        input = code.parse_input({"token": "t", **given_input})
        run = Run(code, input, latency=slow)
        runs[case] = (code, input, run, run.to_the_end())
    return runs


every = pytest.mark.parametrize("case", CASES)


class TestACompletedRun:
    @every
    def test_passes_its_ledger_check(self, finished, case):
        code, input, _run, value = finished[case]
        assert code.check(value, input) is None

    @every
    def test_creates_exactly_what_the_scenario_says(self, finished, case):
        code, input, run, value = finished[case]
        seen = creates(run.log)
        expected = code.counts(input, code.stragglers(value))
        assert {name: seen[name] for name in expected} == dict(expected)

    @every
    def test_plays_no_role_more_often_than_its_rounds_allow(self, finished, case):
        code, input, run, _value = finished[case]
        assert code.roles is not None
        assert code.roles(input, run.log).excesses == ()

    @every
    @pytest.mark.parametrize("generation", ["nets", "dispenser"])
    def test_is_read_to_its_end_by_a_cold_replay(self, finished, case, generation):
        code, input, run, value = finished[case]
        log = run.log[:-1]
        (one,) = engine_for(generation, code, input).passes(log, [len(log)])
        assert (one.outcome, one.value) == (Outcome.COMPLETED, value)

    def test_has_winners_of_both_kinds_where_the_delays_straddle_the_watchdog(self, finished):
        for case in ("step storm, spread delays", "hook storm, staggered", "hook storm, burst", "captured step storm"):
            code, input, _run, value = finished[case]
            assert 0 < code.stragglers(value) < input.rounds * input.width, case

    @pytest.mark.parametrize(("lag", "stragglers"), [(5.0, [0, 0, 0, 8, 0, 0]), (150.0, [0, 8, 0, 8, 0, 0])])
    def test_in_the_upstream_exact_step_storm_whole_rounds_straggle(self, lag, stragglers):
        """Round 3 (2700 ms) is past the watchdog of 2500 ms; what starts late may bring round 1 (2450 ms) there."""
        code = workload("step-storm")
        value = Run(code, code.parse_input({"token": "t"}), latency=lambda _name, _arguments: lag).to_the_end()
        assert [record["stragglers"] for record in value["ledger"]] == stragglers


class TestThePublishedTable:
    """The structural invariants of completed runs: rounds R, width W, base B, S stragglers."""

    R, W, B = 6, 8, 2

    def test_of_the_step_storm(self, finished):
        code, _input, run, value = finished["step storm, spread delays"]
        s, seen = code.stragglers(value), creates(run.log)
        steps = sum(1 for event in run.log if event.type == kinds.STEP_CREATED)
        assert steps == self.R * (3 * self.W + self.B) + 2 * s == 156 + 2 * s
        assert seen[kinds.HOOK_CREATED] == 1
        assert seen[kinds.WAIT_CREATED] == 54
        assert seen[kinds.ATTR_SET] == 48
        assert (seen["recoverStep"], seen["reconcileStep"]) == (s, self.R * self.B + s)
        assert (seen["finalizeStep"], seen["releaseStep"]) == (48, 48)

    def test_of_the_hook_storm(self, finished):
        code, _input, run, value = finished["hook storm, staggered"]
        s, seen = code.stragglers(value), creates(run.log)
        steps = sum(1 for event in run.log if event.type == kinds.STEP_CREATED)
        assert steps == self.R * (2 * self.W + self.B) + 2 * s == 108 + 2 * s
        assert seen[kinds.HOOK_CREATED] == 48
        assert seen[kinds.WAIT_CREATED] == 54
        assert seen[kinds.ATTR_SET] == 0
        assert (seen["recoverStep"], seen["reconcileStep"]) == (s, self.R * self.B + s)

    def test_a_storm_pokes_its_hook_and_disposes_it_at_the_end(self, finished):
        _code, _input, run, _value = finished["step storm, upstream-exact"]
        assert [event.type for event in run.log[-2:]] == [kinds.HOOK_DISPOSED, kinds.RUN_COMPLETED]
        pokes = sum(1 for event in run.log if event.type == kinds.HOOK_RECEIVED)
        assert pokes == run.pressure.resumes_sent - run.pressure.resumes_failed
        assert 20 < pokes < 41


#: the scenarios made of rounds of racing branches
STORMS = sorted(name for name, code in WORKLOADS.items() if hasattr(code.input_type, "rounds"))


@settings(max_examples=15)
@given(
    st.sampled_from(STORMS),
    st.integers(1, 3),
    st.integers(1, 4),
    st.dictionaries(st.tuples(st.integers(0, 2), st.integers(0, 3)), st.integers(0, 600), max_size=12),
    st.integers(0, 3),
)
def test_whoever_wins_the_counts_follow_from_the_stragglers(name, rounds, width, lags, seed):
    code = workload(name)
    input = code.parse_input({"token": "t", "rounds": rounds, "width": width})

    def lag(step: str, arguments: tuple[Any, ...]) -> float:
        if step == "settleStep":
            return float(lags.get((arguments[2], arguments[3]), 5))
        if step == "settle":
            return float(lags.get((arguments[0]["r"], arguments[0]["b"]), 5))
        return 5.0

    run = Run(code, input, latency=lag, seed=seed)
    value = run.to_the_end()
    assert code.check(value, input) is None
    seen = creates(run.log)
    expected = code.counts(input, code.stragglers(value))
    assert {role: seen[role] for role in expected} == dict(expected)
    assert code.roles is not None
    assert code.roles(input, run.log).excesses == ()
