"""How long one replay of a 650-event prefix takes.

    python benchmarks/replay.py

The log is the real one of vercel/workflow #3543 where it is at hand, else a step storm of that size made here. The
reference is what anyone would write first: the same workflow on asyncio, its futures resolved in the order of the log.
It keeps none of the engine's order, so it says how fast the machine is and not how fast the engine could be.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from pathlib import Path
from typing import Any

from _measure import cpu, show

ROOT = Path(__file__).resolve().parents[1]
REAL = ROOT.parent / "shared" / "data" / "wrun-41KZYJ92TP-storm-log.json"
PREFIX = 650
GOALS_MS = {"nets": 10.0, "dispenser": 5.0}


def main() -> None:
    from stormctl.engine.engines import engine_for
    from stormctl.workloads.registry import workload

    log, given, where = a_log()
    code = workload("step-storm")
    input = code.parse_input(given)
    print(f"Replay of step-storm, {where}: {len(log)} events.")
    reference = cpu(lambda: asyncio.run(replay_on_asyncio(code.body, input, log[:PREFIX])), 10)
    show(f"reference: {PREFIX} events on asyncio", reference, "ms")
    for name, goal in GOALS_MS.items():
        engine = engine_for(name, code, input)
        one = cpu(lambda engine=engine: list(engine.passes(log, [PREFIX])), 20)
        show(f"{name}: {PREFIX} events", one, "ms", goal=goal, peer=reference)


def a_log() -> tuple[Any, dict[str, Any], str]:
    """A log, the input of the workload that wrote it, and what it is."""
    if REAL.is_file():
        from stormctl.readers.open import open_file

        (capture,) = open_file(REAL)
        return capture.log, {}, "the real log"  # type: ignore[union-attr]
    sys.path.insert(0, str(ROOT))
    from stormctl.workloads.registry import workload
    from tests.workloads.virtual import Run

    given = {"token": "bench", "jitter_buckets": 7}
    run = Run(workload("step-storm"), workload("step-storm").parse_input(given), latency=lambda _name, _arguments: 50.0)
    run.to_the_end()
    return run.log[: PREFIX + 2], given, "a made log"


# -- the reference ----------------------------------------------------------------------------------------------------


class Thenable:
    """An awaitable with a ``then``, which is all that the storm's body asks of a promise."""

    def __init__(self, future: asyncio.Future[Any]) -> None:
        self.future = future

    def __await__(self) -> Generator[Any, Any, Any]:
        return self.future.__await__()

    def then(self, mapping: Callable[[Any], Any]) -> Thenable:
        async def mapped() -> Any:
            return mapping(await self.future)

        return Thenable(asyncio.ensure_future(mapped()))


class OnAsyncio:
    """The primitives of a workflow as asyncio has them; ``drawn`` are the futures by rank."""

    run_id = "wrun_reference"

    def __init__(self) -> None:
        self.drawn: list[asyncio.Future[Any]] = []

    def step(self, _name: str, *_arguments: Any) -> Thenable:
        future = asyncio.get_running_loop().create_future()
        self.drawn.append(future)
        return Thenable(future)

    def sleep(self, _ms: float) -> Thenable:
        return self.step("")

    def hook(self, _token: str) -> OnAsyncio:
        self.step("")
        return self

    def dispose(self) -> None:
        """A reference gives nothing up."""

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Thenable:
        return Thenable(asyncio.ensure_future(coroutine))

    def all(self, awaited: Iterable[Any]) -> Awaitable[list[Any]]:
        return asyncio.gather(*[self._flat(one) for one in awaited])

    async def race(self, *awaited: Thenable) -> Any:
        done, _ = await asyncio.wait([one.future for one in awaited], return_when=asyncio.FIRST_COMPLETED)
        return done.pop().result()

    async def _flat(self, one: Awaitable[Any]) -> Any:
        value = await one
        return await value if isinstance(value, Thenable) else value


async def replay_on_asyncio(body: Any, input: Any, log: Any) -> int:
    """Resolve what each outcome in the log belongs to; how many calls were made."""
    workflow = OnAsyncio()
    main = asyncio.ensure_future(body(workflow, input))
    for event in log:
        if event.type in ("step_completed", "wait_completed"):
            rank = log.rank(event)
            for _ in range(8):  # as many turns as the longest chain of callbacks between two calls
                await asyncio.sleep(0)
            if rank < len(workflow.drawn) and not workflow.drawn[rank].done():
                workflow.drawn[rank].set_result(None)
    while waiting := asyncio.all_tasks() - {asyncio.current_task()}:
        for task in waiting:
            task.cancel()  # again and again, for a branch calls its last step on the way out
        await asyncio.sleep(0)
    await asyncio.gather(main, return_exceptions=True)
    return len(workflow.drawn)


if __name__ == "__main__":
    main()
