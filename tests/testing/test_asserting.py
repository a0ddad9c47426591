"""Ids that mean one thing: the assertion, a race that breaks it under some generations, and its sound twin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stormctl.engine.generations import GENERATIONS
from stormctl.testing import BindingFailure, LogBuilder, assert_binds_stably, run_serially
from stormctl.workloads.registry import WORKLOADS
from stormctl.workloads.user import load_workload


async def two_branches(wf: Any, _input: Any) -> None:
    async def paid() -> None:
        hook = wf.hook("payment")
        await wf.race(hook.next(), wf.sleep(1000))
        await wf.step("capture")

    async def packed() -> None:
        await wf.step("reserve")
        await wf.step("pack")

    await wf.all([packed(), paid()])


def paid_then_reserved() -> LogBuilder:
    return (
        LogBuilder()
        .run_created()
        .run_started()
        .step_created(0, "reserve")
        .step_started(0)
        .hook_created(1, "payment")
        .wait_created(2, in_ms=1000)
        .hook_received(1, "visa")
        .step_completed(0)
        .step_created(3, "capture")
        .step_created(4, "pack")
    )


def test_a_stable_body_passes_under_todays_engine() -> None:
    assert_binds_stably(two_branches, paid_then_reserved())


#: generations under which two branches that are woken together draw in an order of their own, or one too few
UNSTABLE = ("queue", "opposite", "transitive")


@pytest.mark.parametrize("generation", [name for name in GENERATIONS if name not in UNSTABLE])
def test_later_generations_order_a_payload_and_a_step(generation: str) -> None:
    assert_binds_stably(two_branches, paid_then_reserved(), generation=generation, perturbations=4)


@pytest.mark.parametrize("generation", UNSTABLE)
def test_a_pass_that_depends_on_how_long_reading_takes_is_told_with_both_answers(generation: str) -> None:
    with pytest.raises(BindingFailure) as caught:
        assert_binds_stably(two_branches, paid_then_reserved(), generation=generation)
    said = caught.value
    assert said.before == said.after == 8
    assert f"two_branches does not bind stably under {generation}, replayed from prefix 8" in str(said)
    assert said.was != said.now
    assert "step:pack" in (said.was, said.now)


def test_a_flip_from_one_prefix_to_the_next_is_told_with_the_event_between(root: Path) -> None:
    order = load_workload(f"{root}/fixtures/workflows/order.py:order")
    log = LogBuilder().run_created(order_id="o-1").run_started().step_created(0, "reserveStock", "book")
    log.step_started(0).hook_created(1, "payment-o-1").wait_created(2, in_ms=60_000).hook_received(1, "visa")
    log.wait_completed(2).step_completed(0, "shelf 3")
    with pytest.raises(BindingFailure) as caught:
        assert_binds_stably(order, log, generation="parked-idle")
    said = caught.value
    assert (said.rank, said.was, said.now, said.before, said.after) == (3, "wait", "step:packParcel", 8, 9)
    assert str(said).splitlines() == [
        "order.py:order does not bind stably under parked-idle",
        "  rank 3 is wait for who has read up to 8",
        "  and step:packParcel from 9 on, which adds 9 step_completed rank 0 step:reserveStock",
    ]


def test_a_difference_that_only_a_perturbation_makes_is_told_with_it() -> None:
    from stormctl.engine.door import Perturbation

    seen: list[Perturbation] = []

    async def impure(wf: Any, _input: Any) -> None:
        # a body that looks at what it must not see, here how its pass is perturbed, gives another table each way
        seen.append(wf._context.perturbation)
        await wf.step("slow" if seen[-1].hydration_ms else "calm")

    with pytest.raises(BindingFailure) as caught:
        assert_binds_stably(impure, LogBuilder().run_created().run_started())
    assert (caught.value.was, caught.value.now) == ("step:calm", "step:slow")
    assert "with hydration_ms=1 it is step:slow" in str(caught.value)
    assert_binds_stably(impure, LogBuilder().run_created().run_started(), perturbations=0)


@pytest.mark.parametrize("name", ["step-storm", "hook-storm"])
def test_quiet_runs_of_our_own_storms_bind_stably(name: str) -> None:
    workload = WORKLOADS[name]
    quiet = run_serially(workload, workload.input_type(token="t", rounds=1, width=2))
    assert_binds_stably(workload, quiet, generation="dispenser", perturbations=3)
