"""The neighbour that goes well, and the pair that makes the difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from stormctl.sim.kernel import Body, Label, Problem, Run, Stage, TapeChooser, play
from stormctl.sim.show import nearest_passing, racing_pair


@dataclass
class Counter:
    value: int = 0
    wrong: list[str] = field(default_factory=list)

    def judge(self, run: Run) -> Sequence[Problem]:
        return () if self.value == 2 else (Problem("sum", "sum/lost-update", f"{self.value} instead of 2"),)


@dataclass(frozen=True)
class LostUpdate:
    """Two actors that read a number and write it back with one more; others that have nothing to do with it."""

    idle: int = 0
    name: str = "lost-update"
    digest: str = "00"

    def start(self, stage: Stage) -> Counter:
        counter = Counter()
        for name in ("A", "B"):
            stage.spawn(name, self._add(counter))
        for number in range(self.idle):
            stage.spawn(f"I{number}", self._idle(number))
        return counter

    def _add(self, counter: Counter) -> Body:
        yield Label("read", "number")
        seen = counter.value
        yield Label("publish", "number", writes=True)
        counter.value = seen + 1

    def _idle(self, number: int) -> Body:
        for _ in range(3):
            yield Label("row", f"own {number}", writes=True)


def test_the_neighbour_of_a_lost_update_is_one_choice_away() -> None:
    model = LostUpdate()
    failing = play(model, TapeChooser([0, 1]))
    assert failing.problems
    found = nearest_passing(model, failing)
    assert found is not None
    assert not found.run.problems
    assert sum(a != b for a, b in zip(found.run.tape, failing.tape, strict=False)) == 1


def test_the_pair_that_raced_are_a_read_and_the_write_that_it_missed() -> None:
    model = LostUpdate(idle=2)
    failing = play(model, TapeChooser([0, 1]))
    found = nearest_passing(model, failing)
    assert found is not None
    race = racing_pair(failing, found.run)
    assert race is not None
    first, second = failing.turns[race.first], failing.turns[race.second]
    assert {failing.names[first.actor], failing.names[second.actor]} == {"A", "B"}
    assert {first.label.op, second.label.op} == {"read", "publish"}


def test_two_equal_runs_have_no_race() -> None:
    run = play(LostUpdate(), TapeChooser())
    assert racing_pair(run, play(LostUpdate(), TapeChooser())) is None


def test_a_model_that_always_fails_has_no_passing_neighbour() -> None:
    @dataclass(frozen=True)
    class Broken(LostUpdate):
        def start(self, stage: Stage) -> Counter:
            counter = super().start(stage)
            counter.value = 7
            return counter

    model = Broken()
    assert nearest_passing(model, play(model, TapeChooser([0, 1]))) is None
