"""The event types of a run's log and the groups that rules speak of.

The names are those of the Workflow SDK's logs, because every capture that stormctl reads or writes uses them.
"""

from __future__ import annotations

RUN_CREATED = "run_created"
RUN_STARTED = "run_started"
RUN_COMPLETED = "run_completed"
RUN_FAILED = "run_failed"
RUN_CANCELLED = "run_cancelled"
ATTR_SET = "attr_set"
STEP_CREATED = "step_created"
STEP_STARTED = "step_started"
STEP_COMPLETED = "step_completed"
STEP_FAILED = "step_failed"
STEP_RETRYING = "step_retrying"
HOOK_CREATED = "hook_created"
HOOK_RECEIVED = "hook_received"
HOOK_DISPOSED = "hook_disposed"
HOOK_CONFLICT = "hook_conflict"
WAIT_CREATED = "wait_created"
WAIT_COMPLETED = "wait_completed"
NOOP = "noop"

RUN_TERMINAL = frozenset({RUN_COMPLETED, RUN_FAILED, RUN_CANCELLED})
STEP_TERMINAL = frozenset({STEP_COMPLETED, STEP_FAILED})
STEP_TYPES = frozenset({STEP_CREATED, STEP_STARTED, STEP_COMPLETED, STEP_FAILED, STEP_RETRYING})
HOOK_TYPES = frozenset({HOOK_CREATED, HOOK_RECEIVED, HOOK_DISPOSED, HOOK_CONFLICT})
WAIT_TYPES = frozenset({WAIT_CREATED, WAIT_COMPLETED})
DRAWN_TYPES = STEP_TYPES | HOOK_TYPES | WAIT_TYPES
CREATES = frozenset({STEP_CREATED, HOOK_CREATED, WAIT_CREATED})
ALL_TYPES = DRAWN_TYPES | RUN_TERMINAL | frozenset({RUN_CREATED, RUN_STARTED, ATTR_SET, NOOP})

#: What lets a workflow go on: a result, a payload, the end of a wait, an attribute or a hook that is registered.
GIVES = STEP_TERMINAL | {WAIT_COMPLETED, HOOK_CREATED, HOOK_RECEIVED, HOOK_CONFLICT, ATTR_SET}

#: Under which key of its data an event of each type carries its payload, in every store of the SDK's kind.
PAYLOAD_KEY = {
    RUN_CREATED: "input",
    STEP_CREATED: "input",
    STEP_STARTED: "input",
    STEP_COMPLETED: "result",
    STEP_FAILED: "error",
    STEP_RETRYING: "error",
    RUN_COMPLETED: "output",
    RUN_FAILED: "error",
    HOOK_CREATED: "metadata",
    HOOK_RECEIVED: "payload",
}

STEP, HOOK, WAIT, ATTR, RUN = "step", "hook", "wait", "attr", "run"


def is_decision(event_type: str, *, lazy_start: bool = False) -> bool:
    """Whether an append of this type is derived from a prefix of the log (fence vocabulary of vercel/workflow #3269).

    ``lazy_start`` tells a ``step_started`` that also creates its step (it carries the input) from a plain one. Every
    other type is a fact: its meaning does not depend on what its writer had read.
    """
    return (
        event_type in CREATES
        or event_type in RUN_TERMINAL
        or event_type == ATTR_SET
        or (event_type == STEP_STARTED and lazy_start)
    )


def is_foreign(event_type: str) -> bool:
    """Whether the type is another system's own, for which there is no counterpart here: ``temporal:marker_recorded``.

    It keeps its place in the log, and no rule is asked of it.
    """
    return ":" in event_type


#: The entity kind of each event type that speaks of one; every other speaks of the run.
KIND_OF = {
    **dict.fromkeys(STEP_TYPES, STEP),
    **dict.fromkeys(HOOK_TYPES, HOOK),
    **dict.fromkeys(WAIT_TYPES, WAIT),
    ATTR_SET: ATTR,
}


def kind_of_type(event_type: str) -> str:
    """The entity kind that an event type speaks of: step, hook, wait, attr or run."""
    return KIND_OF.get(event_type, RUN)
