"""A whole storm in virtual time: each cell by itself, in as many processes as there may be, put together in one folder.

A cell's storm hangs on the plan and its seed alone. Cells never share a clock, so it does not matter how many are run
at once: the folder is the same, to the byte.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import shutil
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import aclosing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from stormctl import __version__
from stormctl.errors import PlanError
from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.driver import run_storm
from stormctl.storm.embedded import Embedded
from stormctl.storm.events import AttemptLanded, StormEvent, StormFinished, StormNoted, StormStarted
from stormctl.storm.folder import StormFolder
from stormctl.storm.plan import AXES, Plan
from stormctl.storm.virtual import EPOCH_MS, StoreTime, run_virtually
from stormctl.times import iso

NOTE = "in virtual time: every store is in memory, under the condition of its world"
PARTS = "parts"
DONE = "done"


def check(plan: Plan) -> None:
    """PlanError for a plan that virtual time cannot run."""
    if plan.target != "embedded":
        raise PlanError(
            f"the target {plan.target} is software of its own, which takes real time",
            remedy="Run it with `stormctl run`, or take a plan of the target embedded.",
        )


def play(
    plan: Plan, folder: StormFolder, *, jobs: int = 1, time: StoreTime | None = None
) -> Generator[StormEvent, None, None]:
    """Run every attempt of the plan and yield what happens, cell after cell. ``time`` is how long the stores take, by
    default :class:`StoreTime` times the plan's ``storage_scale``.

    StoreFailure and the errors of :func:`~stormctl.storm.driver.run_storm`; whoever stops early closes the generator.
    """
    check(plan)
    target = target_of(plan, time)
    folder.write_json("env.json", environment(plan))
    cells = plan.cells
    yield StormStarted(plan.name, plan.seed, folder.path, {cell: plan.attempts_of(cell) for cell in cells})
    yield StormNoted(NOTE)
    landed = 0
    try:
        with _parts(jobs, len(cells)) as begin:
            parts = [begin(plan, cell, folder.path / PARTS / str(at), target) for at, cell in enumerate(cells)]
            for cell, part in zip(cells, parts, strict=True):
                for attempt in take_in(folder, cell, part()):
                    landed += 1
                    yield AttemptLanded(attempt)
    finally:
        shutil.rmtree(folder.path / PARTS, ignore_errors=True)
        reason = DONE if landed == plan.total else "interrupted"
        document = {"schema": "stormctl.storm/1", "reason": reason, "landed": landed, "planned": plan.total}
        folder.write_json("storm.json", document)
    yield StormFinished(folder.path, landed, plan.total, DONE, 0.0)


def target_of(plan: Plan, time: StoreTime | None = None) -> Embedded:
    """What runs and sweeps the attempts: our runtime on stores in memory that take that time."""
    return Embedded(virtual=time if time is not None else StoreTime(scale=plan.storage_scale))


def environment(plan: Plan) -> dict[str, Any]:
    """What a reader must know of how the storm was made: nothing of the machine, on which nothing hangs."""
    return {"stormctl": __version__, "time": "virtual", "seed": plan.seed, "argv": [], "started_at": iso(EPOCH_MS)}


_Part = Callable[[], Path]


@contextmanager
def _parts(jobs: int, cells: int) -> Iterator[Callable[[Plan, Cell, Path, Embedded], _Part]]:
    """How a cell's storm is begun: in a process of a pool, or here when its result is asked for."""
    if jobs < 2 or cells < 2:
        yield lambda *part: lambda: run_part(*part)
        return
    pool = ProcessPoolExecutor(min(jobs, cells), mp_context=multiprocessing.get_context("spawn"))

    def begin(*part: Any) -> _Part:
        future: Future[Path] = pool.submit(run_part, *part)
        return future.result

    try:
        yield begin
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def run_part(plan: Plan, cell: Cell, root: Path, target: Embedded) -> Path:
    """Run the storm of one cell, in a folder of its own under ``root``, and reply that folder."""
    part = replace(plan, axes={axis: (getattr(cell, axis),) for axis in AXES}, pairs=())
    folder = StormFolder.create(part, root)

    async def main(_clock: Callable[[], int]) -> None:
        async with aclosing(run_storm(part, folder, target=target)) as events:
            async for _event in events:
                await asyncio.sleep(0)

    run_virtually(main, f"{plan.seed} {cell.label}")
    return folder.path


def take_in(folder: StormFolder, cell: Cell, part: Path) -> Iterator[Attempt]:
    """Move what a cell's storm left into the whole storm's folder; its attempts, in the order in which they landed."""
    for name in ("logs", "audit"):
        for file in sorted((part / name).iterdir()):
            file.replace(folder.path / name / file.name)
    for journal in sorted((part / "workers").glob("*.ndjson")):
        journal.replace(folder.journal_file(f"{cell.label.replace('/', '--')}--{journal.stem}"))
    with (part / "started.ndjson").open("rb") as started, folder.started_file.open("ab") as announced:
        shutil.copyfileobj(started, announced)
    for line in (part / "attempts.ndjson").read_text(encoding="utf-8").splitlines():
        attempt = Attempt.from_row(json.loads(line))
        folder.record(attempt)
        yield attempt
