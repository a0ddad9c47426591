"""Counts by size, for durations that span decades: bins that grow 1, 2, 5, 10, ..."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

#: The lower ends of the bins behind the first one, in milliseconds.
EDGES = tuple(float(step * 10**power) for power in range(6) for step in (1, 2, 5))
_BLOCKS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Histogram:
    """``counts[0]`` is below ``edges[0]``, ``counts[i]`` from ``edges[i - 1]`` to below ``edges[i]``."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]

    @property
    def strip(self) -> str:
        """One block per bin, its height by the count, the empty ends kept: strips under each other compare."""
        most = max(self.counts, default=0)
        if not most:
            return ""
        return "".join(_BLOCKS[-(-count * 8 // most)] for count in self.counts)


def histogram(values: Iterable[float], edges: tuple[float, ...] = EDGES) -> Histogram:
    """Count values by bin."""
    counts = [0] * (len(edges) + 1)
    for value in values:
        counts[bisect_right(edges, value)] += 1
    return Histogram(edges, tuple(counts))
