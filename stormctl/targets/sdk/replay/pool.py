"""Workers over one bundle, side by side: prefixes go in, answers come out in the order in which they were asked for.

    with Pool(find_bundle(path), jobs=2) as pool:
        for answer in pool.passes(record_of(capture), range(2, 300)):
            ...

Workers are started when there is work for them and ended by their process ids: at :meth:`Pool.close`, on an error, and
when the pool is forgotten.
"""

from __future__ import annotations

import json
import os
import selectors
import time
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count, islice
from types import TracebackType
from typing import Self

from stormctl.errors import StormctlError, UsageError, suggest
from stormctl.targets.sdk.node import find_node
from stormctl.targets.sdk.replay.answer import Answer, Guard, answer_of
from stormctl.targets.sdk.replay.bundle import GIVE_A_BUNDLE, Bundle, BundleFault
from stormctl.targets.sdk.replay.record import RunRecord
from stormctl.targets.sdk.replay.worker import LIMITS, Limits, Worker, WorkerDied

__all__ = ["LIMITS", "Limits", "Pool", "ReplayStopped"]

CLOCKS = ("start", "asof", "real")
MOST_JOBS = 64

#: prefixes that go to a worker at once, and how many such chunks it may have in hand: enough that it never waits
_CHUNK, _IN_HAND = 4, 2
_FOREVER_S = 86_400.0
#: records that a worker keeps
_RECORDS = 4


class ReplayStopped(StormctlError):
    """The bundle had to be stopped in so many passes in a row that the rest is given up."""


@dataclass(slots=True)
class _Call:
    """One call of :meth:`Pool.passes`: what is still to be asked, and what was answered out of order."""

    record: RunRecord
    hidden: frozenset[int]
    clock: str
    asks: Iterator[tuple[int, int]]
    limit_s: float
    again: deque[tuple[int, int]] = field(default_factory=deque)
    answers: dict[int, Answer] = field(default_factory=dict)
    given: int = 0
    next: int = 0
    exhausted: bool = False

    def chunk(self, most: int) -> list[tuple[int, int]]:
        """The next prefixes to ask for, each behind its place in the order of the call."""
        found = [self.again.popleft() for _ in range(min(most, len(self.again)))]
        if not found and not self.exhausted:
            found = list(islice(self.asks, most))
            self.given += len(found)
            self.exhausted = len(found) < most
        return found

    @property
    def done(self) -> bool:
        """Whether all of it was asked for and handed out."""
        return self.exhausted and not self.again and self.next == self.given


@dataclass(slots=True)
class _Job:
    """A chunk in a worker's hands; ``left`` shrinks with each answer."""

    number: int
    call: _Call
    left: deque[tuple[int, int]]


