"""What a workflow body is given: its primitives and nothing else.

A body is an ``async def`` that awaits only what these methods return. Calling another ``async def`` of the body's own
goes through :meth:`Workflow.run`, which starts it at once and costs the hops that JavaScript's ``await f()`` does::

    async def body(wf: Workflow, input: Input) -> str:
        hook = wf.hook("door")
        winner = await wf.race(
            hook.next().then(lambda _: "opened"),
            wf.sleep(2500).then(lambda _: "too late"),
        )
        return await wf.step("report", winner)
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from typing import TYPE_CHECKING, Any

from stormctl.engine import promise
from stormctl.engine.hook import Hook
from stormctl.engine.primitives import Attributes, Step, Wait
from stormctl.engine.promise import Promise

if TYPE_CHECKING:
    from stormctl.engine.context import Context

Awaited = Promise | Coroutine[Any, Any, Any]


class Workflow:
    """The primitives of one replay."""

    __slots__ = ("_context", "run_id")

    def __init__(self, context: Context) -> None:
        self._context = context
        self.run_id = context.run_id

    def step(self, name: str, *arguments: Any) -> Promise:
        """Call a step: the promise of its result; rejects with StepFailed."""
        return Step(self._context, name, arguments).result

    def sleep(self, ms: float) -> Promise:
        """A durable sleep. One hop longer than a step, because upstream's ``sleep`` is an async function."""
        outer = Promise(self._context.loop)
        outer.resolve(Wait(self._context, ms).result)
        return outer

    def hook(self, token: str) -> Hook:
        """Create a hook that the outside world addresses by its token."""
        return Hook(self._context, token)

    def set_attributes(self, changes: dict[str, str | None]) -> Promise:
        """Write attributes of the run; a None value deletes one."""
        return Attributes(self._context, changes).result

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Promise:
        """Start an ``async def`` of the body's own, up to its first await: the promise of what it returns."""
        if self._context.loop.closed:
            return self._refuse((coroutine,))
        return promise.start(self._context.loop, coroutine, self._context.tasks)

    def all(self, awaited: Iterable[Awaited]) -> Promise:
        """The promise of all values, in order. Coroutines are started as they are reached."""
        if self._context.loop.closed:
            return self._refuse(awaited)
        return promise.gather(self._context.loop, [self._promise(one) for one in awaited])

    def race(self, *awaited: Awaited) -> Promise:
        """The promise of the first to settle. The others stay pending: nothing is cancelled."""
        if self._context.loop.closed:
            return self._refuse(awaited)
        return promise.race(self._context.loop, [self._promise(one) for one in awaited])

    def now(self) -> int:
        """The run's clock in epoch milliseconds: the time of the latest event consumed, the same in every replay."""
        self._context.clock_read = True
        return self._context.clock

    def _promise(self, awaited: Awaited) -> Promise:
        return awaited if isinstance(awaited, Promise) else self.run(awaited)

    def _refuse(self, awaited: Iterable[Awaited]) -> Promise:
        """The pass is over: what a dying body starts is closed, so that nothing is left unawaited, and never ends."""
        for one in awaited:
            if isinstance(one, Coroutine):
                one.close()
        return Promise(self._context.loop)
