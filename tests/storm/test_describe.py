from __future__ import annotations

from dataclasses import replace
from typing import Any

from stormctl.engine.generations import GENERATIONS
from stormctl.storm.describe import clock, describe
from stormctl.storm.names import TARGETS, WORLDS, Names
from stormctl.storm.plan import Plan, parse_plan
from stormctl.workloads.registry import WORKLOADS
from stormctl.worlds.presets import CONDITIONS

NAMES = Names(WORKLOADS, tuple(GENERATIONS), CONDITIONS, WORLDS, TARGETS, ("all",))


def plan(**changes: Any) -> Plan:
    document = {
        "schema": "stormctl.plan/1",
        "name": "look",
        "scenario": "step-storm",
        "attempts": 6,
        "concurrency": 4,
        "time_scale": 0.1,
        "matrix": {"pair": ["main + nets", "seq-final + dispenser"]},
        **changes,
    }
    return parse_plan(document, "look.yaml", names=NAMES)


def test_the_description_names_cells_attempts_and_the_longest_time() -> None:
    text = "\n".join(describe(plan(), NAMES).lines())
    assert "2 cells of 6 attempts: 12 in all, 4 at once, 2 worker processes" in text
    assert "step-storm     local/seq-final + dispenser" in text
    assert "watchdog_ms=2500 " in text
    assert max(map(len, text.splitlines())) <= 100
    assert "at most 96 s" in text  # two cells, two turns each, of 24 s


def test_the_budget_bounds_the_longest_time() -> None:
    assert describe(plan(budget="10s"), NAMES).worst_ms == 10_000 + 24_000


def test_a_step_storm_on_main_exercises_all_three_and_seq_final_refuses_stale_decisions() -> None:
    met = {(one.what, one.where): one.met for one in describe(plan(), NAMES).exercised}
    assert met == {
        ("several invocations", "step-storm"): True,
        ("writes from stale loads", "main"): True,
        ("writes from stale loads", "seq-final"): False,
        ("counts that depend on who straggles", "step-storm"): True,
    }


def test_one_branch_at_a_time_is_no_concurrency() -> None:
    found = describe(plan(input={"width": 1}), NAMES).exercised
    assert not next(one for one in found if one.what == "several invocations").met


def test_a_workload_whose_branches_count_the_same_is_warned_of() -> None:
    flat = replace(WORKLOADS["step-storm"], counts=lambda _input, _stragglers: {"settleStep": 48})
    names = replace(NAMES, workloads={"step-storm": flat})
    assert any("hides the fault" in warning for warning in describe(plan(), names).warnings)


def test_the_workloads_own_warnings_are_passed_on() -> None:
    warned = replace(WORKLOADS["step-storm"], warnings=lambda _input: ["nobody will straggle"])
    names = replace(NAMES, workloads={"step-storm": warned})
    assert "step-storm: nobody will straggle" in describe(plan(), names).warnings


def test_times_read_as_people_say_them() -> None:
    assert [clock(ms) for ms in (900, 45_000, 119_000, 240_000, 750_000)] == [
        "1 s",
        "45 s",
        "119 s",
        "4 min",
        "12 min 30 s",
    ]
