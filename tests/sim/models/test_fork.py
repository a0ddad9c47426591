"""The small model, by brute force: its numbers are those that everything else is held against."""

from __future__ import annotations

import pytest

from stormctl.sim.classes import class_of
from stormctl.sim.kernel import TapeChooser, play
from stormctl.sim.models.fork import Fork
from tests.sim.programs import every_run


@pytest.mark.parametrize(
    ("world", "bad", "classes", "bad_classes"),
    [("mint", 28, 54, 9), ("commit", 0, 12, 0)],
)
def test_one_delivery_and_one_payload_interleave_in_171_ways(
    world: str, bad: int, classes: int, bad_classes: int
) -> None:
    runs = list(every_run(Fork(world)))
    by_class = {class_of(run): bool(run.problems) for run in runs}
    assert len(runs) == 171
    assert sum(bool(run.problems) for run in runs) == bad
    assert (len(by_class), sum(by_class.values())) == (classes, bad_classes)


def test_every_schedule_of_a_class_ends_alike() -> None:
    ends: dict[int, str] = {}
    for run in every_run(Fork("mint")):
        assert ends.setdefault(class_of(run), run.instance.observed()) == run.instance.observed()


def test_the_in_flight_hole_takes_two_preemptions_and_19_turns() -> None:
    run = play(Fork("mint"), TapeChooser([1, 1]))  # the payload is minted, the delivery ends, the payload comes
    assert [problem.oracle for problem in run.problems] == ["cold-replay"]
    assert run.problems[0].signature == "cold-replay: settle where the log decides approve"
    assert (run.preemptions, run.steps) == (2, 19)
    assert run.instance.observed().startswith("1 hook_received, 2 wait_completed, 3 step_created settle")
    assert [run.names[run.turns[0].actor], run.names[run.turns[-1].actor]] == ["H", "H"]


def test_the_same_schedule_is_sound_where_places_are_given_at_the_commit() -> None:
    run = play(Fork("commit"), TapeChooser([1, 1]))
    assert run.problems == ()
    assert run.instance.observed().endswith("hook_received")


def test_a_payload_that_comes_first_is_followed() -> None:
    run = play(Fork("mint"), TapeChooser([1]))
    assert run.problems == ()
    assert "step_created approve" in run.instance.observed()


def test_a_delivery_that_meets_the_other_branch_fails_the_run() -> None:
    runs = [run for run in every_run(Fork("mint")) if run.instance.end.type == "run_failed"]
    assert runs
    assert all(run.problems for run in runs)


@pytest.mark.parametrize("world", ["mint", "commit"])
def test_two_deliveries_at_a_time_write_each_event_once(world: str) -> None:
    for run in every_run(Fork(world, orchestrators=2), most=300):
        keys = [event.key for _, event in run.instance.entries]
        assert len(keys) == len(set(keys))
        assert run.instance.end is not None


def test_each_smaller_model_is_another_one() -> None:
    large = Fork("mint", 2, 2, 1)
    names = [model.name for model in large.smaller()]
    assert "fork-mint-2-orchestrators-2-payloads" in names
    assert large.name not in names
    assert len({Fork(world, n).digest for world in ("mint", "commit") for n in (1, 2)}) == 4
