"""Inputs: what a plan may give, and how durations are scaled."""

from __future__ import annotations

from dataclasses import asdict, fields

import pytest

from stormctl.errors import PlanError, UsageError
from stormctl.storm.plan import parse_plan
from stormctl.workloads.base import scaled
from stormctl.workloads.registry import WORKLOADS, workload

every = pytest.mark.parametrize("name", WORKLOADS)


class TestParsing:
    @every
    def test_nothing_given_is_the_published_input(self, name):
        code = workload(name)
        assert code.parse_input({}) == code.input_type()

    @every
    def test_an_unknown_key_is_named_with_the_known_ones(self, name):
        with pytest.raises(PlanError, match=f"{name} has no input 'widht'") as raised:
            workload(name).parse_input({"widht": 3})
        known = [field.name for field in fields(workload(name).input_type)]
        assert all(key in raised.value.remedy for key in known)

    @pytest.mark.parametrize(
        ("key", "value"),
        [("width", "8"), ("width", 8.5), ("width", None), ("width", True), ("watchdog_ms", "2s"), ("token", 5)],
    )
    def test_a_value_of_another_type_is_named_with_an_example(self, key, value):
        with pytest.raises(PlanError, match=f"input '{key}'") as raised:
            workload("step-storm").parse_input({key: value})
        assert "such as" in raised.value.remedy

    def test_whole_milliseconds_are_durations_too(self):
        assert workload("step-storm").parse_input({"watchdog_ms": 2000}).watchdog_ms == 2000

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("width", 0),
            ("rounds", 0),
            ("rounds", -1),
            ("watchdog_ms", -1.0),
            ("watchdog_ms", float("nan")),
            ("watchdog_ms", float("inf")),
            ("reconcile_base", -2),
        ],
    )
    def test_a_number_that_cannot_be_meant_is_refused(self, key, value):
        with pytest.raises(PlanError, match=f"input '{key}' of step-storm is") as raised:
            workload("step-storm").parse_input({key: value})
        assert "or more" in raised.value.remedy

    @pytest.mark.parametrize(("key", "value"), [("between_round_sleep_ms", 0), ("attr_writes", 0), ("poke_max", 0)])
    def test_zero_is_a_value_where_it_means_something(self, key, value):
        assert getattr(workload("step-storm").parse_input({key: value}), key) == 0

    def test_an_unknown_scenario_is_a_usage_error_that_lists_the_known(self):
        with pytest.raises(UsageError, match="no scenario 'strom'") as raised:
            workload("strom")
        assert all(name in raised.value.remedy for name in WORKLOADS)


class TestScaling:
    @every
    def test_every_duration_and_nothing_else(self, name):
        before = workload(name).parse_input({"token": "t"})
        after = scaled(before, 0.1)
        for field in fields(before):
            value = getattr(before, field.name)
            expected = value * 0.1 if field.name.endswith("_ms") else value
            assert getattr(after, field.name) == expected

    @every
    def test_every_time_in_an_input_is_called_one(self, name):
        """A field that holds milliseconds and does not say so would escape the scale."""
        names = {field.name for field in fields(workload(name).input_type)}
        assert {one for one in names if "delay" in one or "interval" in one or "timeout" in one} <= {
            one for one in names if one.endswith("_ms")
        }

    def test_the_shape_of_the_storm_survives_it(self):
        from stormctl.workloads.step_storm import branch_delay

        full = workload("step-storm").parse_input({"jitter_buckets": 7})
        small = scaled(full, 0.25)
        assert branch_delay(small, 2, 3) == branch_delay(full, 2, 3) * 0.25
        assert workload("step-storm").warnings(small) == []


class TestThePlan:
    @every
    def test_resolves_to_an_input_that_the_scenario_reads_again(self, name):
        plan = parse_plan(
            {
                "schema": "stormctl.plan/1",
                "name": "one",
                "scenario": name,
                "world": "local",
                "condition": "main",
                "generation": "nets",
                "time_scale": 0.1,
            },
            "plan.yaml",
        )
        code = workload(name)
        again = code.parse_input(plan.inputs[name])
        assert again == code.input_type()
        small = scaled(again, plan.time_scale)
        assert code.parse_input(asdict(code.at_start(small, 1_700_000_000_000))) == code.at_start(
            small, 1_700_000_000_000
        )

    @every
    def test_every_scenario_says_what_its_outcomes_need(self, name):
        code = workload(name)
        assert code.ledger_code.startswith("BAD_")
        assert code.roles is not None
        assert code.warnings(code.input_type()) == []
        assert code.counts(code.input_type(), 0)
