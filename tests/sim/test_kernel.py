"""The loop: options, waits, picks; held against a plain one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.sim.kernel import Body, Label, Pick, Problem, Run, Stage, TapeChooser, Turn, Wait, play
from stormctl.sim.models.fork import Fork
from tests.sim.programs import Program, programs
from tests.sim.toys import Writers


class Plain(Stage):
    """The loop as one would write it first: the options are made anew for each turn."""

    __slots__ = ()

    def play(self, chooser: object, most: int, *, lean: bool = False) -> None:
        self._chooser = chooser  # type: ignore[assignment]
        run, current = self.run, self.current
        while len(run.turns) < most:
            self._look_again()
            ready = sorted(self._ready, key=self._rank)
            options = [current, *(one for one in ready if one != current)] if current in ready else ready
            if not options:
                break
            choice = 0
            if len(options) > 1:
                choice = min(chooser.turn(self, options), len(options) - 1)  # type: ignore[attr-defined]
                run.tape.append(choice)
                run.widths.append(len(options))
                run.costs.append(options[0] == current)
                run.preemptions += bool(choice) and options[0] == current
            current = self.current = options[choice]
            run.turns.append(Turn(current, self.label(current), choice, len(options)))
            run.steps += 1
            self._waiting.pop(current, None)
            self._stop(current)
            self._resume(current)
        else:
            run.cut = True
        run.missing = tuple(wait.missing for _, wait in sorted(self._waiting.items()))


def plainly(model: Program | Fork, tape: Sequence[int]) -> Run:
    stage = Plain()
    stage.run.instance = model.start(stage)
    stage.play(TapeChooser(tape), 1_000)
    stage.run.problems = tuple(stage.run.instance.judge(stage.run))
    return stage.run


tapes = st.lists(st.integers(0, 3), max_size=30)


@given(programs(), tapes)
def test_the_fast_loop_does_what_the_plain_one_does(program: Program, tape: list[int]) -> None:
    mine, plain = play(program, TapeChooser(tape)), plainly(program, tape)
    assert mine.instance.result() == plain.instance.result()
    mine.instance = plain.instance = None
    assert mine == plain


@given(st.sampled_from([Fork("mint"), Fork("commit", 2)]), tapes)
def test_a_lean_run_has_the_same_end(model: Fork, tape: list[int]) -> None:
    full, lean = play(model, TapeChooser(tape)), play(model, TapeChooser(tape), lean=True)
    assert (lean.tape, lean.steps, lean.preemptions, lean.problems) == (
        full.tape,
        full.steps,
        full.preemptions,
        full.problems,
    )
    assert len(full.turns) == full.steps
    assert not lean.turns


@given(tapes)
def test_widths_and_costs_go_with_the_tape(tape: list[int]) -> None:
    run = play(Writers((2, 2), lossy=True, relay=True), TapeChooser(tape))
    assert len(run.tape) == len(run.widths) == len(run.costs)
    assert all(choice < width for choice, width in zip(run.tape, run.widths, strict=True))
    assert run.preemptions + run.faults == sum(
        bool(choice) and cost for choice, cost in zip(run.tape, run.costs, strict=True)
    )


def test_who_was_ready_waits_again_when_another_took_what_there_was() -> None:
    held = ("lock", "m", (("w", "x"),))
    run = play(Program(((held,), (held,))), TapeChooser([0, 1, 1, 1]))
    assert [(run.names[turn.actor], turn.label.op) for turn in run.turns] == [
        ("A0", "lock"),
        ("A0", "publish"),
        ("A0", "release"),
        ("A1", "lock"),
        ("A1", "publish"),
        ("A1", "release"),
    ]
    assert run.missing == ()


class Stuck:
    """One who waits for what never comes."""

    name, digest = "stuck", "0123456789abcdef"

    def start(self, stage: Stage) -> Stuck:
        stage.spawn("A", self._wait())
        return self

    def judge(self, run: Run) -> Sequence[Problem]:
        return ()

    def _wait(self) -> Body:
        yield Wait(Label("take", "queue", True), lambda: False, "a message")


def test_a_deadlock_names_what_is_missing() -> None:
    assert play(Stuck(), TapeChooser()).missing == ("a message",)


class Endless(Stuck):
    """One who never ends."""

    def _wait(self) -> Body:
        while True:
            yield Label("tick", "clock", True)


@pytest.mark.parametrize("lean", [False, True])
def test_a_run_without_end_is_cut(lean: bool) -> None:
    run = play(Endless(), TapeChooser(), most=50, lean=lean)
    assert (run.cut, run.steps) == (True, 50)


def test_taking_the_turn_of_one_who_is_under_way_at_the_start_is_a_preemption() -> None:
    assert play(Fork("mint"), TapeChooser([1])).preemptions == 1
    assert play(Program(((("w", "x"),), (("w", "x"),))), TapeChooser([1])).preemptions == 0


def test_parents_are_who_spawned() -> None:
    run = play(Program(((("child", (("w", "x"),)),), (("w", "y"),))), TapeChooser())
    assert (run.names, run.parents) == (["A0", "A1", "A0c"], [-1, -1, 0])


def test_a_pick_of_one_option_is_no_choice() -> None:
    class Sure(Stuck):
        def _wait(self) -> Body:
            yield Label("take")
            assert (yield Pick("loss", ("kept",))) == 0

    assert play(Sure(), TapeChooser([5])).tape == []
