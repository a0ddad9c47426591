"""Bundles of our own writing that behave as an engine, and small logs for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stormctl.history import Capture, Event, EventLog, Evidence, RunRow, ids
from stormctl.readers.payloads import payload_of
from stormctl.readers.sdk_capture import RUN_FACTS
from stormctl.targets.sdk.replay.bundle import Bundle, find_bundle
from stormctl.targets.sdk.replay.record import RunRecord, record_of

RUN = "wrun_01M8PJ0JW5474XEEH2P2Q68B4N"
STARTED = 1_796_053_420_938
#: the run's ids are drawn at its start
BODY = "01M8PJ0JWAZ2Z1EG55NRE5482"
STEP, WAIT = "step//./tiny//add", f"wait_{BODY}7"
WORKFLOW = "workflow//./tiny//main"

#: The engine: it loads the log, and does with it what `body` says. `next(type, data)` creates an event.
ENGINE = """
const world = () => globalThis[Symbol.for('@workflow/world//cache')];
const bytes = (value) => new TextEncoder().encode('devl' + JSON.stringify([value]));
async function deliver(message, metadata) {
  const runId = message.runId;
  const { run } = await world().events.create(runId, { eventType: 'run_started' });
  const list = (cursor) => world().events.list({ runId, pagination: { cursor } });
  const page = await list();
  const events = page.data;
  const next = (eventType, correlationId, eventData, rest) =>
    world().events.create(runId, { eventType, correlationId, eventData, specVersion: run.specVersion, ...rest });
  %(body)s
}
%(top)s
"""
CJS = """
const handled = globalThis[Symbol.for('@workflow/world//cache')].createQueueHandler('__wkf_workflow_', deliver);
module.exports = { POST: handled };
"""
ESM = """
let handled;
export async function POST(request) {
  handled ??= world().createQueueHandler('__wkf_workflow_', deliver);
  return handled(request);
}
"""

#: one step per event that has come, then the end
COUNTING = """
  const done = events.filter((event) => event.eventType === 'step_completed');
  await next('step_created', 'step_' + done.length, { stepName: 'step//./tiny//add', input: bytes(done.length) });
  await world().queue('__wkf_step_add', { stepId: 'step_' + done.length }, { delaySeconds: 2 });
"""


def bundle(folder: Path, body: str = COUNTING, *, top: str = "", esm: bool = False) -> Bundle:
    """A bundle in a folder, which is made: `flow.js` (CommonJS), or `flow.mjs`."""
    folder.mkdir(parents=True, exist_ok=True)
    flow = folder / ("flow.mjs" if esm else "flow.js")
    flow.write_text(ENGINE % {"body": body, "top": top} + (ESM if esm else CJS))
    return find_bundle(flow)


def plain_bundle(folder: Path, text: str, name: str = "flow.js") -> Bundle:
    """A bundle with just that text."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return find_bundle(folder / name)


def devl(value: str) -> dict[str, str]:
    """Payload bytes of the SDK, as a capture has them."""
    import base64

    return {"$bytes": base64.b64encode(f"devl{value}".encode()).decode()}


def event(number: int, event_type: str, *, slots: bool = False, **fields: Any) -> Event:
    """The event at a place (from 1) of a tiny log."""
    payload = fields.pop("payload", None)
    event_id = ids.slot_id(number) if slots else f"evnt_01M8PJ0K{number:018d}"
    return Event(
        type=event_type,
        run_id=RUN,
        event_id=event_id,
        position=number if slots else None,
        created_at=STARTED + number * 10,
        spec=7 if slots else 3,
        payload=payload_of(payload),
        **fields,
    )


def tiny_events(steps: int, *, slots: bool = False, ends: Sequence[int] = ()) -> list[Event]:
    """A run that was created and started, with one completed step after the other; `ends` are places (from 1) at which
    the run was ended, as a log of the SDK may have several."""
    rows: list[tuple[str, dict[str, Any]]] = [
        ("run_created", {"payload": devl("[[1],7]"), "data": {"workflowName": WORKFLOW, "deploymentId": "dpl_tiny"}}),
        ("run_started", {}),
    ]
    for number in range(steps):
        step = {"correlation_id": f"step_{number}", "name": STEP}
        rows.append(("step_created", {**step, "payload": devl(f"[{number}]")}))
        rows.append(("step_completed", {**step, "payload": devl(f"[{number}]")}))
    for place in ends:
        rows.insert(place - 1, ("run_completed", {"payload": devl("[1]")}))
    return [event(number, name, slots=slots, **fields) for number, (name, fields) in enumerate(rows, 1)]


def capture(events: Sequence[Event], *, facts: dict[str, Any] | None = None, **evidence: Any) -> Capture:
    """A capture of such a run, with its row's facts."""
    given = {"workflowName": WORKFLOW, "startedAt": STARTED, "createdAt": STARTED - 3, "specVersion": 3}
    data = {RUN_FACTS: given if facts is None else facts}
    return Capture("tiny", EventLog(events, RUN), Evidence("test", **evidence), RunRow("running"), data=data)


def record(steps: int = 3, **how: Any) -> RunRecord:
    """The record of a tiny run."""
    return record_of(capture(tiny_events(steps, **how)))
