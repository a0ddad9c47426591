"""The real-time interpreter of a delivery: a store that is really written, and time that really passes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from stormctl.history import ReadRecord, kinds
from stormctl.outside import outside
from stormctl.runtime import ops
from stormctl.runtime.notes import tally
from stormctl.runtime.ops import Requests
from stormctl.storm.faults.hands import ProcessHands
from stormctl.storm.perturb import Perturb, calm
from stormctl.worlds.base import Appended, AppendRequest, Page, Refusal, Refused, World
from stormctl.worlds.mint import now_ms

Kill = Callable[[str], Awaitable[None]]
InBody = Callable[[str], Awaitable[None]]
#: The reason of the sleep that is a step body's own time.
STEP_BODY = "step body"


class Interpreter:
    """Answers the requests of deliveries with one world. ``counts`` is what they noted, by name, and what the store
    refused: ``refused`` preconditions, and of those the ``useless`` ones, which refused a fact.

    ``reads`` is what the delivery read of the log, ``seeds`` those of its passes' perturbations. ``clock`` gives epoch
    milliseconds; tests give one that agrees with a virtual event loop. ``kill`` ends the worker. ``in_body`` is told
    when a step body of a run lets time pass. ``perturb`` is asked for each pass.
    """

    def __init__(
        self,
        world: World,
        clock: Callable[[], int] = now_ms,
        *,
        run_id: str = "",
        kill: Kill | None = None,
        in_body: InBody | None = None,
        perturb: Perturb = calm,
    ) -> None:
        self._world = world
        self._clock = clock
        self._run_id = run_id
        self._kill = kill if kill is not None else ProcessHands().kill
        self._in_body = in_body
        self._perturb = perturb
        self.counts: Counter[str] = Counter()
        self.reads: list[ReadRecord] = []
        self.seeds: list[int] = []
        self._reader = ""

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
                return self._counted(request, await world.append(request))
            case ops.AppendBatch(requests):
                replies = tuple(await world.append_batch(requests))
                for request, answer in zip(requests, replies, strict=True):
                    if _is_stale(self._counted(request, answer)):
                        break  # it refused all of them, and that is one refusal
                return replies
            case ops.Load(run_id, after):
                return await self._load(run_id, after)
            case ops.Sleep(ms, reason):
                if reason == STEP_BODY and self._in_body is not None:
                    await self._in_body(self._run_id)
                await asyncio.sleep(ms / 1000)
            case ops.Enqueue(message, delay_ms, key):
                await world.queue.send(message, delay_ms=delay_ms, key=key)
            case ops.Now():
                return self._clock()
            case ops.Draw("writer"):
                self._reader = f"wrt_{outside().token(8)}"
                return self._reader
            case ops.Draw(_):
                drawn = self._perturb()
                if drawn.jitter_ms:
                    self.seeds.append(drawn.seed)
                return drawn
            case ops.Note(what, data):
                self.counts.update(tally(what, data))
            case ops.Kill(reason):
                await self._kill(reason)
            case ops.Together(parts):
                return await together([self.run(part) for part in parts])
        return None

    async def _load(self, run_id: str, after: str | None) -> Page:
        """Read the log, and write down what was seen of it: a reader whose cursor passes an event misses it."""
        began = outside().running_ns()
        page = await self._world.load(run_id, after)
        last = page.events[-1].event_id if page.events else None
        full = after is None
        self.reads.append(ReadRecord(self._reader, full, last, len(page.events), began, outside().running_ns()))
        return page

    def _counted(self, request: AppendRequest, reply: Appended | Refused) -> Appended | Refused:
        if _is_stale(reply):
            self.counts["refused"] += 1
            self.counts["useless"] += not kinds.is_decision(request.type, lazy_start=request.lazy)
        return reply


def _is_stale(reply: Appended | Refused) -> bool:
    return isinstance(reply, Refused) and reply.refusal is Refusal.PRECONDITION


async def together(coroutines: list[Any]) -> list[Any]:
    """Run all of them to their end, then raise the first error if there was one: no sibling is left flying."""
    results = await asyncio.gather(*coroutines, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results
