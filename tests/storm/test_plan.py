from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stormctl.engine.generations import GENERATIONS
from stormctl.errors import EXIT_USAGE, PlanError
from stormctl.storm.attempt import Cell
from stormctl.storm.names import TARGETS, WORLDS, Names
from stormctl.storm.plan import AXES, KEYS, MAX_CELLS, Plan, load_plan, parse_plan, resolved_yaml
from stormctl.storm.planfile import MAX_BYTES, format_duration, parse_duration
from stormctl.workloads.registry import WORKLOADS
from stormctl.worlds.presets import CONDITIONS

NAMES = Names(WORKLOADS, tuple(GENERATIONS), CONDITIONS, WORLDS, TARGETS, ("all", "dense", "id-order"))
SMALL: dict[str, Any] = {
    "schema": "stormctl.plan/1",
    "name": "small",
    "scenario": "step-storm",
    "condition": "main",
    "generation": "nets",
}

Parse = Callable[..., Plan]


def parse(changes: dict[str, Any] | None = None, overrides: dict[str, list[str]] | None = None, **rest: Any) -> Plan:
    return parse_plan({**SMALL, **(changes or {})}, "small.yaml", overrides, names=NAMES, **rest)


class TestGenerations:
    def test_may_be_named_by_the_pull_request_that_made_them(self) -> None:
        plan = parse({"generation": [3406, "#3554", "3700"]})
        assert [cell.generation for cell in plan.cells] == ["nets", "dispenser", "turnstile"]

    def test_may_be_paired_by_it(self) -> None:
        plan = parse({"generation": None, "condition": None, "matrix": {"pair": ["main + 3406", "seq-final + 3879"]}})
        assert [cell.generation for cell in plan.cells] == ["nets", "rearm"]

    def test_may_change_knobs_which_then_name_them(self) -> None:
        plan = parse({"generation": "nets[ids=call-site, clock=delivered]"})
        assert [cell.generation for cell in plan.cells] == ["nets[clock=delivered,ids=call-site]"]
        assert parse_plan(yaml.safe_load(resolved_yaml(plan)), "again", names=NAMES).cells == plan.cells

    def test_two_names_of_one_generation_are_one_cell_twice(self) -> None:
        with pytest.raises(PlanError, match="twice"):
            parse({"generation": ["nets", 3406]})


class TestThePlansInConfigs:
    def test_the_main_storm_compares_the_old_pair_with_the_new_one_on_both_scenarios(self, root: Path) -> None:
        plan = load_plan(root / "configs" / "storm.yaml", names=NAMES)
        assert plan.cells == (
            Cell("step-storm", "local", "main", "nets"),
            Cell("step-storm", "local", "seq-final", "dispenser"),
            Cell("hook-storm", "local", "main", "nets"),
            Cell("hook-storm", "local", "seq-final", "dispenser"),
        )
        assert plan.attempts >= 8
        assert plan.processes >= 2

    @pytest.mark.parametrize("name", ["storm.yaml", "quick.yaml"])
    def test_each_survives_being_resolved(self, root: Path, tmp_path: Path, name: str) -> None:
        plan = load_plan(root / "configs" / name, names=NAMES)
        (tmp_path / "plan.yaml").write_text(resolved_yaml(plan))
        again = load_plan(tmp_path / "plan.yaml", names=NAMES)
        assert again.inputs == plan.inputs
        assert (again.cells, again.budget_ms, again.cap_ms) == (plan.cells, plan.budget_ms, plan.cap_ms)
        assert resolved_yaml(again) == resolved_yaml(plan)


