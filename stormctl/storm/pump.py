"""The pressure pump: a scenario's driver, interpreted with a real world and real time.

The driver's inputs are scaled already; the pump only carries out its acts. It ends when its run does, and an attempt
whose pump died early says so (``hook_missing``): without pressure a clean run proves nothing.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Generator
from typing import Any

from stormctl.history import kinds
from stormctl.storm.interpreter import together
from stormctl.workloads import base as acts
from stormctl.worlds.base import NO_PAYLOAD, Appended, AppendRequest, Message, World
from stormctl.worlds.mint import now_ms


class Pump:
    """Drives one run. ``ended`` is set by whoever watches the run's status."""

    def __init__(self, world: World, run_id: str, seed: int, poll_ms: float, clock: Callable[[], int] = now_ms) -> None:
        self._world = world
        self._run_id = run_id
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
                return await self._until(timeout_ms, lambda: self._hook(token))
            case acts.LastWait(timeout_ms):
                return await self._until(timeout_ms, self._last_wait)
            case acts.Resume(token, payload):
                return await self._resume(token, payload)
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

    async def _hook(self, token: str) -> str | None:
        row = await self._world.hook(token)
        return row.correlation_id if row is not None and row.run_id == self._run_id else None

    async def _last_wait(self) -> int | None:
        page = await self._world.load(self._run_id)
        done = {event.correlation_id for event in page.events if event.type == kinds.WAIT_COMPLETED}
        pending = [
            event.resume_at
            for event in page.events
            if event.type == kinds.WAIT_CREATED and event.correlation_id not in done and event.resume_at is not None
        ]
        return max(pending, default=None)

    async def _resume(self, token: str, payload: Any) -> bool:
        """Append the receipt and wake the run: what a resume call of the upstream API does."""
        row = await self._world.hook(token)
        if row is None:
            return False
        reply = await self._world.append(
            AppendRequest(
                run_id=row.run_id,
                type=kinds.HOOK_RECEIVED,
                writer="driver",
                correlation_id=row.correlation_id,
                token=token,
                payload=payload if payload is not None else NO_PAYLOAD,
            )
        )
        if not isinstance(reply, Appended):
            return False
        await self._world.queue.send(Message(row.run_id))
        return True
