"""The real-time interpreter of a delivery: a store that is really written, and time that really passes."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable
from typing import Any

from stormctl.engine.door import CALM
from stormctl.runtime import ops
from stormctl.runtime.ops import Requests
from stormctl.worlds.base import World
from stormctl.worlds.mint import now_ms


class Interpreter:
    """Answers the requests of deliveries with one world. ``counts`` is what they noted, by name.

    ``clock`` gives epoch milliseconds; tests give one that agrees with a virtual event loop.
    """

    def __init__(self, world: World, clock: Callable[[], int] = now_ms) -> None:
        self._world = world
        self._clock = clock
        self.counts: Counter[str] = Counter()

    async def run(self, requests: Requests) -> Any:
        """Drive a generator of requests to its end and return what it returns."""
        reply: Any = None
        while True:
            try:
                op = requests.send(reply)
            except StopIteration as returned:
                return returned.value
            try:
                reply = await self._answer(op)
            except BaseException:
                requests.close()
                raise

    async def _answer(self, op: ops.Op) -> Any:
        world = self._world
        match op:
            case ops.Append(request):
                return await world.append(request)
            case ops.Load(run_id, after):
                return await world.load(run_id, after)
            case ops.Sleep(ms, _):
                await asyncio.sleep(ms / 1000)
            case ops.Enqueue(message, delay_ms, key):
                await world.queue.send(message, delay_ms=delay_ms, key=key)
            case ops.Now():
                return self._clock()
            case ops.Draw("writer"):
                return f"wrt_{secrets.token_hex(8)}"
            case ops.Draw(_):
                return CALM
            case ops.Note(what, _):
                self.counts[what] += 1
            case ops.Together(parts):
                return await together([self.run(part) for part in parts])
        return None


async def together(coroutines: list[Any]) -> list[Any]:
    """Run all of them to their end, then raise the first error if there was one: no sibling is left flying."""
    results = await asyncio.gather(*coroutines, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results
