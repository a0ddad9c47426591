"""What the tests of storms are made of: small plans, attempts, and a storm's events in a list."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.driver import run_storm
from stormctl.storm.events import StormEvent
from stormctl.storm.folder import StormFolder
from stormctl.storm.outcome import Outcome
from stormctl.storm.plan import Plan, parse_plan

CELL = Cell("step-storm", "memory", "seq-final", "dispenser")
#: A storm on the memory world that takes a fraction of a second. The cap is 24 s.
SMALL: dict[str, Any] = {
    "schema": "stormctl.plan/1",
    "name": "small",
    "seed": 3,
    "scenario": "step-storm",
    "world": "memory",
    "condition": "seq-final",
    "generation": "dispenser",
    "attempts": 2,
    "concurrency": 4,
    "processes": 1,
    "time_scale": 0.01,
    "storage_scale": 0.01,
    "hydration_jitter_ms": 0,
    "cap": "2400s",
    "input": {"rounds": 1, "width": 3, "jitter_buckets": 7},
}


def plan(**changes: Any) -> Plan:
    return parse_plan({**SMALL, **changes}, "small.yaml")


def attempt(number: int = 1, outcome: Outcome = Outcome.COMPLETED, **changes: Any) -> Attempt:
    return Attempt(**{"cell": CELL, "number": number, "run_id": f"wrun_{number}", "outcome": outcome, **changes})


async def collect(plan: Plan, folder: StormFolder, seen: list[StormEvent]) -> None:
    """Run a storm and append its events to ``seen``, which keeps them when the storm is cut short."""
    async with aclosing(run_storm(plan, folder)) as events:
        async for event in events:
            seen.append(event)


def storm(plan: Plan, folder: StormFolder) -> list[StormEvent]:
    """Run a whole storm."""
    seen: list[StormEvent] = []
    asyncio.run(collect(plan, folder, seen))
    return seen
