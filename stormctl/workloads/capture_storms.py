"""capture-step-storm and capture-hook-storm: the workflow that made the captured logs of the real SDK, ported exactly.

It differs from the upstream storms: other step names, ``release`` on the settled path only (recovery calls ``recover``
and ``finalize``), one argument object per step, and branch durations spread on both sides of the watchdog.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stormctl.engine.hook import Hook
from stormctl.engine.promise import Promise
from stormctl.engine.workflow import Workflow
from stormctl.history import EventLog
from stormctl.workloads import hook_storm, storm
from stormctl.workloads.base import (
    Act,
    Pressure,
    Resume,
    RoleReport,
    RunEnded,
    Sleep,
    StepBody,
    Uniform,
    WaitForHook,
    Workload,
)
from stormctl.workloads.races import Drawn, Race, Trail, ends, written

LATE = "late"


@dataclass(frozen=True)
class Input:
    """The captured runs' input. Times are milliseconds."""

    token: str = ""
    rounds: int = 3
    width: int = 6
    watchdog_ms: float = 1200.0
    work_ms: float = 1150.0
    spread_ms: float = 500.0
    gap_ms: float = 300.0
    reconcile_min: int = 2
    poke_interval_ms: float = 300.0
    poke_jitter_ms: float = 100.0
    poke_max: int = 64
    poke_decay_factor: float = 8.0
    burst_width_ms: float = 160.0
    hook_timeout_ms: float = 60_000.0
    lookup_ms: float = 5_000.0


def work_for(input: Input, round: int, branch: int) -> int:
    """A branch's working time, rounded as JavaScript's Math.round does (halves up)."""
    slot = (branch * 3 + round * 2) % input.width
    offset = slot / (input.width - 1) - 0.5 if input.width > 1 else 0.0
    return max(0, int(input.work_ms + offset * input.spread_ms + 0.5))


async def tail(wf: Workflow, round: int, branch: int, *, late: bool) -> int:
    """What follows a branch's race: 1 for a late branch."""
    if late:
        await wf.step("recover", {"r": round, "b": branch})
        await wf.step("finalize", {"r": round, "b": branch})
    else:
        await wf.step("release", {"r": round, "b": branch})
    return 1 if late else 0


async def close_round(wf: Workflow, input: Input, round: int, flags: list[int]) -> int:
    """Reconcile in parallel and sleep the gap: how many were late."""
    late = sum(flags)
    await wf.all(wf.step("reconcile", {"r": round, "k": k, "late": late}) for k in range(input.reconcile_min + late))
    if input.gap_ms > 0:
        await wf.sleep(input.gap_ms)
    return late


async def step_branch(wf: Workflow, input: Input, round: int, branch: int) -> Promise:
    """Race the settlement against the watchdog."""
    got = await wf.race(
        wf.step("settle", {"r": round, "b": branch, "ms": work_for(input, round, branch)}),
        wf.sleep(input.watchdog_ms).then(lambda _: LATE),
    )
    return wf.run(tail(wf, round, branch, late=got == LATE))


async def hook_branch(wf: Workflow, input: Input, hook: Hook, round: int, branch: int) -> Promise:
    """Race the hook against the watchdog."""
    got = await wf.race(
        hook.next().then(lambda _: "hook"),
        wf.sleep(input.watchdog_ms).then(lambda _: LATE),
    )
    return wf.run(tail(wf, round, branch, late=got == LATE))


async def step_body(wf: Workflow, input: Input) -> dict[str, Any]:
    """capture-step-storm."""
    poke = wf.hook(f"{input.token}:poke")
    lates = []
    for round in range(input.rounds):
        flags = await wf.all(step_branch(wf, input, round, branch) for branch in range(input.width))
        lates.append(await wf.run(close_round(wf, input, round, flags)))
    poke.dispose()
    return {"workflowRunId": wf.run_id, "lates": lates}


async def hook_body(wf: Workflow, input: Input) -> dict[str, Any]:
    """capture-hook-storm."""
    lates = []
    for round in range(input.rounds):
        hooks = [wf.hook(f"{input.token}:{round}:{branch}") for branch in range(input.width)]
        flags = await wf.all(hook_branch(wf, input, hook, round, branch) for branch, hook in enumerate(hooks))
        for hook in hooks:
            hook.dispose()
        lates.append(await wf.run(close_round(wf, input, round, flags)))
    return {"workflowRunId": wf.run_id, "lates": lates}


def settle(argument: dict[str, Any]) -> Generator[Act, Any, dict[str, Any]]:
    """Work for ``ms``."""
    yield Sleep(argument["ms"])
    return {"r": argument["r"], "b": argument["b"]}


def echo(argument: dict[str, Any]) -> Generator[Act, Any, dict[str, Any]]:
    """Return the argument."""
    yield from ()
    return dict(argument)


STEPS: dict[str, StepBody] = {"settle": settle, "release": echo, "recover": echo, "finalize": echo, "reconcile": echo}


def drive_pokes(input: Input, pressure: Pressure) -> Generator[Act, Any, None]:
    """Poke the unread hook while the run lives."""
    token = f"{input.token}:poke"
    if (yield WaitForHook(token, input.hook_timeout_ms)) is None:
        pressure.hook_missing = not (yield RunEnded())
        return
    while not (yield RunEnded()):
        pressure.resumes_sent += 1
        if not (yield Resume(token, {"n": pressure.resumes_sent})):
            pressure.resumes_failed += 1
        decay = 1.0 if pressure.resumes_sent < input.poke_max else input.poke_decay_factor
        yield Sleep(input.poke_interval_ms * decay + int((yield Uniform()) * input.poke_jitter_ms))


