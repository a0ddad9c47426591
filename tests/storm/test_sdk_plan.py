"""Plans for the target sdk: versions, worlds, switches and servers become the columns of a cell, and come back."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from stormctl.errors import PlanError
from stormctl.storm.describe import describe
from stormctl.storm.driver import rounds, turns
from stormctl.storm.plan import Plan, load_plan, parse_plan, resolved_yaml
from stormctl.storm.sdk_plan import HostFaults, environment_of, processes_of, version_of, world_of

BASE: dict[str, Any] = {
    "schema": "stormctl.plan/1",
    "name": "sdk",
    "target": "sdk",
    "scenario": "hook-storm",
    "version": ["4.8.9", "5.0.0-beta.55"],
}


NAMES = st.from_regex(r"WORKFLOW_[A-Z]{1,8}", fullmatch=True)
VALUES = st.from_regex(r"[A-Za-z0-9._:/-]{0,10}", fullmatch=True)


def parse(overrides: dict[str, list[str]] | None = None, **changes: Any) -> Plan:
    document = {key: value for key, value in {**BASE, **changes}.items() if value is not None}
    return parse_plan(document, "sdk.yaml", overrides)


def labels(plan: Plan) -> list[str]:
    return [cell.label.partition("/")[2] for cell in plan.cells]


def again(plan: Plan) -> Plan:
    """The plan as a resumed storm reads it."""
    return parse_plan(yaml.safe_load(resolved_yaml(plan)), "plan.yaml")


class TestCells:
    def test_a_version_is_a_condition_and_what_the_environment_changes_a_generation(self) -> None:
        plan = parse(environment=[{}, {"WORKFLOW_LOG_ORDER_DRAWS": "0", "WORKFLOW_TURBO": 0}])
        assert labels(plan) == [
            "local/workflow 4.8.9/as published",
            "local/workflow 4.8.9/WORKFLOW_LOG_ORDER_DRAWS=0 WORKFLOW_TURBO=0",
            "local/workflow 5.0.0-beta.55/as published",
            "local/workflow 5.0.0-beta.55/WORKFLOW_LOG_ORDER_DRAWS=0 WORKFLOW_TURBO=0",
        ]
        cell = plan.cells[1]
        assert (version_of(cell), world_of(cell), processes_of(cell)) == ("4.8.9", "local", 1)
        assert environment_of(cell) == {"WORKFLOW_LOG_ORDER_DRAWS": "0", "WORKFLOW_TURBO": "0"}
        assert environment_of(plan.cells[0]) == {}

    def test_several_servers_are_for_postgres_and_a_folder_has_one(self) -> None:
        plan = parse(version="4.8.9", world=["local", "postgres"], processes=[1, 2])
        assert [cell.world for cell in plan.cells] == ["local", "postgres", "postgres x2"]
        assert [processes_of(cell) for cell in plan.cells] == [1, 1, 2]
        assert world_of(plan.cells[2]) == "postgres"

    def test_versions_and_worlds_that_belong_together_vary_together(self) -> None:
        pairs = ["4.8.9 + postgres x2", {"version": "5.0.0-beta.55", "world": "local"}]
        plan = parse(version=None, matrix={"scenario": ["step-storm", "hook-storm"], "pair": pairs})
        assert [cell.label for cell in plan.cells][:2] == [
            "step-storm/postgres x2/workflow 4.8.9/as published",
            "step-storm/local/workflow 5.0.0-beta.55/as published",
        ]
        assert len(plan.cells) == 4

    def test_the_command_line_varies_them_too(self) -> None:
        plan = parse(
            {"version": ["4.6.1"], "world": ["postgres"], "processes": ["2"], "environment": ["WORKFLOW_TURBO=0"]}
        )
        assert labels(plan) == ["postgres x2/workflow 4.6.1/WORKFLOW_TURBO=0"]

    @pytest.mark.parametrize(
        "changes",
        [
            {},
            {"world": ["local", "postgres"], "processes": [1, 2]},
            {"environment": [{}, {"WORKFLOW_TURBO": "0"}]},
            {"version": None, "matrix": {"pair": ["4.8.9 + postgres x2", "4.8.9 + local"]}},
            {"host_faults": {"duplicate": 0.5, "kill_after": "2s", "write_delay_ms": 60}},
            {"attempts": {"hook-storm": 10}},
        ],
        ids=str,
    )
    def test_a_resumed_storm_has_the_same_cells_inputs_and_faults(self, changes: dict[str, Any]) -> None:
        plan = parse(**changes)
        found = again(plan)
        assert found.cells == plan.cells
        assert (found.inputs, found.host_faults, found.own_attempts) == (
            plan.inputs,
            plan.host_faults,
            plan.own_attempts,
        )

    @settings(max_examples=25)
    @given(st.dictionaries(NAMES, VALUES, max_size=4))
    def test_switches_can_be_read_back_from_a_cell(self, switches: dict[str, str]) -> None:
        assert environment_of(again(parse(environment=switches)).cells[0]) == switches


class TestAttempts:
    def test_a_scenario_may_have_its_own_number(self) -> None:
        plan = parse(
            version="4.8.9", scenario=["hook-storm", "step-storm"], attempts={"hook-storm": 10, "step-storm": 6}
        )
        assert [plan.attempts_of(cell) for cell in plan.cells] == [10, 6]
        assert plan.total == 16

    def test_a_scenario_without_one_is_named(self) -> None:
        with pytest.raises(PlanError, match="attempts names no number for hook-storm"):
            parse(attempts={"step-storm": 6})


class TestHostFaults:
    def test_are_read_and_told(self) -> None:
        plan = parse(host_faults={"duplicate": 0.5, "read_delay_ms": 60, "kill_after": "2s"})
        assert plan.host_faults == HostFaults(duplicate=0.5, read_delay_ms=60, kill_after_ms=2000)
        told = "\n".join(describe(plan).lines())
        assert "host: 50% of deliveries are made twice" in told
        assert "host: a server of each cell is killed 2s after its first run began" in told

    def test_without_any_nothing_is_told(self) -> None:
        assert "host:" not in "\n".join(describe(parse()).lines())


def test_a_dry_run_says_what_runs_the_attempts() -> None:
    told = "\n".join(describe(parse(world="postgres", processes=2)).lines())
    assert "cell after cell on up to 2 servers of the Workflow SDK" in told
    assert "worker process" not in told
    assert "hook-storm     postgres x2/workflow 4.8.9 + as published" in told


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"condition": "main"}, "the target sdk has no condition", "version: [4.8.9"),
    ({"generation": "nets"}, "the target sdk has no generation", "environment"),
    ({"matrix": {"condition": ["main"]}}, "the target sdk has no condition", "version"),
    ({"faults": []}, "the target sdk has no faults", "host_faults"),
    ({"storage_scale": 1.0}, "the target sdk has no storage_scale", "read_delay_ms"),
    ({"hydration_jitter_ms": 1}, "the target sdk has no hydration_jitter_ms", "Leave it out"),
    ({"version": None}, "the plan names no version", "4.8.9"),
    ({"version": "3.1.0"}, "no version of the Workflow SDK", "4.x or 5.x"),
    ({"version": 4.8}, "no version of the Workflow SDK", "as it was published"),
    ({"version": []}, "empty list", "Give it a value"),
    ({"version": ["4.8.9", "4.8.9"]}, "twice", "Remove one"),
    ({"world": "memory"}, "no world 'memory'", "postgres"),
    ({"world": "local", "processes": 2}, "the world local has one server, not 2", "postgres"),
    ({"world": "local x2"}, "the world local has one server, not 2", "postgres"),
    ({"processes": 0, "world": "postgres"}, "processes is 0", "1 to 8"),
    ({"environment": {"PORT": "1"}}, "which the host sets itself", "Leave it out"),
    ({"environment": {"STORMCTL_SEED": "1"}}, "which the host sets itself", "Leave it out"),
    ({"environment": {"lower": "1"}}, "environment sets 'lower'", "capitals"),
    ({"environment": {"WORKFLOW_TURBO": "a b"}}, "to 'a b'", "without blanks"),
    ({"environment": 7}, "environment is 7", "mapping"),
    ({"host_faults": {"dupl": 1}}, "unknown key 'dupl'", "Did you mean 'duplicate'?"),
    ({"host_faults": {"duplicate": 2}}, "duplicate is 2", "0 to 1"),
    ({"host_faults": {"kill_after": 2}}, "not a duration", "ms, s, m"),
    ({"host_faults": {"kill_after": "2s", "restart": False}}, "forbids to restart", "Leave `restart: false` out"),
    ({"host_faults": {"restart": "yes"}}, "restart is 'yes'", "true or false"),
    ({"host_faults": [1]}, "host_faults is [1]", "mapping"),
    ({"matrix": {"pair": ["4.8.9"]}}, "not an entry for matrix.pair", "4.8.9 + postgres x2"),
    ({"matrix": {"pair": ["4.8.9 + local"], "version": ["4.6.1"]}}, "twice, alone and in pair", "Remove"),
    (
        {"version": None, "matrix": {"pair": [{"version": "4.8.9", "processes": 2}]}},
        "without a world",
        "Name the world",
    ),
    ({"matrix": {"vrsion": ["4.8.9"]}}, "unknown axis 'vrsion'", "Did you mean 'version'?"),
]


@pytest.mark.parametrize(("changes", "text", "remedy"), WRONG, ids=[str(changes) for changes, _, _ in WRONG])
def test_a_wrong_plan_is_one_sentence_with_a_remedy(changes: dict[str, Any], text: str, remedy: str) -> None:
    with pytest.raises(PlanError) as caught:
        parse(**changes)
    assert text in str(caught.value)
    assert remedy in caught.value.remedy


@pytest.mark.parametrize("key", ["version", "environment", "host_faults"])
def test_an_embedded_plan_has_none_of_its_keys(key: str) -> None:
    with pytest.raises(PlanError, match=f"the target embedded has no {key}"):
        parse(**{"target": "embedded", "version": None, "condition": "main", "generation": "nets", key: "4.8.9"})


def test_the_plans_that_ship_can_be_read(root: Any) -> None:
    for name in ("sdk-smoke", "sdk-table", "sdk-boosted"):
        plan = load_plan(root / "configs" / f"{name}.yaml")
        assert plan.target == "sdk"
        assert all(describe(plan).lines())


def test_cells_that_would_disturb_each_other_are_made_one_after_the_other() -> None:
    waiting = turns(parse(attempts=2))
    assert [turn.number for turn in waiting] == [1, 1, 2, 2]  # in turn, for a target whose cells are made together
    (together,) = rounds(waiting, apart=False)
    assert together is waiting
    first, second = rounds(waiting, apart=True)
    assert [version_of(turn.cell) for turn in (*first, *second)] == ["4.8.9"] * 2 + ["5.0.0-beta.55"] * 2
    assert [turn.number for turn in first] == [1, 2]
