"""Logs and audits laid into an artefact folder that has none, with times that a test knows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

BEGAN = 1_796_077_182_000


def lay_log(
    folder: Path, run_id: str, rows: Iterable[str], *, audit: Iterable[Mapping[str, Any]] | None = None
) -> Path:
    """Write a log. A row is ``"120 step_started a"``: milliseconds since the run began, type, entity. The event in
    line n has the id ``evnt_<run>_n``."""
    for name in ("logs", "audit"):
        (folder / name).mkdir(exist_ok=True)
    lines = []
    for number, row in enumerate(rows, start=1):
        at, type, *entity = row.split()
        when = datetime.fromtimestamp((BEGAN + float(at)) / 1000, UTC).isoformat(timespec="milliseconds")
        event: dict[str, Any] = {"position": number, "type": type, "event_id": f"evnt_{run_id}_{number}"}
        if entity:
            event["correlation_id"] = entity[0]
        lines.append(json.dumps({**event, "created_at": when.replace("+00:00", "Z")}))
    path = folder / "logs" / f"{run_id}.ndjson"
    path.write_text("\n".join(lines) + "\n")
    if audit is not None:
        (folder / "audit" / path.name).write_text("".join(json.dumps(record) + "\n" for record in audit))
    return path


def tried(
    run_id: str, number: int, writer: str, type: str = "step_started", *, reason: str = "", took_ms: float = 2.0
) -> dict[str, Any]:
    """The audit record of one append, refused when there is a reason."""
    return {
        "run_id": run_id,
        "writer": writer,
        "type": type,
        "correlation_id": None,
        "admitted": not reason,
        "reason": reason,
        "position": None if reason else number,
        "event_id": None if reason else f"evnt_{run_id}_{number}",
        "snapshot": None,
        "entered": 1_000_000,
        "minted": 0,
        "published": 0,
        "returned": 1_000_000 + round(took_ms * 1e6),
    }


SEQUENTIAL = (
    "0 run_created",
    "10 run_started",
    "20 step_created a",
    "30 step_started a",
    "130 step_completed a",
    "140 step_created b",
    "155 step_started b",
    "255 step_completed b",
    "260 run_completed",
)
