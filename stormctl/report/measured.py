"""What the runs of a storm took, measured log by log without holding any: latencies of the engine, events, appends.

Only the columns that are measured are decoded, and of a log nothing is kept but numbers, so that a storm of 600,000
events needs seconds and no more memory than its largest log.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import msgspec

from stormctl.report.latency import Step, latencies_of

LOGS, AUDIT = "logs", "audit"
#: A log or an audit file of more bytes is left out and named: it is none of ours.
MOST_BYTES = 512 * 1024 * 1024
_PRECONDITION = re.compile(r"precondition|\b412\b", re.IGNORECASE)
_REASON = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_T = TypeVar("_T")


class Row(msgspec.Struct):
    """The columns of an event that are measured."""

    type: str
    created_at: datetime | None = None
    event_id: str | None = None
    correlation_id: str | None = None
    position: int | None = None


class Tried(msgspec.Struct):
    """The columns of an audit record that are measured. A line without a writer is one read."""

    writer: str | None = None
    type: str = ""
    admitted: bool = False
    reason: str = ""
    event_id: str | None = None
    entered: int = 0
    returned: int = 0


_ROWS = msgspec.json.Decoder(Row)
_TRIED = msgspec.json.Decoder(Tried)


@dataclass(frozen=True, slots=True)
class RunMeasured:
    """One run. ``appends`` is None where no audit was kept; ``refused`` counts every refusal, ``preconditions`` those
    that a fence made (HTTP 412). ``append_ms`` are the appends that were admitted. ``latencies`` are milliseconds by
    the names of :mod:`stormctl.report.latency`. ``place`` is the 1-based index of the event that was asked for."""

    events: int
    appends: int | None = None
    refused: int = 0
    preconditions: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)
    append_ms: array[float] = field(default_factory=lambda: array("d"))
    latencies: Mapping[str, list[float]] = field(default_factory=dict)
    place: int | None = None


def measure_run(folder: Path, run_id: str, event_id: str | None, notes: list[str]) -> RunMeasured | None:
    """Measure one run of an artefact folder; None where it left no log. What cannot be read is named in ``notes``.

    ``event_id`` is an event whose place in the log is wanted.
    """
    log = _file(folder / LOGS, run_id)
    if log is None:
        return None
    tried = _file(folder / AUDIT, run_id)
    writers: dict[str, str] = {}
    appends, refused, preconditions = 0, 0, 0
    reasons: Counter[str] = Counter()
    took = array("d")
    for record in () if tried is None else _lines(tried, _TRIED, notes):
        if record.writer is None:
            continue
        appends += 1
        if record.admitted:
            if 0 < record.entered <= record.returned:
                took.append((record.returned - record.entered) / 1e6)
            if record.event_id is not None and record.type.startswith("step_"):
                writers[record.event_id] = record.writer
            continue
        refused += 1
        word, fenced = _why(record.reason)
        preconditions += fenced
        reasons[word] += 1
    steps: list[Step] = []
    events, place = 0, None
    for row in _lines(log, _ROWS, notes):
        events += 1
        if event_id is not None and row.event_id == event_id:
            place = row.position or events
        when = None if row.created_at is None else row.created_at.timestamp() * 1000
        steps.append(Step(row.type, row.correlation_id, when, writers.get(row.event_id or "")))
    return RunMeasured(
        events=events,
        appends=None if tried is None else appends,
        refused=refused,
        preconditions=preconditions,
        reasons=reasons,
        append_ms=took,
        latencies=latencies_of(steps),
        place=place,
    )


@lru_cache(maxsize=4096)
def _why(reason: str) -> tuple[str, bool]:
    """The first word of why a store refused, and whether a fence did. The same few reasons come over and over."""
    word = _REASON.match(reason)
    return word[0][:40] if word else "no reason given", _PRECONDITION.search(reason) is not None


def _file(folder: Path, run_id: str) -> Path | None:
    """The file of a run. An id that is a path leads nowhere."""
    name = f"{run_id}.ndjson"
    if "/" in run_id or "\\" in run_id or "\0" in run_id or not run_id or len(name) > 200:
        return None
    path = folder / name
    return path if path.is_file() else None


def _lines(path: Path, decoder: msgspec.json.Decoder[_T], notes: list[str]) -> Iterator[_T]:
    """The rows of a file; those that are torn or no rows are left out, counted in one note."""
    bad = 0
    try:
        if path.stat().st_size > MOST_BYTES:
            notes.append(f"{path.parent.name}/{path.name} is larger than {MOST_BYTES >> 20} MB and is left out")
            return
        with path.open("rb") as file:
            for line in file:
                try:
                    yield decoder.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError):
                    bad += bool(line.strip())
    except OSError as error:
        notes.append(f"{path.parent.name}/{path.name} cannot be read: {error.strerror}")
    if bad:
        notes.append(f"{path.parent.name}/{path.name}: {bad} line{'s' if bad > 1 else ''} could not be read")
