"""The templates against the scenarios: every input field, every step name, and nothing beside."""

from __future__ import annotations

import re
from dataclasses import fields, replace

import pytest

from stormctl.errors import PlanError
from stormctl.readers.sdk_workloads import input_for, name_of
from stormctl.targets.sdk.workflows import TWINS, fitted, sdk_input, twin
from stormctl.workloads.capture_storms import CAPTURE_STEP_STORM
from stormctl.workloads.registry import WORKLOADS
from tests.targets.sdk.conftest import TEMPLATES

_STEP = re.compile(r"async function (\w+)\([^)]*\) \{\n  'use step';")
_FIELD = re.compile(r"^  (\w+): ", re.MULTILINE)


def source_of(file: str) -> str:
    return (TEMPLATES / "workflows" / f"{file}.ts").read_text()


def input_fields(file: str) -> set[str]:
    """The fields of the Input type of a template, those of the storms' common part included."""
    source = source_of(file)
    found: set[str] = set()
    body = re.search(r"type Input = (?:StormInput & )?\{\n(.*?)\n\};", source, re.DOTALL)
    if body is not None:
        found |= set(_FIELD.findall(body[1]))
    if "StormInput" in source:
        common = re.search(r"type StormInput = \{\n(.*?)\n\};", source_of("storm_parts"), re.DOTALL)
        assert common is not None
        found |= set(_FIELD.findall(common[1]))
    return found


def steps_of(file: str) -> set[str]:
    source = source_of(file)
    own = set(_STEP.findall(source))
    shared = set(_STEP.findall(source_of("storm_parts"))) if "storm_parts" in source else set()
    return own | shared


def test_every_scenario_has_a_twin() -> None:
    assert set(TWINS) == set(WORKLOADS)


@pytest.mark.parametrize("name", TWINS)
def test_the_workflow_is_in_its_file_and_exported(name: str) -> None:
    found = twin(name)
    assert re.search(rf"export async function {found.function}\(.*\) \{{\n  'use workflow';", source_of(found.file))


@pytest.mark.parametrize("name", TWINS)
def test_the_workflow_takes_exactly_the_fields_that_it_is_sent(name: str) -> None:
    workload = WORKLOADS[name]
    assert set(sdk_input(name, workload.input_type())) == input_fields(twin(name).file)


@pytest.mark.parametrize("name", TWINS)
def test_the_workflow_has_exactly_the_steps_of_the_scenario(name: str) -> None:
    assert steps_of(twin(name).file) == set(WORKLOADS[name].steps)


@pytest.mark.parametrize("name", TWINS)
def test_a_reader_finds_the_scenario_and_the_input_again(name: str) -> None:
    workload = WORKLOADS[name]
    sent = sdk_input(name, workload.input_type())
    assert name_of(twin(name).workflow_name) == name.removeprefix("capture-")
    assert len(input_for(workload, sent)) == len(sent)


def test_the_fields_are_upstreams() -> None:
    """Names as reference and captures have them, written out once."""
    storm = set(sdk_input("step-storm", WORKLOADS["step-storm"].input_type()))
    assert storm == set(
        "token rounds width watchdogMs stepDelayMs stepDelayJitterMs jitterBuckets betweenRoundSleepMs reconcileBase"
        " attrWrites".split()
    )
    captured = set(sdk_input("capture-hook-storm", CAPTURE_STEP_STORM.input_type()))
    assert captured == set("token rounds width watchdogMs workMs spreadMs gapMs reconcileMin".split())
    assert sdk_input("inline-hang", WORKLOADS["inline-hang"].input_type(kill_until=7.0))["killUntilMs"] == 7.0


def test_a_version_without_attributes_writes_none() -> None:
    storm = WORKLOADS["step-storm"].input_type(attr_writes=3)
    assert fitted(storm, attributes=True) is storm
    assert fitted(storm, attributes=False) == replace(storm, attr_writes=0)
    hooks = WORKLOADS["hook-storm"].input_type()
    assert "attr_writes" not in {field.name for field in fields(hooks)}
    assert fitted(hooks, attributes=False) is hooks


def test_a_workload_of_the_users_own_has_no_twin() -> None:
    with pytest.raises(PlanError, match="no workflow for 'step-strom'") as error:
        twin("step-strom")
    assert error.value.remedy == "Did you mean 'step-storm'?"
