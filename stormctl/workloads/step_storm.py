"""step-storm: parallel branches race a step against a watchdog while a hook that nobody reads is poked all the time."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stormctl.engine.promise import Promise
from stormctl.engine.workflow import Workflow
from stormctl.history import EventLog
from stormctl.workloads import storm
from stormctl.workloads.base import Act, Pressure, Resume, RoleReport, RunEnded, Sleep, Uniform, WaitForHook, Workload
from stormctl.workloads.races import Race, Trail


@dataclass(frozen=True)
class Input:
    """The published defaults. Times are milliseconds.

    With ``jitter_buckets`` of 5 every branch of a round gets the same delay, because the branch term of the formula is
    a multiple of five; 4 or 7 really spread the delays inside a round.
    """

    token: str = ""
    rounds: int = 6
    width: int = 8
    watchdog_ms: float = 2500.0
    step_delay_ms: float = 2200.0
    step_delay_jitter_ms: float = 250.0
    jitter_buckets: int = 5
    between_round_sleep_ms: float = 1000.0
    reconcile_base: int = 2
    attr_writes: int = 1
    poke_interval_ms: float = 750.0
    poke_jitter_ms: float = 250.0
    poke_max: int = 64
    poke_decay_factor: float = 8.0
    hook_timeout_ms: float = 60_000.0


def branch_delay(input: Input, round: int, index: int) -> float:
    """How long a branch's settlement works: the base, moved by its bucket."""
    buckets = input.jitter_buckets
    if input.step_delay_jitter_ms <= 0 or buckets <= 1:
        return input.step_delay_ms
    bucket = (3 * round + 5 * index) % buckets
    return max(0.0, input.step_delay_ms + (bucket - buckets // 2) * input.step_delay_jitter_ms)


async def branch(wf: Workflow, input: Input, round: int, index: int) -> Promise:
    """Race the settlement against the watchdog, and finish by who won."""
    delay = branch_delay(input, round, index)
    winner = await wf.race(
        wf.step("settleStep", delay, wf.run_id, round, index, input.attr_writes).then(lambda _: storm.SETTLED),
        wf.sleep(input.watchdog_ms).then(lambda _: storm.WATCHDOG),
    )
    return wf.run(storm.finish_branch(wf, round, index, winner))


async def body(wf: Workflow, input: Input) -> dict[str, Any]:
    """The workflow."""
    poke = wf.hook(f"{input.token}:poke")  # nobody ever reads it
    ledger = []
    try:
        for round in range(input.rounds):
            winners = await wf.all(branch(wf, input, round, index) for index in range(input.width))
            ledger.append(await wf.run(storm.reconcile(wf, input, round, winners)))
            if input.between_round_sleep_ms > 0:
                await wf.sleep(input.between_round_sleep_ms)
    finally:
        poke.dispose()
    return {"runId": wf.run_id, "rounds": input.rounds, "width": input.width, "ledger": ledger}


def drive(input: Input, pressure: Pressure) -> Generator[Act, Any, None]:
    """Poke the hook for as long as the run lives; after ``poke_max`` pokes the interval grows by the decay factor.

    A failed poke counts too. Without the decay the pump feeds itself: more pokes, slower run, more pokes (#3561).
    """
    token = f"{input.token}:poke"
    if (yield WaitForHook(token, input.hook_timeout_ms)) is None:
        pressure.hook_missing = not (yield RunEnded())
        return
    while not (yield RunEnded()):
        pressure.resumes_sent += 1
        if not (yield Resume(token, {"index": -1, "round": -1})):
            pressure.resumes_failed += 1
        decay = 1.0 if pressure.resumes_sent < input.poke_max else input.poke_decay_factor
        yield Sleep(input.poke_interval_ms * decay + int((yield Uniform()) * input.poke_jitter_ms))


def counts(input: Input, stragglers: int) -> Mapping[str, int]:
    """Exact counts of a completed run's creates."""
    branches = input.rounds * input.width
    return {
        **storm.step_counts(input, stragglers, settles=True),
        "hook_created": 1,
        "wait_created": branches + (input.rounds if input.between_round_sleep_ms > 0 else 0),
    }


def roles(input: Input, log: EventLog) -> RoleReport:
    """No prefix holds more of a role than its rounds allow (the sweep that names vercel/workflow #3543)."""
    return storm.count_roles(log, storm.role_limits(input), "settleStep", input.width)


def races(input: Input, trail: Trail) -> Iterator[Race]:
    """Each branch's settlement against the wait that is drawn right after it."""
    for round in range(input.rounds):
        for index in range(input.width):
            delay = branch_delay(input, round, index)
            settle = trail.step("settleStep", delay, trail.run_id, round, index, input.attr_writes)
            if settle is not None:
                yield storm.branch_race(trail, round, index, settle.end, trail.after(settle))


def warnings(input: Input) -> list[str]:
    """What would make the scenario prove nothing."""
    spread = input.jitter_buckets // 2 * input.step_delay_jitter_ms
    if not input.step_delay_ms - spread < input.watchdog_ms < input.step_delay_ms + spread:
        return [f"the settle delays ({input.step_delay_ms:g} +- {spread:g} ms) do not straddle the watchdog"]
    return []


STEP_STORM = Workload(
    name="step-storm",
    summary="branches race a step against a watchdog while an unread hook is poked",
    input_type=Input,
    body=body,
    steps=storm.STEPS,
    driver=drive,
    check=storm.check_ledger,
    stragglers=storm.count_stragglers,
    counts=counts,
    roles=roles,
    races=races,
    warnings=warnings,
    ledger_code=storm.BAD_LEDGER,
    vacuous=storm.one_sided,
)
