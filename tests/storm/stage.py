"""A whole storm on the memory world in virtual time: several workers, a pump, one run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from random import Random
from typing import Any

from stormctl.engine.generations import generation
from stormctl.history import AuditRecord, EventLog, RunRow, kinds
from stormctl.runtime.rules import Rules
from stormctl.storm.pump import Pump
from stormctl.storm.worker import CellWorker, serve
from stormctl.workloads.base import Pressure
from stormctl.workloads.registry import workload
from stormctl.worlds import AppendRequest, Message, condition_named
from stormctl.worlds.delay import PublishDelay
from stormctl.worlds.memory import MemoryQueue, MemoryWorld
from tests.storm.virtual import run_virtually

RUN = "wrun_01KE0000000000000000000000"


@dataclass
class Seen:
    """What is left of a run."""

    row: RunRow | None
    log: EventLog
    pressure: Pressure
    audit: list[AuditRecord]
    journal: list[Mapping[str, Any]] = field(default_factory=list)
    seconds: float = 0.0


def storm(
    scenario: str,
    condition: str,
    gen: str,
    *,
    seed: int = 0,
    workers: int = 2,
    storage_scale: float = 1.0,
    cap_s: float = 240.0,
    **given: Any,
) -> Seen:
    """Run one attempt to its end or its cap and show what it left."""

    async def main(clock: Callable[[], int]) -> Seen:
        code = workload(scenario)
        input = replace(code.parse_input(given), token="t")
        found = condition_named(condition)
        delay = PublishDelay(seed=seed, scale=storage_scale)
        world = MemoryWorld(found, clock=clock, random=Random(seed), delay=delay)
        world.queue = MemoryQueue(clock)
        seen = Seen(None, EventLog([]), Pressure(), world.audit)
        rules = Rules(generation=generation(gen))
        serving = [
            asyncio.create_task(serve([CellWorker(world, rules, code, seen.journal.append, clock)]))
            for _ in range(workers)
        ]
        await world.append(
            AppendRequest(RUN, kinds.RUN_CREATED, "driver", payload=asdict(input), data={"workflowName": code.name})
        )
        await world.queue.send(Message(RUN))
        pump = Pump(world, RUN, seed, 250, clock)
        pumping = asyncio.create_task(pump.run(code.driver(input, seen.pressure)))
        began = asyncio.get_running_loop().time()
        while asyncio.get_running_loop().time() - began < cap_s:
            seen.row = await world.run(RUN)
            if seen.row is not None and seen.row.status in ("completed", "failed"):
                break
            await asyncio.sleep(0.1)
        seen.seconds = asyncio.get_running_loop().time() - began
        pump.ended.set()
        await pumping
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        seen.log = EventLog((await world.load(RUN)).events, RUN)
        return seen

    seen: Seen = run_virtually(main)
    return seen
