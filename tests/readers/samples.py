"""One small file of every kind that a reader reads, as bytes, by the reader's name."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
import zipfile
from pathlib import Path
from typing import Any

RUN = "wrun_01KE0000000000000000000001"
OTHER = "wrun_01KE0000000000000000000002"
HEX = "\\xb9000165746f6b656e6174"  # {"token": "t"}


def event(place: int, type: str, corr: str | None = None, *, run: str = RUN, **data: Any) -> dict[str, Any]:
    """An event of the SDK as its store lists it, by slot."""
    body: dict[str, Any] = {"eventType": type, "specVersion": 7}
    if corr is not None:
        body["correlationId"] = corr
    if data:
        body["eventData"] = data
    created = f"2026-01-02T12:00:00.{place:03d}Z"
    return {**body, "runId": run, "eventId": f"evnt_{place:026d}", "createdAt": created}


def a_run(run: str = RUN) -> list[dict[str, Any]]:
    """A short run, whole."""
    given = {"$bytes": "ZGV2bFtbXV0="}
    return [
        event(1, "run_created", run=run, workflowName="w", deploymentId="d", input=given),
        event(2, "run_started", run=run),
        event(3, "step_created", "step_01KE0000000000000000000001", run=run, stepName="step//./w//a", input=given),
        event(4, "wait_created", "wait_01KE0000000000000000000002", run=run, resumeAt="2026-01-02T12:00:01.000Z"),
        event(5, "step_completed", "step_01KE0000000000000000000001", run=run, stepName="step//./w//a", result=given),
        event(6, "run_completed", run=run, output=given),
    ]


def run_row(run: str = RUN, status: str = "completed") -> dict[str, Any]:
    return {"runId": run, "status": status, "deploymentId": "d", "workflowName": "w", "specVersion": 7}


def page(items: list[Any], *, more: bool = False) -> dict[str, Any]:
    return {"data": items, "cursor": "c" if more else None, "hasMore": more}


def ndjson_log() -> bytes:
    rows = [
        {"position": 1, "type": "run_created", "event_id": "evnt_1", "created_at": "2026-01-02T12:00:00.001Z"},
        {"position": 2, "type": "step_created", "correlation_id": "step_01KE0000000000000000000001", "name": "a",
         "digest": "0123456789abcdef", "spec": 1, "data": {"x": 1}},
        {"position": 3, "type": "run_failed"},
    ]  # fmt: skip
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


CSV_EVENTS = (
    "id,type,correlation_id,created_at,run_id,payload,payload_cbor,spec_version\n"
    f"wevt_01KE0000000000000000000003,hook_created,hook_1,2026-01-02 12:00:00.003,{RUN},,{HEX},3\n"
    f"wevt_01KE0000000000000000000001,run_created,,2026-01-02 12:00:00.001,{RUN},,,3\n"
    f"wevt_01KE0000000000000000000002,run_started,,2026-01-02 12:00:00.002,{OTHER},,,3\n"
    f'wevt_01KE0000000000000000000004,run_completed,,2026-01-02 12:00:00.004,{RUN},"{{""output"": 1}}",,3\n'
)
CSV_RUNS = (
    "id,output,deployment_id,status,name,execution_context,input,error,created_at,input_cbor,spec_version\n"
    f"{RUN},,d,completed,w,,,,2026-01-02 12:00:00,\\xd840486465766c5b5b5d5d,3\n"
)
DUMP = (
    "--\n-- PostgreSQL database dump\n--\n\nSET statement_timeout = 0;\n"
    "COPY workflow.workflow_events (id, type, correlation_id, created_at, run_id, payload, payload_cbor, spec_version) "
    "FROM stdin;\n"
    f"wevt_01KE0000000000000000000002\trun_started\t\\N\t2026-01-02 12:00:00.002\t{RUN}\t\\N\t\\N\t3\n"
    f"wevt_01KE0000000000000000000001\trun_created\t\\N\t2026-01-02 12:00:00.001\t{RUN}\t\\N\t\\{HEX}\t3\n"
    "\\.\n\nCOPY workflow.workflow_runs (id, deployment_id, status, name) FROM stdin;\n"
    f"{RUN}\td\trunning\tw\\tx\n\\.\n\nCOPY public.other (a) FROM stdin;\n1\n\\.\n"
)


def harness_results() -> dict[str, Any]:
    """What upstream's harness leaves behind, with every field that it has."""
    return {
        "completedAt": "2026-01-02T12:00:09.000Z",
        "deploymentUrl": "http://localhost:3000",
        "partial": False,
        "budgetExhausted": False,
        "plannedAttempts": 3,
        "config": {"rounds": 6},
        "distribution": {"completed": 1, "CORRUPTED_EVENT_LOG": 1, "infra": 1},
        "scenarioDistribution": {"step-storm": {"completed": 1}},
        "results": [
            {"attempt": 1, "scenario": "step-storm", "token": "secret", "runId": RUN, "outcome": "completed",
             "status": "completed", "durationMs": 1},
            {"attempt": 2, "scenario": "hook-storm", "token": "secret", "runId": OTHER,
             "outcome": "CORRUPTED_EVENT_LOG", "status": "failed", "errorCode": "CORRUPTED_EVENT_LOG",
             "errorMessage": "Replay diverged", "durationMs": 2, "pressure": {"resumesSent": 4, "resumesFailed": 0},
             "progress": {"events": 7, "lastEventType": "run_failed"}},
            {"attempt": 3, "scenario": "hook-storm", "token": "secret", "outcome": "infra", "durationMs": 3,
             "errorMessage": "fetch failed"},
        ],
    }  # fmt: skip


