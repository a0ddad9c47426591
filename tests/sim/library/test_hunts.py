"""How soon bugs are found: the counts are those of the searches, and a bug that is not found, or a twin that is not
clean, is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stormctl.errors import UsageError
from stormctl.report.sim_text import hunt_data, hunt_head, hunt_lines
from stormctl.sim.library import BUGS, bug, bugs, hunts


def test_a_hunt_counts_what_each_seed_needs() -> None:
    (found,) = hunts(["torn-hook"], seeds=3, seed=4)
    firsts = sorted(bug("torn-hook").found_by(seed) or 0 for seed in (4, 5, 6))
    assert (found.seeds, found.missed, found.good) == (3, 0, True)
    assert (found.schedules.n, found.schedules.p50, found.schedules.max) == (3, firsts[1], firsts[2])
    assert 0 < found.seconds.p50 <= found.seconds.max
    assert found.twin.runs == 60


def test_a_bug_that_no_seed_finds_and_a_twin_that_is_not_repaired_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    one = bug("torn-hook")
    turned = replace(one, world=one.repaired_world, repaired_world=one.world, schedules=20)
    monkeypatch.setattr(bugs, "BUGS", {"torn-hook": turned})
    (found,) = hunts(["torn-hook"], seeds=2)
    assert (found.missed, found.schedules.n, found.good) == (2, 0, False)
    line, wrong = hunt_lines(found)
    assert line.endswith(" 2")
    assert wrong.startswith("  its repaired twin is not clean: ")
    assert "lifecycle/use-before-create" in wrong
    assert hunt_data(found)["schedules"] is None


def test_the_table_fits_a_terminal_whatever_the_bug_is_called() -> None:
    (found,) = hunts(["torn-hook"], seeds=1)
    assert len(hunt_head(100_000)) <= 80
    for one in BUGS.values():
        assert max(map(len, hunt_lines(replace(found, bug=one)))) <= 80


def test_names_and_counts_are_checked_before_anything_is_played() -> None:
    with pytest.raises(UsageError, match="no bug 'torn-hok'"):
        next(hunts(["torn-hok"]))
    with pytest.raises(UsageError, match="one seed at least"):
        next(hunts(seeds=0))
