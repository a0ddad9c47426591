"""What a worker is given of a run, out of a capture: the run's row and its events with the bytes that they carried."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from stormctl.errors import StormctlError
from stormctl.history import Capture, Damaged, Event, Inline, Sealed, ids, kinds
from stormctl.readers.payloads import Encoded
from stormctl.readers.sdk_capture import RUN_FACTS
from stormctl.times import iso

SLOT, ULID = "slot", "ulid"

#: from this version of the protocol on, payloads are bytes; before it they are plain JSON
BYTES_SPEC = 2
#: what of an event stands beside its data in the SDK's own objects
_BESIDE = frozenset({"resumeId"})
#: payloads that a replay reads; what else a log carries (a run's end, an error that is only shown) it passes over
_NEEDED = frozenset({kinds.RUN_CREATED, kinds.STEP_COMPLETED, kinds.STEP_FAILED, kinds.HOOK_RECEIVED})
_CAPTURE_AGAIN = (
    "Capture the run again with its payloads: give the store itself, or events.list with resolveData 'all'."
)


class MissingEvidence(StormctlError):
    """A capture that lacks what the real engine needs for a replay: that says nothing about the run."""


@dataclass(frozen=True)
class RunRecord:
    """One run, as a worker gets it. Make it with :func:`record_of`.

    ``workflow`` is the workflow's full name, ``started_at`` in epoch milliseconds seeds every id that the engine draws;
    ``started_by`` says what told it: the run's ``row``, its ``ids``, or its ``event``. ``spec`` is the version of the
    protocol, ``era`` how events are named: ``slot`` (dense numbers) or ``ulid``. ``core_version`` is the engine that
    the run was started by, where it says. ``length`` counts all events of the log.
    """

    run_id: str
    workflow: str
    started_at: int
    started_by: str
    spec: int
    era: str
    core_version: str | None
    length: int
    run: Mapping[str, Any] = field(repr=False)
    events: tuple[Mapping[str, Any], ...] = field(repr=False)

    @cached_property
    def digest(self) -> str:
        """The digest of all that a worker is given: the name of the record towards one, and a key for caches."""
        return hashlib.sha256(self.body).hexdigest()[:16]

    @cached_property
    def body(self) -> bytes:
        """The record as JSON."""
        given = {"run": self.run, "slots": self.era == SLOT, "events": self.events}
        return json.dumps(given, separators=(",", ":"), default=str).encode()


def record_of(capture: Capture) -> RunRecord:
    """The record of a captured run; MissingEvidence names what lacks for a replay."""
    events = capture.log.events
    created = _created(capture)
    facts = capture.data.get(RUN_FACTS)
    facts = facts if isinstance(facts, Mapping) else {}
    told = {**created.data, **{key: value for key, value in facts.items() if value is not None}}
    workflow = told.get("workflowName") or capture.data.get("workflow")
    if not isinstance(workflow, str):
        raise _missing(capture, "the workflow's name", "Capture its run_created in full, or the run's row with it.")
    spec = told.get("specVersion", created.spec)
    spec = spec if isinstance(spec, int) else BYTES_SPEC
    started_at, started_by = _started(capture, facts)
    context = told.get("executionContext")
    context = context if isinstance(context, Mapping) else {}
    core = context.get("workflowCoreVersion")
    rows = tuple(_row(capture, index, event, spec) for index, event in enumerate(events))
    run = {
        "runId": capture.log.run_id,
        "deploymentId": told.get("deploymentId") or "stormctl",
        "workflowName": workflow,
        "specVersion": spec,
        "executionContext": dict(context),
        "createdAt": told.get("createdAt", created.created_at),
        "updatedAt": told.get("createdAt", created.created_at),
        "startedAt": started_at,
        "input": rows[events.index(created)]["eventData"].get("input"),
    }
    slots = all(event.event_id is not None and ids.slot_of(event.event_id) is not None for event in events)
    return RunRecord(
        run_id=capture.log.run_id,
        workflow=workflow,
        started_at=started_at,
        started_by=started_by,
        spec=spec,
        era=SLOT if slots else ULID,
        core_version=core if isinstance(core, str) else None,
        length=len(events),
        run=run,
        events=rows,
    )


def _created(capture: Capture) -> Event:
    """The event that the log begins with."""
    log = capture.log
    if not len(log):
        raise _missing(capture, "its events", "Capture the run again.")
    created = next((event for event in log if event.type == kinds.RUN_CREATED), None)
    if created is None:
        raise _missing(capture, "its run_created, which carries the run's input", "Capture the log from its beginning.")
    if capture.evidence.truncated or capture.evidence.omitted:
        raise _missing(capture, "a part of its events", "Capture the run again, every page of its log.")
    for index, event in enumerate(log):
        if event.event_id is None or event.created_at is None:
            what = "the id" if event.event_id is None else "the time"
            raise _missing(capture, f"{what} of event {log.place(index)}", "Capture the events in full.")
    return created


# -- when it was started ---------------------------------------------------------------------------------------------


def _started(capture: Capture, facts: Mapping[str, Any]) -> tuple[int, str]:
    """When the run was started, to the millisecond: the engine's ids and random numbers come from it.

    4.x draws ids with that very time in them, 5.x with the run's own; so the ids tell it, or show that what the row
    tells is not true.
    """
    drawn = _drawn_time(capture)
    run_time = ids.ulid_ms(capture.log.run_id)
    told = facts.get("startedAt")
    if isinstance(told, int):
        if drawn is not None and drawn not in (told, run_time):
            raise _missing(
                capture,
                f"the true start of the run: its row says {iso(told)}, and its ids were drawn at {iso(drawn)}",
                "See that the row and the events are of one run, and capture both again.",
            )
        return told, "row"
    if drawn is not None and drawn != run_time:
        return drawn, "ids"
    started = next((event for event in capture.log if event.type == kinds.RUN_STARTED), None)
    if started is not None and started.created_at is not None and (started.event_id or "").startswith("evnt_"):
        return started.created_at, "event"  # a local world gives both one time; a database's differ
    raise _missing(
        capture,
        "startedAt of the run, which seeds every id that the engine draws",
        "Capture the run's row too (startedAt, in milliseconds).",
    )


def _drawn_time(capture: Capture) -> int | None:
    """The time in the first id that the engine drew for a step, a wait or a hook."""
    for event in capture.log:
        if event.type in kinds.CREATES and event.correlation_id is not None:
            return ids.ulid_ms(event.correlation_id)
    return None


# -- events ----------------------------------------------------------------------------------------------------------


def _row(capture: Capture, index: int, event: Event, spec: int) -> dict[str, Any]:
    """An event as its store lists it."""
    data = {key: value for key, value in event.data.items() if not key.startswith("_") and key not in _BESIDE}
    for key, value in (("stepName", event.name), ("token", event.token), ("resumeAt", event.resume_at)):
        if value is not None:
            data[key] = value
    value = _value(capture, index, event, spec)
    if value is not None:
        data[kinds.PAYLOAD_KEY.get(event.type, "payload")] = value
    row: dict[str, Any] = {
        "eventType": event.type,
        "runId": event.run_id or capture.log.run_id,
        "eventId": event.event_id,
        "createdAt": event.created_at,
        "specVersion": event.spec if event.spec is not None else spec,
        **{key: event.data[key] for key in _BESIDE if key in event.data},
    }
    if event.correlation_id is not None:
        row["correlationId"] = event.correlation_id
    if data:
        row["eventData"] = data
    return row


def _value(capture: Capture, index: int, event: Event, spec: int) -> Any:
    """What the event carries, as the engine wants it: bytes, or plain JSON where a store keeps it so."""
    payload = event.payload
    if isinstance(payload, Encoded):
        return {"$bytes": base64.b64encode(payload.raw).decode("ascii")}
    may_be_plain = spec < BYTES_SPEC or event.type not in _NEEDED or event.type == kinds.STEP_FAILED
    if isinstance(payload, Inline) and may_be_plain:
        return payload.load()
    if event.type not in _NEEDED or (payload is None and may_be_plain):
        return None
    if payload is None:
        why = "was not captured"
    elif isinstance(payload, Sealed):
        why = payload.why
    elif isinstance(payload, Damaged):
        why = f"cannot be read: {payload.reason}"
    else:
        why = "is there only as a value that a tool has made of its bytes"
    what = f"{_WHAT[event.type]} (event {capture.log.place(index)}), which {why}"
    remedy = _CAPTURE_AGAIN
    if why == "is encrypted":
        remedy = "Capture the run where its key is at hand, decrypted; stormctl holds no keys."
    raise _missing(capture, what, remedy)


_WHAT = {
    kinds.RUN_CREATED: "the run's input",
    kinds.STEP_COMPLETED: "a step's result",
    kinds.STEP_FAILED: "a step's error",
    kinds.HOOK_RECEIVED: "a hook's payload",
}


def _missing(capture: Capture, what: str, remedy: str) -> MissingEvidence:
    return MissingEvidence(f"the capture of run {capture.log.run_id or '?'} lacks {what}", remedy=remedy)
