"""What a plan would do, before it does it: for ``stormctl run --dry-run``.

A storm corrupts when three things come together (vercel/workflow #3147): several invocations write one run, one of them
writes from an incomplete load, and how many steps follow depends on what it missed. A plan that lacks one of them and
comes out clean proves nothing, so the description says which it exercises.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from stormctl.storm import sdk_plan, url_plan
from stormctl.storm.names import Names
from stormctl.storm.plan import Plan
from stormctl.storm.sdk_plan import processes_of
from stormctl.workloads.base import Workload
from stormctl.worlds.condition import Fence, Lock
from stormctl.worlds.conditions import condition_named

COLUMNS = 80


@dataclass(frozen=True, slots=True)
class Exercised:
    """One of the three things, for one scenario or condition: whether the plan exercises it, and why."""

    what: str
    where: str
    met: bool
    why: str


@dataclass(frozen=True, slots=True)
class Description:
    """``worst_ms`` is the wall time after which the storm has ended whatever happens."""

    plan: Plan
    worst_ms: float
    exercised: tuple[Exercised, ...]
    warnings: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """The description as plain text, about 80 columns wide."""
        plan = self.plan
        yield f"plan {plan.name}, seed {plan.seed}"
        counts = "/".join(str(count) for count in dict.fromkeys(map(plan.attempts_of, plan.cells)))
        yield (
            f"{len(plan.cells)} cells of {counts} attempts: {plan.total} in all, {plan.concurrency} at once, "
            f"{_run_by(plan)}"
        )
        for cell in plan.cells:
            yield f"  {cell.scenario:<14} {cell.arm}"
        for scenario, values in plan.inputs.items():
            yield f"input of {scenario}:"
            listed = " ".join(f"{key}={_plain(value)}" for key, value in values.items())
            yield textwrap.fill(listed, COLUMNS, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
        yield (
            f"time: at most {clock(self.worst_ms)} (launches for {clock(plan.budget_ms)}, each run for "
            f"{clock(plan.cap_ms * plan.time_scale)} at time_scale {plan.time_scale:g})"
        )
        if plan.faults:
            yield "faults:"
        for fault in plan.faults:
            how = f", {fault.when.text}" if fault.when is not None else ", all the time"
            yield f"  {fault.label}{how}"
        for line in plan.host_faults.lines():
            yield f"host: {line}"
        replayed = (*plan.generations, *plan.real_engines)
        if replayed:
            yield f"every log is replayed by {', '.join(replayed)} too"
        yield "what corrupts a log, and whether this plan exercises it:"
        for one in self.exercised:
            yield f"  {'yes' if one.met else 'no':<5}{one.what}, {one.where}: {one.why}"
        for warning in self.warnings:
            yield f"warning: {warning}"


def describe(plan: Plan, names: Names | None = None) -> Description:
    """What the plan would run, how long that can take, and whether it can show anything."""
    names = names if names is not None else Names.built()
    each = plan.cap_ms * plan.time_scale
    in_turn = sum(math.ceil(plan.attempts_of(cell) / plan.concurrency) for cell in plan.cells)
    worst = min(plan.budget_ms + each, in_turn * each)
    exercised = [*_writers(plan, names), *_stale_loads(plan), *_counting(plan, names)]
    return Description(plan, worst, tuple(exercised), tuple(calibration(plan, names)))


def calibration(plan: Plan, names: Names | None = None) -> Iterator[str]:
    """Sentences about a plan that can be run but would show less than it seems to."""
    names = names if names is not None else Names.built()
    for scenario in plan.scenarios:
        workload = (names.workloads or {})[scenario]
        for warning in workload.warnings(workload.parse_input(plan.inputs[scenario])):
            yield f"{scenario}: {warning}"
    for one in _counting(plan, names):
        if not one.met:
            yield f"{one.where}: every branch counts the same number of steps, which hides the fault"
    if plan.storage_scale == 0:
        yield "storage_scale 0 removes the injected store latency: the stale window is only the pass's own"


def clock(ms: float) -> str:
    """A duration for a person: ``45 s``, ``4 min``, ``12 min 30 s``."""
    seconds = math.ceil(ms / 1000)
    minutes, rest = divmod(seconds, 60)
    if minutes < 2:
        return f"{seconds} s"
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _tested(plan: Plan, names: Names) -> Iterator[tuple[str, Workload]]:
    """The scenarios that are meant to fail where something is wrong: all but controls."""
    for scenario in plan.scenarios:
        workload = (names.workloads or {})[scenario]
        if not workload.control:
            yield scenario, workload


def _writers(plan: Plan, names: Names) -> Iterator[Exercised]:
    for scenario, _ in _tested(plan, names):
        width = plan.inputs[scenario].get("width")
        several = not isinstance(width, int) or width > 1
        why = "one branch at a time"
        if several:
            why = "its driver wakes it while it works" if width is None else f"{width} branches complete on their own"
        processes = f", on {plan.processes} processes" if plan.processes > 1 else ""
        yield Exercised("several invocations", scenario, several, why + processes)


def _run_by(plan: Plan) -> str:
    """What runs the attempts."""
    if plan.target == url_plan.TARGET:
        return "cell after cell on " + ", ".join(f"{app.name} at {app.url}" for app in plan.apps)
    if plan.target == sdk_plan.TARGET:
        most = max(map(processes_of, plan.cells))
        return f"cell after cell on {'one server' if most == 1 else f'up to {most} servers'} of the Workflow SDK"
    return f"{plan.processes} worker process{'es' if plan.processes != 1 else ''}"


def _stale_loads(plan: Plan) -> Iterator[Exercised]:
    if plan.target in (sdk_plan.TARGET, url_plan.TARGET):
        return  # what software that is not ours refuses is what the storm is to find out
    for name in dict.fromkeys(cell.condition for cell in plan.cells):
        condition = condition_named(name)
        refuses = condition.fence is not Fence.NONE and condition.lock is not Lock.NONE
        why = "its fence refuses what a stale load decides" if refuses else "nothing refuses what a stale load decides"
        yield Exercised("writes from stale loads", name, not refuses, why)


def _counting(plan: Plan, names: Names) -> Iterator[Exercised]:
    for scenario, workload in _tested(plan, names):
        given = workload.parse_input(plan.inputs[scenario])
        depends = dict(workload.counts(given, 0)) != dict(workload.counts(given, 1))
        why = "a straggler takes other steps than a winner" if depends else "every branch takes the same steps"
        yield Exercised("counts that depend on who straggles", scenario, depends, why)
