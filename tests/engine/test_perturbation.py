"""What may vary between two passes over one prefix must not change a correct engine's answer (engine determinism)."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormctl.engine.door import AttributeHandling, Outcome, Pass, Perturbation
from stormctl.engine.engines import engine_for
from stormctl.engine.replay import ReplayEngine
from stormctl.history import Capture, EventLog
from stormctl.readers.open import open_file
from stormctl.workloads.registry import workload
from tests.conftest import ROOT
from tests.engine import known_faults
from tests.engine.writing import engine, labels, opened, replay

ORDERED = ("dispenser", "turnstile", "rearm", "registered")
STORMS = sorted((ROOT / "fixtures" / "storms" / "logs").glob("*.ndjson"))
#: the acceptance asks for 1,000 of each generation; one costs about 3 ms
EXAMPLES = int(os.environ.get("STORMCTL_PERTURBATIONS", "1000"))

perturbations = st.builds(
    Perturbation,
    hydration_hops=st.integers(0, 9),
    hydration_ms=st.sampled_from([0.0, 0.0, 1.0, 5.0, 20.0]),
    jitter_ms=st.sampled_from([0, 1, 5, 50]),
    seed=st.integers(0, 1 << 30),
    jitter_hops=st.integers(0, 9),
    warm=st.integers(0, 250),
    timer_ms=st.sampled_from([1.0, 1.0, 4.0, 15.6]),
    attributes=st.sampled_from(AttributeHandling),
)


def opened_log(path: Path) -> tuple[EventLog, str, Any]:
    (capture,) = open_file(path)
    assert isinstance(capture, Capture)
    name = "step-storm" if capture.run is None or capture.run.workload is None else capture.run.workload
    return capture.log, name, {} if capture.run is None else capture.run.input


class Storm:
    """One of our own logs with the engines that replay it; calm passes are kept."""

    def __init__(self, path: Path) -> None:
        self.log, name, given = opened_log(path)
        code = workload(name)
        input = code.parse_input(given)
        self.engines: dict[str, ReplayEngine] = {one: engine_for(one, code, input) for one in (*ORDERED, "nets")}
        self._calm: dict[tuple[str, int], Pass] = {}

    def calm(self, name: str, length: int) -> Pass:
        key = (name, length)
        if key not in self._calm:
            self._calm[key] = self.perturbed(name, length, Perturbation())
        return self._calm[key]

    def perturbed(self, name: str, length: int, perturbation: Perturbation) -> Pass:
        return next(iter(self.engines[name].passes(self.log, [length], perturbation=perturbation)))


@pytest.fixture(scope="module")
def storms() -> dict[str, Storm]:
    return {path.stem: Storm(path) for path in STORMS}


def agree(one: Pass, other: Pass) -> bool:
    """The same answer. What else was on its way when a pass diverged may have come further in one than in the other."""
    if one.outcome is not other.outcome:
        return False
    if one.outcome is not Outcome.DIVERGED:
        return one.draws == other.draws
    assert one.divergence is not None
    assert other.divergence is not None
    shared = min(len(one.draws), len(other.draws))
    return one.divergence == other.divergence and one.draws[:shared] == other.draws[:shared]


@pytest.mark.parametrize("name", ORDERED)
class TestFromTheDispenserOn:
    @settings(max_examples=EXAMPLES, deadline=None)
    @given(data=st.data(), perturbation=perturbations)
    def test_no_perturbation_changes_what_our_storms_draw(self, name, storms, data, perturbation):
        storm = storms[data.draw(st.sampled_from(sorted(storms)))]
        length = data.draw(st.one_of(st.just(len(storm.log)), st.integers(1, len(storm.log))))
        assert agree(storm.calm(name, length), storm.perturbed(name, length, perturbation))

    @pytest.mark.parametrize("hops", [1, 8])
    def test_neither_does_the_cost_of_reading_at_any_prefix(self, name, storms, hops):
        for storm in storms.values():
            lengths = range(len(storm.log), 0, -5)  # downwards, each by itself: forks would cost more than they spare
            small = storm.engines[name]
            calm = small.passes(storm.log, lengths)
            other = small.passes(storm.log, lengths, perturbation=Perturbation(hydration_hops=hops))
            for one, two in zip(calm, other, strict=True):
                assert agree(one, two), one.prefix


def test_what_the_nets_draw_depends_on_how_long_reading_takes(storms):
    flipping = storms["step-storm-flips"]
    assert any(
        not agree(
            flipping.calm("nets", len(flipping.log)),
            flipping.perturbed("nets", len(flipping.log), Perturbation(jitter_ms=50, seed=seed)),
        )
        for seed in range(8)
    )


class TestTheCachedResult:
    """vercel/workflow #3137: the first replay of a delivery reads a result, the later ones find it in the cache."""

    @staticmethod
    def passes(name: str) -> list[list[str]]:
        return [
            labels(replay(known_faults.neighbours, known_faults.neighbours_log(), name, perturbation=perturbation))[3:]
            for perturbation in (Perturbation(hydration_ms=2.0), Perturbation(hydration_ms=2.0, warm=100))
        ]

    def test_swaps_two_draws_under_opposite(self):
        cold, warm = self.passes("opposite")
        assert cold == ["step:after the wait", "step:after the work"]
        assert warm == ["step:after the work", "step:after the wait"]

    def test_makes_a_pass_suspend_too_early_under_transitive(self):
        cold, warm = self.passes("transitive")
        assert cold == ["step:after the wait", "step:after the work"]
        assert warm == ["step:after the wait"]

    @pytest.mark.parametrize("name", ["parked-idle", "unarmed", "nets", "dispenser-v1", *ORDERED])
    def test_changes_nothing_since(self, name):
        cold, warm = self.passes(name)
        assert cold == warm == ["step:after the wait", "step:after the work"]


