"""One walk for many prefixes: the replay of a log, forked wherever one of its prefixes ends.

A pass over a prefix does what the pass over the whole log does until its walk is about to look at the event behind the
prefix; there it finds the end where the other finds an event. So one replay of the longest prefix comes through every
shorter one. At each of these places, the frontiers, the process is forked: the child takes the log to end there, runs
on to its suspension or ending and sends home what it found, and the parent walks on. What the parent and a cold replay
share is not done again, and a sweep grows with the length of the log and not with its square.

What makes it exact: the walk is stopped before it looks, and until then it never stands behind the last event that it
was given, so that nothing can take the log to have ended (the parent always holds one event more than it may look at).
A prefix whose frontier is never reached, because the replay had ended before, has the result of that ending.

About half of a storm's events tell the workflow nothing (``marks``); frontiers that only such events part from each
other are one child's, which runs once and takes the marks back one by one.

Measured on two shared cores of a virtual machine, Python 3.11 (``benchmarks/sweeps.py``): a fork with its child's tail
and answer costs 3 to 4 ms of CPU, as much as a cold replay of some 500 events. Nearly all of it is page faults, 350 in
the parent and 500 in the child, 250 of these in Python's own handlers after a fork; freezing or stopping the garbage
collector does not change that. Answering for marks halves the forks: 242 for the 652 prefixes of vercel/workflow #3543.

A state that could be resumed would do without forks, but a pass cannot be taken back: the coroutines of the body have
moved, and Python copies none. A retained session is no way out, because it meets the end of its log at other moments
than a cold pass does. Only frontiers with nothing on its way to the workflow need no tail, and they are 5 in 100.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import groupby
from operator import attrgetter
from typing import Any, Protocol

from stormctl.engine import children
from stormctl.engine.door import Draw, Pass, Pending
from stormctl.engine.marks import Mark
from stormctl.engine.prepared import HIDDEN, Prepared

#: a shorter prefix is replayed sooner than a process is forked
SHORT = 120
#: so many prefixes in a row without an answer, and the rest is replayed one by one
MISSES = 5
#: how many prefixes one child answers for at most
TOGETHER = 32

_DRAW = tuple(field.name for field in fields(Draw))
_PENDING = tuple(field.name for field in fields(Pending))
_draw_row = attrgetter(*_DRAW)
_pending_row = attrgetter(*_PENDING)

Alone = Callable[[int], Pass]


class Stoppable(Protocol):
    """A replay that can be stopped at a frontier and taken up again."""

    def reach(self, events: Sequence[Prepared], frontier: int) -> bool:
        """Give it more of the log and run until its walk is about to look at the index ``frontier``.

        False when the pass ended before; with a frontier of -1 it always does.
        """
        ...

    def drawn(self) -> list[Draw]:
        """The draws so far, in a list that grows."""
        ...

    def step_over_mark(self, events: Sequence[Prepared]) -> Mark | None:
        """Stopped at a frontier whose event only marks something: consume it, and stop before the next one.

        None, and nothing done, where the event is no mark.
        """
        ...

    def end_here(self, length: int) -> None:
        """Take the log to end at ``length`` events, where it stands, and run to the ending."""
        ...

    def without(self, mark: Mark, since: int) -> list[Pending] | None:
        """What is pending if the log ends before a mark; those behind it are taken back. None: not known."""
        ...

    def found(self, prefix: int, since: int) -> Pass:
        """The pass, with its draws from rank ``since`` on."""
        ...


def ascending(lengths: Sequence[int]) -> Iterator[Sequence[int]]:
    """The lengths in runs that do not descend, in the order given."""
    first = 0
    for at in range(1, len(lengths) + 1):
        if at == len(lengths) or lengths[at] < lengths[at - 1]:
            yield lengths[first:at]
            first = at


def ends(prepared: Sequence[Prepared], lengths: Sequence[int]) -> list[int]:
    """How many events the walk is given for each of the ascending lengths: none that is hidden at the very end."""
    found = []
    shown = reached = 0
    for length in lengths:
        end = length = min(max(length, 0), len(prepared))
        while end > reached and prepared[end - 1] is HIDDEN:
            end -= 1
        if end > reached:
            shown = end
        reached = length
        found.append(shown)
    return found


@dataclass(slots=True)
class _Asked:
    """Prefixes that one child replays: the lengths that end at each of consecutive frontiers.

    ``marks`` are what lies between the frontiers, ``since`` is how many draws the parent had seen at the last.
    """

    frontiers: list[_Frontier]
    marks: list[Mark]
    since: int
    child: children.Child | None = None


@dataclass(frozen=True, slots=True)
class _Frontier:
    end: int
    lengths: list[int]


class SharedWalk:
    """The passes over ascending prefixes of one log.

    ``replay`` is a fresh replay; ``alone`` is the cold replay of one prefix, for those without an answer. ``jobs`` is
    how many processes may be at work, this one included: with 1 it waits for each child.
    """

    def __init__(self, replay: Stoppable, prepared: Sequence[Prepared], alone: Alone, jobs: int) -> None:
        self._replay = replay
        self._prepared = prepared
        self._alone = alone
        self._jobs = max(1, jobs)
        self._given = 0
        self._waiting: deque[_Asked] = deque()
        self._misses = 0
        self._together = TOGETHER

    def passes(self, lengths: Sequence[int]) -> Iterator[Pass]:
        """One pass per length, in order. Closed early, it ends its children."""
        pairs = groupby(zip(ends(self._prepared, lengths), lengths, strict=True), key=lambda pair: pair[0])
        left = deque(_Frontier(end, [length for _, length in group]) for end, group in pairs)
        last = left[-1].end
        over: Pass | None = None
        failure: BaseException | None = None
        try:
            while left and self._misses < MISSES:
                try:
                    if not self._reach(left[0].end, last):
                        over = self._replay.found(left[0].end, 0)
                        break
                except BaseException as error:  # the cold replay of this prefix ends like that too, after the others
                    failure = error
                    break
                asked = self._gather(left, last)
                if asked is None:
                    break
                self._ask(asked)
                while len(self._waiting) >= self._jobs:
                    yield from self._take()
            while self._waiting:
                yield from self._take()
            if failure is not None:
                raise failure
            for frontier in left:
                for length in frontier.lengths:
                    yield self._alone(length) if over is None else replace(over, prefix=length)
        finally:
            for asked in self._waiting:
                if asked.child is not None:
                    asked.child.kill()

    def _reach(self, end: int, last: int) -> bool:
        return self._replay.reach(self._more(end, last), -1 if end == last else end)

    def _more(self, end: int, last: int) -> Sequence[Prepared]:
        # one event more than may be looked at, so that nothing thinks that the log has ended
        hold = last if end == last else end + 1
        more = self._prepared[self._given : hold]
        self._given = hold
        return more

    def _gather(self, left: deque[_Frontier], last: int) -> _Asked | None:
        """Take the frontier that was reached, and those behind it that only marks part from it. None: no way on."""
        frontiers = [left.popleft()]
        marks: list[Mark] = []
        while len(frontiers) < self._together and left and left[0].end == frontiers[-1].end + 1 < last:
            try:
                mark = self._replay.step_over_mark(self._prepared[self._given : self._given + 1])
            except Exception:  # what an event did that no workflow writes; the prefixes before it are to be had yet
                left.extendleft(reversed(frontiers))
                return None
            if mark is None:
                break
            self._given += 1
            marks.append(mark)
            frontiers.append(left.popleft())
        return _Asked(frontiers, marks, len(self._replay.drawn()))

    def _ask(self, asked: _Asked) -> None:
        running = [other.child for other in self._waiting if other.child is not None]
        asked.child = children.fork(lambda: self._answer(asked), running)
        self._waiting.append(asked)

    def _answer(self, asked: _Asked) -> bytes:
        """In the child: end the log here, and put what came of it into bytes."""
        end = asked.frontiers[-1].end
        self._replay.end_here(end)
        found = self._replay.found(end, asked.since)
        pending: list[list[Any] | None] = [list(map(_pending_row, found.pending))]
        for mark in reversed(asked.marks):
            before = None if found.parked else self._replay.without(mark, asked.since)
            pending.append(None if before is None else list(map(_pending_row, before)))
        draws = list(map(_draw_row, found.draws))
        return pickle.dumps((replace(found, draws=(), pending=()), draws, pending[::-1]), pickle.HIGHEST_PROTOCOL)

    def _take(self) -> Iterator[Pass]:
        """The passes of the prefixes that were asked for first."""
        asked = self._waiting[0]
        found = None if asked.child is None else self._understood(asked, asked.child.answer())
        self._waiting.popleft()
        if found is None:
            self._misses += 1
            found = [None] * len(asked.frontiers)
        else:
            self._misses = 0
            if None in found:  # the workflow asks for the time
                self._together = 1
        for frontier, one in zip(asked.frontiers, found, strict=True):
            for length in frontier.lengths:
                yield self._alone(length) if one is None else replace(one, prefix=length)

    def _understood(self, asked: _Asked, answer: bytes | None) -> list[Pass | None] | None:
        """The pass of each frontier, as far as it is known, from the answer of a child."""
        if answer is None:
            return None
        try:
            found, added, pending = pickle.loads(answer)
            draws = (*self._replay.drawn()[: asked.since], *[Draw(*row) for row in added])
            return [
                None
                if rows is None
                else replace(found, draws=draws, pending=tuple([Pending(*row) for row in rows]), consumed=frontier.end)
                for frontier, rows in zip(asked.frontiers, pending, strict=True)
            ]
        except Exception:  # values of a body need not be such that they can be sent
            return None
