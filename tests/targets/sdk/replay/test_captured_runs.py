"""Captured runs by command: what is known of each, said again by the engine that wrote it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormctl.targets.sdk import projects

pytestmark = [pytest.mark.sdk, pytest.mark.timeout(900)]

VERSIONS = ("4.8.9", "5.0.0-beta.35", "5.0.0-beta.55")
Command = Callable[..., Any]


@pytest.fixture(scope="session")
def command(real: Callable[..., object], shared_data: Path) -> Command:
    """Run stormctl on a captured run, and read the JSON that it prints. The replays are made anew."""
    for version in VERSIONS:
        if projects.find(version) is None:
            real(version)

    def run(verb: str, name: str, *arguments: str) -> Any:
        path = shared_data / "sdk" / "runs" / (f"{name}.json" if name else "")
        more = ["--no-cache"] if verb == "sweep" else []
        ran = subprocess.run(
            [sys.executable, "-m", "stormctl", verb, *([str(path)] if verb != "engines" else []), *arguments, *more]
            + (["--conformance", str(path)] if verb == "engines" else [])
            + ["--format", "json"],
            capture_output=True,
            text=True,
            timeout=800,
            check=False,
            env={**os.environ, "NO_COLOR": "1"},
        )
        assert ran.returncode in (0, 1, 3), ran.stderr
        return json.loads(ran.stdout)

    return run


def replay(command: Command, name: str, *arguments: str, engine: str = "sdk:own") -> Any:
    """What an engine made of the decisions of a run."""
    report = command("sweep", name, "--engine", engine, "--prefixes", "decisions", *arguments)
    (log,) = report["logs"]
    (found,) = log["rebinding"]
    return found


def flips(found: Any) -> list[int]:
    return [flip["to"] for flip in found["flips"]]


def test_a_stale_view_flips_three_times_and_diverges_at_42(command: Command) -> None:
    found = replay(command, "v489-local3-stepStorm-00")
    assert flips(found) == [36, 37, 38]
    assert [(one["was"], one["now"]) for one in found["flips"]] == [("step:recover", "step:release")] * 3
    assert found["divergence"]["position"] == 42


def test_two_waits_of_one_id_are_no_duplicate_but_a_divergence(command: Command) -> None:
    found = replay(command, "v489-tiny-hookStorm")
    assert flips(found) == []
    assert "has resumeAt" in found["divergence"]["text"]


def test_a_write_that_no_prefix_explains_is_explained_by_one_hidden_event(command: Command) -> None:
    assert flips(replay(command, "v489-clean-hookStorm-03")) == []
    (log,) = command("explain", "v489-clean-hookStorm-03", "--engine", "sdk:own")["logs"]
    evidence = " ".join(json.dumps(log).split())
    assert "no prefix explains 36 step:release; the prefix 35 without 31 wait_completed rank 11 wait does" in evidence


def test_inputs_were_swapped_in_silence_before_the_divergence(command: Command) -> None:
    found = replay(command, "v489pg_1p-stepStorm-03")
    assert [swap["index"] + 1 for swap in found["swaps"]] == [36, 37]
    assert found["divergence"]["position"] > 37


def test_a_run_that_completed_flips_five_times_where_two_branches_went_wrong(command: Command) -> None:
    found = replay(command, "v489-clean-stepStorm-03", "--inputs")
    assert flips(found) == [246, 246, 247, 247, 248]
    assert found["divergence"] is None


def test_one_of_beta_35_flips_twelve_times_from_99_on(command: Command) -> None:
    found = replay(command, "v5b35-clean-stepStorm-00", "--inputs")
    assert (len(flips(found)), min(flips(found)), found["divergence"]) == (12, 99, None)


def test_and_beta_55_as_its_judge_rejects_it_at_110(command: Command) -> None:
    found = replay(command, "v5b35-clean-stepStorm-00", engine="sdk:5.0.0-beta.55")
    assert found["divergence"]["position"] == 110


def test_a_corrupted_one_of_beta_35_flips_twelve_times_and_diverges_at_44(command: Command) -> None:
    found = replay(command, "v5b35-clean-stepStorm-05", "--inputs")
    assert (len(flips(found)), found["divergence"]["position"]) == (12, 44)


def test_nothing_is_found_in_one_of_beta_55(command: Command) -> None:
    found = replay(command, "v5b55-clean-stepStorm-00", "--inputs")
    assert (flips(found), found["divergence"], found["swaps"]) == ([], None, [])


def test_one_generation_stands_for_each_version_at_99_of_100_prefixes(command: Command) -> None:
    rows = command("engines", "", "opposite", "rearm")["rows"]
    share = {(row["version"], row["generation"]): row["share"] for row in rows}
    assert share["4.8.9", "opposite"] >= 0.99
    assert share["5.0.0-beta.35", "opposite"] >= 0.99
    assert share["5.0.0-beta.55", "rearm"] >= 0.99
    assert share["5.0.0-beta.35", "rearm"] < 0.99  # the comparison can tell them apart
    assert sum(row["logs"] for row in rows if row["generation"] == "rearm") == 8
    assert all(row["first"] or row["share"] == 1.0 for row in rows)  # what disagrees is listed
