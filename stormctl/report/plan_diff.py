"""Where two storms that are compared were not the same storm: plans, inputs, machines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stormctl.report.sides import Sides

#: fields of a plan that make two storms different ones, by the name that a plan gives them
_PLANNED = (
    "seed", "target", "concurrency", "processes", "time_scale", "storage_scale", "hydration_jitter_ms", "cap_ms",
    "faults", "host_faults",
)  # fmt: skip
#: what env.json tells of the machine
_MACHINE = ("stormctl", "python", "platform", "cores", "server")


def plan_differences(sides: Sides) -> Iterator[str]:
    """Where the plans, inputs and machines of two storms differ, as ``seed 7 against 8``."""
    old, new = sides.old.plan, sides.new.plan
    if old is None or new is None:
        yield "a plan.yaml is absent, so nobody knows what else differs"
    else:
        for name in _PLANNED:
            first, second = getattr(old, name), getattr(new, name)
            if first != second:
                yield f"{'cap' if name == 'cap_ms' else name} {_value(first)} against {_value(second)}"
        for scenario in dict.fromkeys(one.scenario for one in sides.pairings):
            yield from _inputs(scenario, old.inputs.get(scenario, {}), new.inputs.get(scenario, {}))
    for name in _MACHINE:
        first, second = sides.old.env.get(name), sides.new.env.get(name)
        if first != second:
            yield f"{name} {_value(first)} against {_value(second)}"


def _inputs(scenario: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[str]:
    for key in dict.fromkeys((*first, *second)):
        if first.get(key) != second.get(key):
            yield f"{scenario} {key} {_value(first.get(key))} against {_value(second.get(key))}"


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(str(getattr(one, "label", one)) for one in value) or "none"
    if value is None:
        return "unknown"
    return f"{value:g}" if isinstance(value, float) else str(value)
