"""Storms in virtual time: the same driver, workers and rules, on stores in memory, under a clock that jumps.

A sleep takes no time and happens in its turn, so that a storm of minutes takes as long as its replays do; and nothing
comes from outside, so that one plan with one seed is one storm, to the byte of what it leaves behind. Every store is
in memory under the condition of the cell's world: what it cannot show is what a real disk or database does besides.

    folder = StormFolder.create(plan)
    run_virtually(lambda clock: play(plan, folder), seed=plan.seed)
"""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from stormctl.history import ids
from stormctl.outside import Outside, given
from stormctl.worlds.base import AppendRequest
from stormctl.worlds.condition import Point
from stormctl.worlds.mint import Minter

#: the time of day at which every virtual storm begins, in epoch milliseconds
EPOCH_MS = 1_767_379_042_304


_LOOK_EVERY = 128


class _Jumping(selectors.SelectSelector):
    """A selector that never waits: it moves the clock to when the wait would have ended.

    It looks for what really happens outside (an interrupt) only now and then: a storm makes some hundred thousand
    turns a second, and asking the system in each costs as much as the turns.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self._turns = 0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise RuntimeError("everybody waits for something that will never happen")
        self.now += max(0.0, timeout)
        self._turns += 1
        return super().select(0) if self._turns % _LOOK_EVERY == 0 else []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is the selector's."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Seconds since the loop was made."""
        return self._jumping.now

    def clock(self) -> int:
        """Epoch milliseconds that agree with the loop's time."""
        return EPOCH_MS + round(self._jumping.now * 1000)


class VirtualOutside(Outside):
    """Times by a loop, ids by a seed, and no thread, which would take no virtual time."""

    def __init__(self, loop: VirtualLoop, seed: int | str) -> None:
        self._loop = loop
        self._random = Random(f"outside {seed}")
        self._minter = Minter(loop.clock, Random(f"ulids {seed}"))

    def wall_ns(self) -> int:
        """The loop's time of day."""
        return self._loop.clock() * 1_000_000

    def running_ns(self) -> int:
        """The loop's time."""
        return round(self._loop.time() * 1e9)

    def token(self, size: int) -> str:
        """Digits of a seeded sequence."""
        return self._random.randbytes(size).hex()

    def random(self) -> Random:
        """Numbers that follow from the seed, others each time."""
        return Random(self._random.randbytes(16))

    def ulid(self) -> str:
        """The next of a seeded sequence."""
        return ids.split(self._minter.mint(self._loop.clock(), monotonic=True))[1]

    async def in_thread(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Done at once."""
        return call(*arguments)


def run_virtually(main: Callable[[Callable[[], int]], Awaitable[Any]], seed: int | str = 0) -> Any:
    """Run ``main(clock)`` to its end in virtual time, with ids that follow from the seed."""
    loop = VirtualLoop()
    try:
        with given(VirtualOutside(loop, seed)):
            return loop.run_until_complete(main(loop.clock))
    finally:
        # what a failed or killed storm left running must end in its own loop, not in some later one
        loop.run_until_complete(_end(asyncio.all_tasks(loop)))
        loop.close()


async def _end(tasks: set[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class StoreTime:
    """How long a store in memory takes: at each point of an append lognormal, by its median, cut at ``longest``, in
    milliseconds; multiplied by ``scale``."""

    median_ms: float = 0.3
    sigma: float = 0.6
    longest_ms: float = 20.0
    scale: float = 1.0

    def at_points(self, seed: int | str) -> Callable[[Point, AppendRequest], Awaitable[None]]:
        """What holds appends up, by a seeded sequence of its own."""
        random = Random(f"store time {seed}")
        mu, scale = math.log(self.median_ms), self.scale

        async def hold_up(_point: Point, _request: AppendRequest) -> None:
            taken = min(random.lognormvariate(mu, self.sigma), self.longest_ms) * scale
            if taken > 0:
                await asyncio.sleep(taken / 1000)

        return hold_up