class TestTheMatrix:
    def test_single_values_are_one_cell(self) -> None:
        assert parse().cells == (Cell("step-storm", "local", "main", "nets"),)

    def test_lists_multiply_in_the_order_in_which_they_are_written(self) -> None:
        plan = parse({"matrix": {"condition": ["seq-final", "main"], "generation": ["nets", "dispenser"]}})
        assert [(cell.condition, cell.generation) for cell in plan.cells] == [
            ("seq-final", "nets"),
            ("seq-final", "dispenser"),
            ("main", "nets"),
            ("main", "dispenser"),
        ]

    def test_a_list_at_the_top_level_varies_too_and_the_matrix_wins_over_it(self) -> None:
        assert len(parse({"condition": ["main", "seq-final"]}).cells) == 2
        assert len(parse({"condition": ["main", "seq-final"], "matrix": {"condition": ["main"]}}).cells) == 1

    def test_pairs_vary_together(self) -> None:
        as_text = parse({"matrix": {"pair": ["main + nets", "seq-final + dispenser"]}})
        as_mappings = parse(
            {
                "matrix": {
                    "pair": [
                        {"condition": "main", "generation": "nets"},
                        {"generation": "dispenser", "condition": "seq-final"},
                    ]
                }
            }
        )
        assert as_text.cells == as_mappings.cells
        assert [(cell.condition, cell.generation) for cell in as_text.cells] == [
            ("main", "nets"),
            ("seq-final", "dispenser"),
        ]

    def test_any_axes_can_be_paired(self) -> None:
        pairs = [{"scenario": "step-storm", "condition": "main"}, {"scenario": "hook-storm", "condition": "seq-final"}]
        plan = parse({"matrix": {"pair": pairs}})
        assert [(cell.scenario, cell.condition) for cell in plan.cells] == [
            ("step-storm", "main"),
            ("hook-storm", "seq-final"),
        ]


class TestOverrides:
    def test_an_axis_takes_a_list(self) -> None:
        assert parse(overrides={"scenario": ["step-storm", "hook-storm"]}).scenarios == ("step-storm", "hook-storm")

    def test_scalars_are_read_as_the_plan_would_read_them(self) -> None:
        plan = parse(overrides={"attempts": ["3"], "time_scale": ["0.05"], "cap": ["90s"], "seed": ["11"]})
        assert (plan.attempts, plan.time_scale, plan.cap_ms, plan.seed) == (3, 0.05, 90_000.0, 11)

    def test_the_seed_option_wins(self) -> None:
        assert parse({"seed": 3}, {"seed": ["4"]}, seed=5).seed == 5

    def test_inputs_are_reached_with_a_dot(self) -> None:
        plan = parse(
            {"scenario": ["step-storm", "hook-storm"]},
            {"input.rounds": ["2"], "inputs.hook-storm.width": ["5"]},
        )
        assert (plan.inputs["step-storm"]["rounds"], plan.inputs["hook-storm"]["rounds"]) == (2, 2)
        assert plan.inputs["hook-storm"]["width"] == 5
        assert plan.inputs["step-storm"]["width"] != 5

    def test_pairs_are_chosen_whole(self) -> None:
        plan = parse({"matrix": {"pair": ["main + nets", "seq-final + dispenser"]}}, {"pair": ["main + dispenser"]})
        assert [(cell.condition, cell.generation) for cell in plan.cells] == [("main", "dispenser")]

    def test_narrowing_the_scenarios_keeps_a_plan_whose_input_was_for_the_other(self) -> None:
        own = set(WORKLOADS["step-storm"].input_type.__dataclass_fields__)
        other = set(WORKLOADS["hook-storm"].input_type.__dataclass_fields__)
        key = sorted(own - other)[0]
        default = WORKLOADS["step-storm"].input_type.__dataclass_fields__[key].default
        plan = parse({"scenario": ["step-storm", "hook-storm"], "input": {key: default}}, {"scenario": ["hook-storm"]})
        assert key not in plan.inputs["hook-storm"]


def test_a_seed_of_many_digits_is_kept_to_the_last() -> None:
    assert parse({"seed": 2**63 - 1}).seed == 2**63 - 1


