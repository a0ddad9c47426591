"""inline-hang: a pool of inline steps, one of which kills the process that runs it.

The log that is left is that of a platform's time limit: a start without an outcome, by an owner that will never write
again, and a queue message that nobody acknowledged. Pokes wake the run meanwhile (vercel/workflow #4199).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from stormctl.engine.promise import Promise
from stormctl.engine.replay import INLINE_STEPS
from stormctl.engine.workflow import Workflow
from stormctl.history import EventLog, kinds
from stormctl.workloads import parts, storm
from stormctl.workloads.base import (
    Act,
    KillWorker,
    Now,
    Pressure,
    Resume,
    RoleReport,
    RunEnded,
    Sleep,
    StepAttempt,
    WaitForHook,
    Workload,
)


@dataclass(frozen=True)
class Input:
    """The published defaults. Times are milliseconds.

    The victim kills its worker in its first ``kills`` attempts, as long as ``kill_window_ms`` from the run's start have
    not passed. ``kills`` of 0 is upstream's rule: in every attempt within the window. Then a run outlasts the window by
    up to a lease (860,000), so give the plan's cap 2,700,000 or more. ``kill_until`` (epoch ms) is set when an attempt
    begins.
    """

    token: str = ""
    width: int = 3
    tasks: int = 9
    sibling_ms: float = 300.0
    victim_delay_ms: float = 2500.0
    victim_task: int = 2
    kill_window_ms: float = 1_800_000.0
    kills: int = 1
    kill_until: float = 0.0
    poke_interval_ms: float = 5000.0
    payload_bytes: int = 4096
    hook_timeout_ms: float = 60_000.0


def at_start(input: Input, now_ms: int) -> Input:
    """The input with the absolute end of the kill window."""
    return replace(input, kill_until=now_ms + input.kill_window_ms)


async def body(wf: Workflow, input: Input) -> dict[str, Any]:
    """The workflow."""
    hook = wf.hook(input.token)  # nobody ever reads it
    size = input.payload_bytes

    def start(task: int) -> Promise:
        if task == input.victim_task:
            step = wf.step("taskStep", input.victim_delay_ms, wf.run_id, task, size, input.kill_until, input.kills)
        else:
            step = wf.step("taskStep", input.sibling_ms, wf.run_id, task, size)
        return step.then(lambda _: task)

    try:
        done = await wf.run(parts.pool(wf, input.tasks, input.width, start))
    finally:
        hook.dispose()
    return {"runId": wf.run_id, "tasks": done}


def task_step(
    delay_ms: float, run_id: str, task: int, size: int, kill_until: float = 0.0, kills: int = 0
) -> Generator[Act, Any, dict[str, Any]]:
    """Work, and then kill the worker if this is the victim and its time to do so."""
    yield Sleep(delay_ms)
    if kill_until > 0:
        attempt = yield StepAttempt()
        if (kills == 0 or attempt <= kills) and (yield Now()) < kill_until:
            yield KillWorker(f"task {task} of {run_id}, attempt {attempt}")
    return {"task": task, "payload": parts.padded(f"task:{task}", size)}


def drive(input: Input, pressure: Pressure) -> Generator[Act, Any, None]:
    """Poke the hook at a fixed interval for as long as the run lives."""
    pressure.count("pokes", 0)
    if (yield WaitForHook(input.token, input.hook_timeout_ms)) is None:
        pressure.hook_missing = not (yield RunEnded())
        return
    while not (yield RunEnded()):
        pressure.resumes_sent += 1
        pressure.count("pokes")
        if not (yield Resume(input.token, {"pokedAt": (yield Now())})):
            pressure.resumes_failed += 1
        yield Sleep(input.poke_interval_ms)


def check(value: Any, input: Input) -> str | None:
    """Upstream checks nothing here. A pool that ran every task once returns each of them, in whatever order."""
    if not isinstance(value, dict) or not isinstance(value.get("tasks"), list):
        return "the run returned no list of tasks"
    tasks = value["tasks"]
    if len(tasks) != input.tasks:
        return f"{len(tasks)} tasks were done of {input.tasks}"
    missing = [task for task in range(input.tasks) if task not in tasks]
    return f"task {missing[0]} is missing from the tasks done" if missing else None


def counts(input: Input, _stragglers: int) -> Mapping[str, int]:
    """Exact counts of a completed run's creates: a step that is tried again is created once."""
    return {"taskStep": input.tasks, "hook_created": 1, "wait_created": 0}


def roles(input: Input, log: EventLog) -> RoleReport:
    """No prefix holds more tasks than there are."""
    return storm.at_most(log, {"taskStep": (input.tasks, "every task is one step")})


def in_log(_input: Input, log: EventLog) -> Mapping[str, int]:
    """How many starts of a step were lost to a kill: all but the last of each step."""
    starts = Counter(event.correlation_id for event in log if event.type == kinds.STEP_STARTED)
    return {"kills": sum(count - 1 for count in starts.values())}


def warnings(input: Input) -> list[str]:
    """What would make the scenario prove nothing."""
    found = []
    if input.victim_task >= input.tasks:
        found.append(f"the victim is task {input.victim_task} of {input.tasks}: nobody kills a worker")
    if input.victim_delay_ms >= input.kill_window_ms:
        found.append("the kill window ends before the victim kills: nobody does")
    if input.victim_delay_ms <= input.sibling_ms:
        found.append("the victim kills before its siblings are done: no sibling's outcome is in the log that is left")
    if input.width > INLINE_STEPS:
        found.append(f"{input.width} tasks do not all run inline, only the first {INLINE_STEPS}")
    return found


def vacuous(_value: Any, input: Input, log: EventLog | None, _pressure: Pressure) -> str | None:
    """Why a completed run proves nothing: no step was started twice, so nobody was killed."""
    if log is not None and in_log(input, log)["kills"] == 0:
        return "no worker was killed: every step was started once"
    return None


INLINE_HANG = Workload(
    name="inline-hang",
    summary="a pool of inline steps, one of which kills its worker process",
    input_type=Input,
    body=body,
    steps={"taskStep": task_step},
    driver=drive,
    check=check,
    stragglers=lambda _value: 0,
    counts=counts,
    roles=roles,
    warnings=warnings,
    at_start=at_start,
    in_log=in_log,
    vacuous=vacuous,
)
