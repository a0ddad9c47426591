"""hook-sleep: the control. One hook read against one sleep at a time, and one resume per run.

It corrupts so rarely (about one run in a thousand upstream) that a failure speaks of the environment: a storm runs it
beside the others to know whether the store, the queue and the hooks work at all.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stormctl.engine.promise import Promise
from stormctl.engine.workflow import Workflow
from stormctl.history import EventLog
from stormctl.workloads import storm
from stormctl.workloads.base import (
    Act,
    Now,
    Pressure,
    Resume,
    RoleReport,
    RunEnded,
    Sleep,
    Uniform,
    WaitForHook,
    Workload,
)
from stormctl.workloads.races import Race, Trail, ends, written

SLEEP, WAKE = "sleep", "wake"


@dataclass(frozen=True)
class Input:
    """The published defaults of the harness. Times are milliseconds.

    After a sleep that won, ``sleep_branch_wait_count`` more sleeps run in parallel, each one longer by
    ``sleep_branch_wait_spacing_ms``. With ``return_on_wake`` the first wake ends the run.
    """

    token: str = ""
    iterations: int = 8
    sleep_ms: float = 5000.0
    sleep_branch_wait_count: int = 2
    sleep_branch_wait_ms: float = 1000.0
    sleep_branch_wait_spacing_ms: float = 250.0
    return_on_wake: bool = True
    drain_delay_ms: float = 0.0
    final_delay_ms: float = 0.0
    resume_delay_ms: float = 15_000.0
    resume_jitter_ms: float = 10_000.0
    hook_timeout_ms: float = 60_000.0


def branch_waits(input: Input) -> list[float]:
    """The sleeps after a sleep that won, in ms."""
    first, spacing = input.sleep_branch_wait_ms, input.sleep_branch_wait_spacing_ms
    return [first + index * spacing for index in range(input.sleep_branch_wait_count)]


async def body(wf: Workflow, input: Input) -> dict[str, Any]:
    """The workflow."""
    hook = wf.hook(input.token)
    branches: list[dict[str, Any]] = []
    pending: Promise | None = None
    try:
        for iteration in range(input.iterations):
            await wf.step("syncStep", wf.run_id, iteration)
            if pending is None:
                pending = hook.next()
            winner, event = await wf.race(
                pending.then(lambda value: (WAKE, value)),
                wf.sleep(input.sleep_ms).then(lambda _: (SLEEP, None)),
            )
            if winner == SLEEP:
                branches.append({"branch": SLEEP, "iteration": iteration})
                if input.sleep_branch_wait_count > 0:
                    await wf.all(wf.sleep(ms) for ms in branch_waits(input))
                continue
            pending = None
            drained = await wf.step("drainStep", input.drain_delay_ms, wf.run_id, iteration)
            branches.append({"branch": WAKE, "iteration": iteration, "drained": drained, "event": event})
            if input.return_on_wake:
                break
        if input.final_delay_ms > 0:
            await wf.step("finalStep", input.final_delay_ms, wf.run_id)
    finally:
        hook.dispose()
    return {"branches": branches, "runId": wf.run_id, "sleepMs": input.sleep_ms}


def sync_step(run_id: str, iteration: int) -> Generator[Act, Any, dict[str, Any]]:
    """A step that does nothing but return."""
    yield from ()
    return {"iteration": iteration}


def drain_step(delay_ms: float, run_id: str, iteration: int) -> Generator[Act, Any, dict[str, Any]]:
    """Work for ``delay_ms``."""
    yield Sleep(delay_ms)
    return {"iteration": iteration}


def final_step(delay_ms: float, run_id: str) -> Generator[Act, Any, dict[str, Any]]:
    """Work for ``delay_ms``."""
    yield Sleep(delay_ms)
    return {"runId": run_id}


def drive(input: Input, pressure: Pressure) -> Generator[Act, Any, None]:
    """Resume the hook once, some time after it was seen."""
    if (yield WaitForHook(input.token, input.hook_timeout_ms)) is None:
        pressure.hook_missing = not (yield RunEnded())
        return
    yield Sleep(input.resume_delay_ms + int((yield Uniform()) * input.resume_jitter_ms))
    if (yield RunEnded()):
        return
    pressure.resumes_sent += 1
    if not (yield Resume(input.token, {"sentAt": (yield Now())})):
        pressure.resumes_failed += 1


def check(value: Any, input: Input) -> str | None:
    """Upstream checks only for a wake (see :func:`infra`). The iterations are also to be numbered as they went."""
    branches = value.get("branches") if isinstance(value, dict) else None
    if not isinstance(branches, list):
        return "the run returned no list of branches"
    for place, record in enumerate(branches):
        if not isinstance(record, dict) or record.get("branch") not in (SLEEP, WAKE):
            return f"iteration {place} took neither branch"
        if record.get("iteration") != place:
            return f"iteration {place} says that it is iteration {record.get('iteration')}"
    woken = [record["iteration"] for record in branches if record["branch"] == WAKE]
    wanted = woken[0] + 1 if woken and input.return_on_wake else input.iterations
    return None if len(branches) == wanted else f"the run went through {len(branches)} iterations of {wanted}"


def sleeps(value: Any) -> int:
    """How many iterations of a completed run the sleep won."""
    return sum(1 for record in value["branches"] if record["branch"] == SLEEP)


def counts(input: Input, slept: int) -> Mapping[str, int]:
    """Exact counts of a completed run's creates: an iteration that did not sleep was woken."""
    iterations = min(slept + 1, input.iterations) if input.return_on_wake else input.iterations
    return {
        "syncStep": iterations,
        "drainStep": iterations - slept,
        "finalStep": 1 if input.final_delay_ms > 0 else 0,
        "hook_created": 1,
        "wait_created": iterations + slept * input.sleep_branch_wait_count,
    }


