"""Cursor exposure: the windows in which a reader could pass an event, against brute force."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.history import COMMIT_CLOCK, COMMIT_TIMES, Facet
from stormctl.sweeps import PROFILES, Severity, SweepPlan, SweepResult, Verdict, sweep_log
from stormctl.sweeps.cursor_exposure import exposed, missed
from stormctl.testing import START_MS, LogBuilder

Judge = Callable[..., SweepResult]


def log() -> LogBuilder:
    return LogBuilder(positions=False).run_created().run_started().hook_created(0).hook_received(0).hook_received(0)


def test_events_published_in_order_are_never_exposed(judge: Judge) -> None:
    built = log()
    assert judge("cursor-exposure", built, audit=built.published()).findings == ()


def test_the_windows_are_counted_and_the_longest_is_shown(judge: Judge) -> None:
    built = log()
    result = judge("cursor-exposure", built, audit=built.published(1, 2, 4, 5, 3))
    (finding,) = result.findings
    assert result.verdict is Verdict.CLEAN, "a measure, and no fault"
    assert finding.message == (
        "1 of 5 events could be passed by a cursor, for up to 2.0 ms; a reader that looks now and then misses "
        "1.0 every 1 ms, 0.2 every 10 ms, 0.0 every 100 ms"
    )
    assert finding.positions == (3,)


@pytest.mark.parametrize("profile", PROFILES)
def test_no_profile_makes_a_fault_of_it(judge: Judge, profile: str) -> None:
    built = log()
    (finding,) = judge("cursor-exposure", built, profile=profile, audit=built.published(1, 2, 4, 5, 3)).findings
    assert finding.severity is Severity.LEGAL


def test_commit_times_of_a_server_tell_how_long_an_event_took(judge: Judge) -> None:
    built = log()
    stamps = {event.event_id: (START_MS + 100 - 10 * at) * 1000 for at, event in enumerate(built.events)}
    capture = built.capture(data={COMMIT_CLOCK: "server", COMMIT_TIMES: stamps})
    evidence = capture.evidence.missing - {Facet.COMMIT_STAMPS}
    capture = replace(capture, evidence=replace(capture.evidence, missing=evidence))
    (finding,) = judge("cursor-exposure", capture).findings
    assert finding.message.endswith("; from mint to commit half take up to 50 ms, 95 % up to 90 ms, the longest 90 ms")


def test_it_is_left_out_without_commit_times() -> None:
    assert "cursor-exposure" not in [one.sweep for one in sweep_log(log().capture(), SweepPlan()).sweeps]


@given(st.lists(st.none() | st.integers(0, 60), max_size=12))
def test_an_event_is_exposed_when_one_behind_it_was_there_first(times: list[int | None]) -> None:
    windows = {}
    for index, time in enumerate(times):
        later = [other for other in times[index + 1 :] if other is not None]
        if time is not None and later and min(later) < time:
            windows[index] = time - min(later)
    assert dict(exposed(times)) == windows


@given(st.lists(st.integers(1, 50), max_size=6), st.integers(1, 40))
def test_the_average_over_all_moments_of_looking_is_what_is_told(windows: list[int], every: int) -> None:
    """A window of w units is looked into at some moment by min(w, every) of the ``every`` possible phases."""
    hits = sum(
        any((moment + phase) % every == 0 for moment in range(window)) for window in windows for phase in range(every)
    )
    assert missed(windows, every) == pytest.approx(hits / every)
