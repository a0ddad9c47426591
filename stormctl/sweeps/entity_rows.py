"""Rows: what the store says of the run and its steps, waits and hooks is what the log says of them.

Most stores write an entity's row and its event one after the other. A writer that dies between the two leaves a row
without its event, or an event whose row does not know of it; a run whose row says completed and whose log has no end is
of this kind, and so is a log that lost its last event.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stormctl.history import Capture, Facet, ids, kinds
from stormctl.sweeps.base import sweep
from stormctl.sweeps.finding import Fault, Item, Noted

KINDS = (
    "run-row-ended",
    "run-row-open",
    "run-row-status",
    "row-without-create",
    "create-without-row",
    "row-status",
    "row-attempt",
)
#: The key of a capture's ``data`` for the rows of its entities by correlation id, under the SDK's field names.
ROWS = "rows"
ENDED = frozenset({"completed", "failed", "cancelled"})
_CREATED = {kinds.STEP: kinds.STEP_CREATED, kinds.WAIT: kinds.WAIT_CREATED, kinds.HOOK: kinds.HOOK_CREATED}
_STATUS = {kinds.STEP_COMPLETED: "completed", kinds.STEP_FAILED: "failed", kinds.WAIT_COMPLETED: "completed"}


@sweep("rows", needs={Facet.ROWS}, kinds=KINDS, optional=True)
def rows(capture: Capture) -> Iterator[Item]:
    """Do the rows of the run and its entities say what the log says?"""
    yield from _run(capture)
    entities = capture.data.get(ROWS)
    if not isinstance(entities, Mapping) or not entities:
        return
    if capture.evidence.live or capture.evidence.truncated:
        yield Noted("the rows of a run at rest")
        return
    yield from _entities(capture, {str(name): row for name, row in entities.items() if isinstance(row, Mapping)})


def _run(capture: Capture) -> Iterator[Item]:
    run, log = capture.run, capture.log
    if run is None or not len(log):
        return
    ends = log.ends
    if run.status not in ENDED:
        if ends:
            text = f"the run's row says {run.status} and its log has {log[ends[0]].type}"
            yield Fault("run-row-open", text, (ends[0],), log.run_id)
    elif not ends:
        if not capture.evidence.truncated and Facet.RUN_BOUNDS not in capture.evidence.missing:
            last = len(log) - 1
            text = f"the run's row says {run.status} and its log has no end"
            yield Fault("run-row-ended", text, (last,), log.run_id)
    elif f"run_{run.status}" not in {log[index].type for index in ends}:
        text = f"the run's row says {run.status} and its log ends as {log[ends[0]].type}"
        yield Fault("run-row-status", text, (ends[0],), log.run_id)


def _entities(capture: Capture, entities: Mapping[str, Mapping[str, object]]) -> Iterator[Fault]:
    log = capture.log
    made: dict[str, int] = {}
    ends: dict[str, list[int]] = {}
    starts: dict[str, int] = {}
    for index, event in enumerate(log.events):
        name, event_type = event.correlation_id, event.type
        if name is None:
            continue
        if event_type in kinds.CREATES or event_type == kinds.HOOK_CONFLICT:
            made.setdefault(name, index)
        elif event_type == kinds.STEP_STARTED:
            starts[name] = starts.get(name, 0) + 1
        elif event_type in _STATUS:
            ends.setdefault(name, []).append(index)
    for name, row in entities.items():
        kind = ids.split(name)[0].partition("_")[0]
        if name not in made:
            if kind in _CREATED:
                text = f"{name} has a row and the log has no {_CREATED[kind]} of it"
                yield Fault("row-without-create", text, (), name)
            continue
        yield from _status(capture, name, row, made[name], ends.get(name, []))
        attempt = row.get("attempt")
        if isinstance(attempt, int) and attempt != starts.get(name, 0):
            text = f"the row of {name} counts {attempt} attempts and the log {starts.get(name, 0)} starts"
            yield Fault("row-attempt", text, (made[name],), name)
    if any(ids.split(name)[0].partition("_")[0] == kinds.STEP for name in entities):
        # rows of hooks and waits are removed with their use; those of steps stay
        for name, index in made.items():
            if name not in entities and log[index].type == kinds.STEP_CREATED:
                yield Fault("create-without-row", f"{name} was created and has no row", (index,), name)


def _status(capture: Capture, name: str, row: Mapping[str, object], made: int, ends: list[int]) -> Iterator[Fault]:
    status = row.get("status")
    if not isinstance(status, str) or capture.log[made].kind == kinds.HOOK:
        return
    told = {_STATUS[capture.log[index].type] for index in ends}
    if status in ENDED and status not in told:
        says = f"ends it as {' and '.join(sorted(told))}" if told else "does not end it"
        yield Fault("row-status", f"the row of {name} says {status} and the log {says}", (made,), name)
    elif status not in ENDED and told:
        text = f"the row of {name} says {status} and the log ends it as {' and '.join(sorted(told))}"
        yield Fault("row-status", text, (ends[0],), name)
