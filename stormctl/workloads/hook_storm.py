"""hook-storm: parallel branches race a hook against a watchdog, and the hooks are resumed around the time it fires."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

from stormctl.engine.workflow import Workflow
from stormctl.errors import PlanError
from stormctl.workloads import hook_rounds, storm
from stormctl.workloads.base import Act, LastWait, Now, Pressure, Workload

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


async def body(wf: Workflow, input: Input) -> dict[str, Any]:
    """The workflow."""
    return await hook_rounds.play(wf, input, hook_rounds.race_hook)


def drive(input: Input, pressure: Pressure) -> Generator[Act, Any, None]:
    """Resume every hook of every round, staggered across the watchdog or in one burst at its recorded end."""
    return hook_rounds.drive(
        input, pressure, lambda: _burst_delays(input) if input.resume == BURST else _staggered_delays(input)
    )


def _staggered_delays(input: Input) -> hook_rounds.Delays:
    yield from ()
    return [input.hook_resume_offset_ms + index * input.hook_resume_stagger_ms for index in range(input.width)]


def _burst_delays(input: Input) -> hook_rounds.Delays:
    """Delays from now that centre the burst on the recorded end of the round's watchdogs."""
    ends = yield LastWait(input.hook_timeout_ms)
    middle = 0.0 if ends is None else ends - (yield Now())
    step = input.burst_width_ms / max(1, input.width - 1)
    return [max(0.0, middle - input.burst_width_ms / 2 + index * step) for index in range(input.width)]


def counts(input: Input, stragglers: int) -> Mapping[str, int]:
    """Exact counts of a completed run's creates."""
    return hook_rounds.counts(input, stragglers, settles=False)


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
    roles=hook_rounds.roles,
    races=hook_rounds.races,
    warnings=warnings,
    ledger_code=storm.BAD_LEDGER,
    vacuous=storm.one_sided,
)
