"""How many schedules and turns a second the simulator plays on its small model.

    python benchmarks/sim.py

The peer is detangle (PyPI), which explores asyncio programs: the same model as tasks that yield to its loop before each
read, mint and publication. Both choose at random. Without it (`pip install detangle`), only our own rates are printed.
The rate is the best of some goes in CPU seconds, since on a shared machine the best says most.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable
from typing import Any

from stormctl.sim.certify import certify
from stormctl.sim.chain import chain_of
from stormctl.sim.explore import Budget, explore
from stormctl.sim.kernel import TapeChooser, play
from stormctl.sim.models.fork import Fork
from stormctl.sim.shrink import shrink
from stormctl.sim.strategies.random import RandomChooser
from stormctl.sim.stream import Stream

GOAL_SCHEDULES, GOAL_TURNS = 15_000, 500_000
GOES, EACH = 12, 1_000


def rates(go: Callable[[int], tuple[int, int]], goes: int) -> tuple[float, float]:
    """Schedules and turns a second: the best of some goes."""
    best = 0.0, 0.0
    for number in range(goes):
        began = time.process_time()
        schedules, turns = go(number)
        seconds = time.process_time() - began
        best = max(best, (schedules / seconds, turns / seconds))
    return best


def show(what: str, found: tuple[float, float], *, goal: bool = False, peer: tuple[float, float] | None = None) -> None:
    schedules, turns = found
    line = f"  {what:<46} {schedules:>8,.0f} schedules/s {turns:>9,.0f} turns/s"
    if goal:
        met = schedules >= GOAL_SCHEDULES and turns >= GOAL_TURNS
        line += f"   goal {GOAL_SCHEDULES:,} and {GOAL_TURNS:,}: {'met' if met else 'missed'}"
    if peer is not None:
        line += f"   {schedules / peer[0]:.1f} x detangle"
    print(line)


def ours(model: Fork, *, lean: bool) -> Callable[[int], tuple[int, int]]:
    def go(number: int) -> tuple[int, int]:
        turns = 0
        for one in range(EACH):
            turns += play(model, RandomChooser(Stream("bench", number, one)), lean=lean).steps
        return EACH, turns

    return go


def explored(model: Fork) -> Callable[[int], tuple[int, int]]:
    def go(number: int) -> tuple[int, int]:
        found = explore(model, "random", budget=Budget(runs=EACH), seed=number)
        return found.runs, found.steps

    return go


def chained(model: Fork) -> Callable[[int], tuple[int, int]]:
    def go(number: int) -> tuple[int, int]:
        turns = 0
        for one in range(EACH // 4):
            turns += len(chain_of(model, RandomChooser(Stream("bench", number, one))).links) - 1
        return EACH // 4, turns

    return go


# -- the peer ----------------------------------------------------------------------------------------------------------


def detangled(detangle: Any, model: Fork, runs: int, *, stop: bool, seed: int = 0) -> tuple[int, int, Any]:
    """The same bodies as tasks of an asyncio program: schedules, turns, and what the peer reports (or None)."""
    import asyncio

    from stormctl.sim.kernel import Run, Stage

    turns = schedules = 0

    class Bodies(Stage):
        """Takes the bodies of the model without running them."""

        __slots__ = ("bodies",)

        def __init__(self) -> None:
            super().__init__()
            self.bodies: list[Any] = []

        def spawn(self, name: str, body: Any, *, last: bool = False) -> int:
            self.bodies.append(body)
            return len(self.bodies) - 1

    async def drive(body: Any) -> None:
        nonlocal turns
        for _ in body:  # up to the next turn
            turns += 1
            await asyncio.sleep(0)

    async def program() -> None:
        nonlocal schedules
        schedules += 1
        bodies = Bodies()
        log = model.start(bodies)
        await asyncio.gather(*(drive(body) for body in bodies.bodies))
        problems = log.judge(Run())
        if stop:
            assert not problems, problems[0].signature

    try:
        report = detangle.explore(program, runs=runs, strategy="random", seed=seed, shrink=stop, database="")
    except detangle.BugFound as found:
        report = found
    return schedules, turns, report


def main() -> None:
    print(
        f"The simulator on its small model ({os.getloadavg()[0]:.1f} processes are running on {os.cpu_count()} cores)."
    )
    try:
        detangle = importlib.import_module("detangle")
    except ImportError:
        detangle = None
        print("  detangle is not installed (pip install detangle): rates without a peer")
    for model in (Fork("mint"), Fork("commit"), Fork("mint", orchestrators=2)):
        print(f"{model.name}:")
        peer = None
        if detangle is not None:
            peer = rates(lambda number, model=model: detangled(detangle, model, 300, stop=False, seed=number)[:2], 5)
            show("detangle, random", peer)
        show("random, untraced", rates(ours(model, lean=True), GOES), goal=model.orchestrators == 1, peer=peer)
        show("random, turns kept", rates(ours(model, lean=False), GOES), peer=peer)
        show("random, classes counted (goal 5,000 schedules/s)", rates(explored(model), GOES), peer=peer)
        show("random, hashed turn by turn", rates(chained(model), GOES), peer=peer)
    proofs()
    if detangle is not None:
        for model in (Fork("mint"), Fork("mint", orchestrators=2)):
            schedules, _, report = detangled(detangle, model, 2_000, stop=True, seed=1)
            said = next((line for line in str(report).splitlines() if "Minimal" in line), "found nothing")
            print(f"  detangle on {model.name}: {schedules} schedules with its shrinking. {said.strip()}")


def proofs() -> None:
    print("Finding, shrinking, proving:")
    for model in (Fork("mint"), Fork("mint", orchestrators=2)):
        began = time.process_time()
        found = explore(model, "random", budget=Budget(runs=5_000), seed=1, stop_at_first=True)
        assert found.first is not None
        shrunk = shrink(model, found.first.tape, models=False)
        print(
            f"  {model.name}: found in {found.runs} schedules; {shrunk.preemptions} preemptions after {shrunk.tried} "
            f"more; {shrunk.certificate}; {(time.process_time() - began) * 1000:.0f} ms"
        )
    for world in ("mint", "commit"):
        began = time.process_time()
        found = explore(Fork(world), "dpor", budget=Budget())
        print(
            f"  fork-{world}: all {found.classes} classes in {found.runs} schedules, "
            f"{(time.process_time() - began) * 1000:.0f} ms"
        )
    began = time.process_time()
    signature = play(Fork("mint"), TapeChooser([1, 1])).problems[0].signature
    proof = certify(Fork("commit", orchestrators=2), signature, fewer_than=4, most=100_000)
    print(
        f"  fork-commit-2-orchestrators: no violation with <= 3 preemptions: {proof.complete} "
        f"({proof.checked:,} checked), {time.process_time() - began:.2f} s"
    )


if __name__ == "__main__":
    main()
