"""Store folders of a local world, written as the SDK writes them: one file per event, rows, claims, a version."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stormctl.history import Event, EventLog, ids, kinds
from stormctl.times import iso
from stormctl.worlds.encode import pack_bytes

V4, V5 = "@workflow/world-local@4.4.1", "@workflow/world-local@5.0.0-beta.46"
WORKFLOW = "workflow//./workflows/storms//{}"
STEP = "step//./workflows/storms//{}"


def bytes_of(data: bytes) -> dict[str, str]:
    """Bytes as they stand in a file."""
    return {"__type": "Uint8Array", "data": base64.b64encode(data).decode("ascii")}


def packed(value: Any) -> dict[str, str]:
    """A value as it stands in a file."""
    return bytes_of(pack_bytes(value))


def step_input(arguments: Sequence[Any]) -> dict[str, str]:
    """A step's input: its arguments, closed over nothing."""
    flat = json.loads(pack_bytes(list(arguments))[4:])
    moved = [_moved(item, 1) for item in flat]
    text = json.dumps([{"args": 1, "closureVars": -1, "thisVal": -1}, *moved], separators=(",", ":"))
    return bytes_of(b"devl" + text.encode())


def _moved(item: Any, by: int) -> Any:
    if isinstance(item, dict):
        return {key: value if value < 0 else value + by for key, value in item.items()}
    return [value if value < 0 else value + by for value in item] if isinstance(item, list) else item


def body_of(event: Event, workflow: str, given: Any, *, spec: int) -> dict[str, Any]:
    """An event's file, key by key in the SDK's order."""
    data: dict[str, Any] = {}
    value = event.payload.load() if event.payload is not None else None
    match event.type:
        case kinds.RUN_CREATED:
            data = {"deploymentId": "dpl_local", "workflowName": workflow, "input": packed([given])}
        case kinds.STEP_CREATED:
            data = {"stepName": STEP.format(event.name), "input": step_input(value)}
        case kinds.STEP_STARTED:
            data = {"stepName": STEP.format(event.name), "attempt": 1}
        case kinds.STEP_COMPLETED:
            data = {"stepName": STEP.format(event.name), "workflowName": workflow, "result": packed(value)}
        case kinds.WAIT_CREATED | kinds.WAIT_COMPLETED:
            data = {"resumeAt": iso(event.resume_at or 0)}
        case kinds.HOOK_CREATED:
            data = {"token": event.token, "isWebhook": False}
        case kinds.HOOK_RECEIVED:
            data = {"token": event.token, "payload": packed(value)}
        case kinds.RUN_COMPLETED:
            data = {"output": packed(value)}
    body: dict[str, Any] = {"eventType": event.type, "specVersion": spec}
    if event.correlation_id is not None:
        body["correlationId"] = event.correlation_id
    if data:
        body["eventData"] = data
    return {**body, "runId": event.run_id, "eventId": event.event_id, "createdAt": iso(event.created_at or 0)}


def write_store(
    folder: Path, log: EventLog, function: str, given: Mapping[str, Any], *, slots: bool = False, output: Any = None
) -> Path:
    """Write the run of a log into a store folder; ``given`` is its input under the SDK's names."""
    spec = 7 if slots else 3
    workflow = WORKFLOW.format(function)
    write(folder / "version.txt", V5 if slots else V4)
    for place, event in enumerate(log, 1):
        event_id = ids.slot_id(place) if slots else f"evnt_{ids.compose(event.created_at or 0, place)}"
        body = {**body_of(event, workflow, given, spec=spec), "eventId": event_id}
        write(folder / "events" / f"{log.run_id}-{event_id}.json", body)
        if event.type == kinds.STEP_COMPLETED:
            claim(folder, f"steps/{log.run_id}-{event.correlation_id}.terminal")
        elif event.type == kinds.WAIT_COMPLETED:
            claim(folder, f"waits/{log.run_id}-{event.correlation_id}.completed")
        elif event.type == kinds.HOOK_DISPOSED:
            claim(folder, f"hooks/{event.correlation_id}.disposed")
        elif event.type == kinds.STEP_CREATED:
            write(folder / "steps" / f"{log.run_id}-{event.correlation_id}.json", step_row(event, spec))
    ended = log[len(log) - 1]
    status = ended.type.removeprefix("run_") if ended.is_terminal else "running"
    row = {
        "runId": log.run_id,
        "deploymentId": "dpl_local",
        "workflowName": workflow,
        "specVersion": spec,
        "input": packed([given]),
        "createdAt": iso(log[0].created_at or 0),
        "status": status,
        **({"output": packed(output)} if output is not None else {}),
        "updatedAt": iso(ended.created_at or 0),
    }
    write(folder / "runs" / f"{log.run_id}.json", row)
    return folder


def step_row(event: Event, spec: int) -> dict[str, Any]:
    """A step's row."""
    return {
        "runId": event.run_id,
        "stepId": event.correlation_id,
        "stepName": STEP.format(event.name),
        "status": "completed",
        "input": step_input(event.payload.load() if event.payload is not None else []),
        "attempt": 1,
        "createdAt": iso(event.created_at or 0),
        "updatedAt": iso(event.created_at or 0),
        "specVersion": spec,
    }


def claim(folder: Path, name: str) -> None:
    """An empty claim file."""
    write(folder / ".locks" / name, "")


def write(path: Path, content: Any) -> Path:
    """A file, as JSON unless it is text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))
    return path
