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
from dataclasses import asdict
from pathlib import Path
from typing import Any

from stormctl.engine.children import end_with_parent
from stormctl.errors import StoreFailure, StormctlError
from stormctl.runtime.delivery import Delivery, deliver
from stormctl.runtime.rules import Rules
from stormctl.storm.attempt import Cell
from stormctl.storm.faults.hands import ProcessHands
from stormctl.storm.folder import StormFolder
from stormctl.storm.in_hand import InHand
from stormctl.storm.interpreter import InBody, Interpreter, Kill
from stormctl.storm.perturb import Perturb, calm
from stormctl.storm.plan import load_plan
from stormctl.storm.stores import Stores
from stormctl.workloads.base import Workload
from stormctl.workloads.registry import workload
from stormctl.worlds import Claimed, World
from stormctl.worlds.mint import now_ms
from stormctl.worlds.open import world_kind

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
#: a queue that fails is asked again so often, and so long apart, before the worker gives up
RECEIVE_TRIES = 4
RECEIVE_AGAIN_SECONDS = 0.25
#: how a worker process is told the database, whose DSN may hold a password that no command line may show
DSN_VARIABLE = "STORMCTL_DSN"

Journal = Callable[[Mapping[str, Any]], None]


class CellWorker:
    """One cell's share of a worker. ``journal`` is told of every delivery that ended, ``kill`` ends the worker."""

    def __init__(
        self,
        world: World,
        rules: Rules,
        code: Workload,
        journal: Journal,
        clock: Callable[[], int] = now_ms,
        *,
        kill: Kill | None = None,
        in_body: InBody | None = None,
        perturb: Perturb = calm,
    ) -> None:
        self.world = world
        self._rules = rules
        self._code = code
        self._journal = journal
        self._clock = clock
        self._kill = kill
        self._in_body = in_body
        self._perturb = perturb
        self._by_run: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(REPLAY_CONCURRENCY))

    async def handle(self, claimed: Claimed) -> None:
        """Deliver one message and acknowledge it. A delivery that fails for a fault of ours gives its message back."""
        run_id = claimed.message.run_id
        interpreter = Interpreter(
            self.world,
            self._clock,
            run_id=run_id,
            kill=self._kill,
            in_body=self._in_body,
            perturb=self._perturb,
        )
        flow = claimed.message.step_id is None
        try:
            async with self._by_run[run_id] if flow else contextlib.nullcontext():
                delivery: Delivery = await interpreter.run(deliver(claimed, self._code, self._rules))
        except Exception as bad:
            sys.stderr.write(f"delivery of {run_id} failed: {type(bad).__name__}: {bad}\n")
            sys.stderr.flush()
            if claimed.attempt < MAX_DELIVERIES:
                await self.world.queue.release(claimed, delay_ms=50.0 * claimed.attempt)
            return
        await self.world.queue.ack(claimed)
        self._journal(
            {
                "run": run_id,
                "ending": str(delivery.ending),
                "deliveries": 1,
                "passes": delivery.passes,
                "restarts": delivery.restarts,
                "notes": dict(interpreter.counts),
                "reads": [asdict(read) for read in interpreter.reads],
                "perturbations": interpreter.seeds,
            }
        )


async def serve(cells: Sequence[CellWorker], hand: InHand | None = None) -> None:
    """Take messages from the cells' queues and deliver them, until cancelled, killed, or until a queue fails for good.

    A message whose delivery failed went back to its queue. When even that fails, serving ends with the error: the
    message stays claimed, and whoever watches this worker hears of it.
    """
    hand = hand if hand is not None else InHand()
    pause = POLL_SECONDS
    failed = 0
    try:
        while True:
            hand.check()
            taken = 0
            try:
                for cell in cells:
                    room = MAX_IN_HAND - len(hand)
                    for claimed in await cell.world.queue.receive(min(room, AT_ONCE)) if room > 0 else ():
                        hand.add(asyncio.create_task(cell.handle(claimed)))
                        taken += 1
                failed = 0
            except StoreFailure:
                failed += 1
                if failed >= RECEIVE_TRIES:
                    raise
                await asyncio.sleep(RECEIVE_AGAIN_SECONDS * failed)
                continue
            pause = POLL_SECONDS if taken else min(pause * 1.5, LONGEST_POLL_SECONDS)
            await asyncio.sleep(pause)
    finally:
        await hand.drop()


async def work(
    stores: Stores, cells: Sequence[Cell], worker: str, journal: Callable[[Cell], Journal], *, give_back: bool = False
) -> None:
    """Serve some cells of a storm until cancelled: a worker process's whole life. ``journal`` is asked for each cell's
    when all stores are open. ``give_back``: the storm may go on, so what is in hand at the end goes back at once."""
    hands, ledger = ProcessHands(), stores.ledger(worker)
    injectors = {cell: stores.injector(cell, worker, hands, ledger) for cell in cells}
    worlds: dict[Cell, World] = {}
    try:
        for cell, injector in injectors.items():
            worlds[cell] = stores.open(cell, "worker", worker, injector)
        await serve(
            [
                CellWorker(
                    world,
                    stores.rules(cell),
                    workload(cell.scenario),
                    journal(cell),
                    kill=hands.kill,
                    in_body=injectors[cell].in_body if stores.plan.faults else None,
                    perturb=stores.perturb(cell, worker),
                )
                for cell, world in worlds.items()
            ]
        )
    finally:
        for world in worlds.values():
            if give_back:
                with contextlib.suppress(StormctlError):
                    await world.queue.requeue_dead(worker)
            await world.close()


async def _work_in_folder(folder: StormFolder, name: str) -> None:
    plan = load_plan(folder.path / "plan.yaml")
    cells = [cell for cell in plan.cells if not world_kind(cell.world).in_process]
    stores = Stores(plan, folder.id, folder, os.environ.get(DSN_VARIABLE))
    with contextlib.ExitStack() as stack:
        opened: list[Journal] = []

        def journal(_cell: Cell) -> Journal:
            if not opened:  # the file appears when the worker begins to serve
                opened.append(stack.enter_context(folder.journal(name)))
            return opened[0]

        await work(stores, cells, worker_name(name), journal)


def worker_name(name: str) -> str:
    """What queues and faults call the worker whose journal has this name."""
    return f"worker-{name}"


def main(folder: Path, name: str) -> None:
    """The worker process of a storm on this machine, from start to end."""
    end_with_parent()
    threading.Thread(target=_watch_stdin, daemon=True).start()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(until_terminated(_work_in_folder(StormFolder(folder), name)))


async def until_terminated(working: Any) -> None:
    """Await a coroutine until SIGTERM asks for its end."""
    task = asyncio.ensure_future(working)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await task


def _watch_stdin() -> None:
    # The bare descriptor: a daemon thread inside a buffered read would hold its lock when the interpreter shuts down.
    while os.read(0, 4096):
        continue
    os._exit(0)
