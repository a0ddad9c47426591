"""Virtual time for asyncio: a sleep takes no time and happens in its turn."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from typing import Any

EPOCH_MS = 1_767_379_042_304


class _Jumping(selectors.SelectSelector):
    """A selector that never waits: it moves the clock to when the wait would have ended."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise RuntimeError("everybody waits for something that will never happen")
        self.now += max(0.0, timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is the selector's."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    def clock(self) -> int:
        """Epoch milliseconds that agree with the loop's time."""
        return EPOCH_MS + round(self._jumping.now * 1000)


def run_virtually(main: Callable[[Callable[[], int]], Awaitable[Any]]) -> Any:
    """Run ``main(clock)`` to its end in virtual time."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(main(loop.clock))
    finally:
        # what a failed or killed storm left running must end in its own loop, not in some later test's
        loop.run_until_complete(_end(asyncio.all_tasks(loop)))
        loop.close()


async def _end(tasks: set[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
