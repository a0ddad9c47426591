"""Where the schedules of a round are played: here, in processes of this machine, or by the workers of a Dask cluster.

The outcomes come back in the order of the tasks, so that the place makes no difference.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from stormctl.errors import StormctlError, UsageError
from stormctl.sim.classes import class_of
from stormctl.sim.kernel import MOST_STEPS, Model, play
from stormctl.sim.strategies.base import Abandoned, Outcome, Task, reported

#: rounds of fewer schedules than this are played here
LEAST_SPREAD = 16


class Players(Protocol):
    """Someone who plays schedules."""

    def play(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        """The outcomes, in the order of the tasks."""
        ...


def perform(models: Sequence[Model], task: Task, most: int = MOST_STEPS) -> Outcome:
    """Play the schedule of a task."""
    chooser = task.chooser()
    try:
        run = play(models[task.model], chooser, most=most)
    except Abandoned:
        return Outcome(task.strategy, task.model, (), 0, abandoned=True, report=reported(chooser, None))
    counts: dict[int, int] = {}
    for turn in run.turns:
        counts[turn.actor] = counts.get(turn.actor, 0) + 1
    return Outcome(
        task.strategy,
        task.model,
        tuple(run.tape),
        class_of(run),
        tuple((problem.signature, problem.oracle, problem.text) for problem in run.problems),
        run.steps,
        run.preemptions,
        run.faults,
        run.choices,
        len(run.picks),
        run.cut,
        actors=tuple((run.names[actor], count) for actor, count in counts.items()),
        report=reported(chooser, run),
    )


class Here:
    """This process."""

    def __init__(self, models: Sequence[Model], most: int) -> None:
        self._models, self._most = models, most

    def play(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        """See :class:`Players`."""
        for task in tasks:
            yield perform(self._models, task, self._most)


_models: Sequence[Model] = ()
_most = MOST_STEPS


def _begin(models: Sequence[Model], most: int) -> None:
    """In a process of a pool, before all else: it dies with its parent, and by a signal without a word."""
    global _models, _most
    from stormctl.engine.children import end_with_parent

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
    end_with_parent()
    _models, _most = models, most


def _some(tasks: Sequence[Task]) -> list[Outcome]:
    return [perform(_models, task, _most) for task in tasks]


def _shares(tasks: Sequence[Task], count: int) -> list[Sequence[Task]]:
    size = -(-len(tasks) // count)
    return [tasks[at : at + size] for at in range(0, len(tasks), size)]


class Processes:
    """``jobs`` processes of this machine. A StormctlError when one of them died."""

    def __init__(self, models: Sequence[Model], most: int, jobs: int) -> None:
        from concurrent.futures import ProcessPoolExecutor

        self._here = Here(models, most)
        self._jobs = jobs
        self._pool = ProcessPoolExecutor(jobs, initializer=_begin, initargs=(models, most))

    def play(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        """See :class:`Players`."""
        from concurrent.futures.process import BrokenProcessPool

        if len(tasks) < LEAST_SPREAD:
            yield from self._here.play(tasks)
            return
        try:
            with _undisturbed():
                futures = [self._pool.submit(_some, share) for share in _shares(tasks, self._jobs)]
            for future in futures:
                yield from future.result()
        except BrokenProcessPool:
            raise StormctlError(
                "a process that played schedules died",
                remedy="Look whether memory ran out, and use fewer at once (--jobs).",
            ) from None

    def close(self) -> None:
        """End the processes."""
        self._pool.shutdown(cancel_futures=True)


class Cluster:
    """The workers of a Dask cluster; they must run this stormctl."""

    def __init__(self, models: Sequence[Model], most: int, address: str) -> None:
        from stormctl.sweeps.dask import Dask

        self._here = Here(models, most)
        self._models, self._most = list(models), most
        self._client: Any = Dask(address).connected()
        self._count = max(1, sum(self._client.nthreads().values()))

    def play(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        """See :class:`Players`."""
        if len(tasks) < LEAST_SPREAD:
            yield from self._here.play(tasks)
            return
        try:
            futures = [
                self._client.submit(play_there, self._models, self._most, list(share), pure=False)
                for share in _shares(tasks, self._count)
            ]
            for future in futures:
                yield from future.result()
        except StormctlError:
            raise
        except Exception as error:  # a worker that died, a lost connection, an answer that does not come back whole
            raise StormctlError(
                f"the Dask cluster failed: {type(error).__name__}",
                remedy="Look into its logs, or explore without --dask.",
            ) from None

    def close(self) -> None:
        """Leave the cluster."""
        self._client.close()


def play_there(models: Sequence[Model], most: int, tasks: Sequence[Task]) -> list[Outcome]:
    """On a worker: some schedules."""
    return [perform(models, task, most) for task in tasks]


@contextmanager
def players(models: Sequence[Model], most: int, jobs: int, dask: str | None) -> Iterator[Players]:
    """Who plays, for as long as it lasts. UsageError for a number of processes that is none."""
    if jobs < 1:
        raise UsageError(f"{jobs} processes", remedy="Give --jobs a number from 1 on.")
    if dask is not None:
        cluster = Cluster(models, most, dask)
        try:
            yield cluster
        finally:
            cluster.close()
    elif jobs == 1:
        yield Here(models, most)
    else:
        processes = Processes(models, most, jobs)
        try:
            yield processes
        finally:
            processes.close()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """No interrupt while processes are forked: raised inside one of the hooks of a fork, it would be lost."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
