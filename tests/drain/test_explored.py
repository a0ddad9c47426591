"""Searching schedules: the checker catches each generation at what it is known for, and nothing is unexplained."""

from __future__ import annotations

import os

import pytest

from stormctl.drain.explored import MOST_STEPS, MUST_VIOLATE, SITUATIONS, judge, model_named, search, situation
from stormctl.drain.knobs import GENERATIONS, MUTATIONS, preset
from stormctl.errors import UsageError
from stormctl.sim.explore import Budget
from stormctl.sim.kernel import TapeChooser, play
from stormctl.sim.shrink import shrink

#: STORMCTL_DRAINS=100000 plays as many schedules of the last generation
DRAINS = int(os.environ.get("STORMCTL_DRAINS", "3000"))

#: where the classes of a generation show soonest, and how many schedules that takes at most
WHERE: dict[str, tuple[tuple[str, ...], int]] = {
    "G-1": (("again",), 50),
    "G0": (("again", "faults", "park-one"), 600),
    "G1": (("again", "faults", "park-one", "compact-again"), 600),
    "G2": (("throw", "park-one"), 2600),
    "G3": (("park-one",), 600),
    "G4": (("throw",), 50),
}


@pytest.mark.parametrize("loop", GENERATIONS)
def test_a_generation_is_caught_at_what_it_is_known_for(loop: str) -> None:
    names, runs = WHERE[loop]
    found = search(loop, names, budget=Budget(runs=runs))
    assert MUST_VIOLATE[loop]
    assert found.not_caught_at(MUST_VIOLATE[loop]) == ()
    assert found.not_caught_at(("drain-never/",)) == ("drain-never/",)
    assert found.wanted == ()  # some situations alone need not show it
    assert found.unexplained == []


@pytest.mark.parametrize("loop", GENERATIONS)
def test_nothing_that_a_search_finds_is_unexplained(loop: str) -> None:
    found = search(loop, budget=Budget(runs=700), seed=5)
    assert found.wanted == MUST_VIOLATE[loop]
    assert [one.signature for one in found.unexplained] == []


@pytest.mark.timeout(3_600)
def test_many_schedules_of_the_last_generation_show_the_residual_alone() -> None:
    found = search("G4", budget=Budget(runs=DRAINS), seed=11)
    assert [(one.signature, one.text) for one in found.faults] == []
    assert found.exploration.cut == 0
    assert found.exploration.verdict == "violation"  # the residual: the search was not vacuous
    assert {one.signature for one in found.residuals} >= {"drain-coverage/residual-queue"}


@pytest.mark.timeout(3_600)
def test_with_all_injections_at_once_too() -> None:
    found = search("G4", ["all"], budget=Budget(runs=max(500, DRAINS // 4)), seed=3)
    assert [(one.signature, one.text) for one in found.faults] == []


@pytest.mark.parametrize(
    ("loop", "where", "signature"),
    [
        ("no-floor", "faults", "drain-coverage/view"),
        ("no-sequence-validation", "compact-again", "drain-barrier/other-seq"),
        ("no-consumed-recheck", "consequence", "drain-once/double-effect"),
        ("full-durability-wait", "shadow", "deadlock/its own sealed writes"),
    ],
)
def test_a_mutation_is_caught_where_the_second_generation_is_not(loop: str, where: str, signature: str) -> None:
    assert loop in MUTATIONS
    assert signature in search(loop, [where], budget=Budget(runs=400)).exploration.violations
    assert signature not in search("G2", [where], budget=Budget(runs=400)).exploration.violations


def test_a_second_copy_is_found_without_the_guard() -> None:
    found = search("G4[guard=none]", ["faults"], budget=Budget(runs=300))
    assert "drain-single-copy/second-copy" in found.exploration.violations


def test_handlers_that_a_park_does_not_drop_run_unmarked() -> None:
    """Open in the sources: whether what was queued before a park still runs. If so, the last generation doubles it."""
    found = search("G4[park_drops_queued=off]", ["park-one"], budget=Budget(runs=600))
    assert "drain-once/effect-without-mark" in found.exploration.violations


def test_the_model_rule_closes_what_a_conflict_throws_back() -> None:
    broken = search("G4", ["compact"], budget=Budget(runs=2_000))
    assert "drain-coverage/residual-requeue" in broken.exploration.violations
    sound = search("G4[advance_on_requeue=off]", ["compact"], budget=Budget(runs=2_000))
    assert "drain-coverage/residual-requeue" not in sound.exploration.violations


def test_a_violation_is_made_small_and_plays_again() -> None:
    found = search("G3", ["park-one"], budget=Budget(runs=600))
    violation = found.exploration.violations["drain-tenure/queued-after-park"]
    model = found.models[violation.model]
    small = shrink(model, violation.tape, violation.signature, most=300, most_steps=MOST_STEPS, models=False)
    assert small.preemptions + small.faults == 1
    assert small.certificate.complete
    again = play(model_named(model.name), TapeChooser(small.tape))
    assert violation.signature in {problem.signature for problem in again.problems}


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_ordinary_schedule_of_the_last_generation_goes_well(name: str) -> None:
    run = play(situation(name, preset("G4"), "G4"), TapeChooser(), most=MOST_STEPS)
    assert run.problems == ()
    assert not run.cut


def test_a_model_is_named_by_loop_and_situation_and_its_digest_is_its_own() -> None:
    model = model_named("drain:G2[barrier=off]/park")
    assert model.setup.knobs == preset("G2[barrier=off]")
    assert model.digest == model_named("drain:G2[barrier=off]/park").digest
    assert model.digest != model_named("drain:G2/park").digest
    assert model.judge is judge
    for text in ("drain:G2/nowhere", "park", "drain:G9/park"):
        with pytest.raises(UsageError):
            model_named(text)
