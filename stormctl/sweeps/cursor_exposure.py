"""Cursor exposure: for how long a reader that follows the log could have passed an event that was not there yet.

An event that becomes readable after one that follows it in the log is exposed from the moment at which the later one
could be read. A reader that looks in that window moves its cursor past the event and never sees it. The sweep measures
the windows and judges nothing: whether late publication is a fault is for ``commit_order``, and what real readers
missed for ``cursor_skip``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stormctl.history import COMMIT_CLOCK, Capture, Facet, ids
from stormctl.sweeps.base import sweep
from stormctl.sweeps.commit_order import SERVER, publication_times
from stormctl.sweeps.finding import Fault, Item, Noted

KINDS = ("window",)
#: How often the readers look that are imagined, in milliseconds.
POLLS_MS = (1, 10, 100)
_MS = 1_000_000


@sweep("cursor-exposure", needs={Facet.COMMIT_STAMPS}, kinds=KINDS, optional=True)
def cursor_exposure(capture: Capture) -> Iterator[Item]:
    """For how long could a reader's cursor have passed an event that was not there yet?"""
    times = publication_times(capture)
    unknown = sum(1 for time in times if time is None)
    if unknown:
        yield Noted(f"commit times of {unknown} events")
    windows = exposed(times)
    if not windows:
        return
    lengths = [window for _, window in windows]
    longest = max(windows, key=lambda found: found[1])[0]
    misses = ", ".join(f"{missed(lengths, every * _MS):.1f} every {every} ms" for every in POLLS_MS)
    text = (
        f"{len(windows)} of {len(times)} events could be passed by a cursor, for up to {max(lengths) / _MS:.1f} ms; "
        f"a reader that looks now and then misses {misses}{_lags(capture, times)}"
    )
    yield Fault("window", text, tuple(index for index, _ in windows), capture.log.run_id, witness=(longest,))


def exposed(times: Sequence[int | None]) -> list[tuple[int, int]]:
    """The indexes of events that became readable after one that follows them, each with how long after the first such,
    in nanoseconds. ``times`` are in the log's order."""
    found: list[tuple[int, int]] = []
    first: int | None = None
    for index in range(len(times) - 1, -1, -1):
        time = times[index]
        if time is None:
            continue
        if first is not None and time > first:
            found.append((index, time - first))
        else:
            first = time
    found.reverse()
    return found


def missed(windows: Sequence[int], every: int) -> float:
    """How many events a reader misses on average that looks every so many nanoseconds, at moments left to chance."""
    return sum(min(1.0, window / every) for window in windows)


def _lags(capture: Capture, times: Sequence[int | None]) -> str:
    """How long after its id was minted an event could be read; nothing where the two clocks cannot be compared."""
    if capture.audit is not None or capture.data.get(COMMIT_CLOCK) != SERVER:
        return ""
    lags = sorted(
        time // _MS - minted
        for time, event in zip(times, capture.log.events, strict=True)
        if time is not None and event.event_id and (minted := ids.ulid_ms(event.event_id)) is not None
    )
    if not lags:
        return ""
    middle, late = lags[len(lags) // 2], lags[min(len(lags) - 1, len(lags) * 95 // 100)]
    return f"; from mint to commit half take up to {middle} ms, 95 % up to {late} ms, the longest {lags[-1]} ms"
