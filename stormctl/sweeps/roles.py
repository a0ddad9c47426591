"""Role counts: no prefix of the log plays a role more often than the scenario's shape allows.

The one sweep that sees the fault of vercel/workflow #3543: a log that is dense, without a duplicate and with a clean
lifecycle, in which one finalization was created twice, under two ids, by two writers that bound the same call to
different ordinals. A completed run must also hold each role exactly as often as its result says.
"""

from __future__ import annotations

from collections.abc import Iterator

from stormctl.history import Capture, EventLog, Facet, kinds
from stormctl.sweeps.base import Scenario, scenario_sweep
from stormctl.sweeps.finding import Fault, Item, Noted, Unjudged

KINDS = ("excess", "count")


@scenario_sweep("roles", needs={Facet.CORRELATION_IDS, Facet.NAMES}, kinds=KINDS)
def roles(capture: Capture, scenario: Scenario) -> Iterator[Item]:
    """Is each role of the scenario played as often as its shape allows?"""
    workload, log = scenario.workload, capture.log
    if workload.roles is not None:
        for excess in workload.roles(scenario.input, log).excesses:
            event = log[excess.index]
            text = f"{excess.role} is created {excess.count} times where {excess.limit} are allowed: {excess.why}"
            witness = _creates(log, excess.role, excess.index)
            yield Fault("excess", text, (excess.index,), f"{excess.role}/{event.correlation_id}", witness[-2:])
    run = capture.run
    if run is None or Facet.RESULT in capture.evidence.missing:
        item = Unjudged if workload.roles is None else Noted
        yield item(str(Facet.RESULT))
    elif run.status == "completed":
        if not log.ended or capture.evidence.truncated:
            yield Unjudged("the log up to the run's end")
        else:
            yield from _exact(log, scenario, run.output)


def _exact(log: EventLog, scenario: Scenario, value: object) -> Iterator[Item]:
    """Compare a completed run's counts with those that its result calls for."""
    workload = scenario.workload
    if workload.check(value, scenario.input) is not None:
        return  # a result that contradicts itself calls for nothing: the ledger sweep says so
    for role, expected in workload.counts(scenario.input, workload.stragglers(value)).items():
        at = _creates(log, role, len(log) - 1)
        if len(at) != expected:
            text = f"a completed run holds {expected} of {role} and this one {len(at)}"
            yield Fault("count", text, at[-1:], role, at[-2:])


def _creates(log: EventLog, role: str, last: int) -> tuple[int, ...]:
    """The first create of each entity that plays a role (a step name or a type of event), up to an index."""
    first: dict[str | int, int] = {}
    for index, event in enumerate(log[: last + 1]):
        if event.type == role or (event.type == kinds.STEP_CREATED and event.short_name == role):
            first.setdefault(event.correlation_id or index, index)
    return tuple(first.values())
