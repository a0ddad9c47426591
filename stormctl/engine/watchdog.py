"""Ending a pass over a body that would run for ever.

Virtual time cannot interrupt a body that loops without an await, or one that awaits what has settled again and again:
neither lets the event loop get to its next timer. So a body that is not ours is watched in real time. The process has
one interval timer; at each tick the handler looks whether the watched pass is running just then, and whether its walk
has consumed an event since the tick before. One that has not for ``limit_s`` seconds in a row, or that has asked for
more than any run may hold, is left by :class:`Endless`.

Signals reach the main thread only: a pass in another thread is not watched.
"""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from types import FrameType
from typing import TYPE_CHECKING, Any

from stormctl.engine.loop import Loop

if TYPE_CHECKING:
    from stormctl.engine.context import Context
    from stormctl.engine.replay import Body
    from stormctl.engine.workflow import Workflow

#: how long a pass may go without consuming an event, in seconds; a real one takes milliseconds
LIMIT_S = 30.0
#: upstream refuses logs of more than 25,000 events, and each thing asked for is an event at least
MAX_DRAWS = 100_000
#: how often a body may swallow what ends it, before its process is ended
_PATIENCE = 5
_EXIT = 4
_RUNNING = frozenset({Loop.run.__code__, Loop.drain.__code__})


class Endless(BaseException):
    """A pass was left because its body would not end. No Exception, so that a body's own handlers let it through."""


def watched(body: Body, *, limit_s: float | None = None, max_draws: int = MAX_DRAWS) -> Body:
    """The body, watched from its call to its end. It costs no hop. ``limit_s`` is ``LIMIT_S`` by default."""

    async def run(wf: Workflow, input: Any) -> Any:
        with _Watch(wf._context, LIMIT_S if limit_s is None else limit_s, max_draws):
            return await body(wf, input)

    return run


class _Watch:
    """One body between its call and its end."""

    __slots__ = ("_consumed", "_context", "_idle", "_limit_s", "_max_draws", "_raised", "tick_s")

    def __init__(self, context: Context, limit_s: float, max_draws: int) -> None:
        self._context = context
        self._limit_s = limit_s
        self._max_draws = max_draws
        self._consumed = -1
        self._idle = 0
        self._raised = 0
        self.tick_s = min(1.0, limit_s / 10)

    def __enter__(self) -> None:
        _TICKER.add(self)

    def __exit__(self, *_error: object) -> None:
        _TICKER.remove(self)

    def look(self, frame: FrameType | None) -> None:
        """What to do at a tick: nothing, or Endless out of wherever the pass is."""
        running = _runs(frame, self._context.loop)
        if running is False:
            self._idle = 0
            return
        consumed = self._context.walk.index
        self._idle = self._idle + 1 if consumed == self._consumed else 0
        self._consumed = consumed
        if running is None:
            return  # the next tick will do
        if len(self._context.draws) > self._max_draws:
            self._end(f"asked for more than {self._max_draws:,} steps, waits and hooks")
        elif self._idle * self.tick_s >= self._limit_s:
            self._end(f"ran for {self._limit_s:g} s without coming to its next event")

    def _end(self, why: str) -> None:
        self._raised += 1
        if self._raised > _PATIENCE:
            os.write(
                2, f"stormctl: a workflow {why}, and catches what should end it. Let BaseException pass.\n".encode()
            )
            os._exit(_EXIT)
        raise Endless(why)


def _runs(frame: FrameType | None, loop: Loop) -> bool | None:
    """Whether a frame lies within the pass of a loop: between two passes the timer ticks in somebody else's code.

    None within a finalizer or a callback of the garbage collector, where whatever is raised gets lost.
    """
    losing = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    while frame is not None:
        if frame.f_code in losing or frame.f_code.co_name == "__del__":
            return None
        if frame.f_code in _RUNNING and frame.f_locals.get("self") is loop:
            return True
        frame = frame.f_back
    return False


class _Ticker:
    """The process's interval timer while any body is watched. One that was running before (a test's time limit, say)
    is kept in time, and put back."""

    def __init__(self) -> None:
        self._live: dict[int, _Watch] = {}
        self._handler: Any = signal.SIG_DFL
        self._due: float | None = None
        self._interval = 0.0

    def add(self, watch: _Watch) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        if not self._live:
            self._handler = signal.signal(signal.SIGALRM, self._tick)
            left, self._interval = signal.setitimer(signal.ITIMER_REAL, watch.tick_s, watch.tick_s)
            self._due = time.monotonic() + left if left else None
        self._live[id(watch)] = watch

    def remove(self, watch: _Watch) -> None:
        if self._live.pop(id(watch), None) is None or self._live:
            return
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL if self._handler is None else self._handler)
        if self._due is not None:
            signal.setitimer(signal.ITIMER_REAL, max(self._due - time.monotonic(), 1e-6), self._interval)

    def after_fork(self) -> None:
        """A child inherits the handler and no timer: without one of its own, nothing would end a body in it."""
        self._due = None
        if self._live:
            tick = min(watch.tick_s for watch in self._live.values())
            signal.setitimer(signal.ITIMER_REAL, tick, tick)

    def _tick(self, number: int, frame: FrameType | None) -> None:
        if self._due is not None and time.monotonic() >= self._due:
            self._due = time.monotonic() + self._interval if self._interval else None
            if callable(self._handler):
                self._handler(number, frame)
        for watch in list(self._live.values()):
            watch.look(frame)


_TICKER = _Ticker()
os.register_at_fork(after_in_child=_TICKER.after_fork)
