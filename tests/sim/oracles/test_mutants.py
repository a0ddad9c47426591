"""Each oracle, asked by itself, has something broken that it sees, and a twin in which it sees nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stormctl.engine.generations import generation
from stormctl.runtime.rules import Rules
from stormctl.sim.book.bodies import BODIES
from stormctl.sim.explore import Budget, explore
from stormctl.sim.kernel import TapeChooser, play
from stormctl.sim.library import bug
from stormctl.sim.oracles import ORACLES
from stormctl.sim.real.machine import Machine
from stormctl.sim.real.scenario import Scenario, Sent
from stormctl.sim.real.system import System
from stormctl.sim.real.worlds import sim_world

#: by oracle, a bug of the library that it sees
MUTANTS = {
    "end": "lost-dispatch",
    "log": "torn-hook",
    "cold": "in-flight-hole",
    "ledger": "barrier-skip",
    "prefixes": "moved-wait",
    "order": "in-flight-hole",
}


def test_every_oracle_has_a_mutant() -> None:
    assert {*MUTANTS, "once"} == set(ORACLES)


@pytest.mark.parametrize("oracle", MUTANTS)
def test_it_sees_its_mutant_and_nothing_in_the_twin(oracle: str) -> None:
    one = bug(MUTANTS[oracle])

    def alone(machine: Machine, run: object) -> list[object]:
        return list(ORACLES[oracle](machine, run))

    broken, sound = (replace(one.system(repaired=repaired), judge=alone) for repaired in (False, True))
    found = explore(broken, one.strategy, budget=Budget(runs=one.schedules), seed=1, stop_at_first=True)
    assert found.verdict == "violation"
    assert {violation.oracle.partition(".")[0] for violation in found.violations.values()} == {oracle}
    assert explore(sound, one.strategy, budget=Budget(runs=60), seed=1).verdict == "pass"


def played(body: str) -> tuple[Machine, object]:
    model = System(Scenario(body, BODIES[f"book-{body}"], {}, rests=True), sim_world("append-only"))
    run = play(model, TapeChooser())
    assert isinstance(run.instance, Machine)
    return run.instance, run


def test_once_sees_a_body_that_runs_without_having_been_started() -> None:
    machine, run = played("one-step")
    assert list(ORACLES["once"](machine, run)) == []
    machine.finished["touch"] += 1
    assert [problem.signature for problem in ORACLES["once"](machine, run)] == ["once/touch"]


@pytest.mark.parametrize(("body", "told"), [("one-step", []), ("waits-for-ever", ["end/store"])])
def test_a_message_that_was_given_up_is_told_where_the_run_has_not_ended(body: str, told: list[str]) -> None:
    machine, run = played(body)
    machine.errors.append("O2: the store does not answer")
    assert [problem.signature for problem in ORACLES["end"](machine, run)] == told


@pytest.mark.parametrize("generation_name", ["registered", "rearm"])
def test_order_leaves_a_race_to_the_body_that_began_when_a_racer_had_settled(generation_name: str) -> None:
    """A payload lies unread in front of the wait; the race begins when the wait is over, and goes on with that."""

    async def body(wf: object, input: object) -> str:
        hook, pause = wf.hook("review"), wf.sleep(60_000)
        await wf.step("work")
        winner = await wf.race(hook.next().then(lambda _: "recover"), pause.then(lambda _: "settle"))
        await wf.step(winner)
        return winner

    workload = replace(BODIES["book-fork"], name="unread", body=body)
    rules = Rules(generation=generation(generation_name))
    outside = (Sent("H", "review", {"approved": True}),)
    scenario = Scenario("unread", workload, {}, outside, rules, rests=True)
    model = System(scenario, sim_world("fenced[overlap]"), lambda machine, run: list(ORACLES["order"](machine, run)))
    assert explore(model, "random", budget=Budget(runs=60), seed=1).verdict == "pass"
