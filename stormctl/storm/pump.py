"""The pressure pump: a scenario's driver, interpreted with a run under test and real time.

The driver's inputs are scaled already; the pump only carries out its acts. It ends when its run does, and an attempt
whose pump died early says so (``hook_missing``): without pressure a clean run proves nothing.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Generator
from typing import Any

from stormctl.storm.interpreter import together
from stormctl.storm.subject import Subject
from stormctl.workloads import base as acts
from stormctl.worlds.mint import now_ms


class Pump:
    """Drives one run. ``ended`` is set by whoever watches the run's status."""

    def __init__(self, subject: Subject, seed: int, poll_ms: float, clock: Callable[[], int] = now_ms) -> None:
        self._subject = subject
        self._random = random.Random(seed)
        self._poll = poll_ms / 1000
        self._clock = clock
        self.ended = asyncio.Event()

    async def run(self, driver: Generator[acts.Act, Any, None]) -> None:
        """Carry out every act of the driver."""
        reply: Any = None
        while True:
            try:
                act = driver.send(reply)
            except StopIteration:
                return
            reply = await self._carry_out(act)

    async def _carry_out(self, act: acts.Act) -> Any:
        match act:
            case acts.Sleep(ms):
                await self._sleep(ms / 1000)
            case acts.Uniform():
                return self._random.random()
            case acts.Now():
                return self._clock()
            case acts.RunEnded():
                return self.ended.is_set()
            case acts.WaitForHook(token, timeout_ms):
                return await self._until(timeout_ms, lambda: self._subject.hook(token))
            case acts.LastWait(timeout_ms):
                return await self._until(timeout_ms, self._subject.last_wait)
            case acts.Resume(token, payload):
                return await self._subject.resume(token, payload)
            case acts.Together(drivers):
                await together([self.run(driver) for driver in drivers])
            case acts.SetAttributes():
                raise TypeError("a driver cannot write attributes of the run")
            case acts.StepAttempt() | acts.KillWorker():
                raise TypeError(f"a driver cannot {type(act).__name__}: that is for step bodies")
        return None

    async def _sleep(self, seconds: float) -> None:
        """Sleep, but not past the run's end."""
        if seconds > 0 and not self.ended.is_set():
            try:
                await asyncio.wait_for(self.ended.wait(), seconds)
            except TimeoutError:
                return

    async def _until(self, timeout_ms: float, look: Any) -> Any:
        """Look again and again until there is something to see; None when the time or the run is over."""
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        while True:
            seen = await look()
            if seen is not None:
                return seen
            if self.ended.is_set() or asyncio.get_running_loop().time() >= deadline:
                return None
            await self._sleep(self._poll)
