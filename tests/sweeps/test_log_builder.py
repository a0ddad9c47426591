"""The log builder that tests and users share."""

from __future__ import annotations

import pytest

from stormctl.history import Facet, Inline
from stormctl.sweeps import SweepPlan, Verdict, sweep_log
from stormctl.testing import LogBuilder, run_serially
from stormctl.workloads.registry import WORKLOADS


def test_positions_ids_and_times_rise_together() -> None:
    log = LogBuilder().run_created().step(0, "a", 1).log()
    assert [event.position for event in log] == [1, 2, 3, 4]
    assert sorted(event.event_id or "" for event in log) == [event.event_id for event in log]
    assert [log.rank(event) for event in log] == [None, 0, 0, 0]
    assert {event.name for event in log[1:]} == {"a"}
    assert log[1].payload == Inline([1])


def test_corrupting_a_log_leaves_the_builder_as_it_was() -> None:
    builder = LogBuilder().run_created().step(0, "a")
    before = builder.log()
    for twin in (builder.without(2), builder.repeated(2), builder.changed(2, name="b"), builder.swapped(1, 2)):
        assert twin.log() != before
    assert builder.log() == before


def test_the_evidence_follows_from_what_was_built() -> None:
    assert Facet.POSITIONS in LogBuilder(positions=False).run_created().capture().evidence.missing
    assert Facet.POSITIONS not in LogBuilder().run_created().capture().evidence.missing


#: run_serially sends nothing to hooks: it can finish what is made of rounds with watchdogs
STORMS = [name for name, code in WORKLOADS.items() if hasattr(code.input_type, "rounds")]


@pytest.mark.parametrize("name", STORMS)
@pytest.mark.parametrize("late", [[], [2]])
def test_a_quiet_run_of_every_storm_is_clean_under_every_engine(name: str, late: list[int]) -> None:
    workload = WORKLOADS[name]
    built = run_serially(workload, workload.input_type(token="t", rounds=2, width=2), late=late)
    report = sweep_log(built.capture(), SweepPlan(engines=("nets", "dispenser")))
    assert report.verdict is Verdict.CLEAN, report


def test_a_late_wait_makes_its_branch_recover() -> None:
    workload = WORKLOADS["step-storm"]
    names = [
        {event.name for event in run_serially(workload, workload.input_type(rounds=1, width=2), late=late).events}
        for late in ([], [2])
    ]
    assert "recoverStep" not in names[0]
    assert "recoverStep" in names[1]


def test_a_run_without_end_is_given_up() -> None:
    workload = WORKLOADS["step-storm"]
    with pytest.raises(RuntimeError, match="has not ended after 3 replays"):
        run_serially(workload, workload.input_type(rounds=1, width=2), limit=3)
