"""The command over the real corrupted log: the acceptance of vercel/workflow #3543."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.replayed import Once


@pytest.mark.parametrize(
    ("engine", "flips", "clean_through"),
    [
        (
            "nets",
            [
                {
                    "from": 611,
                    "to": 612,
                    "rank": 198,
                    "was": "step:finalizeStep",
                    "now": "step:releaseStep",
                    "input_changed": True,
                }
            ],
            629,
        ),
        ("dispenser", [], 630),
    ],
)
def test_it_names_the_flip_and_the_divergence(
    stormctl: Callable[..., Any],
    shared_data: Path,
    replayed_once: Once,
    engine: str,
    flips: list[Any],
    clean_through: int,
) -> None:
    log = shared_data / "wrun-41KZYJ92TP-storm-log.json"
    arguments = ["--workload", "step-storm", "--engine", engine, "--prefixes", "all", "--format", "json"]
    with replayed_once():
        ran = stormctl("sweep", log, *arguments)
    assert ran.code == 1
    (report,) = json.loads(ran.out)["logs"]
    verdicts = {one["sweep"]: one["verdict"] for one in report["sweeps"]}
    assert verdicts == {
        "dense": "clean",
        "id-order": "unknown",
        "spec": "clean",
        "cap": "clean",
        "one-body": "clean",
        "ranks": "clean",
        "lifecycle": "clean",
        "hook-conflicts": "clean",
        "attributes": "clean",
        "roles": "violated",
        "log-order": "unknown",
        "ledger": "unknown",
        "rebinding": "violated",
    }
    (found,) = report["rebinding"]
    assert (found["prefixes"], found["flips"], found["clean_through"]) == (652, flips, clean_through)
    assert found["divergence"]["position"] == clean_through + 1
