"""Measuring and printing, for the scripts beside this one. Nothing is asserted: a slow machine is no defect."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Times:
    """Seconds of several goes at one thing. On a shared machine the best is the one that says most."""

    best: float
    median: float


def cpu(action: Callable[[], object], goes: int) -> Times:
    """CPU seconds of this process for one go, the first (cold) one not counted."""
    return _measure(action, goes, time.process_time)


def wall(action: Callable[[], object], goes: int) -> Times:
    """Seconds on the clock for one go, the first (cold) one not counted."""
    return _measure(action, goes, time.perf_counter)


def _measure(action: Callable[[], object], goes: int, clock: Callable[[], float]) -> Times:
    action()
    seconds = []
    for _ in range(goes):
        began = clock()
        action()
        seconds.append(clock() - began)
    return Times(min(seconds), statistics.median(seconds))


def show(what: str, times: Times, unit: str, *, goal: float | None = None, peer: Times | None = None) -> None:
    """One line: best and median in ``unit`` (ms or s), the goal in the same unit, and the ratio to a peer's best."""
    scale = 1000 if unit == "ms" else 1
    line = f"  {what:<44} {times.best * scale:8.2f} {unit:<2} best {times.median * scale:8.2f} {unit:<2} median"
    if goal is not None:
        line += f"   goal {goal:g} {unit}: {'met' if times.best * scale <= goal else 'missed'}"
    if peer is not None:
        line += f"   {times.best / peer.best:.1f} x the reference"
    print(line)
