"""blocked-branch: launches, the burst among them, and what would make it prove nothing."""

from __future__ import annotations

import pytest

from stormctl.history import kinds
from stormctl.workloads import base as acts
from stormctl.workloads.base import Pressure
from stormctl.workloads.blocked_branch import BLOCKED_BRANCH, Input, launch_delay
from stormctl.workloads.hook_storm import HOOK_STORM
from tests.storm.stage import Latency, storm
from tests.workloads.acting import played, sleeps
from tests.workloads.virtual import Run

INPUT = Input(token="t")


class TestLaunches:
    def test_are_staggered_by_index(self):
        assert [launch_delay(INPUT, index) for index in range(8)] == [
            2200, 2500, 2800, 3100, 3400, 3700, 4000, 4300,
        ]  # fmt: skip

    def test_come_before_the_race_so_that_a_branch_still_launching_has_drawn_no_wait(self):
        run = Run(BLOCKED_BRANCH, Input(token="t", rounds=1))
        run.to_the_end()
        assert [event.type for event in run.log[2:10]] == [kinds.HOOK_CREATED] * 8
        assert [event.name for event in run.log if event.type == kinds.STEP_CREATED][:8] == ["settleStep"] * 8
        first_wait = next(index for index, event in enumerate(run.log) if event.type == kinds.WAIT_CREATED)
        first_launch = next(index for index, event in enumerate(run.log) if event.type == kinds.STEP_COMPLETED)
        assert first_wait > first_launch
        waits_then = sum(1 for event in run.log[: first_wait + 1] if event.type == kinds.WAIT_CREATED)
        assert waits_then == 1


class TestTheBurst:
    @pytest.mark.parametrize(("drawn", "offset"), [(0.0, 4000), (0.5, 4600), (0.9999, 5199)])
    def test_comes_at_its_offset_and_a_part_of_its_jitter_after_the_hooks(self, drawn, offset):
        seen = played(BLOCKED_BRANCH.driver(Input(token="t", rounds=1), Pressure()), uniform=iter([drawn]))
        assert sleeps(seen) == [offset] + [0.0] * 8
        assert [act.token for act in seen if isinstance(act, acts.Resume)] == [f"t:0:{index}" for index in range(8)]

    def test_is_drawn_anew_in_every_round(self):
        seen = played(BLOCKED_BRANCH.driver(Input(token="t", rounds=3, width=1), Pressure()), uniform=iter([0, 0.5, 1]))
        assert [ms for ms in sleeps(seen) if ms] == [4000, 4600, 5200]

    def test_looks_every_hook_up_for_five_seconds(self):
        seen = played(BLOCKED_BRANCH.driver(Input(token="t", rounds=1, width=2), Pressure()))
        assert [act for act in seen if isinstance(act, acts.WaitForHook)] == [
            acts.WaitForHook("t:0:0", 60_000.0),
            acts.WaitForHook("t:0:0", 5_000.0),
            acts.WaitForHook("t:0:1", 5_000.0),
        ]

    def test_sends_nothing_to_a_run_that_ended_meanwhile(self):
        driver = BLOCKED_BRANCH.driver(Input(token="t", rounds=1, width=1), Pressure())
        driver.send(None)
        driver.send(False)
        assert driver.send("hook") == acts.Uniform()
        driver.send(0.0)
        (one,) = driver.send(None).drivers
        one.send(None)
        one.send(None)
        with pytest.raises(StopIteration):
            one.send(True)

    def test_a_missing_hook_is_told(self):
        pressure = Pressure()
        played(BLOCKED_BRANCH.driver(INPUT, pressure), hooks=False)
        assert pressure == Pressure(hook_missing=True)


class TestAWholeRun:
    def test_resumes_all_hooks_of_a_round_at_one_moment(self):
        run = Run(BLOCKED_BRANCH, INPUT, seed=3)
        value = run.to_the_end()
        assert BLOCKED_BRANCH.check(value, INPUT) is None
        assert BLOCKED_BRANCH.stragglers(value) == 0
        moments = {round: {at for at, token in run.sent if token.startswith(f"t:{round}:")} for round in range(6)}
        assert [len(times) for times in moments.values()] == [1] * 6

    @pytest.mark.parametrize("generation", ["nets", "dispenser"])
    def test_of_a_store_without_stale_writers_completes_with_the_published_counts(self, generation):
        seen = storm("blocked-branch", "seq-final", generation, rounds=3)
        assert seen.row is not None
        assert seen.row.status == "completed"
        assert seen.code.check(seen.row.output, seen.input) is None
        steps = sum(1 for event in seen.log if event.type == kinds.STEP_CREATED)
        s = seen.code.stragglers(seen.row.output)
        assert steps == 3 * (3 * 8 + 2) + 2 * s
        assert sum(1 for event in seen.log if event.type == kinds.ATTR_SET) == 3 * 8
        assert seen.pressure.resumes_sent == 24


class TestASlowStore:
    def test_corrupts_runs_of_the_old_pair_and_none_of_the_new_one(self):
        """What the scenario is for: stale writers that see a sibling still launching."""
        for pair, code in ((("main", "nets"), "CORRUPTED_EVENT_LOG"), (("seq-final", "dispenser"), None)):
            rows = [storm("blocked-branch", *pair, seed=seed, latency=Latency(), rounds=2).row for seed in range(3)]
            found = [row.error_code for row in rows if row is not None]
            assert found.count(code) >= (2 if code else 3), (pair, found)


class TestCalibration:
    def test_the_published_numbers_are_fine(self):
        assert BLOCKED_BRANCH.warnings(INPUT) == []

    def test_a_burst_before_the_first_launch_or_after_the_last_watchdog_is_warned_of(self):
        early = Input(resume_burst_offset_ms=1000.0)
        assert "before the first launch" in BLOCKED_BRANCH.warnings(early)[0]
        late = Input(resume_burst_offset_ms=12_300.0)
        assert "after every watchdog" in BLOCKED_BRANCH.warnings(late)[0]
        assert BLOCKED_BRANCH.warnings(Input(resume_burst_offset_ms=12_299.0)) == []

    def test_a_run_proves_nothing_only_when_every_branch_straggled(self):
        ledger = [{"round": 0, "stragglers": 2}]
        small = Input(rounds=1, width=2)
        assert "everybody straggled" in (BLOCKED_BRANCH.vacuous({"ledger": ledger}, small, None, Pressure()) or "")
        ledger[0]["stragglers"] = 0
        assert BLOCKED_BRANCH.vacuous({"ledger": ledger}, small, None, Pressure()) is None
        assert HOOK_STORM.vacuous({"ledger": ledger}, small, None, Pressure()) is not None

    def test_a_ledger_whose_reconciliations_do_not_match_its_stragglers_is_refused(self):
        value = Run(BLOCKED_BRANCH, Input(token="t", rounds=1, width=2)).to_the_end()
        small = Input(rounds=1, width=2)
        assert BLOCKED_BRANCH.check(value, small) is None
        value["ledger"][0]["reconciled"] += 1
        assert BLOCKED_BRANCH.check(value, small) == "round 0: 3 steps reconciled where 2 + 0 should have"
        assert BLOCKED_BRANCH.ledger_code == "BAD_STORM_LEDGER"
