"""wake-loop: the cycles, the driver's wakes, the ledger, and the counts that follow from the heartbeats."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import chain, repeat
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormctl.engine.door import Outcome
from stormctl.engine.engines import engine_for
from stormctl.errors import PlanError
from stormctl.history import EventLog, kinds
from stormctl.testing import LogBuilder
from stormctl.workloads import base as acts
from stormctl.workloads.base import Pressure
from stormctl.workloads.wake_loop import WAKE_LOOP, Input, cycles, drain_step, drain_time, follows, verify_step
from tests.storm.stage import storm
from tests.workloads.acting import payloads, played, sleeps, work_of
from tests.workloads.virtual import Run

INPUT = Input(token="t")
SMALL = Input(token="t", wakes=3, step_payload_bytes=64)


def creates(log):
    return Counter(event.name or event.type for event in log if event.type in kinds.CREATES)


class TestACycle:
    def test_drains_for_the_published_times(self):
        assert [drain_time(INPUT, index) for index in range(10)] == [
            600, 950, 800, 650, 1000, 850, 700, 1050, 900, 750,
        ]  # fmt: skip
        assert drain_time(INPUT, 10) == 600

    def test_every_fifth_is_followed_by_another_at_once(self):
        assert [index for index in range(20) if follows(index, 5)] == [4, 9, 14, 19]
        assert not any(follows(index, 0) for index in range(20))
        _, result = work_of(drain_step(0.0, "r", 4, 5, 0))
        assert result["more"] is True

    def test_takes_four_steps_whose_results_weigh_what_they_should(self):
        run = Run(WAKE_LOOP, Input(token="t", wakes=1, burst_ratio=0.0, fresh_ratio=1.0))
        run.to_the_end()
        steps = [event.name for event in run.log if event.type == kinds.STEP_CREATED]
        cycle = ["verifyStep", "drainStep", "verifyStep", "syncStep"]
        assert steps == [*cycle, "verifyStep", *cycle]
        seen, result = work_of(verify_step(50.0, "r", 3, "before", 8192))
        assert seen == [acts.Sleep(50.0)]
        assert len(result["payload"]) == 8192
        assert result["payload"].startswith("verify:3:before")

    def test_creates_the_abort_hook_first_and_disposes_both(self):
        run = Run(WAKE_LOOP, SMALL)
        run.to_the_end()
        hooks = [(event.type, event.token) for event in run.log if event.type == kinds.HOOK_CREATED]
        assert [token for _, token in hooks] == ["t:abort", "t"]
        assert sum(1 for event in run.log if event.type == kinds.HOOK_DISPOSED) == 2


class TestTheDriver:
    def play(self, numbers, pressure=None, **given):
        pressure = pressure if pressure is not None else Pressure()
        return played(WAKE_LOOP.driver(Input(token="t", **given), pressure), uniform=iter(numbers), ends_after=1)

    def test_waits_for_the_hook_that_is_read(self):
        assert played(WAKE_LOOP.driver(INPUT, Pressure()), hooks=False)[0] == acts.WaitForHook("t", 60_000.0)

    def test_a_missing_hook_is_told(self):
        pressure = Pressure()
        played(WAKE_LOOP.driver(INPUT, pressure), hooks=False)
        assert pressure.hook_missing
        assert pressure.details == {"fresh": 0, "stale": 0, "bursts": 0, "idles": 0}

    @pytest.mark.parametrize(("burst", "count"), [(0.2499, 4), (0.25, 1)])
    def test_sends_a_burst_or_one(self, burst, count):
        pressure = Pressure()
        seen = self.play(chain([burst], repeat(0.9)), pressure)
        assert len(payloads(seen)) == pressure.resumes_sent == count
        assert pressure.details["bursts"] == (count == 4)

    def test_draws_the_freshness_of_each_wake(self):
        pressure = Pressure()
        seen = self.play([0.0, 0.1, 0.9, 0.4999, 0.5], pressure)
        assert [payload["fresh"] for payload in payloads(seen)] == [True, False, True, False]
        assert [payload["seq"] for payload in payloads(seen)] == [1, 2, 3, 4]
        assert (pressure.details["fresh"], pressure.details["stale"]) == (2, 2)

    @pytest.mark.parametrize(
        ("numbers", "slept"),
        [
            ([0.9, 0.9, 0.2, 0.0], 3200),
            ([0.9, 0.9, 0.2, 0.5], 4000),
            ([0.9, 0.9, 0.2999, 0.9999], 4799),
            ([0.9, 0.9, 0.3, 0.0], 200),
            ([0.9, 0.9, 0.9, 0.9999], 1499),
        ],
    )
    def test_then_idles_about_a_heartbeat_or_leaves_a_gap(self, numbers, slept):
        pressure = Pressure()
        seen = played(WAKE_LOOP.driver(INPUT, pressure), uniform=iter([*numbers, 0.9, 0.9]), ends_after=2)
        assert sleeps(seen)[0] == slept
        assert pressure.details["idles"] == (slept >= 3200)

    def test_counts_what_the_store_refused(self):
        pressure = Pressure()
        played(WAKE_LOOP.driver(INPUT, pressure), uniform=repeat(0.9), ends_after=1, accepted=False)
        assert (pressure.resumes_sent, pressure.resumes_failed) == (1, 1)

    def test_of_a_thousand_wakes_a_half_are_fresh(self):
        pressure = Pressure()
        random = Random(7)
        played(
            WAKE_LOOP.driver(INPUT, pressure),
            uniform=iter(random.random, None),
            ends_after=1000,
            most=10_000,
        )
        assert pressure.details["fresh"] / pressure.resumes_sent == pytest.approx(0.5, abs=0.05)
        assert pressure.details["idles"] > 0


class TestAWholeRun:
    @pytest.mark.parametrize("generation", ["nets", "dispenser"])
    @pytest.mark.parametrize("seed", [1, 2])
    def test_completes_with_a_ledger_that_adds_up_and_exact_counts(self, generation, seed):
        seen = storm("wake-loop", "seq-final", generation, seed=seed, wakes=6, step_payload_bytes=64)
        assert seen.row is not None
        assert seen.row.status == "completed"
        value = seen.row.output
        assert seen.code.check(value, seen.input) is None
        assert creates(seen.log) == dict(seen.code.counts(seen.input, seen.code.stragglers(value)))
        assert seen.code.roles is not None
        assert seen.code.roles(seen.input, seen.log).excesses == ()
        assert value["cycles"] == cycles(seen.input, value["heartbeats"])

    def test_carries_the_pending_read_over_a_heartbeat(self):
        run = Run(WAKE_LOOP, Input(token="t", wakes=4, idle_ratio=1.0, burst_ratio=0.0), seed=5)
        value = run.to_the_end()
        assert value["heartbeats"] > 0
        assert value["freshWakes"] == 4
        sent = run.pressure.resumes_sent - run.pressure.resumes_failed
        assert value["freshWakes"] + value["staleWakes"] <= sent

    def test_a_log_without_the_wakes_payloads_is_not_replayed_as_stale(self):
        run = Run(WAKE_LOOP, SMALL, seed=2)
        run.to_the_end()
        assert WAKE_LOOP.reads == {kinds.HOOK_RECEIVED}
        blank = EventLog(
            [replace(event, payload=None) if event.type == kinds.HOOK_RECEIVED else event for event in run.log],
            run.log.run_id,
        )
        (one,) = engine_for("dispenser", WAKE_LOOP, SMALL).passes(blank, [len(blank) - 1])
        assert one.outcome is Outcome.FAILED
        assert "without a payload" in (one.error or "")

    def test_a_log_without_the_payloads_of_its_steps_is_replayed_as_well(self):
        run = Run(WAKE_LOOP, SMALL, seed=2)
        value = run.to_the_end()
        blank = EventLog(
            [replace(event, payload=None) if event.type == kinds.STEP_COMPLETED else event for event in run.log],
            run.log.run_id,
        )
        (one,) = engine_for("dispenser", WAKE_LOOP, SMALL).passes(blank, [len(blank) - 1])
        assert (one.outcome, one.value) == (Outcome.COMPLETED, value)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 5), st.integers(0, 4), st.integers(0, 9), st.sampled_from([0, 2, 3, 5]))
def test_the_counts_follow_from_the_heartbeats(wakes, idle, seed, every):
    input = Input(token="t", wakes=wakes, idle_ratio=idle / 4, continue_every=every, step_payload_bytes=16)
    run = Run(WAKE_LOOP, input, seed=seed)
    value = run.to_the_end()
    assert WAKE_LOOP.check(value, input) is None
    seen = creates(run.log)
    assert seen == dict(WAKE_LOOP.counts(input, WAKE_LOOP.stragglers(value)))
    assert WAKE_LOOP.roles is not None
    assert WAKE_LOOP.roles(input, run.log).excesses == ()


class TestTheLedger:
    def value(self):
        causes = ("start", "heartbeat", "wake")
        ledger = [{"cycle": index, "cause": cause} for index, cause in enumerate(causes)]
        return {"cycles": 3, "freshWakes": 1, "staleWakes": 1, "heartbeats": 1, "ledger": ledger}

    def test_that_adds_up_passes(self):
        assert WAKE_LOOP.check(self.value(), Input(wakes=1)) is None

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"cycles": 4}, "3 cycles and the run counted 4"),
            ({"freshWakes": 2}, "2 fresh wakes were processed of 1"),
            ({"heartbeats": 2}, "1 cycles were caused by a heartbeat and the run counted 2"),
            ({"ledger": None}, "no list"),
        ],
    )
    def test_that_does_not_is_told(self, change, said):
        assert said in (WAKE_LOOP.check({**self.value(), **change}, Input(wakes=1)) or "")

    def test_a_wake_taken_for_a_heartbeat_shows(self):
        value = self.value()
        value["ledger"][1]["cause"] = "wake"
        assert "2 cycles were caused by a wake" in (WAKE_LOOP.check(value, Input(wakes=1)) or "")

    def test_two_starts_show(self):
        value = self.value()
        value["cycles"] = 4
        value["ledger"].append({"cycle": 3, "cause": "start"})
        assert WAKE_LOOP.check(value, Input(wakes=1)) == "2 cycles started the loop"

    def test_a_loop_cut_off_by_its_cap_of_cycles_did_not_process_its_wakes(self):
        input = Input(token="t", wakes=5, max_cycles=3, idle_ratio=0.0, step_payload_bytes=16)
        value = Run(WAKE_LOOP, input).to_the_end()
        assert value["cycles"] == 3
        assert "fresh wakes were processed of 5" in (WAKE_LOOP.check(value, input) or "")
        assert WAKE_LOOP.ledger_code == "BAD_WAKE_LOOP_LEDGER"

    def test_is_no_object(self):
        assert WAKE_LOOP.check(None, Input()) == "the run returned no object"


class TestRoles:
    def test_a_cycle_that_drains_twice_is_found_and_its_twin_is_not(self):
        log = LogBuilder().run_created().run_started()
        log.step_created(0, "verifyStep").step_created(1, "drainStep").step_created(2, "verifyStep")
        assert WAKE_LOOP.roles is not None
        assert WAKE_LOOP.roles(INPUT, log.step_created(3, "syncStep").log()).excesses == ()
        (excess,) = WAKE_LOOP.roles(INPUT, log.step_created(4, "syncStep").log()).excesses
        assert (excess.role, excess.limit, excess.count) == ("syncStep", 1, 2)


class TestCalibration:
    def test_the_published_numbers_are_fine(self):
        assert WAKE_LOOP.warnings(INPUT) == []

    def test_gaps_as_long_as_the_heartbeat_are_warned_of(self):
        assert "outlast the heartbeat" in WAKE_LOOP.warnings(Input(gap_max_ms=4000.0))[0]

    def test_a_loop_that_always_goes_on_is_warned_of_and_its_counts_end(self):
        endless = Input(continue_every=1)
        assert "never reads" in WAKE_LOOP.warnings(endless)[0]
        assert WAKE_LOOP.counts(endless, 0)["drainStep"] == endless.max_cycles

    def test_wakes_of_one_kind_prove_nothing(self):
        value = {"freshWakes": 3, "staleWakes": 0}
        assert "no stale wake" in (WAKE_LOOP.vacuous(value, INPUT, None, Pressure()) or "")
        assert WAKE_LOOP.vacuous({**value, "staleWakes": 1}, INPUT, None, Pressure()) is None

    @pytest.mark.parametrize("given", [{"fresh_ratio": 1.5}, {"gap_min_ms": 2000.0}, {"wakes": 0}, {"burst_size": 0}])
    def test_an_input_that_cannot_be_meant_is_refused(self, given):
        with pytest.raises(PlanError):
            WAKE_LOOP.parse_input(given)
