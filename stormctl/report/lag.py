"""How far the commit of an event lags behind the minting of its id, and which events were overtaken meanwhile.

An id is minted before its event becomes readable. Where ids order the log, whatever is minted later and committed
sooner overtakes: whoever reads in between sees a log with a hole. Both times come from the append audit of our worlds,
or from the id and the commit time of a server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median

from stormctl.errors import StormctlError
from stormctl.history import Capture, ids
from stormctl.readers.ndjson import LOGS, SUFFIX, NdjsonReader
from stormctl.report.load import Artefact
from stormctl.storm.attempt import Attempt
from stormctl.sweeps.commit_order import publication_times

#: logs that are read for the picture: a storm of a thousand would take most of a minute
MOST_LOGS = 96
_MS = 1_000_000
#: a time of the epoch in nanoseconds is beyond this, a monotonic one is not (unless the machine is up for 30 years)
_EPOCH = 10**18


@dataclass(frozen=True, slots=True)
class RunLag:
    """One run. ``events`` is how many commit times are known, ``lags`` holds milliseconds from mint to commit by type
    of event, and ``overtaken`` for how long each overtaken event could be missed: from the first commit of a later one
    to its own."""

    run_id: str
    events: int
    lags: dict[str, list[float]]
    overtaken: tuple[float, ...]


@dataclass(slots=True)
class ArmLag:
    """All runs of one arm that were read."""

    runs: int = 0
    hit: int = 0
    events: int = 0
    overtaken: list[float] = field(default_factory=list)

    @property
    def mean(self) -> float | None:
        """The mean of ``overtaken``, None when nothing was."""
        return fmean(self.overtaken) if self.overtaken else None


@dataclass(frozen=True, slots=True)
class StormLag:
    """A storm: milliseconds from mint to commit by type, slowest median first, and each arm's overtaken events.

    ``read`` of ``logs`` logs were looked at, ``unknown`` of those without a commit time.
    """

    lags: dict[str, list[float]]
    arms: dict[str, ArmLag]
    read: int
    logs: int
    unknown: int

    @property
    def overtaken(self) -> int:
        """How many events were overtaken, over all arms."""
        return sum(len(arm.overtaken) for arm in self.arms.values())

    @property
    def events(self) -> int:
        """How many commit times are known, over all arms."""
        return sum(arm.events for arm in self.arms.values())


def run_lag(capture: Capture) -> RunLag | None:
    """The lags of one run; None where no commit time is known."""
    times = publication_times(capture)
    known = [(index, time) for index, time in enumerate(times) if time is not None]
    if not known:
        return None
    minted = {record.event_id: record.minted for record in capture.audit or () if record.admitted and record.minted}
    lags: dict[str, list[float]] = {}
    for index, time in known:
        event = capture.log[index]
        mint = minted.get(event.event_id)
        if mint is None and event.event_id is not None and time > _EPOCH:
            carried = ids.ulid_ms(event.event_id)
            mint = None if carried is None else carried * _MS
        if mint is not None and time >= mint:
            lags.setdefault(event.type, []).append((time - mint) / _MS)
    overtaken: list[float] = []
    soonest: int | None = None
    for _, time in reversed(known):
        if soonest is not None and time > soonest:
            overtaken.append((time - soonest) / _MS)
        soonest = time if soonest is None else min(soonest, time)
    return RunLag(capture.log.run_id, len(known), lags, tuple(reversed(overtaken)))


def storm_lag(artefact: Artefact, most: int = MOST_LOGS) -> StormLag:
    """The lags of a storm, from at most ``most`` logs, evenly of all cells."""
    arms: dict[str, ArmLag] = {arm: ArmLag() for arm in artefact.arms}
    lags: dict[str, list[float]] = {}
    chosen = list(_spread(artefact, most))
    unknown = read = 0
    for attempt, capture in captures(artefact, chosen):
        read += 1
        one = run_lag(capture)
        if one is None:
            unknown += 1
            continue
        arm = arms[artefact.arm(attempt.cell)]
        arm.runs += 1
        arm.hit += bool(one.overtaken)
        arm.events += one.events
        arm.overtaken += one.overtaken
        for kind, values in one.lags.items():
            lags.setdefault(kind, []).extend(values)
    order = sorted(lags, key=lambda kind: -median(lags[kind]))
    logs = sum(1 for attempt in artefact.attempts if attempt.run_id)
    return StormLag({kind: lags[kind] for kind in order}, arms, read, logs, unknown)


def captures(artefact: Artefact, attempts: Iterable[Attempt]) -> Iterator[tuple[Attempt, Capture]]:
    """The captured log of each attempt, as far as the folder has it and it can be read."""
    for attempt in attempts:
        try:
            path = log_path(artefact, attempt.run_id)
            if path is not None:
                yield attempt, next(NdjsonReader().read(path))
        except (StormctlError, OSError):
            continue  # sweeps.json names what cannot be read; a picture does without it


def log_path(artefact: Artefact, run_id: str | None) -> Path | None:
    """Where the log of a run lies in the artefact; None where there is none. An id that is a path leads nowhere."""
    if not run_id or "\0" in run_id or Path(run_id).name != run_id:
        return None
    path = artefact.folder / LOGS / f"{run_id}{SUFFIX}"
    return path if path.is_file() else None


def _spread(artefact: Artefact, most: int) -> Iterator[Attempt]:
    """At most so many attempts with a log, of every cell alike, in the order in which they landed."""
    by_cell: dict[object, list[Attempt]] = {}
    for attempt in artefact.attempts:
        if attempt.run_id:
            by_cell.setdefault(attempt.cell, []).append(attempt)
    each = max(1, most // max(1, len(by_cell)))
    for attempts in by_cell.values():
        yield from attempts[:: max(1, -(-len(attempts) // each))]


def thinned(values: Sequence[float], most: int) -> list[float]:
    """At most so many of the values, evenly of their order, the largest always among them."""
    ordered = sorted(values)
    if len(ordered) <= most:
        return ordered
    step = (len(ordered) - 1) / (most - 1)
    return [ordered[round(index * step)] for index in range(most)]
