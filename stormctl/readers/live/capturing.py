"""Capturing run by run from a live store into a folder, so that it can be stopped anywhere and gone on with."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from stormctl.history import CAPTURED_AT
from stormctl.readers.live.folder import AGAIN, FIRST, CaptureFolder, Landed
from stormctl.readers.live.source import Source, Taken
from stormctl.readers.unreadable import Unreadable


@dataclass(frozen=True, slots=True)
class Begun:
    """A pass begins: it has so many runs, of which so many are there already, some of them broken in part."""

    number: int
    runs: int
    there: int
    broken: tuple[Unreadable, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One run is done with: it landed, or cannot be read (``landed`` is None)."""

    number: int
    run_id: str
    landed: Landed | None
    broken: tuple[Unreadable, ...] = ()


def capture_runs(
    source: Source, folder: CaptureFolder, *, runs: Sequence[str] = (), limit: int | None = None
) -> Iterator[Begun | Step]:
    """Capture the given runs, or those that the folder's question is about: the newest ``limit`` of them.

    With ``twice`` each is captured again when all have been captured once. A run that cannot be read does not stop the
    others. StoreFailure when the disk refuses or the store is gone: what landed stays, and the same call goes on.
    """
    wanted = list(dict.fromkeys(runs)) if runs else source.runs(folder.asked.since)
    if limit is not None:
        wanted = wanted[-limit:] if limit else []
    yield from _pass(source, folder, wanted, FIRST)
    if folder.asked.twice:
        yield from _pass(source, folder, [run_id for run_id in wanted if folder.landed(run_id, FIRST)], AGAIN)


def _pass(source: Source, folder: CaptureFolder, wanted: Sequence[str], number: int) -> Iterator[Begun | Step]:
    there = [one for run_id in wanted if (one := folder.landed(run_id, number)) is not None]
    known = {one.run_id for one in there}
    yield Begun(number, len(wanted), len(there), tuple(problem for one in there for problem in one.broken))
    for taken in source.read([run_id for run_id in wanted if run_id not in known]):
        yield _land(folder, taken, number)


def _land(folder: CaptureFolder, taken: Taken, number: int) -> Step:
    capture = taken.capture
    if capture is None:
        return Step(number, taken.run_id, None, taken.broken)
    # the time after the reading: what is due by then, and not in the log, was not there
    stamped = replace(capture, data={**capture.data, CAPTURED_AT: time.time_ns() // 1_000_000})
    return Step(number, taken.run_id, folder.keep(stamped, taken.broken, number), taken.broken)
