"""From a log to a schedule."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stormctl.errors import UsageError
from stormctl.history import Capture, EventLog
from stormctl.readers import open_captures
from stormctl.sim.book import ENTRIES, play_entry
from stormctl.sim.kernel import TapeChooser, play
from stormctl.sim.produce import isomorphic, keys_of, model_of, produce
from stormctl.sim.real.machine import Machine

SCRIPTED = [
    ("fork-hook-wins", "append-only"),
    ("hook-at-step-started", "append-only"),
    ("writers-independent-step-bodies", "mint-slot"),
    ("race-hook-after-probe", "mint-slot"),
    ("in-flight-before-decision", "mint-slot"),
    ("in-flight-before-decision", "mint-ulid"),
]


def captured(name: str, world: str) -> Capture:
    machine = play_entry(ENTRIES[name], world).run.instance
    assert isinstance(machine, Machine)
    return machine.capture()


def read(root: Path, name: str) -> Capture:
    (found,) = open_captures([root / "fixtures" / "logs" / f"{name}.ndjson"])
    assert isinstance(found, Capture)
    return found


@pytest.mark.parametrize(("name", "world"), SCRIPTED)
def test_the_log_of_a_scripted_run_is_found_again_and_its_tape_writes_it(name: str, world: str) -> None:
    capture = captured(name, world)
    found = produce(capture, world, most=2_000)
    assert found.found, found.sentence
    assert found.sentence.startswith(f"producible in {world}, by a schedule of ")
    assert found.tape is not None
    machine = play(found.model, TapeChooser(found.tape)).instance
    assert isomorphic(machine.log, capture.log)


def test_what_was_written_over_a_hole_is_not_producible_where_order_is_that_of_the_commits() -> None:
    capture = captured("in-flight-before-decision", "mint-ulid")
    found = produce(capture, "append-only", most=3_000)
    assert not found.found
    assert found.proved == 2
    assert found.sentence.startswith("not within 2 preemptions in append-only (")
    assert found.wanted == "step_created settle"


def test_two_events_exchanged_are_a_log_that_the_world_cannot_write() -> None:
    """A step that was started before it was created."""
    capture = captured("smoke-one-step", "append-only")
    assert produce(capture, "append-only", most=1_000).found
    events = list(capture.log.events)
    at = next(index for index, event in enumerate(events) if event.type == "step_started")
    created, started = events[at - 1], events[at]
    assert created.correlation_id == started.correlation_id
    events[at - 1] = replace(started, position=created.position)
    events[at] = replace(created, position=started.position)
    found = produce(replace(capture, log=EventLog(events, capture.log.run_id)), "append-only", most=4_000)
    assert found.exhausted
    assert found.sentence.startswith("not producible in append-only: every schedule was tried (")
    assert found.reached == at - 1


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("2029-slept-before-it-was-woken", True),
        ("2029-slept-although-woken-first", False),
        ("3070-every-hook-asked-for", True),
        ("4017-completed-with-a-clean-log", True),
    ],
)
def test_of_the_captured_logs_the_sound_ones_are_producible_and_the_corrupt_twin_is_not(
    root: Path, name: str, found: bool
) -> None:
    assert produce(read(root, name), "append-only", preemptions=1, most=2_000).found is found


def test_ids_and_times_make_no_difference_and_names_do() -> None:
    capture = captured("fork-hook-wins", "append-only")
    events = capture.log.events
    moved = [replace(event, event_id=f"evnt_{at}", created_at=at) for at, event in enumerate(events)]
    assert keys_of(moved) == keys_of(events)
    renamed = [replace(event, name="other") if event.name == "recover" else event for event in events]
    assert keys_of(renamed) != keys_of(events)


def test_a_senders_payloads_are_those_of_the_log() -> None:
    capture = captured("race-duplicate-delivery", "append-only")
    outside = model_of(capture, "append-only").scenario.outside
    assert [(one.actor, getattr(one, "token", "")) for one in outside] == [("H", "review"), ("H2", "review")]
    assert all(getattr(one, "payload", None) == {"approved": True, "reviewer": "ada"} for one in outside)


def test_one_seed_is_one_search_and_the_limit_is_said() -> None:
    capture = captured("in-flight-before-decision", "mint-ulid")
    one, other = (produce(capture, "append-only", most=50, seed=3) for _ in range(2))
    assert replace(one, model=other.model) == other
    assert one.proved < 2
    assert "50 tried" in one.sentence


def test_a_log_without_a_workflow_is_told_what_is_missing(root: Path) -> None:
    with pytest.raises(UsageError) as told:
        produce(read(root, "4199-step-started-twice-and-ended"), "append-only")
    assert "does not name the workflow" in str(told.value)
