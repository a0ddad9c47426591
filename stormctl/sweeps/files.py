"""Sweeping what lies at paths: opened, matched with its earlier captures, swept here or spread over processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from stormctl.history import Capture
from stormctl.readers.open import Place, Unreadable, files_at, open_file
from stormctl.sweeps.drain.swept import is_trace, sweep_trace_file
from stormctl.sweeps.earlier import unreadable_earlier, with_earlier
from stormctl.sweeps.plan import SweepPlan
from stormctl.sweeps.report import LogReport
from stormctl.sweeps.run import sweep_log
from stormctl.sweeps.shares import Share, shared_out
from stormctl.sweeps.spread import Processes, Spread


def sweep_paths(
    paths: Sequence[Path | str], plan: SweepPlan, *, processes: int = 1, spread: Spread | None = None
) -> Iterator[LogReport | Unreadable]:
    """Open and sweep what lies at the paths, in order, over several processes, or over what ``spread`` stands for.

    Several files, and the runs of a large store, are spread over them; the engines share them over the prefixes of a
    file that has some to itself. The processes end with this one, and at once when whoever consumes the reports stops.
    Reports come as they are made, and only a few files' are ever held.
    """
    yield from unreadable_earlier(plan.earlier, plan.read_as)
    places = [file for path in paths for file in files_at(path, plan.read_as)]
    found: list[Place | Share | Unreadable] = list(places)
    if spread is None and processes > 1:
        found = [part for item in places for part in shared_out(item, processes)]
    files = [file for file in found if not isinstance(file, Unreadable)]
    workers = min(processes, len(files))
    plan = replace(plan, jobs=max(plan.jobs, processes // max(1, workers)))
    if spread is None and workers < 2:
        yield from _swept(places, plan)
        return
    swept = (spread or Processes(workers)).sweep(files, plan)
    try:
        for item in found:
            yield from [item] if isinstance(item, Unreadable) else next(swept)
        for _ in swept:
            raise AssertionError("there are more answers than files")
    finally:
        swept.close()  # whatever stops the consumer stops the processes too, at once


def sweep_file(path: Place | Share, plan: SweepPlan) -> Iterator[LogReport | Unreadable]:
    """Everything that one file, store or database gives, as it comes."""
    yield from _each(path.read(), plan) if isinstance(path, Share) else _swept([path], plan)


def _swept(places: Iterable[Place | Unreadable], plan: SweepPlan) -> Iterator[LogReport | Unreadable]:
    """What the places give, in their order; over whole columns where the plan asks no more than these can answer."""
    if plan.only:
        from stormctl.sweeps import bulk

        if bulk.serves(plan):
            yield from bulk.sweep_columns(places, plan, partial(_row_by_row, plan=plan))
            return
    for place in places:
        yield from [place] if isinstance(place, Unreadable) else _row_by_row(place, plan)


def _row_by_row(place: Place, plan: SweepPlan) -> Iterator[LogReport | Unreadable]:
    """What one place gives: of a log, or of a drain trace, which is another kind of subject."""
    if isinstance(place, Path) and place.is_file() and is_trace(place):
        yield from sweep_trace_file(place, plan.only, plan.profile)
        return
    yield from _each(open_file(place, plan.read_as), plan)


def _each(items: Iterable[Capture | Unreadable], plan: SweepPlan) -> Iterator[LogReport | Unreadable]:
    """The report of each capture, with the earlier one of its run beside it."""
    for item in items:
        if isinstance(item, Unreadable):
            yield item
        else:
            yield sweep_log(with_earlier(item, plan.earlier, plan.read_as), plan)
