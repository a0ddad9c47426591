"""Classes of schedules."""

from __future__ import annotations

from hypothesis import given

from stormctl.sim.classes import class_of, dependent, foata, identities
from stormctl.sim.kernel import Label, Run, TapeChooser, play
from tests.sim.programs import Program, every_run, programs


def test_two_turns_depend_on_each_other_when_one_writes_what_both_touch() -> None:
    read, write, other = Label("read", "x"), Label("publish", "x", True), Label("publish", "y", True)
    assert not dependent(read, read)
    assert dependent(read, write)
    assert dependent(write, read)
    assert dependent(write, write)
    assert not dependent(write, other)
    assert not dependent(Label("mint", "", True), Label("mint", "", True))


def test_independent_turns_are_one_class_and_dependent_ones_two() -> None:
    assert len({class_of(run) for run in every_run(Program(((("w", "x"),), (("w", "y"),))))}) == 1
    assert len({class_of(run) for run in every_run(Program(((("w", "x"),), (("r", "x"),))))}) == 2
    assert len({class_of(run) for run in every_run(Program(((("r", "x"),), (("r", "x"),))))}) == 1


def test_a_normal_form_puts_independent_turns_on_one_level() -> None:
    run = play(Program(((("w", "x"), ("w", "x")), (("w", "y"),))), TapeChooser())
    assert foata(run) == ["1 A0: publish x 1 ", "1 A1: publish y 1 ", "2 A0: publish x 1 "]


def test_the_class_of_a_schedule_is_the_same_on_every_machine() -> None:
    run = play(Program(((("w", "x"),), (("r", "x"),))), TapeChooser())
    assert f"{class_of(run):016x}" == "d3ee561b7de13521"


def test_a_pick_is_part_of_the_class() -> None:
    assert len({class_of(run) for run in every_run(Program(((("w", "x"), ("pick",), ("w", "x")),)))}) == 2


def test_actors_are_named_by_who_spawned_them_and_not_by_their_number() -> None:
    run = Run(names=["a", "b", "late", "late", "late"], parents=[-1, -1, 1, 0, 1])
    assert identities(run) == ["a", "b", "b/late", "a/late", "b/late#2"]


@given(programs())
def test_schedules_of_one_class_end_alike(program: Program) -> None:
    ends: dict[int, str] = {}
    for run in every_run(program, most=2_000):
        assert ends.setdefault(class_of(run), run.instance.result()) == run.instance.result()
