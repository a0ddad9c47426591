"""A small storm that never happened: its numbers are made up, so that tests know what every table must say.

``python -m tests.report.synthetic FOLDER`` writes it; fixtures/artefact is its output.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.outcome import Outcome

OLD, NEW = ("main", "nets"), ("seq-final", "dispenser")
#: (scenario, pair) -> the outcomes of its eight attempts.
SCRIPT = {
    ("step-storm", OLD): ["corrupted"] * 6 + ["dormant", "completed"],
    ("step-storm", NEW): ["completed"] * 8,
    ("hook-storm", OLD): ["corrupted"] * 4 + ["completed"] * 3 + ["infra"],
    ("hook-storm", NEW): ["completed"] * 7 + ["slow"],
}
SECONDS = {
    "completed": (15.0, 2.0),
    "corrupted": (8.0, 2.5),
    "slow": (24.0, 0.1),
    "dormant": (24.0, 0.1),
    "infra": (1.5, 0.2),
}
PLAN = """\
schema: stormctl.plan/1
name: made-up
seed: 7
attempts: 8
concurrency: 4
processes: 2
time_scale: 0.1
world: local
input: {rounds: 6, width: 8}
matrix:
  scenario: [step-storm, hook-storm]
  pair: [main + nets, seq-final + dispenser]
"""
MESSAGE = "event 132 (step_created) belongs to step releaseStep, the workflow called step finalizeStep there"


def attempts() -> list[Attempt]:
    draw = random.Random(7)
    made = []
    for (scenario, (condition, generation)), outcomes in SCRIPT.items():
        for number, word in enumerate(outcomes, start=1):
            outcome = Outcome(word)
            mean, spread = SECONDS[word]
            corrupted = outcome is Outcome.CORRUPTED
            made.append(
                Attempt(
                    cell=Cell(scenario, "local", condition, generation),
                    number=number,
                    run_id=None if outcome is Outcome.INFRA else f"wrun_{scenario}-{condition}-{number:02d}",
                    outcome=outcome,
                    status="failed" if corrupted else "running" if outcome.stuck else "completed",
                    error_code="CORRUPTED_EVENT_LOG" if corrupted else None,
                    error_message=MESSAGE if corrupted else None,
                    started_at=f"2026-01-02T03:{number:02d}:00Z",
                    duration_ms=round(1000 * max(0.5, draw.gauss(mean, spread)), 1),
                    events=draw.randint(130, 400) if corrupted else draw.randint(540, 600),
                    pressure={"resumes_sent": draw.randint(20, 40), "resumes_failed": draw.randint(0, 9)},
                    work={"deliveries": draw.randint(200, 400), "passes": draw.randint(300, 600)},
                    flags=("pressure-lost",) if word == "slow" else (),
                )
            )
    return made


def swept(one: Attempt) -> dict[str, object]:
    """What the sweeps say of a run: a corrupted one flips once and repeats a role; one of its ids is out of order."""
    bad = one.outcome is Outcome.CORRUPTED
    finding = {"severity": "fatal", "positions": [132], "message": MESSAGE, "witness": [], "key": "roles/releaseStep/0"}
    inert = {**finding, "severity": "inert", "key": "id-order/131"}
    verdict = "violated" if bad else "clean"
    old = one.cell.condition == "main"
    dense = "unknown" if old else "clean"
    flip = {"from": 120, "to": 121, "rank": 40, "was": "step:a", "now": "step:b", "input_changed": True}
    return {
        "source": f"logs/{one.run_id}.ndjson",
        "run_id": one.run_id,
        "events": one.events,
        "profile": "strict",
        "verdict": verdict,
        "reasons": [],
        "sweeps": [
            {"sweep": "dense", "verdict": dense, "findings": [], "missing": ["positions"] if old else []},
            {"sweep": "id-order", "verdict": "clean", "findings": [inert] if bad else [], "missing": []},
            {"sweep": "one-body", "verdict": "clean", "findings": [], "missing": []},
            {"sweep": "roles", "verdict": verdict, "findings": [finding] * (2 if bad else 0), "missing": []},
        ],
        "rebinding": [
            {
                "engine": one.cell.generation,
                "workload": one.cell.scenario,
                "prefixes": one.events,
                "clean_through": 131 if bad else one.events,
                "flips": [flip] * bad,
                "divergence": {"prefix": 132, "position": 132, "rank": 40, "text": MESSAGE} if bad else None,
            }
        ],
    }


def build(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    made = attempts()
    (folder / "plan.yaml").write_text(PLAN)
    (folder / "attempts.ndjson").write_text("".join(json.dumps(one.row()) + "\n" for one in made))
    logs = [swept(one) for one in made if one.run_id]
    document = {"schema": "stormctl.sweep/1", "logs": logs, "unreadable": []}
    (folder / "sweeps.json").write_text(json.dumps(document) + "\n")
    ended = {"schema": "stormctl.storm/1", "reason": "done", "landed": len(made), "planned": len(made)}
    (folder / "storm.json").write_text(json.dumps(ended) + "\n")
    (folder / "env.json").write_text(json.dumps({"stormctl": "0.1.0"}) + "\n")
    return folder


if __name__ == "__main__":
    print(build(Path(sys.argv[1])))
