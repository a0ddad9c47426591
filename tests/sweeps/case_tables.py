"""The reports about other engines, as rows of those engines' own tables: they are read by the maps that are shipped.

The rows have the columns and words of the real tables and nothing that stood in one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from stormctl import times
from stormctl.testing import START_MS
from tests.sweeps.case_base import Judged, Register, Rows

CASES = Register()
Made = Callable[[], Rows]
SOUND = Judged("unknown", never=("dense", "lifecycle", "one-body"), reason="a workload")


def when(place: int) -> str:
    return times.iso(START_MS + place * 10)


# -- Temporal and Cadence ----------------------------------------------------------------------------------------------

_WORKER = {"identity": "worker-1"}


def temporal(*events: tuple[str, dict[str, Any]], skip: frozenset[int] = frozenset()) -> Rows:
    """Events of one history in order, numbered from 1; the numbers to skip are lost."""
    rows: list[dict[str, Any]] = []
    number = 0
    for word, attributes in events:
        number += 1
        while number in skip:
            number += 1
        upper = word.upper()
        camel = "".join(part.capitalize() for part in word.split("_"))
        key = f"{camel[0].lower()}{camel[1:]}EventAttributes"
        rows.append(
            {
                "eventId": str(number),
                "eventTime": when(number),
                "eventType": f"EVENT_TYPE_{upper}",
                "taskId": str(1_048_600 + number),
                key: attributes,
            }
        )
    return rows


STARTED = (
    "workflow_execution_started",
    {"workflowType": {"name": "Order"}, "originalExecutionRunId": "0d9c7a52-8d0e-4f3c-9a55-2f1d6e0b7c11"},
)
TASK = (
    ("workflow_task_scheduled", {"taskQueue": {"name": "orders"}}),
    ("workflow_task_started", {"scheduledEventId": "2", **_WORKER}),
    ("workflow_task_completed", {"scheduledEventId": "2", "startedEventId": "3"}),
)
DONE = ("workflow_execution_completed", {})


def scheduled(name: str, number: int) -> tuple[str, dict[str, Any]]:
    attributes = {"activityId": str(number), "activityType": {"name": name}, "workflowTaskCompletedEventId": "4"}
    return ("activity_task_scheduled", attributes)


def begun(scheduled_at: int) -> tuple[str, dict[str, Any]]:
    return ("activity_task_started", {"scheduledEventId": str(scheduled_at), "attempt": 1, **_WORKER})


def ended(scheduled_at: int, started_at: int) -> tuple[str, dict[str, Any]]:
    return ("activity_task_completed", {"scheduledEventId": str(scheduled_at), "startedEventId": str(started_at)})


WHOLE = (STARTED, *TASK, scheduled("charge", 5), begun(5), ended(5, 6), DONE)
SWAPPED = (scheduled("charge", 5), scheduled("ship", 6), begun(6), ended(6, 7), begun(5), ended(5, 9))
CASES.pair(
    "temporalio/temporal#706",
    {
        "name": "temporal-706-event-ids-not-continuous",
        "symptom": "A storage node was lost while events were appended: the event ids are not continuous.",
        "log": lambda: temporal(
            STARTED, *TASK, scheduled("charge", 5), begun(5), ended(5, 6), DONE, skip=frozenset({8})
        ),
        "judged": Judged("violated", ("dense/gap",)),
    },
    {
        "name": "temporal-706-event-ids-continuous",
        "symptom": "The same history with every event.",
        "log": lambda: temporal(*WHOLE),
        "judged": SOUND,
    },
)
CASES.pair(
    "temporalio/temporal#2282",
    {
        "name": "temporal-2282-start-never-written",
        "symptom": "A worker died with a buffered start: the activity completes, and its start has the number 0.",
        "log": lambda: temporal(STARTED, *TASK, scheduled("charge", 5), ended(5, 0), DONE),
        "judged": Judged("violated", ("lifecycle/end-without-start",)),
    },
    {
        "name": "temporal-2282-timed-out-before-its-start",
        "symptom": "An activity waits too long for a worker: it times out, and there never was a start to write.",
        "log": lambda: temporal(
            STARTED,
            *TASK,
            scheduled("charge", 5),
            ("activity_task_timed_out", {"scheduledEventId": "5", "startedEventId": "0"}),
            ("workflow_execution_failed", {}),
        ),
        "judged": Judged("unknown", never=("lifecycle",), reason="engine suspect"),
    },
)
CASES.pair(
    "cadence-workflow/cadence#213",
    {
        "name": "cadence-213-event-after-completion",
        "symptom": "A decision came late: an activity is scheduled after the workflow has completed.",
        "log": lambda: temporal(STARTED, *TASK, DONE, scheduled("charge", 6)),
        "judged": Judged("violated", ("lifecycle/event-after-end",)),
    },
    {
        "name": "cadence-213-completion-last",
        "symptom": "The activity is scheduled, runs, and the workflow completes.",
        "log": lambda: temporal(*WHOLE),
        "judged": SOUND,
    },
)
CASES.pair(
    "cadence-workflow/cadence#1191",
    {
        "name": "cadence-1191-completed-before-started",
        "symptom": "A fast activity's completion was buffered and flushed before its start.",
        "log": lambda: temporal(STARTED, *TASK, scheduled("charge", 5), ended(5, 7), begun(5), DONE),
        "judged": Judged("violated", ("lifecycle/end-without-start", "lifecycle/start-after-step-end")),
    },
    {
        "name": "cadence-1191-two-activities-reordered",
        "symptom": "Two activities at once: the one that was scheduled later is started and completed first.",
        "log": lambda: temporal(
            STARTED,
            *TASK,
            scheduled("charge", 5),
            scheduled("ship", 6),
            begun(6),
            ended(6, 7),
            begun(5),
            ended(5, 9),
            DONE,
        ),
        "judged": SOUND,
    },
)

# -- DBOS --------------------------------------------------------------------------------------------------------------


def dbos(*steps: tuple[int, str]) -> Rows:
    """Rows of dbos.operation_outputs."""
    return [
        {
            "workflow_uuid": "order-7",
            "function_id": number,
            "function_name": name,
            "output": json.dumps({"row": place}),
            "error": None,
            "child_workflow_id": None,
            "started_at_epoch_ms": START_MS + place * 20,
            "completed_at_epoch_ms": START_MS + place * 20 + 10,
        }
        for place, (number, name) in enumerate(steps, 1)
    ]


CASES.pair(
    "dbos-inc/dbos-transact-py#688",
    {
        "name": "dbos-688-one-function-id-two-names",
        "symptom": "Steps that run side by side take their numbers in another order when replayed: 4 was A and is B.",
        "log": lambda: dbos((1, "load"), (2, "check"), (3, "reserve"), (4, "chargeCard"), (4, "sendMail")),
        "judged": Judged(
            "violated", ("lifecycle/late-step-created", "lifecycle/second-step-end", "one-body/two-names")
        ),
    },
    {
        "name": "dbos-688-a-function-id-for-each",
        "symptom": "The same steps, each under a number of its own; a call that writes no row leaves a number out.",
        "log": lambda: dbos((1, "load"), (2, "check"), (3, "reserve"), (4, "chargeCard"), (6, "sendMail")),
        "judged": SOUND,
    },
)

# -- Restate -----------------------------------------------------------------------------------------------------------


_VOID: dict[str, list[int]] = {"Success": []}


def journal(*indexes: int) -> Rows:
    """Entries of sys_journal under these indexes."""
    entries = (
        ("Command: Input", "", {"Command": {"Input": {"payload": [123, 125], "name": ""}}}),
        ("Command: Run", "charge", {"Command": {"Run": {"completion_id": 1, "name": "charge"}}}),
        (
            "Notification: Run",
            "",
            {"Notification": {"Completion": {"Run": {"completion_id": 1, "result": {"Success": []}}}}},
        ),
        ("Command: Output", "", {"Command": {"Output": {"result": _VOID, "name": ""}}}),
    )
    return [
        {
            "id": "inv_1gWqVnJ2c7Hq0Kd3mP5rT8vX",
            "index": index,
            "entry_type": entry_type,
            "name": name,
            "completed": None,
            "version": 2,
            "entry_json": json.dumps(entry),
            "appended_at": when(place),
        }
        for place, (index, (entry_type, name, entry)) in enumerate(zip(indexes, entries, strict=True))
    ]


CASES.pair(
    "restatedev/restate#524",
    {
        "name": "restate-524-entry-inserted-twice",
        "symptom": "Two leaders append: one index of a journal is held by two entries, and the next by none.",
        "log": lambda: journal(0, 1, 1, 3),
        "judged": Judged("violated", ("dense/gap", "dense/repeat")),
    },
    {
        "name": "restate-524-an-index-for-each",
        "symptom": "The same entries, each under an index of its own.",
        "log": lambda: journal(0, 1, 2, 3),
        "judged": SOUND,
    },
)

# -- Azure Durable Functions -------------------------------------------------------------------------------------------


def azure(*events: dict[str, Any]) -> Rows:
    """Rows of a history table, numbered from 0 in hexadecimal, and its last row, which is none."""
    shared = {"PartitionKey": "c0ffee", "ExecutionId": "e1"}
    rows: list[dict[str, Any]] = [
        {**shared, "RowKey": f"{place:016X}", "EventId": -1, "IsPlayed": False, "_Timestamp": when(place), **event}
        for place, event in enumerate(events)
    ]
    return [*rows, {**shared, "RowKey": "sentinel"}]


EPISODE = ({"EventType": "OrchestratorStarted"}, {"EventType": "OrchestratorCompleted"})
BEGIN = ({"EventType": "OrchestratorStarted"}, {"EventType": "ExecutionStarted", "Name": "Order", "Input": '"7"'})
PAUSE = (EPISODE[1], EPISODE[0])
FINISH = (
    {"EventType": "ExecutionCompleted", "OrchestrationStatus": "Completed", "Result": '"done"'},
    {"EventType": "OrchestratorCompleted"},
)


def task(number: int, name: str) -> dict[str, Any]:
    return {"EventType": "TaskScheduled", "EventId": number, "Name": name}


def result(number: int) -> dict[str, Any]:
    return {"EventType": "TaskCompleted", "TaskScheduledId": number, "Result": '"ok"'}


CASES.pair(
    "Azure/azure-functions-durable-extension#2955",
    {
        "name": "azure-2955-sequence-repeated-with-another-name",
        "symptom": "After a suspend and resume the sequence begins again: a number is scheduled twice, by two names.",
        "log": lambda: azure(
            *BEGIN,
            task(0, "Charge"),
            EPISODE[1],
            EPISODE[0],
            result(0),
            task(0, "Ship"),
            EPISODE[1],
            EPISODE[0],
            *FINISH,
        ),
        "judged": Judged("violated", ("lifecycle/late-step-created", "one-body/two-names")),
    },
    {
        "name": "azure-2955-sequence-goes-on",
        "symptom": "The sequence goes on after the resume.",
        "log": lambda: azure(
            *BEGIN,
            task(0, "Charge"),
            EPISODE[1],
            {"EventType": "ExecutionSuspended"},
            {"EventType": "ExecutionResumed"},
            EPISODE[0],
            result(0),
            task(1, "Ship"),
            EPISODE[1],
            EPISODE[0],
            result(1),
            *FINISH,
        ),
        "judged": SOUND,
    },
)

# -- Dapr --------------------------------------------------------------------------------------------------------------


def dapr(*events: tuple[str, dict[str, Any]]) -> Rows:
    """Rows as its command line prints them."""
    return [
        {
            "appId": "orders",
            "play": 1,
            "type": word,
            "name": None,
            "timestamp": when(place * 100),
            "elapsed": "1s",
            "status": "RUNNING",
            **values,
        }
        for place, (word, values) in enumerate(events)
    ]


def dapr_run(*results: tuple[str, dict[str, Any]]) -> Rows:
    fire = times.iso(START_MS + 2000)
    return dapr(
        ("OrchestratorStarted", {}),
        ("ExecutionStarted", {"name": "Order"}),
        ("TaskScheduled", {"name": "charge", "eventId": 0}),
        ("TimerCreated", {"eventId": 1, "attrs": f"fireAt={fire}"}),
        *results,
        ("ExecutionCompleted", {"status": "COMPLETED"}),
    )


CHARGED = ("TaskCompleted", {"attrs": "scheduledId=0;result=ok"})
FIRED = ("TimerFired", {"attrs": "timerId=1", "timestamp": times.iso(START_MS + 8000)})
CASES.pair(
    "dapr/durabletask-go#96",
    {
        "name": "dapr-96-completed-twice",
        "symptom": "A reminder was delivered twice: a task completes twice, and a timer fires twice.",
        "log": lambda: dapr_run(CHARGED, CHARGED, FIRED, FIRED),
        "judged": Judged("violated", ("lifecycle/second-step-end", "lifecycle/second-wait-completed")),
    },
    {
        "name": "dapr-96-completed-once",
        "symptom": "Each completes once.",
        "log": lambda: dapr_run(CHARGED, FIRED),
        "judged": SOUND,
    },
)
