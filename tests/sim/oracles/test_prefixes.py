"""All prefixes of a log are replayed, and no longer one takes back what a shorter one asked for."""

from __future__ import annotations

import pytest

from stormctl.sim.explore import Budget, explore
from stormctl.sim.kernel import TapeChooser, play
from stormctl.sim.library import bug
from stormctl.sim.oracles.prefixes import prefixes


def seen(name: str, *, repaired: bool) -> set[str]:
    one = bug(name)
    found = explore(one.system(repaired=repaired), one.strategy, budget=Budget(runs=120), seed=1)
    return {"/".join(signature.split("/")[:2]) for signature in found.violations if signature.startswith("prefixes/")}


@pytest.mark.parametrize(
    ("name", "signature"),
    [
        ("barrier-skip", "prefixes/rebound"),
        ("clock-by-consumption", "prefixes/rebound"),
        ("moved-wait", "prefixes/moved-wait"),
    ],
)
def test_an_engine_that_goes_by_the_length_of_the_log_is_seen_and_the_repaired_one_has_nothing(
    name: str, signature: str
) -> None:
    assert seen(name, repaired=False) == {signature}
    assert seen(name, repaired=True) == set()


def test_it_replays_prefixes_that_no_delivery_read_and_tells_of_none_of_them() -> None:
    run = play(bug("in-flight-hole").system(repaired=True), TapeChooser())
    machine = run.instance
    read = {len(passed.events) for passed in machine.passed}
    asked: list[int] = []
    replays = machine.replays
    machine.replays = lambda lengths: asked.extend(lengths) or replays(lengths)
    told = len(machine.passed)
    assert list(prefixes(machine, run)) == []
    assert set(asked) - read
    assert len(machine.passed) == told
