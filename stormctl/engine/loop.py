"""A JavaScript event loop on a virtual clock.

Three queues: ticks (``process.nextTick``), microtasks (promise jobs) and timers. After every timer callback all ticks
and then all microtasks are drained, repeatedly, until both are empty; only then does the next timer run. Timers are
first-in-first-out by due time, and a timer of 0 ms takes 1 ms, as Node's does. The clock jumps to the next timer.

The order of these three queues is what the generations of the replay scheduler differ by, so nothing else in the
engine may decide an order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from math import ceil
from typing import Any

from stormctl.errors import StormctlError

Job = Callable[..., Any]


class Runaway(StormctlError):
    """A pass ran more timers than any real one does: the body never settles."""

    def __init__(self, timers: int) -> None:
        super().__init__(
            f"one pass ran more than {timers} timers and did not settle",
            remedy="Replay a shorter prefix or another generation, and report the log: no workflow should do this.",
        )


class Loop:
    """The three queues and the virtual time in milliseconds since the pass began."""

    __slots__ = ("_grain", "_order", "_timers", "closed", "micros", "now", "stopped", "ticks")

    def __init__(self, grain: float = 1.0) -> None:
        #: a timer is due at the next whole multiple of so many ms; at the default, so long after it was set
        self._grain = grain
        self.now = 0.0
        self.ticks: deque[Callable[[], None]] = deque()
        self.micros: deque[tuple[Job, Any, Any]] = deque()
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._order = 0
        self.closed = False
        self.stopped = False

    def timer(self, ms: float, callback: Callable[[], None]) -> None:
        """Run the callback ``ms`` from now; anything below 1 ms counts as 1 ms."""
        self._order += 1
        due = self.now + (ms if ms > 1 else 1)
        if self._grain != 1.0:
            due = ceil(due / self._grain) * self._grain
        heappush(self._timers, (due, self._order, callback))

    def stop(self) -> None:
        """End :meth:`run` as soon as the jobs that are due now have run."""
        self.stopped = True

    def drain(self) -> None:
        """Run every tick and microtask that is due, including those that they add."""
        ticks, micros = self.ticks, self.micros
        while True:
            while ticks:
                ticks.popleft()()
            if not micros:
                return
            while micros:
                job, first, second = micros.popleft()
                job(first, second)

    def run(self, max_timers: int) -> bool:
        """Run until somebody calls :meth:`stop` or until nothing is left to do; returns whether it was stopped.

        Once stopped, it runs only what is due now, until ``stopped`` is reset. Raises Runaway past ``max_timers``.
        """
        timers, ticks, micros = self._timers, self.ticks, self.micros
        self.drain()
        count = 0
        while not self.stopped:
            if not timers:
                return False
            count += 1
            if count > max_timers:
                raise Runaway(max_timers)
            self.now, _, callback = heappop(timers)
            callback()
            # this is drain(), written out: half of all timers are polls, and the call would cost as much as they do
            while True:
                while ticks:
                    ticks.popleft()()
                if not micros:
                    break
                while micros:
                    job, first, second = micros.popleft()
                    job(first, second)
        return True
