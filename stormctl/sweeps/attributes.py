"""Attributes: each write names its writer, and a step that writes is running."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stormctl.history import Capture, kinds
from stormctl.sweeps.base import sweep
from stormctl.sweeps.finding import Fault, Item

KINDS = ("writer-without-id", "writer-unknown", "writer-not-running")
_IDLE, _RUNNING, _ENDED = "has not been started", "running", "has ended"


@sweep("attributes", kinds=KINDS)
def attributes(capture: Capture) -> Iterator[Item]:
    """Was every attribute written by the workflow under an id, or by a running step?"""
    states: dict[str, str] = {}
    for index, event in enumerate(capture.log.events):
        event_type, correlation_id = event.type, event.correlation_id
        if event_type in kinds.STEP_TYPES:
            if correlation_id is not None:
                states[correlation_id] = _after(event_type, states.get(correlation_id))
            continue
        if event_type != kinds.ATTR_SET:
            continue
        writer = event.data.get("writer")
        if not isinstance(writer, Mapping):
            continue
        if writer.get("type") == "workflow" and correlation_id is None:
            text = "an attribute was written by the workflow without an id of its sequence"
            yield Fault("writer-without-id", text, (index,), event.event_id or str(index))
        step = writer.get("stepId")
        if writer.get("type") != "step" or not isinstance(step, str):
            continue
        state = states.get(step)
        if state is None:
            if not capture.evidence.truncated:
                text = f"an attribute was written by {step}, which is not in the log before it"
                yield Fault("writer-unknown", text, (index,), step)
        elif state != _RUNNING:
            yield Fault("writer-not-running", f"an attribute was written by {step}, which {state}", (index,), step)


def _after(event_type: str, before: str | None) -> str:
    """How a step stands after an event."""
    if event_type in kinds.STEP_TERMINAL:
        return _ENDED
    if event_type == kinds.STEP_STARTED and before != _ENDED:
        return _RUNNING
    return _IDLE if before is None or event_type == kinds.STEP_RETRYING else before