class Pool:
    """Workers over one bundle. Use it as a context manager.

    ``jobs`` is how many workers may run side by side; each takes a core and some 150 MB. ``environment`` are switches
    of the SDK (WORKFLOW_LOG_ORDER_DRAWS=0, ...), for a run that was made under them.
    """

    def __init__(
        self,
        bundle: Bundle,
        *,
        jobs: int = 1,
        limits: Limits = LIMITS,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        if not 1 <= jobs <= MOST_JOBS:
            raise UsageError(f"{jobs} workers cannot be run", remedy=f"Give a number from 1 to {MOST_JOBS}.")
        self._node = find_node()  # what is missing is said before any work is begun
        self.bundle = bundle
        self._jobs = jobs
        self._limits = limits
        self._environment = dict(environment or {})
        self._numbers = count(1)
        self._work: dict[Worker, deque[_Job]] = {}
        self._stopped_in_a_row = 0
        self._finalizer = weakref.finalize(self, _end_all, self._work, os.getpid())

    def passes(
        self,
        record: RunRecord,
        prefixes: Iterable[int],
        *,
        hidden: frozenset[int] = frozenset(),
        clock: str = "start",
    ) -> Iterator[Answer]:
        """One answer per prefix, in the order given, as they come: ``prefixes`` is read only a little ahead.

        ``hidden`` are 0-based indices of events that the pass is not to see. ``clock`` is what the engine takes for
        now: the ``start`` of the run (no wait is due then), ``asof`` the last event of the prefix, or ``real`` time.

        A pass that has to be stopped is an answer too (:attr:`Answer.guard`), and a new worker does what follows;
        ReplayStopped when that happens to several in a row, BundleFault when the bundle cannot be loaded. Several calls
        may be under way at once, in one thread.
        """
        if clock not in CLOCKS:
            raise UsageError(f"{clock!r} is no clock of a replay", remedy=suggest(clock, CLOCKS))
        limit = self._limits.for_pass(record.length)
        call = _Call(record, frozenset(hidden), clock, enumerate(prefixes), limit)
        return self._run(call)

    def close(self) -> None:
        """End every worker by its process id. The pool can be used again: it starts new ones."""
        _end_all(self._work, os.getpid())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pids(self) -> list[int]:
        """The process ids of the workers that run now."""
        return [worker.pid for worker in self._work]

    # -- the loop -----------------------------------------------------------------------------------------------------

    def _run(self, call: _Call) -> Iterator[Answer]:
        try:
            while True:
                self._feed(call)
                while call.next in call.answers:
                    answer = call.answers.pop(call.next)
                    call.next += 1
                    yield answer
                    self._feed(call)
                if call.done:
                    return
                self._pump()
        except GeneratorExit:
            self._drop(call)
            raise
        except BaseException:
            self.close()
            raise

    def _feed(self, call: _Call) -> None:
        """Give every worker something to do, and start workers as long as there is more than the others can take."""
        ahead = self._jobs * _CHUNK * _IN_HAND
        while call.given - call.next < ahead or call.again:
            worker = min(self._work, key=lambda one: len(self._work[one]), default=None)
            if worker is None or (self._work[worker] and len(self._work) < self._jobs):
                if call.exhausted and not call.again:
                    return
                worker = None
            elif len(self._work[worker]) >= _IN_HAND:
                return
            chunk = call.chunk(_CHUNK if call.given else 1)  # the first answer is wanted soon
            if not chunk:
                return
            self._give(worker or self._start(), call, chunk)

    def _start(self) -> Worker:
        worker = Worker(self._node, self.bundle, self._limits, self._environment)
        self._work[worker] = deque()
        return worker

    def _give(self, worker: Worker, call: _Call, chunk: list[tuple[int, int]]) -> None:
        key = call.record.digest
        if key not in worker.records:
            worker.records.append(key)
            worker.send(b'{"log":{"key":"%s",' % key.encode() + call.record.body[1:] + b"}")
            in_use = {job.call.record.digest for job in self._work[worker]} | {key}
            old = [one for one in worker.records if one not in in_use][: max(0, len(worker.records) - _RECORDS)]
            if old:
                worker.send(json.dumps({"forget": old}).encode())
                worker.records = deque(one for one in worker.records if one not in old)
        job = _Job(next(self._numbers), call, deque(chunk))
        if not self._work[worker] and worker.ready:
            worker.waited_s = 0.0
        self._work[worker].append(job)
        line = {
            "id": job.number,
            "log": key,
            "prefixes": [prefix for _place, prefix in chunk],
            "hidden": sorted(call.hidden),
            "clock": call.clock,
        }
        worker.send(json.dumps(line).encode())

    def _pump(self) -> None:
        """Wait until something happens, for this call or another: an answer, room in a pipe, an end, a limit.

        A worker's time is that in which it was waited for: what our caller does between two answers is not counted.
        """
        with selectors.DefaultSelector() as selector:
            for worker in self._work:
                selector.register(worker.stdout, selectors.EVENT_READ, worker)
                if worker.has_more_to_write:
                    selector.register(worker.stdin, selectors.EVENT_WRITE, worker)
            began = time.monotonic()
            left = min((self._limit(worker) - worker.waited_s for worker in self._work), default=0.0)
            events = selector.select(max(0.0, left))
            waited = time.monotonic() - began
        for worker in self._work:
            worker.waited_s += waited
        for key, mask in events:
            if mask & selectors.EVENT_WRITE:
                key.data.write()
            elif key.data in self._work:
                self._hear(key.data)
        for worker in [one for one in self._work if one.waited_s >= self._limit(one)]:
            self._out_of_time(worker)

    def _limit(self, worker: Worker) -> float:
        """How long it may take for what it is doing now, in seconds."""
        if not worker.ready:
            return self._limits.load_s
        work = self._work[worker]
        return work[0].call.limit_s if work else _FOREVER_S

    def _hear(self, worker: Worker) -> None:
        try:
            was_ready = worker.ready
            lines = worker.read()
        except WorkerDied as death:
            self._bury(worker, death)
            return
        if lines or worker.ready != was_ready:
            worker.waited_s = 0.0
        for line in lines:
            work = self._work.get(worker)
            if not work:
                return  # it was ended meanwhile
            job = work[0]
            if line.get("dropped"):
                work.popleft()
                continue
            place, prefix = job.left.popleft()
            if not job.left:
                work.popleft()
            answer = answer_of(line, prefix, job.call.hidden)
            job.call.answers[place] = answer
            if answer.guard is None:
                self._stopped_in_a_row = 0
            else:
                self._replace(worker, f"{answer.error}")

    # -- what has to be stopped ---------------------------------------------------------------------------------------

    def _out_of_time(self, worker: Worker) -> None:
        if not worker.ready:
            worker.end()
            del self._work[worker]
            raise BundleFault(
                f"{self.bundle.flow} did not load within {self._limits.load_s:g} s, and was stopped",
                remedy="See what its modules do when they are loaded.",
            )
        limit = self._work[worker][0].call.limit_s
        self._stop(worker, "time", f"the pass did not end within {limit:g} s, and its process {worker.pid} was killed")

    def _bury(self, worker: Worker, death: WorkerDied) -> None:
        """A worker that ended by itself."""
        if not worker.ready:
            worker.end()
            del self._work[worker]
            raise BundleFault(f"{self.bundle.flow} cannot be loaded: the process {death}", remedy=GIVE_A_BUNDLE)
        self._stop(worker, "died", f"the process {worker.pid} of the pass {death}")

    def _stop(self, worker: Worker, guard: Guard, words: str) -> None:
        """Answer the pass that a worker was in for it, and end it."""
        work = self._work[worker]
        if work:
            job = work[0]
            place, prefix = job.left.popleft()
            ms = worker.waited_s * 1000
            job.call.answers[place] = Answer(
                prefix, job.call.hidden, (), (), "threw", words, {}, round(ms, 2), guard=guard
            )
        self._replace(worker, words)

    def _replace(self, worker: Worker, words: str) -> None:
        """End a worker that is not to be trusted any more; what it had in hand goes to another."""
        for job in reversed(self._work.pop(worker)):
            job.call.again.extendleft(reversed(job.left))
        worker.end()
        self._stopped_in_a_row += 1
        if self._stopped_in_a_row >= self._limits.kills:
            self._stopped_in_a_row = 0
            raise ReplayStopped(
                f"{self.bundle.flow} had to be stopped in {self._limits.kills} passes one after the other;"
                f" the last time: {words}",
                remedy="See that the bundle and the log are of one application, and what its workflows do besides.",
            )

    def _drop(self, call: _Call) -> None:
        """Nobody wants the rest of a call: a worker that is busy with it passes over what it has not begun."""
        for worker, work in self._work.items():
            dropped = [job.number for job in work if job.call is call]
            if dropped:
                worker.send(json.dumps({"drop": dropped}).encode())


def _end_all(work: dict[Worker, deque[_Job]], owner: int) -> None:
    """End the workers, unless we are a fork of the process that they belong to."""
    while work and os.getpid() == owner:
        worker, _jobs = work.popitem()
        worker.end()
