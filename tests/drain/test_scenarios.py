"""The known failures: each is shown by the loop that has it, and gone under the loop that closed it."""

from __future__ import annotations

import pytest

from stormctl.drain.explained import explained
from stormctl.drain.explored import residual
from stormctl.drain.knobs import GENERATIONS
from stormctl.drain.model import Play
from stormctl.drain.scenarios import SCENARIOS, Scenario, scenario, told
from stormctl.errors import UsageError
from stormctl.report.drain_text import scenario_text
from stormctl.sweeps.drain.records import Effects

CASES = pytest.mark.parametrize("one", SCENARIOS, ids=lambda one: one.id)


def signatures(one: Scenario, *, closed: bool) -> set[str]:
    return {problem.signature for problem in told(one.play(one.passes if closed else one.fails))}


@CASES
def test_the_failure_shows(one: Scenario) -> None:
    assert set(one.shows) <= signatures(one, closed=False)


@CASES
def test_the_same_run_is_well_under_what_closed_it(one: Scenario) -> None:
    assert not set(one.shows) & signatures(one, closed=True)


@CASES
def test_the_last_generation_has_none_but_the_residual(one: Scenario) -> None:
    found = {problem.signature for problem in told(one.play(GENERATIONS["G4"]))}
    assert all(map(residual, found)), found


@CASES
def test_it_is_told_in_under_twenty_lines_of_a_screen(one: Scenario) -> None:
    lines = list(scenario_text(one, one.play(one.fails), one.play(one.passes), 80))
    assert len(lines) < 20
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("violated") for line in lines)
    assert not any("STILL" in line for line in lines)


@CASES
def test_a_run_is_the_same_each_time(one: Scenario) -> None:
    first, again = one.play(one.fails), one.play(one.fails)
    assert isinstance(first.instance, Play)
    assert isinstance(again.instance, Play)
    assert first.instance.trace() == again.instance.trace()


def test_every_failure_of_the_reference_has_a_scenario() -> None:
    assert [one.id for one in SCENARIOS] == [*(f"F{number}" for number in range(1, 13)), "F13a", "F13b"]


def test_a_scenario_explains_what_it_shows() -> None:
    for one in SCENARIOS:
        known = {explained(signature, "park" if one.id in ("F9", "F10") else "", "") for signature in one.shows}
        assert "" not in known or one.id == "F2"  # a crash is no class of violation


def test_a_tenure_that_ended_runs_its_handlers_without_their_marks() -> None:
    one = scenario("f9")
    play = one.play(one.fails).instance
    assert isinstance(play, Play)
    assert [record.tenure for record in play.trace().records if isinstance(record.what, Effects)] == [1]
    assert play.space.engine.log == ["A", "A"]


def test_a_ghost_is_an_element_that_the_store_keeps() -> None:
    one = scenario("F1")
    play = one.play(one.fails).instance
    assert isinstance(play, Play)
    assert any(entry.event_id is None for entry in play.space.engine.entries("a"))
    assert play.space.counters.skipped_idempotent > 1  # each ghost moves the entry away from its next mark


def test_a_scenario_that_there_is_not_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        scenario("F99")
