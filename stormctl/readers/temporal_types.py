"""The event types of a Temporal history in terms of ours.

An activity or a child workflow is a step, a timer is a wait, the execution is the run. Whatever has no counterpart
(workflow tasks, signals, markers, updates, Nexus operations) keeps its own type under a prefix, and no rule of ours is
asked of it. So does the end of an activity that was never started (it waited too long for a worker, or was cancelled
first): our steps end by running.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from stormctl.history import kinds

PREFIX = "temporal"

_PASCAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_TYPES = {
    "workflow_execution_started": kinds.RUN_CREATED,
    "workflow_execution_completed": kinds.RUN_COMPLETED,
    "workflow_execution_continued_as_new": kinds.RUN_COMPLETED,
    "workflow_execution_failed": kinds.RUN_FAILED,
    "workflow_execution_timed_out": kinds.RUN_FAILED,
    "workflow_execution_canceled": kinds.RUN_CANCELLED,
    "workflow_execution_terminated": kinds.RUN_CANCELLED,
    "activity_task_scheduled": kinds.STEP_CREATED,
    "activity_task_started": kinds.STEP_STARTED,
    "activity_task_completed": kinds.STEP_COMPLETED,
    "activity_task_failed": kinds.STEP_FAILED,
    "activity_task_timed_out": kinds.STEP_FAILED,
    "activity_task_canceled": kinds.STEP_FAILED,
    "start_child_workflow_execution_initiated": kinds.STEP_CREATED,
    "child_workflow_execution_started": kinds.STEP_STARTED,
    "child_workflow_execution_completed": kinds.STEP_COMPLETED,
    "child_workflow_execution_failed": kinds.STEP_FAILED,
    "child_workflow_execution_timed_out": kinds.STEP_FAILED,
    "child_workflow_execution_canceled": kinds.STEP_FAILED,
    "child_workflow_execution_terminated": kinds.STEP_FAILED,
    "timer_started": kinds.WAIT_CREATED,
    "timer_fired": kinds.WAIT_COMPLETED,
}
#: Ends that an activity may come to without a start.
_UNSTARTED = frozenset({"activity_task_timed_out", "activity_task_canceled"})
_ENTITY_OF = {
    "activity_task": "scheduledEventId",
    "child_workflow": "initiatedEventId",
    "timer_fired": "startedEventId",
    "timer_canceled": "startedEventId",
}


def own_type(text: str) -> str:
    """The type in one spelling: ``EVENT_TYPE_TIMER_FIRED`` and ``TimerFired`` are ``timer_fired``."""
    text = text.removeprefix("EVENT_TYPE_")
    return (text if text.isupper() else _PASCAL.sub("_", text)).lower()


def our_type(own: str, attributes: Mapping[str, Any]) -> str:
    """Our type for an event, or its own under the prefix."""
    if own in _UNSTARTED and event_number(attributes.get("startedEventId")) in (None, 0):
        return f"{PREFIX}:{own}"
    return _TYPES.get(own, f"{PREFIX}:{own}")


def entity(own: str, number: int, attributes: Mapping[str, Any], kind: str) -> str | None:
    """The correlation id: of the kind, with the number of the event that created the entity."""
    if kind == kinds.RUN:
        return None
    key = next((key for start, key in _ENTITY_OF.items() if own.startswith(start)), None)
    creates = own in ("activity_task_scheduled", "start_child_workflow_execution_initiated", "timer_started")
    creator = number if creates or key is None else event_number(attributes.get(key))
    return None if creator is None else f"{kind}_{creator}"


def name(own: str, attributes: Mapping[str, Any]) -> str | None:
    """The name of the activity, the workflow, the signal or the marker."""
    for key in ("activityType", "workflowType"):
        value = attributes.get(key)
        if isinstance(value, Mapping) and isinstance(value.get("name"), str) and not own.startswith("workflow_"):
            return str(value["name"])
    for key in ("signalName", "markerName"):
        value = attributes.get(key)
        if isinstance(value, str):
            return value
    return None


def event_number(value: Any) -> int | None:
    """An event's number: protobuf JSON writes 64-bit numbers as text."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    return None


__all__ = ["PREFIX", "entity", "event_number", "name", "our_type", "own_type"]