class TestInputs:
    def test_every_field_is_resolved_but_the_token(self) -> None:
        given_fields = set(WORKLOADS["step-storm"].input_type.__dataclass_fields__) - {"token"}
        assert set(parse().inputs["step-storm"]) == given_fields

    def test_what_is_resolved_is_what_the_workload_takes(self) -> None:
        plan = parse({"input": {"rounds": 3}})
        assert WORKLOADS["step-storm"].parse_input({**plan.inputs["step-storm"], "token": "t"}).rounds == 3

    def test_a_scenarios_own_input_wins(self) -> None:
        plan = parse({"input": {"rounds": 3}, "inputs": {"step-storm": {"rounds": 4}}})
        assert plan.inputs["step-storm"]["rounds"] == 4


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"atempts": 3}, "Did you mean 'attempts'?"),
    ({"scenario": "step-strom"}, "Did you mean 'step-storm'?"),
    ({"condition": "seq-fnial"}, "Did you mean 'seq-final'?"),
    ({"generation": "dispencer"}, "Did you mean 'dispenser'?"),
    ({"world": "lokal"}, "Did you mean 'local'?"),
    ({"target": "kubernetes"}, "Known are embedded, sdk, url."),
    ({"sweeps": ["dens"]}, "Did you mean 'dense'?"),
    ({"input": {"ronuds": 3}}, "Did you mean 'rounds'?"),
    ({"input": {"rounds": "many"}}, "Give it a int"),
    ({"input": {"token": "t"}}, "made anew"),
    ({"inputs": {"step-strom": {}}}, "Did you mean 'step-storm'?"),
    ({"input": [1]}, "Write `input:"),
    ({"matrix": {"conditions": ["main"]}}, "Did you mean 'condition'?"),
    ({"matrix": {"pair": ["main"]}}, "Write `main + nets`"),
    ({"matrix": {"pair": [{"condition": "main"}, {"generation": "nets"}]}}, "the same keys"),
    ({"matrix": {"pair": ["main + nets"], "condition": ["main"]}}, "Remove matrix.condition"),
    ({"matrix": {"pair": "main + nets"}}, "[...]"),
    ({"condition": ["main", "main"]}, "Remove one"),
    ({"condition": []}, "a name or a list of names"),
    ({"condition": None}, "Add `condition:`"),
    ({"budget": "10 minutes"}, "Write a number with ms, s, m or h"),
    ({"budget": 600}, "Write a number with ms, s, m or h"),
    ({"cap": "0s"}, "more than nothing"),
    ({"attempts": 0}, "from 1 to 10000"),
    ({"attempts": 2.5}, "from 1 to 10000"),
    ({"attempts": True}, "from 1 to 10000"),
    ({"time_scale": "fast"}, "Give a number"),
    ({"time_scale": float("nan")}, "Give a number"),
    ({"seed": -1}, "Give a whole number from 0"),
    ({"faults": [{"kill": 1}]}, "Known are worker"),
    ({"faults": {"kill": "worker"}}, "Write `faults: [{kill: worker"),
    ({"world": "memory", "processes": 2}, "processes: 1"),
    ({"condition": "seq-finl[stale_ms=2000]"}, "Did you mean 'seq-final'?"),
    ({"condition": "seq-final[stale=2000]"}, "Did you mean 'stale_ms'?"),
    ({"name": "../up"}, "names a folder"),
    ({"name": None}, "names a folder"),
    ({"schema": "stormctl.plan/2"}, "Upgrade stormctl"),
    ({"schema": "someone.else/1"}, "Start the plan with"),
]


@pytest.mark.parametrize(("changes", "remedy"), WRONG, ids=[str(changes) for changes, _ in WRONG])
def test_a_wrong_plan_is_one_sentence_with_a_remedy(changes: dict[str, Any], remedy: str) -> None:
    with pytest.raises(PlanError) as caught:
        parse(changes)
    assert remedy in caught.value.remedy
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == EXIT_USAGE


WRONG_OVERRIDES: list[tuple[dict[str, list[str]], str]] = [
    ({"atempts": ["3"]}, "Did you mean 'attempts'?"),
    ({"attempts": ["3", "4"]}, "vary"),
    ({"input": ["3"]}, "input.rounds=4"),
    ({"inputs.rounds": ["3"]}, "for one scenario"),
    ({"schema": ["x"]}, "Known are"),
    ({"matrix": ["x"]}, "Known are"),
]


@pytest.mark.parametrize(("overrides", "remedy"), WRONG_OVERRIDES, ids=[str(given) for given, _ in WRONG_OVERRIDES])
def test_a_wrong_override_is_one_sentence_with_a_remedy(overrides: dict[str, list[str]], remedy: str) -> None:
    with pytest.raises(PlanError) as caught:
        parse(overrides=overrides)
    assert remedy in caught.value.remedy


def test_an_axis_that_varies_in_pairs_is_not_overridden_alone() -> None:
    with pytest.raises(PlanError) as caught:
        parse({"matrix": {"pair": ["main + nets"]}}, {"condition": ["main"]})
    assert "pair=main + nets" in caught.value.remedy


