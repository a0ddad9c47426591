"""What a replay's races were between, and which way each went: for bodies whose races nobody has declared.

A body is given a workflow whose primitives are the usual ones, hop for hop, and that also writes down where each
promise comes from: a step, a wait, a read of a hook, or what was built of those by ``then``, ``all``, ``race`` and
``run``. So the place of a racer's result in the log can be told from the log alone, whoever won in the replay.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stormctl.engine.hook import Hook
from stormctl.engine.promise import PENDING, Promise, gather, start
from stormctl.engine.workflow import Awaited, Workflow

if TYPE_CHECKING:
    from stormctl.engine.context import Context
    from stormctl.engine.replay import Body

#: a result of a step or wait: its correlation id. A read of a hook: its id, and which of its payloads, from 0
Source = tuple[str, int | None]
#: where the result of a source stands in the log; None where it has none
Places = Callable[[Source], int | None]


@dataclass(slots=True)
class RaceRun:
    """One race of a replay. ``winner`` is the index of the racer that it went on with, None while it is undecided.

    ``ready`` are racers that had settled before the race began: between those the body decides, not the log. ``drawn``
    is how many ids had been drawn when it was decided. ``line`` and ``function`` are where the body called it.
    """

    number: int
    function: str
    line: int
    racers: tuple[Promise, ...]
    ready: frozenset[int]
    winner: int | None = None
    drawn: int = 0


@dataclass(slots=True)
class Recorder:
    """The races of one replay. ``forced`` names, by the number of a race, the racer that it has to go on with."""

    forced: Mapping[int, int] = field(default_factory=dict)
    races: list[RaceRun] = field(default_factory=list)
    _sources: dict[int, Source] = field(default_factory=dict)
    _names: dict[int, str] = field(default_factory=dict)
    _parts: dict[int, tuple[str, Any]] = field(default_factory=dict)
    #: keeps every promise that is told of, so that no other one gets its identity
    _kept: list[Promise] = field(default_factory=list)

    def around(self, body: Body) -> Body:
        """The body with a workflow that records into this."""

        def recorded(workflow: Workflow, input: Any) -> Coroutine[Any, Any, Any]:
            return body(_Recording(workflow._context, self), input)

        return recorded

    def name(self, promise: Promise) -> str:
        """What a person calls a racer."""
        while id(promise) not in self._names and hasattr(promise, "parent"):
            promise = promise.parent
        return self._names.get(id(promise), "a promise")

    def place(self, promise: Promise, places: Places, *, soon: bool = False) -> int | None:
        """The index of the result by which a promise could first have settled, by the log alone; None while it has
        none. Untraced for a promise that hangs on something that is not told of.

        A coroutine that has not returned has none either, unless it may return ``soon``: everything that it awaited so
        far has a result.
        """
        while id(promise) not in self._sources and id(promise) not in self._parts:
            if not hasattr(promise, "parent"):
                raise Untraced
            promise = promise.parent
        if id(promise) in self._sources:
            return places(self._sources[id(promise)])
        kind, parts = self._parts[id(promise)]
        if kind == _RUN and promise.state == PENDING and not soon:
            return None
        found = [self.place(one, places, soon=soon) for one in parts]
        known = [place for place in found if place is not None]
        if kind == _RACE:
            return min(known, default=None)
        return max(known) if known and len(known) == len(found) else None

    # -- what the workflow tells ---------------------------------------------------------------------------------

    def source(self, promise: Promise, source: Source, name: str) -> Promise:
        """A promise that settles by an event of its own."""
        self._kept.append(promise)
        self._sources[id(promise)] = source
        self._names[id(promise)] = name
        return promise

    def part(self, promise: Promise, kind: str, parts: Any, name: str) -> Promise:
        """A promise that settles by others."""
        self._kept.append(promise)
        self._parts[id(promise)] = kind, parts
        self._names[id(promise)] = name
        return promise


class Untraced(Exception):
    """A promise that hangs on something which no event of a step, wait or payload settles."""


_ALL, _RACE, _RUN = "all", "race", "run"


class _Recording(Workflow):
    """The primitives of one replay, written down."""

    __slots__ = ("_recorder",)

    def __init__(self, context: Context, recorder: Recorder) -> None:
        super().__init__(context)
        self._recorder = recorder

    def step(self, name: str, *arguments: Any) -> Promise:
        made = super().step(name, *arguments)
        return self._recorder.source(made, (self._drawn(), None), f"step {name}")

    def sleep(self, ms: float) -> Promise:
        made = super().sleep(ms)
        return self._recorder.source(made, (self._drawn(), None), f"the wait of {ms:g} ms")

    def hook(self, token: str) -> Hook:
        return _RecordingHook(self._context, token, self._recorder)

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Promise:
        if self._context.loop.closed or not isinstance(coroutine, Coroutine):
            return super().run(coroutine)
        noted = _Noted(coroutine, [])
        task = start(self._context.loop, noted, self._context.tasks)
        return self._recorder.part(task, _RUN, noted.awaited, noted.__name__)

    def all(self, awaited: Iterable[Awaited]) -> Promise:
        if self._context.loop.closed:
            return super().all(awaited)
        parts = [self._promise(one) for one in awaited]
        return self._recorder.part(gather(self._context.loop, parts), _ALL, parts, "all of several")

    def race(self, *awaited: Awaited) -> Promise:
        context = self._context
        if context.loop.closed:
            return super().race(*awaited)
        frame = sys._getframe(1)
        racers = tuple(self._promise(one) for one in awaited)
        recorder = self._recorder
        ready = frozenset(index for index, one in enumerate(racers) if _root(one).state != PENDING)
        race = RaceRun(len(recorder.races), frame.f_code.co_name, frame.f_lineno, racers, ready)
        recorder.races.append(race)
        result = Promise(context.loop)
        wanted = recorder.forced.get(race.number)

        def settler(index: int) -> Callable[[int, Any], None]:
            def job(state: int, value: Any) -> None:
                if race.winner is None and wanted in (None, index):
                    race.winner = index
                    race.drawn = len(context.draws)
                    result.settle(state, value)

            return job

        for index, promise in enumerate(racers):
            promise.react(settler(index))
        return recorder.part(result, _RACE, racers, "a race")

    def _drawn(self) -> str:
        """The id that was drawn last."""
        return self._context.draws[-1][3]


def _root(promise: Promise) -> Promise:
    """What a promise was made of by ``then``."""
    while hasattr(promise, "parent"):
        promise = promise.parent
    return promise


class _RecordingHook(Hook):
    """A hook whose reads are counted."""

    __slots__ = ("_reads", "_recorder")

    def __init__(self, context: Context, token: str, recorder: Recorder) -> None:
        super().__init__(context, token)
        self._recorder = recorder
        self._reads = 0

    def next(self) -> Promise:
        made = super().next()
        self._reads += 1
        return self._recorder.source(made, (self.item.correlation_id, self._reads - 1), f"hook {self.token}")


class _Noted(Coroutine[Any, Any, Any]):
    """A coroutine whose awaits are noted, as is a promise that it returns."""

    def __init__(self, inner: Coroutine[Any, Any, Any], awaited: list[Promise]) -> None:
        self._inner = inner
        self.awaited = awaited
        self.__name__ = getattr(inner, "__name__", "a coroutine")

    def send(self, value: Any) -> Any:
        return self._note(lambda: self._inner.send(value))

    def throw(self, *error: Any) -> Any:
        return self._note(lambda: self._inner.throw(*error))

    def close(self) -> None:
        self._inner.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._inner.__await__()

    def _note(self, go_on: Callable[[], Any]) -> Any:
        try:
            found = go_on()
        except StopIteration as returned:
            if isinstance(returned.value, Promise):
                self.awaited.append(returned.value)
            raise
        if isinstance(found, Promise):
            self.awaited.append(found)
        return found
