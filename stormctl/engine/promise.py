"""Promises with the hop counts of JavaScript's, and coroutines that await them.

A hop is one microtask. Awaiting a promise resumes one hop after it settles. Resolving a promise with a promise costs
one hop to subscribe and one to settle. ``then`` adds one, ``gather`` and ``race`` one per element and then one for the
frame that awaits them. Which of two branches draws its next id first can hang on a single hop, so these are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Iterable
from typing import Any

from stormctl.engine.loop import Loop

PENDING, FULFILLED, REJECTED = 0, 1, 2

FOREIGN = "a workflow may only await what its own primitives return"


class PassOver(BaseException):
    """Raised at the next await of a body that is being closed because its pass has ended."""


class Promise:
    """A value to come. ``react`` is how everything else is built: a job ``(state, value)`` one hop after it settles."""

    #: ``parent``, on what :meth:`then` returns, is the promise that it came from
    __slots__ = ("loop", "parent", "reactions", "state", "value")

    parent: Promise

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.state = PENDING
        self.value: Any = None
        self.reactions: list[Callable[[int, Any], None]] | None = None

    def resolve(self, value: Any = None) -> None:
        """Settle with a value, or follow it when it is a promise. Ignored once settled."""
        if isinstance(value, Promise):
            self.loop.micros.append((_follow, self, value))
        else:
            self.settle(FULFILLED, value)

    def reject(self, error: BaseException) -> None:
        """Settle with an error. Ignored once settled."""
        self.settle(REJECTED, error)

    def settle(self, state: int, value: Any) -> None:
        """Settle now and queue every reaction; also usable as a reaction itself."""
        if self.state:
            return
        self.state = state
        self.value = value
        reactions = self.reactions
        if reactions is not None:
            self.reactions = None
            micros = self.loop.micros
            for reaction in reactions:
                micros.append((reaction, state, value))

    def react(self, reaction: Callable[[int, Any], None]) -> None:
        """Queue the job one hop after this promise settles (at once, as a microtask, if it has)."""
        if self.state:
            self.loop.micros.append((reaction, self.state, self.value))
        elif self.reactions is None:
            self.reactions = [reaction]
        else:
            self.reactions.append(reaction)

    def then(self, mapping: Callable[[Any], Any]) -> Promise:
        """The promise of ``mapping(value)``; an error passes through."""
        derived = Promise(self.loop)
        derived.parent = self

        def job(state: int, value: Any) -> None:
            if state == REJECTED:
                derived.settle(state, value)
                return
            try:
                derived.resolve(mapping(value))
            except Exception as error:
                derived.reject(error)

        self.react(job)
        return derived

    def __await__(self) -> Generator[Promise, Any, Any]:
        if self.loop.closed:
            raise PassOver
        return (yield self)


def _follow(follower: Promise, leader: Promise) -> None:
    leader.react(follower.settle)


class Task(Promise):
    """The promise of a coroutine, which starts running at once, up to its first await."""

    __slots__ = ("_live", "coroutine")

    def __init__(self, loop: Loop, coroutine: Coroutine[Any, Any, Any], live: set[Task]) -> None:
        super().__init__(loop)
        self.coroutine = coroutine
        self._live = live
        live.add(self)
        self.resume(FULFILLED, None)

    def resume(self, state: int, value: Any) -> None:
        """Let the coroutine go on with what it awaited."""
        try:
            awaited = self.coroutine.send(value) if state == FULFILLED else self.coroutine.throw(value)
        except StopIteration as returned:
            self._live.discard(self)
            self.resolve(returned.value)
        except Exception as error:
            self._live.discard(self)
            self.reject(error)
        else:
            if isinstance(awaited, Promise):
                awaited.react(self.resume)
            else:
                # raised where it was awaited, so that the body's own handlers run
                self.loop.micros.append((self.resume, REJECTED, TypeError(FOREIGN)))


def start(loop: Loop, coroutine: Coroutine[Any, Any, Any], live: set[Task]) -> Task:
    """Start a coroutine; TypeError for anything else, as a body that forgot its ``async`` returns."""
    if not isinstance(coroutine, Coroutine):
        raise TypeError(f"a workflow runs the coroutines of async functions, not {type(coroutine).__name__}")
    return Task(loop, coroutine, live)


def close_tasks(loop: Loop, live: set[Task]) -> None:
    """End every coroutine that a pass left waiting. What they do on the way out, up to an await, is no part of it."""
    loop.closed = True
    for task in list(live):
        try:
            task.coroutine.close()
        except (PassOver, Exception):  # whatever a dying body raises is no part of its pass
            continue
    live.clear()


def gather(loop: Loop, elements: Iterable[Promise]) -> Promise:
    """The promise of all values in order; rejects with the first error (``Promise.all``)."""
    result = Promise(loop)
    promises = list(elements)
    values: list[Any] = [None] * len(promises)
    left = len(promises)
    if not promises:
        result.settle(FULFILLED, values)
        return result

    def element(index: int) -> Callable[[int, Any], None]:
        def job(state: int, value: Any) -> None:
            nonlocal left
            if state == REJECTED:
                result.settle(state, value)
                return
            values[index] = value
            left -= 1
            if not left:
                result.settle(FULFILLED, values)

        return job

    for index, promise in enumerate(promises):
        promise.react(element(index))
    return result


def race(loop: Loop, elements: Iterable[Promise]) -> Promise:
    """The promise that settles as the first element does; the others go on (``Promise.race``)."""
    result = Promise(loop)
    for promise in elements:
        promise.react(result.settle)
    return result