def roles(input: Input, log: EventLog) -> RoleReport:
    """No prefix holds more of a role than its iterations allow."""
    return storm.at_most(
        log,
        {
            "syncStep": (input.iterations, "one synchronisation per iteration"),
            "drainStep": (1 if input.return_on_wake else input.iterations, "one drain per wake"),
            "finalStep": (1, "one final step per run"),
        },
    )


def races(input: Input, trail: Trail) -> Iterator[Race]:
    """Each iteration's sleep against the first payload that no iteration before it has read."""
    hook = trail.hook(input.token)
    if hook is None:
        return
    read = 0
    for iteration in range(input.iterations):
        sync = trail.step("syncStep", trail.run_id, iteration)
        sleep = None if sync is None else trail.after(sync)
        if sleep is None:
            return
        drains = trail.steps("drainStep", input.drain_delay_ms, trail.run_id, iteration)
        more = trail.after(sleep) if input.sleep_branch_wait_count > 0 else None
        slept = [] if more is None else [more]
        if not drains:
            slept += trail.steps("syncStep", trail.run_id, iteration + 1)
        received = hook.received[read] if len(hook.received) > read else None
        race = Race((iteration,), ends(wake=received, sleep=sleep.end), written(wake=drains, sleep=slept[:1]))
        yield race
        if race.contradictions:
            return  # whether the payload has been read is what every later race hangs on
        read += bool(drains)


def warnings(input: Input) -> list[str]:
    """What would make the scenario prove nothing."""
    last, whole = input.resume_delay_ms + input.resume_jitter_ms, input.iterations * input.sleep_ms
    if last >= whole:
        return [f"the resume may come {last:g} ms after the hook, when the sleeps of {whole:g} ms are over"]
    return []


def infra(value: Any, _input: Input) -> str | None:
    """A completed control that was never woken speaks of the environment: its resume did not arrive."""
    return None if any(record["branch"] == WAKE for record in value["branches"]) else "NO_WAKE_BRANCH"


HOOK_SLEEP = Workload(
    name="hook-sleep",
    summary="the control: one hook read against one sleep, resumed once",
    input_type=Input,
    body=body,
    steps={"syncStep": sync_step, "drainStep": drain_step, "finalStep": final_step},
    driver=drive,
    check=check,
    stragglers=sleeps,
    counts=counts,
    roles=roles,
    races=races,
    warnings=warnings,
    infra=infra,
    control=True,
)
