"""hook-storm: parallel branches race a hook against a watchdog, and the hooks are resumed around the time it fires."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

from stormctl.engine.hook import Hook
from stormctl.engine.promise import Promise
from stormctl.engine.workflow import Workflow
from stormctl.errors import PlanError
from stormctl.history import EventLog
from stormctl.workloads import storm
from stormctl.workloads.base import (
    Act,
    LastWait,
    Now,
    Pressure,
    Resume,
    RoleReport,
    RunEnded,
    Sleep,
    Together,
    WaitForHook,
    Workload,
)

STAGGER, BURST = "stagger", "burst"


@dataclass(frozen=True)
class Input:
    """The published defaults. Times are milliseconds.

    ``resume`` is ``stagger`` (upstream's: one resume every ``hook_resume_stagger_ms`` from the moment the hooks exist)
    or ``burst`` (all of a round's resumes within ``burst_width_ms`` around the recorded end of its watchdogs, which is
    where both outcomes of the race are close whatever the machine's speed).
    """

    token: str = ""
    rounds: int = 6
    width: int = 8
    watchdog_ms: float = 2500.0
    between_round_sleep_ms: float = 1000.0
    reconcile_base: int = 2
    resume: str = STAGGER
    hook_resume_stagger_ms: float = 400.0
    hook_resume_offset_ms: float = 0.0
    burst_width_ms: float = 160.0
    hook_timeout_ms: float = 60_000.0
    lookup_ms: float = 5_000.0

    def __post_init__(self) -> None:
        if self.resume not in (STAGGER, BURST):
            raise PlanError(f"resume is {self.resume!r}", remedy=f"Make it {STAGGER} or {BURST}.")


async def branch(wf: Workflow, input: Input, hook: Hook, round: int, index: int) -> Promise:
    """Race the hook's next payload against the watchdog, and finish by who won."""
    winner = await wf.race(
        hook.next().then(lambda _: storm.SETTLED),
        wf.sleep(input.watchdog_ms).then(lambda _: storm.WATCHDOG),
    )
    return wf.run(storm.finish_branch(wf, round, index, winner))


async def body(wf: Workflow, input: Input) -> dict[str, Any]:
    """The workflow."""
    ledger = []
    for round in range(input.rounds):
        ledger.append(await wf.run(one_round(wf, input, round)))
        if input.between_round_sleep_ms > 0:
            await wf.sleep(input.between_round_sleep_ms)
    return {"runId": wf.run_id, "rounds": input.rounds, "width": input.width, "ledger": ledger}


async def one_round(wf: Workflow, input: Input, round: int) -> Any:
    """Create the round's hooks, race them, reconcile, and dispose them whatever happened."""
    hooks = [wf.hook(f"{input.token}:{round}:{index}") for index in range(input.width)]
    try:
        winners = await wf.all(branch(wf, input, hook, round, index) for index, hook in enumerate(hooks))
        return await wf.run(storm.reconcile(wf, input, round, winners))
    finally:
        for hook in hooks:
            hook.dispose()


def drive(input: Input, pressure: Pressure) -> Generator[Act, Any, None]:
    """Resume every hook of every round, staggered across the watchdog or in one burst at its recorded end."""
    for round in range(input.rounds):
        if (yield RunEnded()):
            return
        if (yield WaitForHook(f"{input.token}:{round}:0", input.hook_timeout_ms)) is None:
            pressure.hook_missing = not (yield RunEnded())
            return
        if input.resume == BURST:
            delays = yield from _burst_delays(input)
        else:
            delays = [
                input.hook_resume_offset_ms + index * input.hook_resume_stagger_ms for index in range(input.width)
            ]
        yield Together(
            tuple(_resume(input, pressure, round, index, delay) for index, delay in enumerate(delays)),
        )


def _burst_delays(input: Input) -> Generator[Act, Any, list[float]]:
    """Delays from now that centre the burst on the recorded end of the round's watchdogs."""
    ends = yield LastWait(input.hook_timeout_ms)
    middle = 0.0 if ends is None else ends - (yield Now())
    step = input.burst_width_ms / max(1, input.width - 1)
    return [max(0.0, middle - input.burst_width_ms / 2 + index * step) for index in range(input.width)]


def _resume(input: Input, pressure: Pressure, round: int, index: int, delay: float) -> Generator[Act, Any, None]:
    yield Sleep(delay)
    if (yield RunEnded()):
        return
    token = f"{input.token}:{round}:{index}"
    if (yield WaitForHook(token, input.lookup_ms)) is None:
        pressure.resumes_failed += 1  # the watchdog has disposed it already
        return
    pressure.resumes_sent += 1
    if not (yield Resume(token, {"index": index, "round": round})):
        pressure.resumes_failed += 1


def counts(input: Input, stragglers: int) -> Mapping[str, int]:
    """Exact counts of a completed run's creates."""
    branches = input.rounds * input.width
    return {
        **storm.step_counts(input, stragglers, settles=False),
        "hook_created": branches,
        "wait_created": branches + (input.rounds if input.between_round_sleep_ms > 0 else 0),
    }


def roles(input: Input, log: EventLog) -> RoleReport:
    """No prefix holds more of a role than its rounds allow."""
    return storm.count_roles(log, storm.role_limits(input), "hook_created", input.width)


def warnings(input: Input) -> list[str]:
    """What would make the scenario prove nothing."""
    last = input.hook_resume_offset_ms + (input.width - 1) * input.hook_resume_stagger_ms
    if input.resume == STAGGER and last <= input.watchdog_ms:
        return [f"the last resume comes {last:g} ms after the hooks, before the watchdog: nobody straggles"]
    return []


HOOK_STORM = Workload(
    name="hook-storm",
    summary="branches race a hook against a watchdog while the hooks are resumed around its end",
    input_type=Input,
    body=body,
    steps=storm.STEPS,
    driver=drive,
    check=storm.check_ledger,
    stragglers=storm.count_stragglers,
    counts=counts,
    roles=roles,
    warnings=warnings,
)
