"""blocked-branch: every branch first awaits a launch step, and the round's hooks are resumed while some still do.

A replay that a resumed branch woke may hold a log that ends just before a sibling's launch has completed. The sibling
then draws no id, and the woken branch takes the one that a fresher writer gives to the sibling's wait: one id, bound to
a step and to a wait (vercel/workflow #3696). The watchdog is there to put a wait into the race, and is sized to lose.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stormctl.engine.hook import Hook
from stormctl.engine.promise import Promise
from stormctl.engine.workflow import Workflow
from stormctl.history import EventLog
from stormctl.workloads import hook_rounds, storm
from stormctl.workloads.base import Act, Pressure, Sleep, Uniform, Workload
from stormctl.workloads.races import Race, Trail


@dataclass(frozen=True)
class Input:
    """The published defaults. Times are milliseconds.

    All of a round's resumes go at once, ``resume_burst_offset_ms`` and up to ``resume_burst_jitter_ms`` more after its
    hooks were seen: around the end of the last launch (2200 + 7 * 300 = 4300).
    """

    token: str = ""
    rounds: int = 6
    width: int = 8
    watchdog_ms: float = 8000.0
    step_delay_ms: float = 2200.0
    launch_stagger_ms: float = 300.0
    between_round_sleep_ms: float = 1000.0
    reconcile_base: int = 2
    attr_writes: int = 1
    resume_burst_offset_ms: float = 4000.0
    resume_burst_jitter_ms: float = 1200.0
    hook_timeout_ms: float = 60_000.0
    lookup_ms: float = 5_000.0


def launch_delay(input: Input, index: int) -> float:
    """How long a branch's launch works, in ms."""
    return input.step_delay_ms + index * input.launch_stagger_ms


async def branch(wf: Workflow, input: Input, hook: Hook, round: int, index: int) -> Promise:
    """Launch, and only then race the hook against the watchdog."""
    await wf.step("settleStep", launch_delay(input, index), wf.run_id, round, index, input.attr_writes)
    # awaited as it is: a call through wf.run would cost hops that upstream's branch, one function, does not
    return await hook_rounds.race_hook(wf, input, hook, round, index)


async def body(wf: Workflow, input: Input) -> dict[str, Any]:
    """The workflow."""
    return await hook_rounds.play(wf, input, branch)


def drive(input: Input, pressure: Pressure) -> Generator[Act, Any, None]:
    """Resume all of a round's hooks at once, some time after they were seen."""
    return hook_rounds.drive(input, pressure, lambda: _burst(input))


def _burst(input: Input) -> hook_rounds.Delays:
    jitter = int((yield Uniform()) * input.resume_burst_jitter_ms)
    yield Sleep(input.resume_burst_offset_ms + jitter)
    return [0.0] * input.width


def counts(input: Input, stragglers: int) -> Mapping[str, int]:
    """Exact counts of a completed run's creates."""
    return hook_rounds.counts(input, stragglers, settles=True)


def races(input: Input, trail: Trail) -> Iterator[Race]:
    """Each branch's hook against its wait, where the log tells.

    A wait is drawn when its branch has launched, so which one is whose is a replay's to say. As long as none of the
    round's waits has ended before the hook received, the hook was first whichever it is; else the race stays open.
    """
    for round, index, hook in hook_rounds.hooks_of(input, trail):
        if hook.rank is None:
            continue
        following = trail.hook(f"{input.token}:{round + 1}:0")
        waits = trail.waits(hook.rank, None if following is None else following.rank)
        received = hook.received[0] if hook.received else None
        ended = [wait.end for wait in waits if wait.end is not None]
        if received is not None and all(end > received for end in ended):
            yield storm.branch_race(trail, round, index, received, None)


def warnings(input: Input) -> list[str]:
    """What would make the scenario prove nothing."""
    first, last = input.resume_burst_offset_ms, input.resume_burst_offset_ms + input.resume_burst_jitter_ms
    launched = launch_delay(input, input.width - 1)
    if last <= input.step_delay_ms:
        return [f"the burst comes at most {last:g} ms after the hooks, before the first launch completes"]
    if first >= launched + input.watchdog_ms:
        return [f"the burst comes at least {first:g} ms after the hooks, after every watchdog"]
    return []


def vacuous(value: Any, input: Input, _log: EventLog | None, _pressure: Pressure) -> str | None:
    """Why a completed run proves nothing: the bursts came after the watchdogs. Nobody straggles in a good run."""
    if storm.count_stragglers(value) == input.rounds * input.width:
        return "everybody straggled: the bursts came after every watchdog"
    return None


BLOCKED_BRANCH = Workload(
    name="blocked-branch",
    summary="hooks are resumed while sibling branches still await a launch step",
    input_type=Input,
    body=body,
    steps=storm.STEPS,
    driver=drive,
    check=storm.check_ledger,
    stragglers=storm.count_stragglers,
    counts=counts,
    roles=hook_rounds.roles,
    races=races,
    warnings=warnings,
    ledger_code=storm.BAD_LEDGER,
    vacuous=vacuous,
)
