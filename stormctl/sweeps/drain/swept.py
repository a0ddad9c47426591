"""Sweeping a file that is a drain trace: the same report as for a log, from the checks that are about traces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from stormctl.errors import StormctlError
from stormctl.readers.unreadable import Unreadable
from stormctl.sweeps.drain.base import checks, judge
from stormctl.sweeps.drain.ndjson import is_trace, read
from stormctl.sweeps.drain.records import Activate, Counters, DrainTrace, Rest
from stormctl.sweeps.finding import SweepResult, Verdict, worst
from stormctl.sweeps.profiles import AUTO, STRICT, Profile, profile_named
from stormctl.sweeps.reading import From
from stormctl.sweeps.report import LogReport

#: what a trace lacks that is cut at its front: what was pending, marked and compacted before is not in it
BEGINNING = "the beginning of the trace: an activation with nothing pending"
#: records of the loop itself without which a check has seen nothing of what it asks
_GOES_BY: dict[str, tuple[type[Rest | Counters], str]] = {
    "drain-wake": (Rest, "records of the loop at rest"),
    "drain-counters": (Counters, "the reported counters"),
}
#: what a trace is from, in the word that reports have for a kind of store
WORLD = "drain"

__all__ = ["is_trace", "sweep_trace", "sweep_trace_file"]


def sweep_trace_file(path: Path, only: Sequence[str], profile: str) -> Iterator[LogReport | Unreadable]:
    """The report of a trace in a file."""
    try:
        yield sweep_trace(read(path), only, profile)
    except StormctlError as error:
        yield Unreadable.of(path, error)


def _judged(name: str, trace: DrainTrace, profile: Profile) -> SweepResult:
    """What one check says where the trace has what it goes by. What is not there is unknown, and never clean."""
    first = trace.records[0].what if trace.records else None
    if name in checks() and not (isinstance(first, Activate) and not first.pending):
        return SweepResult(name, Verdict.UNKNOWN, missing=(BEGINNING,))
    found = judge(name, trace, profile)
    kind, words = _GOES_BY.get(name, (None, ""))
    if found.verdict is Verdict.CLEAN and kind and not any(isinstance(one.what, kind) for one in trace.records):
        return replace(found, verdict=Verdict.UNKNOWN, missing=(words,))
    return found


def sweep_trace(trace: DrainTrace, only: Sequence[str] = (), profile: str = AUTO) -> LogReport:
    """Every check of traces over one, or those that were asked for by name."""
    from stormctl.sweeps.registered import in_order

    known = checks()
    names = [one.name for one in in_order() if (one.name in only if only else one.name in known)]
    taken = STRICT if profile == AUTO else profile_named(profile)
    results = tuple(_judged(name, trace, taken) for name in names)
    verdict = worst(result.verdict for result in results)
    reasons = tuple(
        f"{result.sweep} is unknown: it lacks {'; '.join(map(str, result.missing))}"
        for result in results
        if result.missing
    )
    return LogReport(
        source=trace.source,
        run_id=trace.name,
        world=WORLD,
        events=len(trace.records),
        profile=taken.name,
        profile_from=From.STRICTEST if profile == AUTO else From.NAMED,
        verdict=verdict,
        reasons=reasons,
        sweeps=results,
    )