def tarred(files: dict[str, bytes], mode: str = "w:gz") -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return sink.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return sink.getvalue()


def store_files(prefix: str = "") -> dict[str, bytes]:
    """The files of a local world's store with that run in it."""
    files = {f"{prefix}version.txt": b"@workflow/world-local@5.0.0-beta.46"}
    for body in a_run():
        files[f"{prefix}events/{RUN}-{body['eventId']}.json"] = json.dumps(body, indent=2).encode()
    files[f"{prefix}runs/{RUN}.json"] = json.dumps(run_row()).encode()
    return files


def write_files(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        os.utime(
            target, (0, 0)
        )  # a file that was just written may still be in somebody's hands, and is looked at again
    return folder


def dumped(value: Any, **options: Any) -> bytes:
    return json.dumps(value, **options).encode()


#: File name and content by the name of the reader that must read it.
SAMPLES: dict[str, tuple[str, bytes]] = {
    "stormctl": ("a.ndjson", ndjson_log()),
    "workflow-csv": ("events.csv", CSV_EVENTS.encode()),
    "workflow-dump": ("dump.sql", DUMP.encode()),
    "workflow-harness": ("results.json", dumped(harness_results(), indent=2)),
    "workflow-inspect": ("events.json", dumped(list(reversed(a_run())), indent=2)),
    "workflow-json": ("capture.json", dumped({"run": run_row(), "events": a_run()})),
    "compact": (
        "compact.json",
        b'[{"s":3,"t":"hook_created","k":"hook","r":0,"n":""},{"s":4,"t":"step_created","k":"step","r":1,"n":"a"}]',
    ),
    "archive": ("logs.tgz", tarred(store_files("q/"))),
}  # fmt: skip
#: The same readers with other forms of what they read.
MORE: dict[str, tuple[str, bytes]] = {
    "one event per line": ("events.ndjson", b"".join(dumped(body) + b"\n" for body in a_run())),
    "pages in a row": ("pages.json", dumped(page(a_run()[:3], more=True)) + b"\n" + dumped(page(a_run()[3:]))),
    "packed with gzip": ("events.json.gz", gzip.compress(dumped(a_run()))),
    "a list of runs": ("runs.json", dumped(page([run_row(), run_row(OTHER, "failed")]), indent=2)),
    "an empty list": ("hooks.json", dumped(page([]), indent=2)),
    "a zip": ("logs.zip", zipped(store_files())),
    "a table of runs": ("pg-runs.csv", CSV_RUNS.encode()),
    "UTF-16": ("events.json", b"\xff\xfe" + dumped(a_run(), indent=2).decode().encode("utf-16-le")),
}