class TestAttributesOfSteps:
    async def body(self, wf, _input):
        await wf.step("work")
        await wf.step("more work")

    @pytest.mark.parametrize("handling", list(AttributeHandling))
    def test_make_no_difference_to_what_is_drawn(self, handling):
        built = opened().step(0, "work").attr_set(settle="1").step(1, "more work")
        one = replay(self.body, built, perturbation=Perturbation(attributes=handling))
        assert one.outcome is Outcome.COMPLETED
        assert one.parked == ()

    def test_cost_a_grace_period_where_nobody_claims_them(self):
        built = opened().step_created(0, "work").attr_set(settle="1").step_started(0).step_completed(0)
        claimed, parked = (
            replay(self.body, built, perturbation=Perturbation(attributes=handling))
            for handling in (AttributeHandling.CLAIMED, AttributeHandling.PARKED)
        )
        assert claimed.duration_ms is not None
        assert parked.duration_ms is not None
        assert claimed.duration_ms < 10 < 100 < parked.duration_ms
        assert replace(parked, duration_ms=claimed.duration_ms) == claimed


class TestTimers:
    async def body(self, wf, _input):
        await wf.step("work")
        await wf.step("next")

    def test_are_due_at_whole_multiples_of_their_grain(self):
        built = opened().step(0, "work")
        fine, coarse = (replay(self.body, built, perturbation=Perturbation(timer_ms=grain)) for grain in (1.0, 15.6))
        assert fine.duration_ms == 1.0
        assert coarse.duration_ms == 15.6
        assert coarse.draws == fine.draws


def test_a_warm_cache_spares_results_of_steps_only():
    async def body(wf, _input):
        hook = wf.hook("door")
        await wf.step("work")
        await hook.next()

    built = opened().hook_created(0, "door").step(1, "work").hook_received(0)
    cold = Perturbation(hydration_ms=100.0)
    small = engine(body)
    log = built.log()
    times = [
        next(iter(small.passes(log, [len(log)], perturbation=one))).duration_ms
        for one in (cold, replace(cold, warm=6), replace(cold, warm=100))
    ]
    assert times[0] is not None
    assert times[1] is not None
    assert 95 <= times[0] - times[1] <= 105
    assert times[2] == times[1]
