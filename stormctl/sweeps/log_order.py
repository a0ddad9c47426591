"""Log order: every race goes on with the racer whose result is first in the log.

A branch that took the other side leaves a run that completes, with a ledger that adds up, and whose own log
contradicts it: of the real SDK up to 5.0.0-beta.35 nearly every second completed storm did. Whoever replays a longer or
a shorter part of such a log may take the other way, so the fault is fatal under every profile, also for a release whose
engine decides in that manner each time.

A scenario of ours declares its races (``workloads.races``), and they are told by what the log holds, without an engine.
A user's own body need not: its races are those that a replay which follows the log has met (``workloads.user_races``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from stormctl.history import Capture, EventLog, Facet
from stormctl.sweeps.base import Scenario, scenario_sweep
from stormctl.sweeps.finding import Fault, Finding, Item, Noted, Unjudged
from stormctl.sweeps.witness import label
from stormctl.workloads.base import Workload
from stormctl.workloads.races import Race, Trail, Untold

NAME = "log-order"
KINDS = ("contradiction",)


def _declared(workload: Workload) -> bool:
    return workload.races is not None


@scenario_sweep(
    NAME, needs={Facet.CORRELATION_IDS, Facet.NAMES, Facet.INPUTS}, kinds=KINDS, applies_to=_declared, of_bodies=True
)
def log_order(capture: Capture, scenario: Scenario) -> Iterator[Item]:
    """Did every race go on with the racer that is first in the log?"""
    declared = scenario.workload.races
    if declared is None:
        return
    whole = not capture.evidence.truncated
    if not whole:
        yield Noted("the whole log")
    try:
        yield from contradictions(capture.log, declared(scenario.input, Trail(capture.log)), whole=whole)
    except Untold as lacking:
        yield Unjudged(str(lacking))


def contradictions(log: EventLog, races: Iterable[Race], *, whole: bool = True) -> Iterator[Fault]:
    """A fault for each race that went on with another racer than the first.

    In a log that is not ``whole`` a missing result may be one that was not read: there only those count that were.
    """
    for race in races:
        wrong = tuple(one for one in race.contradictions if whole or one[0] in race.ends)
        if not wrong:
            continue
        first = race.first
        ends = sorted(race.ends.values())
        created = tuple(index for _, index in wrong)
        name = race.name or _branch(race.branch)
        yield Fault(
            KINDS[0],
            f"{name} went on with {_create(log, wrong)}, which contradicts the log's order: "
            + (f"{first} was first, by {_result(log, ends[0])}" if first is not None else "nobody has won its race"),
            at=tuple(dict.fromkeys((*ends[:1], *created))),
            entity="/".join(map(str, race.branch)),
            witness=tuple(sorted({*ends, *created})),
        )


def silently_wrong(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings that say a completed run is wrong although nothing failed."""
    return tuple(finding for finding in findings if finding.sweep == NAME)


def _branch(branch: Sequence[int]) -> str:
    numbers = ", ".join(map(str, branch))
    return f"branch ({numbers})" if len(branch) > 1 else f"round {numbers}"


def _create(log: EventLog, wrong: Sequence[tuple[str, int]]) -> str:
    racer, index = wrong[0]
    return f"{label(log[index])} at {log.place(index)}, as after {racer}"


def _result(log: EventLog, index: int) -> str:
    return f"{log[index].type} at {log.place(index)}"
