"""Quiet runs of a user's own body: a log without a fault, to test with or to corrupt."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormctl.history import kinds
from stormctl.testing import assert_binds_stably, assert_replays, run_serially


async def order(wf: Any, input: dict[str, str]) -> str:
    shelf = await wf.step("reserve", input["id"])
    hook = wf.hook(f"payment-{input['id']}")
    paid = await wf.race(hook.next(), wf.sleep(1000).then(lambda _: None))
    return str(await wf.step("ship" if paid else "release", shelf))


def names(built: Any) -> list[str | None]:
    return [event.name for event in built.events if event.type == kinds.STEP_CREATED]


def test_steps_return_what_they_are_told_and_hooks_receive_before_waits_end() -> None:
    built = run_serially(order, {"id": "o-1"}, results={"reserve": 3, "ship": str}, payloads={"payment-o-1": "visa"})
    assert names(built) == ["reserve", "ship"]
    assert built.events[-1].type == kinds.RUN_COMPLETED
    assert built.capture().run.output == "3"  # type: ignore[union-attr]
    assert_replays(order, built)
    assert_binds_stably(order, built)


def test_without_a_payload_the_timeout_wins() -> None:
    assert names(run_serially(order, {"id": "o-1"})) == ["reserve", "release"]


def test_a_run_that_waits_for_a_payload_that_never_comes_is_given_up() -> None:
    async def waits(wf: Any, input: Any) -> None:
        await wf.hook("payment").next()

    with pytest.raises(RuntimeError, match="waits has not ended"):
        run_serially(waits)
    assert run_serially(waits, payloads={"payment": 1}).events[-1].type == kinds.RUN_COMPLETED


def test_a_body_that_raises_fails_its_run() -> None:
    async def raises(wf: Any, input: Any) -> None:
        raise ValueError

    assert run_serially(raises).events[-1].type == kinds.RUN_FAILED


@settings(max_examples=40)
@given(
    branches=st.lists(st.lists(st.sampled_from(["step", "sleep", "race"]), max_size=3), min_size=1, max_size=3),
    late=st.sets(st.integers(0, 8)),
)
def test_the_quiet_run_of_any_body_is_followed_by_the_generations_without_a_known_fault(
    branches: list[list[str]], late: set[int]
) -> None:
    async def branch(wf: Any, number: int, acts: list[str]) -> None:
        for place, act in enumerate(acts):
            step = wf.step(f"step{number}.{place}") if act != "sleep" else None
            sleep = wf.sleep(1000) if act != "step" else None
            await wf.race(*(one for one in (step, sleep) if one is not None))

    async def body(wf: Any, input: Any) -> None:
        await wf.all([branch(wf, number, acts) for number, acts in enumerate(branches)])

    quiet = run_serially(body, late=sorted(late))
    for generation in ("rearm", "registered"):
        assert_replays(body, quiet, generation=generation)
        assert_binds_stably(body, quiet, generation=generation, perturbations=1)
