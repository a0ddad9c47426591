"""The plan-size command: attempts, minutes, and what cannot be planned."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormctl.storm.plan import resolved_yaml
from tests.report.folders import NEW, OLD, folder
from tests.storm.making import plan

Run = Callable[..., Any]


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    path = tmp_path / "plan.yaml"
    matrix = {"scenario": ["step-storm", "hook-storm"], "pair": [OLD, NEW]}
    path.write_text(resolved_yaml(plan(matrix=matrix, time_scale=0.1, cap="240s", budget="2m")))
    return path


def test_says_how_many_attempts_each_arm_needs(stormctl: Run, stored: Callable[[str, str], None]) -> None:
    ran = stormctl("plan-size", "--from", 0.8, "--to", 0.2)
    assert (ran.code, ran.err) == (0, "")
    stored("plan-size.txt", ran.out)


def test_says_the_most_that_a_plan_can_take_where_no_storm_ran(stormctl: Run, plan_file: Path) -> None:
    ran = stormctl("plan-size", plan_file, "--from", 0.8, "--to", 0.2)
    assert ran.code == 0
    text = " ".join(ran.out.split())
    # four cells of ten attempts, four at once, 24 s each
    assert "the plan's 4 cells take 40 attempts: about 4 min (at most, by the cap of each run" in text
    assert "its budget of 2m would end it before: -P budget=5m" in text


def test_says_how_long_a_plan_takes_by_the_durations_of_an_earlier_storm(
    stormctl: Run, plan_file: Path, tmp_path: Path
) -> None:
    cells = {(scenario, arm): "c.c." for scenario in ("step-storm", "hook-storm") for arm in (OLD, NEW)}
    earlier = folder(tmp_path / "earlier", cells, world="memory")
    text = " ".join(stormctl("plan-size", plan_file, "--from", 0.8, "--to", 0.2, "--earlier", earlier).out.split())
    assert "take 40 attempts: about 2 min (by the durations of an earlier storm)" in text
    assert "budget" not in text
    half = folder(tmp_path / "half", {("step-storm", OLD): "c.", ("step-storm", NEW): "c."}, world="memory")
    text = " ".join(stormctl("plan-size", plan_file, "--from", 0.8, "--to", 0.2, "--earlier", half).out.split())
    assert "about 3 min (2 cells by an earlier storm, the others by their cap, at most)" in text


def test_prints_json_for_programs(stormctl: Run, plan_file: Path) -> None:
    found = json.loads(stormctl("plan-size", plan_file, "--from", 0.8, "--to", 0.2, "--format", "json").out)
    assert (found["schema"], found["attempts"], found["exact"]) == ("stormctl.plan-size/1", 10, True)
    assert found["until_resolved"]["attempts"] == 14
    assert found["until_resolved"]["mean_pairs"] < 14
    assert found["duration"] == {
        "ms": 240_000, "attempts": 40, "cells": 4, "cells_measured": 0, "beyond_budget": True,
    }  # fmt: skip


def test_more_power_and_a_smaller_alpha_need_more(stormctl: Run) -> None:
    def needed(*more: object) -> int:
        ran = stormctl("plan-size", "--from", 0.6, "--to", 0.2, "--format", "json", *more)
        return int(json.loads(ran.out)["attempts"])

    assert needed("--power", 0.5) < needed() < needed("--power", 0.95)
    assert needed() < needed("--alpha", 0.01)


def test_that_needs_too_many_says_so(stormctl: Run) -> None:
    ran = stormctl("plan-size", "--from", 0.2, "--to", 0.21)
    assert (ran.code, ran.out) == (
        0,
        "more than 10,000 attempts in each arm would be needed to tell 20 % from 21 %\n",
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--from", 0.2, "--to", 0.2], "the two rates are equal"),
        (["--from", 0.2, "--to", 0.4, "--power", 1], "a power of 1 at alpha 0.05 cannot be planned"),
        (["--from", 0.2, "--to", 0.4, "--alpha", 0], "a power of 0.8 at alpha 0 cannot be planned"),
        (["--from", 0.2, "--to", 0.4, "--earlier", "x"], "there is no plan"),
    ],
)
def test_that_cannot_be_meant_is_one_sentence_and_exit_2(stormctl: Run, arguments: list[object], said: str) -> None:
    ran = stormctl("plan-size", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("arguments", [["--from", 80, "--to", 0.2], ["--from", 0.8], []])
def test_what_is_no_rate_is_bad_usage(stormctl: Run, arguments: list[object]) -> None:
    assert stormctl("plan-size", *arguments).code == 2
