"""How long a report of a large storm takes, and how much memory: 1,000 attempts with 600,000 events.

    python benchmarks/report.py

The storm is made here: the fixture log of a step storm, its ids made anew for each run, with an audit of two appends
for each event, a third of them refused, as real storms have. Memory is the largest resident size of a process of its
own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from _measure import Times, show

ROOT = Path(__file__).resolve().parents[1]
ATTEMPTS = 1_000
EVENTS = 600
GOAL_S = 20.0
GOAL_MB = 500
_SCRIPT = """
import resource, sys, time
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from stormctl.cli import main
began, used = time.perf_counter(), time.process_time()
main(["report", sys.argv[2], "--format", "md", "--out", sys.argv[3], "--report-only"])
largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(time.perf_counter() - began, time.process_time() - used, largest)
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        events = a_storm(folder, ATTEMPTS, EVENTS)
        print(f"A report of {ATTEMPTS:,} attempts with {events:,} events, in markdown, in a process of its own.")
        arguments = [sys.executable, "-c", _SCRIPT, str(ROOT), str(folder), str(folder / "out.md")]
        told = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
        seconds, cpu, megabytes = map(float, told.split())
        show("report: clock", Times(seconds, seconds), "s", goal=GOAL_S)
        show("report: CPU", Times(cpu, cpu), "s")
        met = "met" if megabytes <= GOAL_MB else "missed"
        print(f"  {'report: memory':<44} {megabytes:8.0f} MB   goal {GOAL_MB} MB: {met}")


def a_storm(folder: Path, attempts: int, events: int) -> int:
    """Write a storm's folder; how many events it holds."""
    log = (ROOT / "fixtures" / "logs" / "clean-step-storm.ndjson").read_text().splitlines()
    rows = [json.loads(line) for line in (log * (events // len(log) + 1))[:events]]
    for name in ("logs", "audit"):
        (folder / name).mkdir()
    with (folder / "attempts.ndjson").open("w") as file:
        for number in range(1, attempts + 1):
            run_id = f"wrun_{number:026d}"
            corrupted = number % 3 == 0
            write_run(folder, run_id, rows)
            attempt = {
                "schema": "stormctl.attempt/1", "scenario": "step-storm", "world": "local",
                "condition": ("main", "seq-final")[number % 2], "generation": "nets", "number": number,
                "run_id": run_id, "outcome": "corrupted" if corrupted else "completed",
                "error_code": "CORRUPTED_EVENT_LOG" if corrupted else None,
                "error_message": f"step_created at position {number} belongs to a, but with rank 3 the workflow calls b"
                if corrupted else None,
                "duration_ms": 1000.0 + number, "events": len(rows), "work": {"deliveries": 200, "passes": 300},
            }  # fmt: skip
            file.write(json.dumps(attempt) + "\n")
    return attempts * len(rows)


def write_run(folder: Path, run_id: str, rows: list[dict[str, object]]) -> None:
    """One log and its audit."""
    with (
        (folder / "logs" / f"{run_id}.ndjson").open("w") as log,
        (folder / "audit" / f"{run_id}.ndjson").open("w") as audit,
    ):
        for place, row in enumerate(rows, start=1):
            event_id = f"evnt_{run_id[-6:]}{place:06d}"
            log.write(json.dumps({**row, "position": place, "event_id": event_id}) + "\n")
            for again in range(2):
                refused = bool(again) and place % 3 != 0
                record = {
                    "run_id": run_id, "writer": f"wrt_{place // 9}", "type": row["type"], "correlation_id": None,
                    "admitted": not refused, "reason": "conflict: it exists already" if refused else "",
                    "position": place, "event_id": event_id, "snapshot": place - 1, "entered": place * 1000 + 1,
                    "minted": 0, "published": 0, "returned": place * 1000 + 900,
                }  # fmt: skip
                audit.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