def drive_burst(input: Input, pressure: Pressure) -> Generator[Act, Any, None]:
    """Resume each round's hooks in one burst around the recorded end of its watchdogs."""
    return hook_storm.drive(
        hook_storm.Input(
            token=input.token,
            rounds=input.rounds,
            width=input.width,
            watchdog_ms=input.watchdog_ms,
            resume=hook_storm.BURST,
            burst_width_ms=input.burst_width_ms,
            hook_timeout_ms=input.hook_timeout_ms,
            lookup_ms=input.lookup_ms,
        ),
        pressure,
    )


def check(value: Any, input: Input) -> str | None:
    """One count of late branches per round, none above the width."""
    lates = value.get("lates") if isinstance(value, dict) else None
    if not isinstance(lates, list) or len(lates) != input.rounds:
        return f"the run did not return {input.rounds} counts of late branches"
    wrong = [late for late in lates if not isinstance(late, int) or not 0 <= late <= input.width]
    return f"a round reports {wrong[0]} late branches of {input.width}" if wrong else None


def stragglers(value: Any) -> int:
    """How many branches were late over the run."""
    return int(sum(value["lates"]))


def one_sided(value: Any, input: Input, _log: EventLog | None, _pressure: Pressure) -> str | None:
    """Why a completed run proves nothing: nobody was late, or everybody was."""
    return storm.one_way(stragglers(value), input.rounds * input.width)


def step_counts(input: Input, late: int) -> Mapping[str, int]:
    """Exact counts of a completed capture-step-storm's creates."""
    return {**_counts(input, late), "settle": input.rounds * input.width, "hook_created": 1}


def hook_counts(input: Input, late: int) -> Mapping[str, int]:
    """Exact counts of a completed capture-hook-storm's creates."""
    return {**_counts(input, late), "hook_created": input.rounds * input.width}


def _counts(input: Input, late: int) -> dict[str, int]:
    branches = input.rounds * input.width
    return {
        "release": branches - late,
        "recover": late,
        "finalize": late,
        "reconcile": input.rounds * input.reconcile_min + late,
        "wait_created": branches + (input.rounds if input.gap_ms > 0 else 0),
    }


def _limits(input: Input) -> dict[str, tuple[int, str]]:
    return {
        "settle": (input.width, "one settlement per branch"),
        "release": (input.width, "at most one release per branch"),
        "recover": (input.width, "at most one recovery per branch"),
        "finalize": (input.width, "at most one finalization per branch"),
        "reconcile": (input.reconcile_min + input.width, "one reconciliation per late branch beside the base"),
    }


def step_roles(input: Input, log: EventLog) -> RoleReport:
    """No prefix of a capture-step-storm holds more of a role than its rounds allow."""
    return storm.count_roles(log, _limits(input), "settle", input.width)


def hook_roles(input: Input, log: EventLog) -> RoleReport:
    """No prefix of a capture-hook-storm holds more of a role than its rounds allow."""
    return storm.count_roles(log, _limits(input), "hook_created", input.width)


def step_races(input: Input, trail: Trail) -> Iterator[Race]:
    """Each branch's settlement against the wait that is drawn right after it."""
    for round in range(input.rounds):
        for branch in range(input.width):
            settle = trail.step("settle", {"r": round, "b": branch, "ms": work_for(input, round, branch)})
            if settle is not None:
                yield _race(trail, round, branch, settle.end, trail.after(settle))


def hook_races(input: Input, trail: Trail) -> Iterator[Race]:
    """Each branch's hook against its wait: a round draws all its hooks, and then one wait per hook in their order."""
    for round in range(input.rounds):
        for branch in range(input.width):
            hook = trail.hook(f"{input.token}:{round}:{branch}")
            if hook is not None:
                received = hook.received[0] if hook.received else None
                yield _race(trail, round, branch, received, trail.after(hook, input.width))


def _race(trail: Trail, round: int, branch: int, settled: int | None, watchdog: Drawn | None) -> Race:
    """A branch that settles is released; one that is late recovers and is finalized."""
    argument = {"r": round, "b": branch}
    return Race(
        branch=(round, branch),
        ends=ends(settled=settled, late=None if watchdog is None else watchdog.end),
        written=written(
            settled=trail.steps("release", argument),
            late=[*trail.steps("recover", argument), *trail.steps("finalize", argument)],
        ),
    )


CAPTURE_STEP_STORM = Workload(
    name="capture-step-storm",
    summary="the step storm whose runs on the real SDK were captured",
    input_type=Input,
    body=step_body,
    steps=STEPS,
    driver=drive_pokes,
    check=check,
    stragglers=stragglers,
    counts=step_counts,
    roles=step_roles,
    races=step_races,
    vacuous=one_sided,
)

CAPTURE_HOOK_STORM = Workload(
    name="capture-hook-storm",
    summary="the hook storm whose runs on the real SDK were captured",
    input_type=Input,
    body=hook_body,
    steps=STEPS,
    driver=drive_burst,
    check=check,
    stragglers=stragglers,
    counts=hook_counts,
    roles=hook_roles,
    races=hook_races,
    vacuous=one_sided,
)
