"""Small schedules, and the proof that there is none smaller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.errors import UsageError
from stormctl.sim.certify import certify
from stormctl.sim.explore import Budget, explore
from stormctl.sim.kernel import Body, Label, Pick, Problem, Run, Stage, TapeChooser, play
from stormctl.sim.models.fork import Fork
from stormctl.sim.shrink import shrink

SIGNATURE = "cold-replay: settle where the log decides approve"


@pytest.mark.parametrize("seed", range(10))
def test_the_hole_shrinks_to_two_preemptions_and_that_is_proved(seed: int) -> None:
    model = Fork("mint", 2, 2, 1)
    found = explore(model, "random", budget=Budget(runs=2_000), seed=seed, stop_at_first=True)
    assert found.first is not None
    shrunk = shrink(model, found.first.tape, found.first.signature)
    assert (shrunk.model, shrunk.tape, shrunk.signature) == (Fork("mint"), (1, 1), SIGNATURE)
    assert (shrunk.preemptions, shrunk.faults, shrunk.steps) == (2, 0, 19)
    assert str(shrunk.certificate) == "minimal: no failing schedule with <= 1 preemption (18 checked)"
    assert shrunk.certificate.complete
    assert shrunk.tried <= 300


def test_the_model_stays_where_it_is_asked_to() -> None:
    model = Fork("mint", 2)
    found = explore(model, "random", budget=Budget(runs=2_000), seed=1, stop_at_first=True)
    assert found.first is not None
    shrunk = shrink(model, found.first.tape, models=False)
    assert shrunk.model == model
    assert (shrunk.preemptions, shrunk.certificate.complete) == (2, True)


def test_a_shrunk_tape_fails_in_the_same_way() -> None:
    shrunk = shrink(Fork("mint"), [0, 1, 1, 0, 0, 0, 0, 0, 1])
    run = play(shrunk.model, TapeChooser(shrunk.tape))
    assert [problem.signature for problem in run.problems] == [shrunk.signature]


@given(st.lists(st.integers(0, 2), max_size=40))
def test_whatever_fails_shrinks_to_the_same_schedule(tape: list[int]) -> None:
    run = play(Fork("mint"), TapeChooser(tape))
    if run.problems:
        shrunk = shrink(Fork("mint"), run.tape)
        assert shrunk.tape == (1, 1)


def test_a_proof_finds_what_is_simpler() -> None:
    certificate = certify(Fork("mint"), SIGNATURE, fewer_than=4)
    assert certificate.simpler is not None
    assert not certificate.complete
    assert str(certificate).startswith("not minimal: a schedule with fewer preemptions fails")


def test_a_proof_counts_every_schedule_with_fewer_preemptions() -> None:
    certificate = certify(Fork("commit"), SIGNATURE, fewer_than=4)
    assert (certificate.checked, certificate.proved, certificate.complete) == (171, 3, True)
    assert str(certify(Fork("mint"), SIGNATURE, fewer_than=0)) == "minimal: it takes no preemption"


def test_a_proof_that_came_to_its_limit_says_so() -> None:
    certificate = certify(Fork("commit"), SIGNATURE, fewer_than=4, most=40)
    assert not certificate.complete
    assert str(certificate) == (
        "not proved minimal: no failing schedule with <= 2 preemptions; the limit of schedules was reached at 3 "
        "(40 checked)"
    )
    assert certify(Fork("commit"), SIGNATURE, fewer_than=1, most=1).complete


def test_a_schedule_that_was_given_up_proves_nothing() -> None:
    certificate = certify(Fork("commit"), SIGNATURE, fewer_than=2, most_steps=5)
    assert (certificate.proved, certificate.complete) == (-1, False)


def test_a_tape_that_does_not_fail_is_refused() -> None:
    with pytest.raises(UsageError, match="does not fail"):
        shrink(Fork("mint"), [])
    with pytest.raises(UsageError, match="does not fail with"):
        shrink(Fork("mint"), [1, 1], "another")


@dataclass(frozen=True)
class Lossy:
    """One that fails when the third of its messages is lost after another has looked."""

    messages: int = 4
    name: str = "lossy"
    digest: str = "0123456789abcdef"

    def start(self, stage: Stage) -> Lossy:
        lost: list[int] = []
        stage.spawn("S", self._send(lost))
        stage.spawn("R", self._read())
        stage.run.instance = self
        object.__setattr__(self, "_lost", lost)
        return self

    def judge(self, run: Run) -> Sequence[Problem]:
        lost = self._lost  # type: ignore[attr-defined]
        return (Problem("sent", "sent: 2 is lost", "2 is lost"),) if 2 in lost else ()

    def _send(self, lost: list[int]) -> Body:
        for number in range(self.messages):
            yield Label("send", "queue", True)
            if (yield Pick("loss", ("kept", "twice", "lost"))) == 2:
                lost.append(number)

    def _read(self) -> Body:
        yield Label("take", "queue")


def test_faults_count_as_preemptions_do() -> None:
    found = explore(Lossy(), "random", budget=Budget(runs=500), seed=2, stop_at_first=True)
    assert found.first is not None
    shrunk = shrink(Lossy(), found.first.tape)
    assert (shrunk.preemptions, shrunk.faults) == (0, 1)
    assert str(shrunk.certificate) == "minimal: no failing schedule with <= 0 preemptions and faults (2 checked)"
