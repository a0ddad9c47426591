"""One schedule of each class: held against every schedule there is."""

from __future__ import annotations

import pytest
from hypothesis import assume, given

from stormctl.sim.classes import class_of
from stormctl.sim.dpor import Search
from stormctl.sim.kernel import Model, Run, play
from stormctl.sim.models.fork import Fork
from stormctl.sim.strategies.base import Abandoned
from tests.sim.programs import Program, every_run, programs


def played(model: Model) -> tuple[list[Run], int]:
    """Each schedule that is played to its end, and how many were abandoned."""
    search, runs, abandoned = Search(), [], 0
    while (chooser := search.chooser()) is not None:
        try:
            run = play(model, chooser)
        except Abandoned:
            abandoned += 1
            search.learn(chooser.report(None))
        else:
            runs.append(run)
            search.learn(chooser.report(run))
    return runs, abandoned


def reduced(model: Model) -> tuple[list[int], int]:
    """The class of each, and how many were abandoned."""
    runs, abandoned = played(model)
    return [class_of(run) for run in runs], abandoned


@pytest.mark.parametrize("bystanders", [0, 2])
@pytest.mark.parametrize(("world", "count"), [("mint", 54), ("commit", 12)])
def test_the_fork_takes_as_many_runs_as_it_has_classes(world: str, count: int, bystanders: int) -> None:
    classes, abandoned = reduced(Fork(world, bystanders=bystanders))
    assert (len(classes), len(set(classes)), abandoned) == (count, count, 0)


@pytest.mark.parametrize("world", ["mint", "commit"])
def test_the_classes_of_the_fork_are_those_of_brute_force(world: str) -> None:
    assert set(reduced(Fork(world))[0]) == {class_of(run) for run in every_run(Fork(world))}


def test_picks_waits_and_children_are_explored() -> None:
    child = ("child", (("w", "x"),))
    model = Program(((child, ("pick",), ("w", "y")), (("await", "x"), ("w", "y")), (("w", "x"),)))
    classes, _ = reduced(model)
    assert sorted(classes) == sorted({class_of(run) for run in every_run(model)})


def test_a_lock_is_taken_in_either_order() -> None:
    held = ("lock", "m", (("w", "x"),))
    classes, abandoned = reduced(Program(((held,), (held,), (held,))))
    assert (len(classes), len(set(classes)), abandoned) == (6, 6, 0)


def test_a_deadlock_is_reached() -> None:
    first = ("lock", "m", (("lock", "n", (("w", "x"),)),))
    second = ("lock", "n", (("lock", "m", (("w", "x"),)),))
    program = Program(((first,), (second,)))
    missing = {run.missing for run in played(program)[0]}
    assert missing == {(), ("lock n", "lock m")}


def test_abandoned_runs_are_rare() -> None:
    finished = gone = 0
    for program in (
        Program(((("w", "x"), ("r", "y")), (("w", "y"), ("r", "x")), (("r", "x"), ("r", "y")))),
        Program(((("w", "x"),) * 2, (("r", "x"),) * 2, (("r", "x"), ("w", "y")))),
        Fork("mint", payloads=2),
    ):
        classes, abandoned = reduced(program)
        finished += len(classes)
        gone += abandoned
    assert gone <= finished / 100


@given(programs())
def test_every_class_is_met_once(program: Program) -> None:
    runs = list(every_run(program, most=3_000))
    assume(len(runs) < 3_000)
    classes, _ = reduced(program)
    assert set(classes) == {class_of(run) for run in runs}
    assert len(classes) == len(set(classes))
