"""The made-up artefact with logs of its failed hook storms: real ones with an audit, and two reads in one of them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.report.synthetic import attempts, build

#: hook-storm runs that failed under the old arm; the first has recorded reads
RUNS = tuple(
    one.run_id
    for one in attempts()
    if one.cell.scenario == "hook-storm" and str(one.outcome) == "corrupted" and one.run_id is not None
)
NAME = "hook-storm-corrupted"


def build_with_logs(folder: Path, root: Path) -> Path:
    build(folder)
    storms = root / "fixtures" / "storms"
    log = (storms / "logs" / f"{NAME}.ndjson").read_text()
    meta = json.loads((storms / "logs" / f"{NAME}.meta.json").read_text())
    audit = [json.loads(line) for line in (storms / "audit" / f"{NAME}.ndjson").read_text().splitlines()]
    for part in ("logs", "audit"):
        (folder / part).mkdir()
    for run in RUNS:
        (folder / "logs" / f"{run}.ndjson").write_text(log)
        (folder / "logs" / f"{run}.meta.json").write_text(json.dumps({**meta, "run_id": run}))
        rows = [{**row, "run_id": run} for row in audit]
        if run == RUNS[0]:
            rows += reads(log, audit)
        (folder / "audit" / f"{run}.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def reads(log: str, audit: list[dict[str, object]]) -> list[dict[str, object]]:
    """What two deliveries that wrote can have read: all that was published when their first append was entered."""
    order = [json.loads(line)["event_id"] for line in log.splitlines()]
    published = {row["event_id"]: row["published"] for row in audit if row["admitted"]}
    first: dict[object, int] = {}
    for row in audit:
        if row["type"] in ("step_created", "wait_completed"):
            first[row["writer"]] = min(first.get(row["writer"], 2**63), int(str(row["entered"])))
    rows = []
    for writer, entered in sorted(first.items(), key=lambda item: item[1])[:2]:
        seen = [event for event in order if int(str(published[event])) < entered]
        rows.append(
            {
                "reader": writer,
                "full": True,
                "last_event_id": seen[-1],
                "count": len(seen),
                "began": entered - 2,
                "returned": entered - 1,
            }
        )
    return rows
