"""Logs for tests, built event by event.

    log = (
        LogBuilder()
        .run_created("step-storm")
        .run_started()
        .step(1, "settleStep")
        .wait_created(2, in_ms=2500)
        .log()
    )

Positions count from 1, ids and times rise with them, and correlation ids are those that stormctl's own engine would
draw for the run. Every method returns the builder. To corrupt a log on purpose, edit ``builder.events`` or use
``without``, ``repeated``, ``changed`` and ``swapped``, which leave the builder as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from stormctl.history import AuditRecord, Capture, Event, EventLog, Evidence, Facet, Inline, RunRow, ids, kinds
from stormctl.readers.evidence import missing_from

RUN_ID = "wrun_01KE0000000000000000000000"
#: 2026-01-02T12:00:00Z, the time that built logs begin at.
START_MS = 1_767_355_200_000


class LogBuilder:
    """Builds the log of one run. ``positions=False`` makes it a store's that has none; ids are ULIDs, or ``slots``."""

    def __init__(self, run_id: str = RUN_ID, *, positions: bool = True, slots: bool = False, step_ms: int = 10) -> None:
        self.run_id = run_id
        self.events: list[Event] = []
        self._positions = positions
        self._slots = slots
        self._step_ms = step_ms
        self._base = ids.seeded_base(run_id)
        self._names: dict[int, str] = {}
        self._run = RunRow("running")

    # -- any event --------------------------------------------------------------------------------------------------

    def event(self, event_type: str, rank: int | None = None, **fields: Any) -> LogBuilder:
        """Append an event. ``rank`` makes its correlation id, of the kind that the type speaks of."""
        place = len(self.events) + 1
        time = START_MS + place * self._step_ms
        correlation_id = None if rank is None else self.id(kinds.kind_of_type(event_type), rank)
        event = Event(
            type=event_type,
            run_id=self.run_id,
            event_id=ids.slot_id(place) if self._slots else f"evnt_{ids.compose(time, place)}",
            correlation_id=correlation_id,
            position=place if self._positions else None,
            created_at=time,
            name=self._names.get(rank) if rank is not None and event_type in kinds.STEP_TYPES else None,
        )
        self.events.append(replace(event, **fields))
        return self

    def id(self, kind: str, rank: int) -> str:
        """The correlation id of a rank."""
        return f"{kind}_{ids.body_of(self._base + rank)}"

    # -- the run ----------------------------------------------------------------------------------------------------

    def run_created(self, workload: str | None = None, **input: Any) -> LogBuilder:
        """The run begins, of this workload with this input."""
        self._run = replace(self._run, workload=workload, input=input)
        return self.event(kinds.RUN_CREATED)

    def run_started(self) -> LogBuilder:
        """A delivery starts the run."""
        return self.event(kinds.RUN_STARTED)

    def run_completed(self, value: Any = None) -> LogBuilder:
        """The run returns."""
        self._run = replace(self._run, status="completed", output=value)
        return self.event(kinds.RUN_COMPLETED, payload=Inline(value))

    def run_failed(self, code: str = "CORRUPTED_EVENT_LOG", message: str | None = None) -> LogBuilder:
        """The run fails."""
        self._run = replace(self._run, status="failed", error_code=code, error_message=message)
        return self.event(kinds.RUN_FAILED, data={"errorCode": code})

    def run_cancelled(self) -> LogBuilder:
        """Somebody cancels the run."""
        self._run = replace(self._run, status="cancelled")
        return self.event(kinds.RUN_CANCELLED)

    # -- steps ------------------------------------------------------------------------------------------------------

    def step_created(self, rank: int, name: str, *arguments: Any) -> LogBuilder:
        """A step is created with these arguments."""
        self._names[rank] = name
        return self.event(kinds.STEP_CREATED, rank, payload=Inline(list(arguments)))

    def step_started(self, rank: int, attempt: int | None = None) -> LogBuilder:
        """A step is started."""
        return self.event(kinds.STEP_STARTED, rank, data={} if attempt is None else {"attempt": attempt})

    def step_completed(self, rank: int, value: Any = None) -> LogBuilder:
        """A step returns."""
        return self.event(kinds.STEP_COMPLETED, rank, payload=Inline(value))

    def step_failed(self, rank: int) -> LogBuilder:
        """A step fails for good."""
        return self.event(kinds.STEP_FAILED, rank)

    def step_retrying(self, rank: int) -> LogBuilder:
        """An attempt of a step failed and will be tried again."""
        return self.event(kinds.STEP_RETRYING, rank)

    def step(self, rank: int, name: str, *arguments: Any) -> LogBuilder:
        """A whole step: created, started, completed."""
        return self.step_created(rank, name, *arguments).step_started(rank).step_completed(rank)

    # -- waits, hooks, attributes -----------------------------------------------------------------------------------

    def wait_created(self, rank: int, in_ms: int = 1000) -> LogBuilder:
        """A durable sleep begins."""
        due = START_MS + (len(self.events) + 1) * self._step_ms + in_ms
        return self.event(kinds.WAIT_CREATED, rank, resume_at=due)

    def wait_completed(self, rank: int, **fields: Any) -> LogBuilder:
        """A durable sleep ends, at its resume time."""
        wait = self.id(kinds.WAIT, rank)
        due = next((event.resume_at for event in self.events if event.correlation_id == wait), None)
        return self.event(kinds.WAIT_COMPLETED, rank, **{"resume_at": due, "created_at": due, **fields})

    def hook_created(self, rank: int, token: str = "token") -> LogBuilder:
        """A hook is created."""
        return self.event(kinds.HOOK_CREATED, rank, token=token)

    def hook_received(self, rank: int, payload: Any = None, **data: Any) -> LogBuilder:
        """A hook receives."""
        return self.event(kinds.HOOK_RECEIVED, rank, payload=Inline(payload), data=data)

    def hook_disposed(self, rank: int) -> LogBuilder:
        """A hook is given up."""
        return self.event(kinds.HOOK_DISPOSED, rank)

    def attr_set(self, rank: int | None = None, **changes: Any) -> LogBuilder:
        """Attributes are written: by the workflow with a rank, by a step body without."""
        writer = {"type": "step" if rank is None else "workflow"}
        return self.event(kinds.ATTR_SET, rank, data={"changes": changes, "writer": writer})

    # -- what comes out ---------------------------------------------------------------------------------------------

    def log(self) -> EventLog:
        """The log as it stands."""
        return EventLog(self.events, self.run_id)

    def capture(
        self,
        *,
        missing: Sequence[Facet] = (),
        audit: Sequence[AuditRecord] | None = None,
        run: RunRow | None = None,
        data: Mapping[str, Any] | None = None,
        **evidence: Any,
    ) -> Capture:
        """The log as a capture whose evidence says what it plainly lacks, and ``missing`` besides."""
        row = run or self._run
        lacks = missing_from(self.events, has_rows=True, has_audit=audit is not None, has_result=True)
        return Capture(
            source="built",
            log=self.log(),
            evidence=Evidence("built", missing=lacks | frozenset(missing), **evidence),
            run=row,
            audit=None if audit is None else tuple(audit),
            data=dict(data or {}),
        )

    def published(self, *order: int) -> tuple[AuditRecord, ...]:
        """Audit records of the events so far, published in the given order of 1-based places (theirs by default)."""
        places = order or tuple(range(1, len(self.events) + 1))
        times = {place: 1_000_000 * (rank + 1) for rank, place in enumerate(places)}
        return tuple(
            AuditRecord(
                run_id=self.run_id,
                writer="w",
                type=event.type,
                correlation_id=event.correlation_id,
                admitted=True,
                reason="",
                position=event.position,
                event_id=event.event_id,
                snapshot=None,
                entered=times[place],
                minted=times[place],
                published=times[place],
                returned=times[place],
            )
            for place, event in enumerate(self.events, start=1)
            if place in times
        )

    # -- corruption on purpose --------------------------------------------------------------------------------------

    def edited(self, edit: Callable[[list[Event]], None]) -> LogBuilder:
        """A copy of the builder whose list of events was edited in place."""
        twin = LogBuilder(self.run_id, positions=self._positions, slots=self._slots, step_ms=self._step_ms)
        twin.events, twin._names, twin._run = list(self.events), dict(self._names), self._run
        edit(twin.events)
        return twin

    def until(self, place: int) -> LogBuilder:
        """The log up to a 1-based place, of a run that is still going."""
        twin = self.edited(lambda events: events.__delitem__(slice(place, None)))
        twin._run = replace(self._run, status="running", output=None, error_code=None, error_message=None)
        return twin

    def without(self, place: int) -> LogBuilder:
        """The log without the event at a 1-based place; the others keep position, id and time."""
        return self.edited(lambda events: events.__delitem__(place - 1))

    def repeated(self, place: int, **fields: Any) -> LogBuilder:
        """The log with the event at a place written once more at the end, under a place, id and time of its own."""
        event = self.events[place - 1]
        twin = self.edited(lambda _events: None).event(event.type)
        last = twin.events[-1]
        own = {"event_id": last.event_id, "position": last.position, "created_at": last.created_at}
        twin.events[-1] = replace(event, **{**own, **fields})
        return twin

    def changed(self, place: int, **fields: Any) -> LogBuilder:
        """The log with some fields of the event at a place changed."""
        return self.edited(lambda events: events.__setitem__(place - 1, replace(events[place - 1], **fields)))

    def swapped(self, one: int, other: int) -> LogBuilder:
        """The log with the ids of the events at two places exchanged."""
        first, second = self.events[one - 1].event_id, self.events[other - 1].event_id
        return self.changed(one, event_id=second).changed(other, event_id=first)
