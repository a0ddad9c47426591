"""The three queues: what runs before what, and when."""

from __future__ import annotations

import pytest

from stormctl.engine.loop import Loop, Runaway
from stormctl.errors import StormctlError


def micro(loop: Loop, job) -> None:
    loop.micros.append((lambda _first, _second: job(), None, None))


def until_quiet(loop: Loop) -> None:
    """Run to the end of everything that was queued."""
    assert loop.run(1000) is False


def test_ticks_run_before_microtasks_and_both_before_the_next_timer():
    loop, seen = Loop(), []

    def first_timer():
        seen.append("timer 1")
        micro(loop, lambda: seen.append("micro"))
        loop.ticks.append(lambda: seen.append("tick"))

    loop.timer(1, first_timer)
    loop.timer(1, lambda: seen.append("timer 2"))
    until_quiet(loop)
    assert seen == ["timer 1", "tick", "micro", "timer 2"]


def test_a_tick_queued_by_a_microtask_waits_until_all_microtasks_have_run():
    loop, seen = Loop(), []

    def one():
        seen.append("micro 1")
        loop.ticks.append(lambda: seen.append("tick"))
        micro(loop, lambda: seen.append("micro 3"))

    micro(loop, one)
    micro(loop, lambda: seen.append("micro 2"))
    loop.drain()
    assert seen == ["micro 1", "micro 2", "micro 3", "tick"]


def test_a_microtask_queued_by_a_tick_runs_after_the_other_ticks_and_before_any_timer():
    loop, seen = Loop(), []

    def tick():
        seen.append("tick 1")
        micro(loop, lambda: seen.append("micro"))

    loop.timer(1, lambda: seen.append("timer"))
    loop.ticks.append(tick)
    loop.ticks.append(lambda: seen.append("tick 2"))
    until_quiet(loop)
    assert seen == ["tick 1", "tick 2", "micro", "timer"]


@pytest.mark.parametrize("ms", [0, 0.4, 1, -5])
def test_nothing_is_shorter_than_a_millisecond(ms):
    loop, at = Loop(), []
    loop.timer(ms, lambda: at.append(loop.now))
    until_quiet(loop)
    assert at == [1]


def test_a_timer_of_0_and_one_of_1_ms_keep_the_order_in_which_they_were_set():
    loop, seen = Loop(), []
    loop.timer(1, lambda: seen.append("one"))
    loop.timer(0, lambda: seen.append("zero"))
    until_quiet(loop)
    assert seen == ["one", "zero"]


def test_timers_fire_by_due_time_and_then_in_the_order_they_were_set():
    loop, seen = Loop(), []

    def early():
        seen.append(("early", loop.now))
        loop.timer(3, lambda: seen.append(("set later", loop.now)))

    loop.timer(5, lambda: seen.append(("set first", loop.now)))
    loop.timer(2, early)
    until_quiet(loop)
    assert seen == [("early", 2), ("set first", 5), ("set later", 5)]


def test_the_clock_jumps_so_that_an_hour_costs_nothing():
    loop, at = Loop(), []
    loop.timer(3_600_000, lambda: at.append(loop.now))
    until_quiet(loop)
    assert at == [3_600_000]


def test_stopping_lets_what_is_due_now_run_and_leaves_the_next_timer():
    loop, seen = Loop(), []

    def stopping():
        loop.stop()
        micro(loop, lambda: seen.append("due"))

    loop.timer(1, stopping)
    loop.timer(1, lambda: seen.append("next timer"))
    assert loop.run(1000) is True
    assert seen == ["due"]
    loop.stopped = False
    assert loop.run(1000) is False
    assert seen == ["due", "next timer"]


def test_a_loop_that_never_settles_is_ended_with_a_sentence_and_a_remedy():
    loop = Loop()

    def again():
        loop.timer(0, again)

    again()
    with pytest.raises(Runaway, match="more than 50 timers") as raised:
        loop.run(50)
    assert isinstance(raised.value, StormctlError)
    assert raised.value.remedy


def test_the_last_permitted_timer_still_runs():
    loop = Loop()
    fired = []
    for _ in range(50):
        loop.timer(1, lambda: fired.append(1))
    assert loop.run(50) is False
    assert len(fired) == 50
