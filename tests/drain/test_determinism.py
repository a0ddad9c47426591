"""A schedule of a loop is the same wherever it is played, record by record."""

from __future__ import annotations

from pathlib import Path

import pytest

import stormctl.drain
import stormctl.sweeps.drain
from stormctl.drain.explored import SITUATIONS
from stormctl.sim.banned import banned
from stormctl.sim.chain import Named, check, check_fresh
from stormctl.sim.stream import Stream

ROOMS = [Path(room.__file__ or "").parent for room in (stormctl.drain, stormctl.sweeps.drain)]
MODULES = sorted(path for room in ROOMS for path in room.glob("*.py"))


def model(situation: str) -> Named:
    return Named("stormctl.drain.explored:model_named", {"text": f"drain:G4/{situation}"})


def tapes(count: int, purpose: str) -> list[list[int]]:
    stream = Stream(f"drain tapes {purpose}")
    return [[stream.below(3) for _ in range(60)] for _ in range(count)]


@pytest.mark.parametrize("module", MODULES, ids=lambda path: f"{path.parent.parent.name}-{path.stem}")
def test_nothing_that_differs_between_processes_is_used(module: Path) -> None:
    assert list(map(str, banned(module.read_text()))) == []


@pytest.mark.parametrize("hash_seed", ["0", "1", "random"])
def test_schedules_with_every_injection_are_the_same_in_a_fresh_process(hash_seed: str) -> None:
    assert check_fresh(model("all"), tapes(25, hash_seed), hash_seed=hash_seed).verdict == "pass"


@pytest.mark.parametrize("situation", SITUATIONS)
def test_schedules_of_each_situation_are_the_same_twice(situation: str) -> None:
    checked = check(model(situation).model(), tapes(4, situation))
    assert checked.verdict == "pass"
    assert checked.choices > 1
