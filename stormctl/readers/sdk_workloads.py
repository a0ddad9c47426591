"""Which scenario a run of the SDK is, told by its workflow's name, its first step and its input.

The SDK names a workflow by file and function (``workflow//./workflows/storms//stepStorm``), and more than one bundle
calls its storms alike: ours, upstream's (``stepStormReproWorkflow``) and the one whose runs were captured. They differ
by the names of their steps, and before the first step by their input.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from stormctl.history import Event, kinds

if TYPE_CHECKING:
    from stormctl.workloads.base import Workload

CAPTURE = "capture-"
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_AROUND = re.compile(r"^stormctl-|-(?:repro-)?workflow$|-repro$")


def name_of(workflow: str) -> str:
    """The scenario's name inside a workflow id: ``.../storms//stepStormReproWorkflow`` -> ``step-storm``."""
    name = _HUMP.sub("-", workflow.rpartition("//")[2]).replace("_", "-").lower()
    return _AROUND.sub("", _AROUND.sub("", name))


def scenario_of(workflow: str | None, arguments: Any, events: Sequence[Event]) -> tuple[str | None, Mapping[str, Any]]:
    """The workload of a run and its input under the workload's own field names.

    A workflow that is none of our scenarios keeps its own name, and the input that it was given.
    """
    given = arguments[0] if isinstance(arguments, list) and arguments else arguments
    given = given if isinstance(given, Mapping) else {}
    if workflow is None:
        return None, given
    from stormctl.workloads.registry import WORKLOADS

    name = name_of(workflow)
    for workload in (WORKLOADS.get(CAPTURE + name), WORKLOADS.get(name)):
        if workload is not None and _is(workload, given, events):
            return workload.name, input_for(workload, given)
    return workflow, given


def input_for(workload: Workload, given: Mapping[str, Any]) -> dict[str, Any]:
    """``{"watchdogMs": 2500}`` -> ``{"watchdog_ms": 2500}``: what the workload knows of an input, under its names."""
    known = {field.name for field in fields(workload.input_type)}
    found: dict[str, Any] = {}
    for key, value in given.items():
        name = _HUMP.sub("_", str(key)).lower()
        for candidate in (name, name.removesuffix("_ms")):  # a time of the clock has no unit in its name here
            if candidate in known:
                found[candidate] = value
                break
    return found


def _is(workload: Workload, given: Mapping[str, Any], events: Sequence[Event]) -> bool:
    """Whether a run of that name is this workload: by its first step, else by whether it takes the input."""
    first = next((event.short_name for event in events if event.type == kinds.STEP_CREATED and event.name), None)
    if first is not None:
        return first in workload.steps
    return len(input_for(workload, given)) == len(given) and bool(given)
