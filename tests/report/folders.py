"""Artefact folders of storms that never happened: outcomes by cell, as a test wants them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.outcome import Outcome

OLD, NEW = "main + nets", "seq-final + dispenser"
WORDS = {"c": "corrupted", ".": "completed", "d": "dormant", "s": "slow", "u": "user-error", "i": "infra"}
Outcomes = Mapping[tuple[str, str], str]


def outcomes(corrupted: int, n: int) -> str:
    """``corrupted`` of n, spread evenly, so that no half differs from the other."""
    return "".join("c" if (index + 1) * corrupted // n > index * corrupted // n else "." for index in range(n))


def folder(
    path: Path,
    cells: Outcomes,
    *,
    world: str = "postgres",
    worlds: Sequence[str] = (),
    flags: Mapping[tuple[str, str], int] | None = None,
    contradicting: Sequence[str] = (),
    env: Mapping[str, Any] | None = None,
    **plan: Any,
) -> Path:
    """Write a folder. ``cells`` says by scenario and arm how the attempts came out, a letter of ``WORDS`` for each.

    ``flags`` of the first attempts of a cell are ``pressure-lost``; runs named in ``contradicting`` are swept so, all
    other completed ones are clean. ``plan`` lies over the plan.
    """
    path.mkdir(parents=True)
    made = [
        Attempt(
            cell=Cell(scenario, one, *arm.split(" + ")),
            number=number,
            run_id=f"wrun_{scenario}-{one}-{arm.split()[0]}-{number}",
            outcome=Outcome(WORDS[letter]),
            started_at=f"2026-01-02T03:{number:02d}:00Z",
            duration_ms=12_000.0,
            flags=("pressure-lost",) if number <= (flags or {}).get((scenario, arm), 0) else (),
        )
        for one in worlds or [world]
        for (scenario, arm), letters in cells.items()
        for number, letter in enumerate(letters, start=1)
    ]
    document = {
        "schema": "stormctl.plan/1",
        "name": "made-up",
        "seed": 7,
        "attempts": max(map(len, cells.values())),
        "time_scale": 0.1,
        "matrix": {
            "scenario": list(dict.fromkeys(scenario for scenario, _ in cells)),
            "world": list(worlds or [world]),
            "pair": list(dict.fromkeys(arm for _, arm in cells)),
        },
        **plan,
    }
    (path / "plan.yaml").write_text(yaml.safe_dump(document))
    (path / "attempts.ndjson").write_text("".join(json.dumps(one.row()) + "\n" for one in made))
    logs = [
        {
            "run_id": one.run_id,
            "verdict": "clean",
            "events": 10,
            "reasons": [],
            "sweeps": [
                {
                    "sweep": "log-order",
                    "verdict": "violated" if one.run_id in contradicting else "clean",
                    "findings": [{"severity": "fatal"}] if one.run_id in contradicting else [],
                    "missing": [],
                }
            ],
        }
        for one in made
        if one.outcome is Outcome.COMPLETED
    ]
    (path / "sweeps.json").write_text(json.dumps({"schema": "stormctl.sweep/1", "logs": logs, "unreadable": []}))
    ended = {"schema": "stormctl.storm/1", "reason": "done", "landed": len(made), "planned": len(made)}
    (path / "storm.json").write_text(json.dumps(ended))
    (path / "env.json").write_text(json.dumps({"stormctl": "0.1.0", "cores": 2, **(env or {})}))
    return path
