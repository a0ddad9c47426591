"""Spreading files over processes: so many ahead and no more, reports in the order of the files, nothing left behind.

A process gives back what it found in a file at once when that is little. The reports of a file with many runs go
through a file of the command's own, so that neither side ever holds them all.
"""

from __future__ import annotations

import pickle
import signal
import tempfile
import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from stormctl.errors import StormctlError
from stormctl.readers.open import Place, Unreadable
from stormctl.sweeps.plan import SweepPlan
from stormctl.sweeps.report import LogReport
from stormctl.sweeps.shares import Share

#: How many files each process may be ahead of the report.
AHEAD = 4
#: Reports of one file that are sent at once; more of them go through a file.
HELD = 100
#: how long an interrupt may come after the news that the children have died of it
INTERRUPTED_S = 0.2
_ENDING = (signal.SIGINT, signal.SIGTERM)

Item = LogReport | Unreadable


class Spread(Protocol):
    """Something that sweeps files elsewhere."""

    def sweep(self, files: Sequence[Place | Share], plan: SweepPlan) -> Generator[Iterator[Item], None, None]:
        """What each file gave, in the order of the files; ahead by a few files only."""
        ...


@dataclass(frozen=True, slots=True)
class Kept:
    """Reports that lie in a file, pickled one after the other."""

    path: Path


class Processes:
    """Processes of this machine. They end with this one, and at once when whoever consumes the reports stops."""

    def __init__(self, count: int) -> None:
        self._count = count

    def sweep(self, files: Sequence[Place | Share], plan: SweepPlan) -> Generator[Iterator[Item], None, None]:
        """See :class:`Spread`. A StormctlError when a process died."""
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor
        from concurrent.futures.process import BrokenProcessPool

        others = set(multiprocessing.active_children())
        with (
            tempfile.TemporaryDirectory(prefix="stormctl-", ignore_cleanup_errors=True) as folder,
            ProcessPoolExecutor(self._count, initializer=_as_child) as pool,
        ):
            ahead: deque[Any] = deque()
            left = iter(files)
            try:
                while True:
                    with _undisturbed():
                        while len(ahead) < self._count * AHEAD and (file := next(left, None)) is not None:
                            ahead.append(pool.submit(_sweep_kept, file, plan, folder))
                    if not ahead:
                        return
                    yield _items(ahead.popleft().result())
            except BrokenProcessPool:
                # Ctrl-C in a terminal ends the children too, and theirs may be told first
                time.sleep(INTERRUPTED_S)
                raise StormctlError(
                    "a process that swept some of the logs died",
                    remedy="Look whether memory ran out, and sweep fewer logs at once (--jobs).",
                ) from None
            except BaseException:
                for child in set(multiprocessing.active_children()) - others:
                    child.kill()  # a stopped one would not end otherwise
                raise


def _sweep_kept(file: Place | Share, plan: SweepPlan, folder: str) -> list[Item] | Kept:
    """In a process of the pool: what one file gives, or where it lies."""
    from stormctl.sweeps.files import sweep_file

    items = sweep_file(file, plan)
    held: list[Item] = []
    for item in items:
        held.append(item)
        if len(held) >= HELD:
            break
    else:
        return held
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".reports", delete=False) as kept:
        for item in held:
            pickle.dump(item, kept)
        for item in items:
            pickle.dump(item, kept)
    return Kept(Path(kept.name))


def _items(found: list[Item] | Kept) -> Iterator[Item]:
    if isinstance(found, list):
        yield from found
        return
    with found.path.open("rb") as file:
        while True:
            try:
                yield pickle.load(file)  # written by a process of ours into a folder of ours alone
            except EOFError:
                break
    found.path.unlink(missing_ok=True)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """No interrupt while processes are forked: raised inside one of the hooks of a fork, it would be lost."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _as_child() -> None:
    """Before a process of the pool sweeps: it dies with its parent, and by a signal without a word."""
    from stormctl.engine.children import end_with_parent

    for number in _ENDING:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    end_with_parent()
