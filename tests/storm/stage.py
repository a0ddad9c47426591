"""A whole storm on the memory world in virtual time: several workers, a pump, one run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from random import Random
from typing import Any

from stormctl.engine.generations import generation
from stormctl.history import AuditRecord, EventLog, RunRow, kinds
from stormctl.runtime.rules import Rules
from stormctl.storm.embedded import EmbeddedRun
from stormctl.storm.perturb import jitter
from stormctl.storm.pump import Pump
from stormctl.storm.virtual import run_virtually
from stormctl.storm.worker import CellWorker, serve
from stormctl.workloads.base import Pressure, Workload
from stormctl.workloads.registry import workload
from stormctl.worlds import AppendRequest, Message, Point, condition_named
from stormctl.worlds.delay import PublishDelay
from stormctl.worlds.memory import MemoryQueue, MemoryWorld

RUN = "wrun_01KE0000000000000000000000"


OnPoint = Callable[[Point, AppendRequest], Awaitable[None]]


@dataclass(frozen=True)
class Latency:
    """A slow store: at one point in ten (``often``) an append is held up, most often for ``median_ms``, lognormally."""

    often: float = 0.1
    median_ms: float = 200.0
    sigma: float = 1.0
    longest_ms: float = 2000.0

    def at_points(self, seed: int) -> OnPoint:
        """What holds appends up, by a seeded sequence of its own."""
        random = Random(f"latency {seed}")

        async def hold_up(_point: Point, _request: AppendRequest) -> None:
            if random.random() < self.often:
                drawn = self.median_ms * random.lognormvariate(0, self.sigma)
                await asyncio.sleep(min(drawn, self.longest_ms) / 1000)

        return hold_up


@dataclass
class Seen:
    """What is left of a run."""

    code: Workload
    input: Any
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
    latency: Latency | None = None,
    jitter_ms: int = 0,
    **given: Any,
) -> Seen:
    """Run one attempt to its end or its cap and show what it left."""

    async def main(clock: Callable[[], int]) -> Seen:
        code = workload(scenario)
        input = replace(code.parse_input(given), token="t")
        found = condition_named(condition)
        delay = PublishDelay(seed=seed, scale=storage_scale)
        slow = None if latency is None else latency.at_points(seed)
        world = MemoryWorld(found, clock=clock, random=Random(seed), delay=delay, on_point=slow)
        world.queue = MemoryQueue(clock)
        seen = Seen(code, input, None, EventLog([]), Pressure(), world.audit)
        rules = Rules(generation=generation(gen))
        serving = [
            asyncio.create_task(
                serve(
                    [
                        CellWorker(
                            world,
                            rules,
                            code,
                            seen.journal.append,
                            clock,
                            perturb=jitter(jitter_ms, f"{seed} {worker}"),
                        )
                    ]
                )
            )
            for worker in range(workers)
        ]
        await world.append(
            AppendRequest(RUN, kinds.RUN_CREATED, "driver", payload=asdict(input), data={"workflowName": code.name})
        )
        await world.queue.send(Message(RUN))
        pump = Pump(EmbeddedRun(world, RUN), seed, 250, clock)
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
