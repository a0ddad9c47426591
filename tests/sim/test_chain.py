"""The same schedule is the same each time, here and elsewhere; and what leaks is caught."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from stormctl.errors import StormctlError
from stormctl.sim.chain import Named, chain_of, check, check_fresh, divergence, fresh_chains, same_twice
from stormctl.sim.library import bug
from stormctl.sim.models.fork import Fork
from stormctl.sim.models.leaks import Leak
from stormctl.sim.strategies.random import RandomChooser
from stormctl.sim.stream import Stream
from stormctl.sim.token import Token

#: STORMCTL_TAPES=1000 plays as many
TAPES = int(os.environ.get("STORMCTL_TAPES", "60"))
REAL_TAPES = int(os.environ.get("STORMCTL_TAPES", "12"))
FORK = Named("stormctl.sim.models.fork:Fork", {"world": "mint", "orchestrators": 2})
HASH_SEEDS = ["0", "1", "random"]


def tapes(count: int) -> list[list[int]]:
    stream = Stream("tapes", 1)
    return [[stream.below(3) for _ in range(40)] for _ in range(count)]


def leak(kind: str) -> Named:
    return Named("stormctl.sim.models.leaks:Leak", {"kind": kind})


def test_tapes_are_the_same_twice_in_this_process() -> None:
    checked = check(FORK.model(), tapes(TAPES))
    assert (checked.verdict, checked.tapes) == ("pass", TAPES)
    assert checked.choices > 10


@pytest.mark.parametrize("hash_seed", HASH_SEEDS)
def test_tapes_are_the_same_in_a_fresh_process(hash_seed: str) -> None:
    assert check_fresh(FORK, tapes(TAPES), hash_seed=hash_seed).verdict == "pass"


def python_of(version: str) -> str | None:
    """A CPython of that version, on the path or where pyenv keeps its own; a shim may exist and yet refuse."""
    kept = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    for found in [shutil.which(f"python{version}"), *map(str, kept)]:
        if found is None:
            continue
        said = subprocess.run([found, "-c", "import sys; print(sys.version)"], capture_output=True, text=True)
        if said.returncode == 0 and said.stdout.startswith(version):
            return found
    return None


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_tapes_are_the_same_under_each_python(version: str) -> None:
    python = python_of(version)
    if python is None:
        pytest.skip(f"no CPython {version} runs here")
    assert check_fresh(FORK, tapes(TAPES), python=python).verdict == "pass"


class TestTheRealRuntime:
    """The same of real deliveries and appends: the chain holds every event with its id and time, and every read."""

    HOLE = Named("stormctl.sim.library.bugs:model_of", {"name": "in-flight-hole"})
    FAULTS = Named("stormctl.sim.library.bugs:model_of", {"name": "stale-read"})

    @pytest.mark.parametrize("named", [HOLE, FAULTS], ids=["hole", "faults"])
    def test_is_the_same_twice_in_this_process(self, named: Named) -> None:
        checked = check(named.model(), tapes(REAL_TAPES))
        assert (checked.verdict, checked.tapes) == ("pass", REAL_TAPES)
        assert checked.choices > 10

    @pytest.mark.parametrize("hash_seed", HASH_SEEDS)
    def test_is_the_same_in_a_fresh_process(self, hash_seed: str) -> None:
        checked = check_fresh(self.HOLE, tapes(REAL_TAPES), hash_seed=hash_seed)
        assert checked.verdict == "pass", checked.divergence

    @pytest.mark.parametrize("version", ["3.12", "3.13"])
    def test_is_the_same_under_each_python(self, version: str) -> None:
        """STORMCTL_PYTHON_3_12 names one that has what the runtime needs besides itself."""
        python = os.environ.get(f"STORMCTL_PYTHON_{version.replace('.', '_')}") or python_of(version)
        if python is None or subprocess.run([python, "-c", "import msgspec"], capture_output=True).returncode:
            pytest.skip(f"no CPython {version} with msgspec runs here")
        checked = check_fresh(self.HOLE, tapes(REAL_TAPES), python=python)
        assert checked.verdict == "pass", checked.divergence

    def test_a_chain_tells_two_runs_apart_that_differ_in_a_payload_alone(self) -> None:
        model = bug("in-flight-hole").system()
        scenario = replace(model.scenario, outside=(replace(model.scenario.outside[0], payload={"approved": False}),))
        one, other = (chain_of(each, [1, 1], texts=True) for each in (model, replace(model, scenario=scenario)))
        found = divergence([1, 1], one, other)
        assert found is not None
        assert "hook_received" in found.one


@pytest.mark.parametrize("kind", ["time.time", "id()", "random"])
def test_what_leaks_from_the_process_is_caught_in_it(kind: str) -> None:
    checked = check(Leak(kind), [[], [1]])
    assert checked.verdict == "violation"
    assert checked.divergence is not None
    assert checked.divergence.turn == 1
    assert "W1 publish words" in str(checked.divergence)


@pytest.mark.parametrize("hash_seed", HASH_SEEDS)
@pytest.mark.parametrize("kind", ["set order", "time.time", "id()", "random"])
def test_whatever_leaks_is_caught_in_a_fresh_process(kind: str, hash_seed: str) -> None:
    if kind == "set order" and os.environ.get("PYTHONHASHSEED") == hash_seed:
        pytest.skip("the fresh process has the hashes of this one")
    checked = check_fresh(leak(kind), [[], [1]], hash_seed=hash_seed)
    assert checked.verdict == "violation"
    assert checked.divergence is not None
    assert checked.divergence.turn == 1


def test_what_is_sound_is_not_caught() -> None:
    assert check(Leak("sound"), [[], [1]]).verdict == "pass"
    assert check_fresh(leak("sound"), [[], [1]]).verdict == "pass"


def test_a_scenario_without_a_choice_is_vacuous() -> None:
    assert check(Leak("alone"), [[], [1]]).verdict == "vacuous"
    assert check_fresh(leak("alone"), [[]]).verdict == "vacuous"


def test_a_chain_holds_the_choices_and_not_the_tape() -> None:
    one, other = chain_of(Fork("mint"), [1, 1]), chain_of(Fork("mint"), [1, 1, 0, 0, 0])
    assert one.links == other.links
    assert len(one.links) == 20  # 19 turns, and the end
    assert chain_of(Fork("mint"), [1]).end != one.end
    assert one.end == "61a4daedc9b04e4a"  # on every machine


def test_two_tapes_part_where_they_choose_otherwise() -> None:
    one, other = (chain_of(Fork("mint"), tape, texts=True) for tape in ([0, 0, 1], [0, 0, 0, 1]))
    found = divergence([], one, other)
    assert found is not None
    assert found.turn == 3
    assert found.one.startswith("H mint")
    assert found.other.startswith("O1 publish")


def test_any_chooser_can_be_chained() -> None:
    model = Fork("mint", 2)
    one, other = (chain_of(model, RandomChooser(Stream("x", 1))) for _ in range(2))
    assert one.end == other.end
    assert one.run is not None
    assert chain_of(model, one.run.tape).end == one.end
    assert same_twice(model, one.run.tape) is None


def test_the_token_of_the_hole_shows_it_each_of_a_thousand_times_in_a_fresh_process() -> None:
    model = Fork("mint")
    token = str(Token.of(model.name, model.digest, [1, 1]))
    assert len(token) <= 80
    tape = Token.parse(token).tape
    mine = chain_of(model, tape)
    assert mine.run is not None
    assert mine.run.problems
    fresh = fresh_chains(Named("stormctl.sim.models.fork:Fork", {"world": "mint"}), [tape] * 1_000)
    assert [chain.end for chain in fresh] == [mine.end] * 1_000


def test_a_python_that_is_none_is_said() -> None:
    with pytest.raises(StormctlError, match="does not play"):
        fresh_chains(FORK, [[]], python="/nowhere/python")
    with pytest.raises(StormctlError, match="No module named 'nowhere'"):
        fresh_chains(Named("nowhere:Model"), [[]], python=sys.executable)
