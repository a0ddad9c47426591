"""Small things that several scenarios are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stormctl.engine.promise import Promise
from stormctl.engine.workflow import Workflow
from stormctl.errors import PlanError

#: what a payload is filled up with
_FILL = "."


def padded(tag: str, size: int) -> str:
    """A tag, filled up to ``size`` bytes: what a step's result weighs."""
    return tag.ljust(size, _FILL)


def spread(base_ms: float, jitter_ms: float, index: int) -> float:
    """A fixed delay in ms for an index: the base and 0 to 9 tenths of the jitter, shuffled, whole milliseconds."""
    return base_ms + int((7 * index) % 10 * jitter_ms / 10)


async def pool(wf: Workflow, count: int, width: int, start: Callable[[int], Promise]) -> list[Any]:
    """Keep ``width`` of ``count`` tasks in flight, starting the next whenever one settles: the results as they came.

    Which task is started next hangs on who settled first, which is what makes a pool worth replaying.
    """
    flying: dict[int, Promise] = {}
    results: list[Any] = []
    started = 0
    while started < count or flying:
        while started < count and len(flying) < width:
            flying[started] = _named(start(started), started)
            started += 1
        index, result = await wf.race(*flying.values())
        del flying[index]
        results.append(result)
    return results


def _named(promise: Promise, index: int) -> Promise:
    return promise.then(lambda result: (index, result))


def check_ratios(**ratios: float) -> None:
    """PlanError for a probability above 1. (Below 0 is refused with every other negative number.)"""
    for name, value in ratios.items():
        if value > 1:
            raise PlanError(f"{name} is {value:g}", remedy="It is a probability: give it 0 to 1.")


def check_order(**limits: float) -> None:
    """PlanError when the second of two limits is the smaller."""
    (low, least), (high, most) = limits.items()
    if most < least:
        raise PlanError(f"{high} is {most:g}, below {low}", remedy=f"Give {high} {least:g} or more.")
