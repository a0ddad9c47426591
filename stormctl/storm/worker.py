"""A worker process: it takes messages from the queues of a storm's cells and delivers them, many at once.

Several workers share one store, because the races that corrupt runs are races between processes. A worker never
outlives the process that started it: it ends when its standard input does, and on Linux the kernel kills it with its
parent.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stormctl.engine.generations import generation
from stormctl.runtime.delivery import Delivery, deliver
from stormctl.runtime.rules import Rules
from stormctl.storm.attempt import Cell
from stormctl.storm.folder import StormFolder
from stormctl.storm.interpreter import Interpreter
from stormctl.storm.plan import Plan, load_plan
from stormctl.workloads.base import Workload
from stormctl.workloads.registry import workload
from stormctl.worlds import Claimed, World, open_world
from stormctl.worlds.mint import now_ms
from stormctl.worlds.process import end_with_parent

#: how many messages one worker has in hand at most; most of them sleep in a step
MAX_IN_HAND = 128
#: how many messages a worker takes from one queue before it looks at the next
AT_ONCE = 8
#: how many deliveries of one run one worker replays at once (upstream's harness sets 10)
REPLAY_CONCURRENCY = 10
#: how often one message is delivered at most (upstream's queue gives up then too)
MAX_DELIVERIES = 48
POLL_SECONDS = 0.004
LONGEST_POLL_SECONDS = 0.02


class CellWorker:
    """One cell's share of a worker. ``journal`` is told of every delivery that ended."""

    def __init__(
        self,
        world: World,
        rules: Rules,
        code: Workload,
        journal: Callable[[Mapping[str, Any]], None],
        clock: Callable[[], int] = now_ms,
    ) -> None:
        self.world = world
        self._rules = rules
        self._code = code
        self._journal = journal
        self._clock = clock
        self._by_run: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(REPLAY_CONCURRENCY))

    async def handle(self, claimed: Claimed) -> None:
        """Deliver one message and acknowledge it. A delivery that fails for a fault of ours gives its message back."""
        interpreter = Interpreter(self.world, self._clock)
        flow = claimed.message.step_id is None
        try:
            async with self._by_run[claimed.message.run_id] if flow else contextlib.nullcontext():
                delivery: Delivery = await interpreter.run(deliver(claimed, self._code, self._rules))
        except Exception as bad:
            sys.stderr.write(f"delivery of {claimed.message.run_id} failed: {type(bad).__name__}: {bad}\n")
            sys.stderr.flush()
            if claimed.attempt < MAX_DELIVERIES:
                await self.world.queue.release(claimed, delay_ms=50.0 * claimed.attempt)
            return
        await self.world.queue.ack(claimed)
        self._journal(
            {
                "run": claimed.message.run_id,
                "ending": str(delivery.ending),
                "deliveries": 1,
                "passes": delivery.passes,
                "restarts": delivery.restarts,
                "divergences": interpreter.counts["divergence"],
            }
        )


async def serve(cells: Sequence[CellWorker]) -> None:
    """Take messages from the cells' queues and deliver them, until cancelled or until a queue fails.

    A message whose delivery failed went back to its queue. When even that fails, serving ends with the error: the
    message stays claimed, and whoever watches this worker hears of it.
    """
    in_hand: set[asyncio.Task[None]] = set()
    failures: list[BaseException] = []
    pause = POLL_SECONDS

    def ended(task: asyncio.Task[None]) -> None:
        in_hand.discard(task)
        if not task.cancelled() and (bad := task.exception()) is not None:
            failures.append(bad)

    try:
        while True:
            if failures:
                raise failures[0]
            taken = 0
            for cell in cells:
                room = MAX_IN_HAND - len(in_hand)
                for claimed in await cell.world.queue.receive(min(room, AT_ONCE)) if room > 0 else ():
                    task = asyncio.create_task(cell.handle(claimed))
                    in_hand.add(task)
                    task.add_done_callback(ended)
                    taken += 1
            pause = POLL_SECONDS if taken else min(pause * 1.5, LONGEST_POLL_SECONDS)
            await asyncio.sleep(pause)
    finally:
        for task in in_hand:
            task.cancel()
        await asyncio.gather(*in_hand, return_exceptions=True)


def cell_worker(plan: Plan, cell: Cell, world: World, journal: Callable[[Mapping[str, Any]], None]) -> CellWorker:
    """The worker of one cell, by the plan's scales."""
    rules = Rules(generation=generation(cell.generation)).scaled(plan.time_scale)
    return CellWorker(world, rules, workload(cell.scenario), journal)


async def work(folder: StormFolder, index: int) -> None:
    """Serve every cell of the storm until cancelled: a worker process's whole life."""
    plan = load_plan(folder.path / "plan.yaml")
    worlds = {
        cell: open_world(
            cell.world,
            folder.store(cell),
            cell.condition,
            role="worker",
            worker=f"worker-{index}",
            seed=plan.seed,
            storage_scale=plan.storage_scale,
        )
        for cell in plan.cells
    }
    try:
        with folder.journal(index) as journal:
            await serve([cell_worker(plan, cell, world, journal) for cell, world in worlds.items()])
    finally:
        for world in worlds.values():
            await world.close()


def main(folder: Path, index: int) -> None:
    """The worker process, from start to end."""
    end_with_parent()
    threading.Thread(target=_watch_stdin, daemon=True).start()
    try:
        asyncio.run(_until_terminated(StormFolder(folder), index))
    except KeyboardInterrupt:
        return


async def _until_terminated(folder: StormFolder, index: int) -> None:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await work(folder, index)


def _watch_stdin() -> None:
    # The bare descriptor: a daemon thread inside a buffered read would hold its lock when the interpreter shuts down.
    while os.read(0, 4096):
        continue
    os._exit(0)
