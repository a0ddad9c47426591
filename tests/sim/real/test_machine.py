"""The real runtime as a model: what can interleave does, what cannot does not, and the oracles see what breaks."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from stormctl.engine.generations import generation
from stormctl.errors import UsageError
from stormctl.history import EventLog, kinds
from stormctl.runtime.rules import Rules
from stormctl.sim.book import ENTRIES
from stormctl.sim.book.bodies import BODIES
from stormctl.sim.explore import Budget, explore
from stormctl.sim.kernel import Run, TapeChooser, play
from stormctl.sim.oracles import all_of
from stormctl.sim.real.machine import Machine
from stormctl.sim.real.scenario import Scenario, Sent
from stormctl.sim.real.system import System
from stormctl.sim.real.worlds import WORLDS, Dedupe, sim_world

YES = Sent("H", "review", {"approved": True})
SIMPLE = ("empty", "one-step", "parallel", "retrying", "long-sleep", "deadline", "fork", "step-fork", "siblings")


def system(body: str, world: str = "append-only", *, generation_name: str = "nets", hook: bool = True) -> System:
    outside = (YES,) if hook else ()
    rules = Rules(generation=generation(generation_name))
    return System(Scenario(body, BODIES[f"book-{body}"], {}, outside, rules, rests=True), sim_world(world), all_of)


def machine(run: Run) -> Machine:
    assert isinstance(run.instance, Machine)
    return run.instance


@pytest.mark.parametrize("world", sorted(WORLDS))
@pytest.mark.parametrize("body", SIMPLE)
def test_the_ordinary_schedule_of_every_body_goes_well_in_every_world(body: str, world: str) -> None:
    run = play(system(body, world), TapeChooser())
    assert run.problems == ()
    row = machine(run).row
    assert row is not None
    assert row.status == "completed"


def test_one_tape_is_one_run_and_the_passes_are_kept() -> None:
    model = system("fork", "mint-ulid")
    first = play(model, TapeChooser([1, 0, 1, 1]))
    made = model.passes.made
    again = play(model, TapeChooser([1, 0, 1, 1]))
    assert (again.turns, machine(again).happened) == (first.turns, machine(first).happened)
    assert model.passes.made == made


def test_time_moves_only_to_what_is_due_and_overtakes_nobody_by_default() -> None:
    run = play(system("deadline", hook=False), TapeChooser())
    ticks = [one for one in machine(run).happened if one.op == "tick"]
    assert [one.at_ms for one in ticks] == [3_600_000]


def test_a_hook_that_nobody_answers_is_a_deadlock_that_names_the_token() -> None:
    model = system("waits-for-ever", hook=False)
    waiting = System(replace(model.scenario, rests=False), model.world, all_of)
    run = play(waiting, TapeChooser())
    assert [problem.signature for problem in run.problems] == ["end/stalled"]
    assert "'review'" in run.problems[0].text
    assert play(model, TapeChooser()).problems == ()


def test_under_the_lock_of_a_run_nobody_else_appends() -> None:
    """From the turn that takes the lock to the one that publishes and gives it back, the turns of others are reads."""
    held = 0
    for seed in range(20):
        run = play(system("siblings", "fenced", hook=False), _Dice(seed))
        holder = None
        for turn in run.turns:
            if turn.label.op == "lock":
                assert holder is None
                holder = turn.actor
            elif turn.label.op == "publish":
                assert holder == turn.actor
                holder = None
            held += holder is not None and turn.actor != holder
    assert held > 0  # others did go on meanwhile, or nothing was shown


def test_where_ids_are_drawn_first_an_event_can_be_overtaken_and_elsewhere_not() -> None:
    overtaken = {}
    for world in ("mint-ulid", "append-only"):
        model = system("fork", world)
        counts = 0
        for seed in range(40):
            run = play(model, _Dice(seed))
            order = [one.event for one in machine(run).happened if one.op == "publish" and one.event is not None]
            place = {event.event_id: at for at, event in enumerate(machine(run).events)}
            counts += any(place[a.event_id] > place[b.event_id] for a, b in pairwise(order))
        overtaken[world] = counts
    assert overtaken["mint-ulid"] > 0
    assert overtaken["append-only"] == 0


class _Dice:
    def __init__(self, seed: int) -> None:
        from random import Random

        self._random = Random(seed)

    def turn(self, stage: object, options: list[int]) -> int:
        return self._random.randrange(len(options))

    def pick(self, stage: object, actor: int, pick: object) -> int:
        return 0


class TestSearch:
    def test_the_in_flight_hole_is_found_from_workflow_and_actors_alone(self) -> None:
        found = explore(system("fork", "mint-ulid"), "pos", budget=Budget(runs=400), seed=1)
        assert "cold/diverged" in found.violations

    @pytest.mark.parametrize("world", ["fenced", "fenced[overlap]", "fenced[crash,duplicates]"])
    def test_commit_order_a_fence_and_the_last_engine_leave_nothing_to_find(self, world: str) -> None:
        model = system("fork", world, generation_name="rearm")
        for strategy in ("random", "pct:3"):
            found = explore(model, strategy, budget=Budget(runs=60), seed=3)
            assert found.verdict == "pass", found.violations


class TestEverySchedule:
    """On the real runtime one schedule of each class is what all schedules have classes."""

    @pytest.mark.parametrize(
        ("entry", "schedules", "classes"), [("parallel-steps", 34, 6), ("hook-at-hook-created", 528, 9)]
    )
    def test_of_a_small_case_falls_into_as_many_classes_as_are_played(
        self, entry: str, schedules: int, classes: int
    ) -> None:
        model = ENTRIES[entry].search("fenced")
        all_of_them = explore(model, "bounded", budget=Budget(runs=5_000))
        one_of_each = explore(model, "dpor", budget=Budget(runs=5_000))
        assert all_of_them.exhausted
        assert one_of_each.exhausted
        assert (all_of_them.runs, all_of_them.classes) == (schedules, classes)
        assert (one_of_each.runs, one_of_each.classes) == (classes, classes)


class TestWorlds:
    def test_switches_are_named_in_brackets(self) -> None:
        world = sim_world("append-only[overlap, crash]")
        assert (world.serial, world.crash, world.name) == (False, True, "append-only[overlap, crash]")

    def test_any_storage_condition_is_a_world(self) -> None:
        assert sim_world("seq-tail").condition.name == "seq-tail"

    @pytest.mark.parametrize("name", ["append-onyl", "append-only[crush]", ""])
    def test_what_is_none_is_refused_with_the_likeliest_name(self, name: str) -> None:
        with pytest.raises(UsageError) as refused:
            sim_world(name)
        assert refused.value.remedy

    def test_a_message_key_is_taken_as_long_as_the_world_says(self) -> None:
        model = system("retrying", hook=False)
        for_ever = System(model.scenario, replace(model.world, dedupe=Dedupe.FOR_EVER), all_of)
        short, long = (machine(play(one, TapeChooser())) for one in (model, for_ever))
        assert len(short._keys) < len(long._keys)


def test_prefixes_that_differ_in_a_name_alone_are_replayed_apart() -> None:
    """Two writers may give one id, at one time and place, to two calls: that is what is looked for."""
    model = system("fork", hook=False)
    run = play(model, TapeChooser())
    events = list(machine(run).events)
    at = next(at for at, event in enumerate(events) if event.type == kinds.STEP_CREATED)
    other = [*events[:at], replace(events[at], name="recover"), *events[at + 1 :]]
    engine = model.passes.engine("nets", model.scenario.workload, machine(run)._input, lambda _log, _pass: None)
    right, wrong = (next(iter(engine.passes(EventLog(log), (at + 1,)))) for log in (events, other))
    assert right.divergence is None
    assert wrong.divergence is not None


def test_a_crash_between_any_two_operations_of_a_delivery_is_a_pick() -> None:
    model = system("one-step", "append-only[crash]", hook=False)
    run = play(model, TapeChooser([0, 0, 1]))
    assert run.problems == ()
    assert any(one.op == "died" for one in machine(run).happened)
    assert sum(event.type == kinds.RUN_COMPLETED for event in machine(run).events) == 1
