"""Which workflow of the templates plays which scenario, and what its input is called over there.

The SDK's side uses upstream's field names (camelCase) and knows only what the workflow reads: what belongs to the
driver stays with us.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from stormctl.errors import PlanError, suggest

#: how a field is called over there, where that is not its camelCase
_RENAMED = {"kill_until": "killUntilMs"}


@dataclass(frozen=True, slots=True)
class Twin:
    """The workflow that plays a scenario: its file and function, and the inputs of ours that it reads."""

    file: str
    function: str
    reads: tuple[str, ...]

    @property
    def workflow_name(self) -> str:
        """What a run of it is called in a log."""
        return f"workflow//./workflows/{self.file}//{self.function}"


_ROUNDS = ("token", "rounds", "width", "watchdog_ms", "between_round_sleep_ms", "reconcile_base")
_CAPTURE = ("token", "rounds", "width", "watchdog_ms", "work_ms", "spread_ms", "gap_ms", "reconcile_min")

TWINS: Mapping[str, Twin] = {
    "step-storm": Twin(
        "step_storm",
        "stepStormReproWorkflow",
        (*_ROUNDS, "step_delay_ms", "step_delay_jitter_ms", "jitter_buckets", "attr_writes"),
    ),
    "hook-storm": Twin("hook_storm", "hookStormReproWorkflow", _ROUNDS),
    "blocked-branch": Twin(
        "blocked_branch",
        "blockedBranchReproWorkflow",
        (*_ROUNDS, "step_delay_ms", "launch_stagger_ms", "attr_writes"),
    ),
    "wake-loop": Twin(
        "wake_loop",
        "wakeLoopReproWorkflow",
        (
            "token",
            "wakes",
            "heartbeat_ms",
            "step_delay_ms",
            "step_delay_jitter_ms",
            "short_step_ms",
            "step_payload_bytes",
            "continue_every",
            "max_cycles",
        ),
    ),
    "inline-hang": Twin(
        "inline_hang",
        "inlineHangReproWorkflow",
        (
            "token",
            "width",
            "tasks",
            "sibling_ms",
            "victim_delay_ms",
            "victim_task",
            "kill_until",
            "kills",
            "payload_bytes",
        ),
    ),
    "hook-sleep": Twin(
        "hook_sleep",
        "hookSleepReproWorkflow",
        (
            "token",
            "iterations",
            "sleep_ms",
            "sleep_branch_wait_count",
            "sleep_branch_wait_ms",
            "sleep_branch_wait_spacing_ms",
            "return_on_wake",
            "drain_delay_ms",
            "final_delay_ms",
        ),
    ),
    "dag-runner": Twin(
        "dag_runner",
        "dagRunnerReproWorkflow",
        (
            "token",
            "nodes",
            "width",
            "evaluate_ms",
            "evaluate_jitter_ms",
            "short_step_ms",
            "worker_every",
            "worker_watchdog_ms",
            "prelude_binds",
        ),
    ),
    "capture-step-storm": Twin("storms", "stepStorm", _CAPTURE),
    "capture-hook-storm": Twin("storms", "hookStorm", _CAPTURE),
}


def twin(workload: str) -> Twin:
    """The twin of a scenario. PlanError for one that the real SDK does not play (a user's own workload)."""
    if workload not in TWINS:
        raise PlanError(f"the target sdk has no workflow for {workload!r}", remedy=suggest(workload, TWINS))
    return TWINS[workload]


def sdk_input(workload: str, input: Any) -> dict[str, Any]:
    """A scenario's input as its workflow over there reads it."""
    return {_name(field): getattr(input, field) for field in twin(workload).reads}


def fitted(input: Any, *, attributes: bool) -> Any:
    """The input that a version can play: without ``attributes`` (4.x) a step writes none, and counts follow."""
    if attributes or not any(field.name == "attr_writes" for field in fields(input)):
        return input
    return replace(input, attr_writes=0)


def whole_ms(input: Any) -> Any:
    """The input with its durations in whole milliseconds, as timers are over there."""
    if not is_dataclass(input) or isinstance(input, type):
        return input
    rounded = {
        f.name: float(round(getattr(input, f.name)))
        for f in fields(input)
        if f.name.endswith("_ms") and isinstance(getattr(input, f.name), float)
    }
    return replace(input, **rounded)


def _name(field: str) -> str:
    if field in _RENAMED:
        return _RENAMED[field]
    first, *rest = field.split("_")
    return first + "".join(part.capitalize() for part in rest)
