"""A storm in virtual time whose worker can be killed: it leaves its messages unacknowledged, and another takes over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict, replace
from random import Random
from typing import Any

import pytest

from stormctl.engine.generations import generation
from stormctl.history import EventLog, kinds
from stormctl.runtime import ops
from stormctl.runtime.rules import Rules
from stormctl.storm import worker as storm_worker
from stormctl.storm.embedded import EmbeddedRun
from stormctl.storm.interpreter import Interpreter
from stormctl.storm.pump import Pump
from stormctl.storm.virtual import EPOCH_MS, run_virtually
from stormctl.storm.worker import CellWorker, serve
from stormctl.workloads.base import Pressure
from stormctl.workloads.registry import workload
from stormctl.worlds import AppendRequest, Message, condition_named
from stormctl.worlds.memory import MemoryQueue, MemoryWorld
from tests.storm.stage import RUN, Seen


def mortal_storm(
    patch: pytest.MonkeyPatch,
    scenario: str,
    gen: str,
    *,
    redeliver: bool = True,
    lease_ms: float = 860_000.0,
    restart_ms: float = 500.0,
    cap_s: float = 240.0,
    **given: Any,
) -> tuple[Seen, list[float]]:
    """One attempt, and when its worker was killed (ms since the start). A new worker comes ``restart_ms`` later; with
    ``redeliver`` it finds what the dead one had in hand, without it those messages are lost until a lease runs out."""

    async def main(clock: Callable[[], int]) -> tuple[Seen, list[float]]:
        code = workload(scenario)
        input = code.at_start(replace(code.parse_input(given), token="t"), clock())
        world = MemoryWorld(condition_named("seq-final"), clock=clock, random=Random(0))
        world.queue = MemoryQueue(clock)
        seen = Seen(code, input, None, EventLog([]), Pressure(), world.audit)
        rules = replace(Rules(generation=generation(gen)), lease_ms=lease_ms)
        killed: list[float] = []
        dead = asyncio.Event()

        class Mortal(Interpreter):
            async def _answer(self, op: ops.Op) -> Any:
                if isinstance(op, ops.Kill):
                    killed.append(clock() - EPOCH_MS)
                    dead.set()
                    await asyncio.get_running_loop().create_future()  # nobody will ever answer
                return await super()._answer(op)

        patch.setattr(storm_worker, "Interpreter", Mortal)

        async def hire() -> None:
            while True:
                serving = asyncio.create_task(serve([CellWorker(world, rules, code, seen.journal.append, clock)]))
                await dead.wait()
                dead.clear()
                serving.cancel()
                await asyncio.gather(serving, return_exceptions=True)
                await asyncio.sleep(restart_ms / 1000)
                if redeliver:
                    await world.queue.requeue_dead("worker")

        workers = asyncio.create_task(hire())
        await world.append(
            AppendRequest(RUN, kinds.RUN_CREATED, "driver", payload=asdict(input), data={"workflowName": code.name})
        )
        await world.queue.send(Message(RUN))
        pump = Pump(EmbeddedRun(world, RUN), 0, 250, clock)
        pumping = asyncio.create_task(pump.run(code.driver(input, seen.pressure)))
        while asyncio.get_running_loop().time() < cap_s:
            seen.row = await world.run(RUN)
            if seen.row is not None and seen.row.status in ("completed", "failed"):
                break
            await asyncio.sleep(0.1)
        pump.ended.set()
        await pumping
        workers.cancel()
        await asyncio.gather(workers, return_exceptions=True)
        seen.log = EventLog((await world.load(RUN)).events, RUN)
        return seen, killed

    found: tuple[Seen, list[float]] = run_virtually(main)
    return found
