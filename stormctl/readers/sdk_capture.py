"""A run of the Workflow SDK as a capture: the log in its store's order, the run row, and what the evidence is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stormctl.history import COMMIT_CLOCK, COMMIT_TIMES, Capture, Event, EventLog, Evidence, Facet
from stormctl.readers.evidence import missing_from
from stormctl.readers.fields import shown
from stormctl.readers.sdk_events import arguments_of_run, facts_of_row, is_live, run_row, workflow_name
from stormctl.readers.sdk_workloads import scenario_of

SERVER, CTIME = "server", "ctime"

RUN_FACTS = "run"
"""The key in a capture's ``data`` for what the run's row says that a replay by the real engine needs, under the SDK's
names: ``workflowName``, ``deploymentId``, ``specVersion``, ``executionContext``, and ``createdAt`` and ``startedAt`` in
epoch milliseconds. What the row does not hold is left out."""


@dataclass(slots=True)
class Found:
    """What a store holds of one run. ``events`` are in the store's own order, ``row`` is its run row as it stands.

    ``committed`` is when each event became readable, in microseconds of the epoch by event id, and ``clock`` who says
    so. ``about`` goes into the capture's data. ``partial`` says that there are events which were not read.
    """

    source: str
    run_id: str
    events: Sequence[Event]
    origin: str
    row: Mapping[str, Any] | None = None
    committed: Mapping[str, int] = field(default_factory=dict)
    clock: str = SERVER
    about: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    partial: bool = False


def capture_of(found: Found) -> Capture:
    """The capture; UnreadableInput when the run row is none."""
    log = EventLog(found.events, found.run_id)
    workflow = workflow_name(found.row, found.events)
    workload, given = scenario_of(workflow, arguments_of_run(found.row, found.events), found.events)
    run = run_row(found.row, log, workload, given, f"the row of run {shown(found.run_id)}")
    missing = missing_from(
        found.events,
        has_rows=found.row is not None,
        has_audit=False,
        has_result=run is not None and (run.status != "completed" or run.output is not None),
    )
    data = {**found.about, **({} if workflow is None else {"workflow": workflow})}
    if found.row is not None and (facts := facts_of_row(found.row, f"the row of run {shown(found.run_id)}")):
        data[RUN_FACTS] = facts
    if found.committed:
        missing -= {Facet.COMMIT_STAMPS}
        data |= {COMMIT_CLOCK: found.clock, COMMIT_TIMES: dict(found.committed)}
    evidence = Evidence(
        found.origin, missing=missing, truncated=found.partial, live=is_live(run, log), notes=tuple(found.notes)
    )
    return Capture(found.source, log, evidence, run, data=data)