def test_another_axis_of_a_plan_with_pairs_is_overridden_alone() -> None:
    plan = parse({"matrix": {"pair": ["main + nets"]}}, {"scenario": ["hook-storm"]})
    assert {cell.scenario for cell in plan.cells} == {"hook-storm"}


class TestTheFile:
    def load(self, folder: Path, content: bytes) -> Plan:
        path = folder / "plan.yaml"
        path.write_bytes(content)
        return load_plan(path, names=NAMES)

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            (b"", "is not a plan"),
            (b"- a\n- b\n", "is not a plan"),
            (b"just words", "is not a plan"),
            (b"1: 2\n", "is not a plan"),
            (b"name: [unclosed\n", "not readable as YAML: line 2"),
            (b"a: 1\na: 2\n", "a second time"),
            (b"a: &x [1]\nb: *x\n", "aliases"),
            (b"a: " + b"[" * 40 + b"]" * 40, "nested"),
            (b"a: !!python/object/apply:os.getcwd []\n", "not readable as YAML"),
            (b"\xff\xfe\x00", "not UTF-8"),
            (b"#" * (MAX_BYTES + 1), "larger than 64 KB"),
            (b"a: 2026-13-45\n", "not readable as YAML"),
        ],
    )
    def test_what_is_no_plan_is_refused_in_one_sentence(self, tmp_path: Path, content: bytes, says: str) -> None:
        with pytest.raises(PlanError, match=says):
            self.load(tmp_path, content)

    def test_a_missing_file_and_a_folder_are_named(self, tmp_path: Path) -> None:
        with pytest.raises(PlanError, match="cannot be read: No such file"):
            load_plan(tmp_path / "absent.yaml", names=NAMES)
        with pytest.raises(PlanError, match="is a folder"):
            load_plan(tmp_path, names=NAMES)


def test_a_matrix_beyond_all_reason_is_refused() -> None:
    unchecked = Names.unchecked()
    many = [f"c{number}" for number in range(MAX_CELLS + 1)]
    with pytest.raises(PlanError, match=f"{MAX_CELLS + 1} cells"):
        parse_plan({**SMALL, "condition": many}, "big.yaml", names=unchecked)


words = st.text(alphabet="abcdefghij-", min_size=1, max_size=8).filter(lambda word: not set(word) <= {"-"})
axes = st.lists(words, min_size=1, max_size=3, unique=True)


@given(
    matrix=st.fixed_dictionaries(dict.fromkeys(AXES, axes)),
    attempts=st.integers(1, 10_000),
    scale=st.floats(0.001, 100),
    budget=st.integers(1, 10**8),
    seed=st.integers(0, 2**63 - 1),
)
def test_resolving_loses_nothing(
    matrix: dict[str, list[str]], attempts: int, scale: float, budget: int, seed: int
) -> None:
    document = {
        "schema": "stormctl.plan/1",
        "name": "p",
        "matrix": matrix,
        "attempts": attempts,
        "time_scale": scale,
        "budget": f"{budget}ms",
        "seed": seed,
    }
    plan = parse_plan(document, "p", names=Names.unchecked())
    again = parse_plan(yaml.safe_load(resolved_yaml(plan)), "p", names=Names.unchecked())
    assert again == plan
    assert len(plan.cells) == len(set(plan.cells))


@given(st.integers(1, 7 * 24 * 3_600_000))
def test_durations_read_back_what_they_wrote(ms: int) -> None:
    assert parse_duration(format_duration(ms), "x") == ms


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)


@given(anything, st.sampled_from([*SMALL, *KEYS]))
def test_any_value_of_any_key_makes_a_plan_or_a_plan_error(value: Any, key: str) -> None:
    refused = None
    try:
        assert parse({key: value}).cells
    except PlanError as caught:
        refused = caught
    assert refused is None or refused.remedy


def test_a_condition_may_change_knobs_of_a_preset_alone_and_in_a_pair() -> None:
    assert parse({"condition": "seq-final[stale_ms=2000]"}).cells[0].condition == "seq-final[stale_ms=2000]"
    paired = parse({"matrix": {"pair": ["main + nets", "main[ids=ulid+seq,lock=run] + nets"]}})
    assert [cell.condition for cell in paired.cells] == ["main", "main[ids=ulid+seq,lock=run]"]
    assert parse_plan(yaml.safe_load(resolved_yaml(paired)), "p").cells == paired.cells
