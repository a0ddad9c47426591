"""hook-storm: when each hook is resumed, by hand and in a whole run."""

from __future__ import annotations

import pytest

from stormctl.errors import PlanError
from stormctl.testing import LogBuilder
from stormctl.workloads import base as acts
from stormctl.workloads.base import Pressure
from stormctl.workloads.hook_storm import HOOK_STORM, Input
from tests.workloads.virtual import Run


def delays_of_the_first_round(input: Input, *, ends: int | None = 10_000, now: int = 7_500) -> list[float]:
    """What each of the first round's resumes sleeps before it sends."""
    driver = HOOK_STORM.driver(input, Pressure())
    reply: object = None
    while True:
        act = driver.send(reply)
        match act:
            case acts.RunEnded():
                reply = False
            case acts.WaitForHook():
                reply = "hook_1"
            case acts.LastWait():
                reply = ends
            case acts.Now():
                reply = now
            case acts.Together(drivers):
                slept = [one.send(None) for one in drivers]
                assert all(isinstance(act, acts.Sleep) for act in slept)
                return [act.ms for act in slept]


class TestWhenHooksAreResumed:
    def test_staggered_across_the_watchdog_as_upstream_does(self):
        assert delays_of_the_first_round(Input()) == [0, 400, 800, 1200, 1600, 2000, 2400, 2800]

    def test_an_offset_moves_all_of_them(self):
        assert delays_of_the_first_round(Input(hook_resume_offset_ms=100.0))[:2] == [100, 500]

    def test_in_a_burst_around_the_recorded_end_of_the_watchdogs(self):
        delays = delays_of_the_first_round(Input(resume="burst", width=5), ends=10_000, now=7_500)
        assert delays == [2420, 2460, 2500, 2540, 2580]

    def test_a_burst_of_one_goes_half_a_width_before_the_end(self):
        assert delays_of_the_first_round(Input(resume="burst", width=1)) == [2420]

    def test_a_burst_that_comes_too_late_goes_at_once(self):
        delays = delays_of_the_first_round(Input(resume="burst"), ends=10_000, now=20_000)
        assert delays == [0.0] * 8

    def test_a_burst_without_a_pending_wait_goes_at_once(self):
        assert min(delays_of_the_first_round(Input(resume="burst"), ends=None)) == 0.0

    def test_in_a_whole_run_the_sends_lie_where_the_stagger_puts_them(self):
        run = Run(HOOK_STORM, Input(token="t", rounds=1), latency=lambda _name, _arguments: 150.0)
        run.to_the_end()
        first = run.sent[0][0]
        assert [(at - first, token) for at, token in run.sent] == [(400.0 * i, f"t:0:{i}") for i in range(8)]

    def test_in_a_whole_run_a_burst_is_as_wide_as_asked_and_has_its_middle_at_the_watchdog(self):
        run = Run(HOOK_STORM, Input(token="t", rounds=1, resume="burst"), latency=lambda _name, _arguments: 150.0)
        run.to_the_end()
        at = [time for time, _token in run.sent]
        assert at[-1] - at[0] == pytest.approx(160)
        assert (at[0] + at[-1]) / 2 == pytest.approx(2500, abs=1)


class TestTheDriver:
    def test_a_hook_that_was_disposed_is_a_failed_resume_and_not_a_sent_one(self):
        pressure = Pressure()
        driver = HOOK_STORM.driver(Input(token="t", rounds=1, width=1), pressure)
        assert isinstance(driver.send(None), acts.RunEnded)
        assert driver.send(False) == acts.WaitForHook("t:0:0", 60_000.0)
        (one,) = driver.send("hook_1").drivers
        assert one.send(None) == acts.Sleep(0.0)
        assert isinstance(one.send(None), acts.RunEnded)
        assert one.send(False) == acts.WaitForHook("t:0:0", 5_000.0)
        with pytest.raises(StopIteration):
            one.send(None)
        assert (pressure.resumes_sent, pressure.resumes_failed) == (0, 1)

    def test_it_stops_with_the_run(self):
        driver = HOOK_STORM.driver(Input(token="t"), Pressure())
        driver.send(None)
        with pytest.raises(StopIteration):
            driver.send(True)

    def test_a_resume_carries_its_index_and_round(self):
        sent = []
        driver = HOOK_STORM.driver(Input(token="t", rounds=1, width=2), Pressure())
        driver.send(None)
        driver.send(False)
        for one in driver.send("hook_1").drivers:
            one.send(None)
            one.send(None)
            one.send(False)
            sent.append(one.send("hook_1"))
        assert sent == [acts.Resume(f"t:0:{index}", {"index": index, "round": 0}) for index in range(2)]

    def test_a_stagger_that_ends_before_the_watchdog_is_warned_of(self):
        assert HOOK_STORM.warnings(Input()) == []
        assert "nobody straggles" in HOOK_STORM.warnings(Input(width=7))[0]
        assert HOOK_STORM.warnings(Input(width=7, resume="burst")) == []

    def test_there_are_two_ways_to_resume(self):
        with pytest.raises(PlanError, match="resume is 'all'"):
            HOOK_STORM.parse_input({"resume": "all"})


class TestRoles:
    def test_a_round_is_opened_by_its_hooks(self):
        log = LogBuilder().run_created().run_started().hook_created(0, "t:0:0").hook_created(1, "t:0:1")
        log.step_created(2, "finalizeStep").step_created(3, "finalizeStep")
        assert HOOK_STORM.roles is not None
        assert HOOK_STORM.roles(Input(width=2), log.log()).excesses == ()
        (excess,) = HOOK_STORM.roles(Input(width=2), log.step_created(4, "finalizeStep").log()).excesses
        assert (excess.index, excess.role, excess.limit, excess.count) == (6, "finalizeStep", 2, 3)
        log.hook_created(5, "t:1:0").step_created(6, "finalizeStep")
        assert len(HOOK_STORM.roles(Input(width=2), log.log()).excesses) == 1
