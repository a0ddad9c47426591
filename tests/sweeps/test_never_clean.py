"""A dense log that lost, doubled or exchanged an event is never clean, whatever its workload and release."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormctl.history import Capture, Event, EventLog, kinds
from stormctl.sweeps import PROFILES, SweepPlan, Verdict, sweep_log
from stormctl.testing import LogBuilder, run_serially
from stormctl.workloads.registry import WORKLOADS

pytestmark = pytest.mark.timeout(max(120, settings.default.max_examples))
ENDS = kinds.STEP_TERMINAL | {kinds.WAIT_COMPLETED, kinds.HOOK_DISPOSED}


@cache
def sound(name: str, slots: bool, width: int) -> LogBuilder:
    workload = WORKLOADS[name]
    rounds = {"rounds": 1} if name == "hook-storm" else {"rounds": 2}
    built = run_serially(workload, workload.input_type(token="t", width=width, **rounds))
    if not slots:
        return built
    twin = LogBuilder(built.run_id, slots=True)
    for event in built.events:
        twin.event(event.type)
        kept = ("event_id", "position", "created_at")
        twin.events[-1] = replace(event, **{name: getattr(twin.events[-1], name) for name in kept})
    twin._run = built._run
    return twin


LOGS = st.builds(sound, st.sampled_from(["step-storm", "hook-storm"]), st.booleans(), st.integers(1, 3))


def verdict(capture: Capture, profile: str) -> Verdict:
    return sweep_log(capture, SweepPlan(profile=profile)).verdict


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", ["step-storm", "hook-storm"])
@pytest.mark.parametrize("slots", [True, False])
def test_the_sound_log_is_clean(profile: str, name: str, slots: bool) -> None:
    if profile == "workflow@seq-local" or (profile.endswith("-local") and profile != "workflow@5-local"):
        pytest.skip("built waits complete at their resume time, which such a store cannot list in between")
    assert verdict(sound(name, slots, 2).capture(), profile) is Verdict.CLEAN


@given(LOGS, st.sampled_from(sorted(PROFILES)), st.data())
def test_a_log_without_one_of_its_events_is_not_clean(built: LogBuilder, profile: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(1, len(built.events) - 1))
    assert verdict(built.without(place).capture(), profile) is not Verdict.CLEAN


@given(LOGS, st.sampled_from(sorted(PROFILES)))
def test_nor_is_one_without_its_last_where_the_run_is_known_to_have_ended(built: LogBuilder, profile: str) -> None:
    assert verdict(built.without(len(built.events)).capture(), profile) is not Verdict.CLEAN


@given(LOGS, st.sampled_from(sorted(PROFILES)), st.booleans(), st.data())
def test_a_log_with_one_of_its_events_twice_is_not_clean(
    built: LogBuilder, profile: str, same: bool, data: st.DataObject
) -> None:
    place = data.draw(st.integers(1, len(built.events)))
    event = built.events[place - 1]
    again = event if same else replace(event, created_at=(event.created_at or 0) + 1)
    where = data.draw(st.integers(place, len(built.events)))
    assert verdict(built.edited(lambda events: events.insert(where, again)).capture(), profile) is not Verdict.CLEAN


@given(LOGS, st.sampled_from(sorted(PROFILES)), st.data())
def test_a_log_with_a_create_and_its_end_exchanged_is_not_clean(
    built: LogBuilder, profile: str, data: st.DataObject
) -> None:
    """The two events change places as a store would mix them up: position and slot stay where they are."""
    made = {event.correlation_id: at for at, event in enumerate(built.events) if event.type in kinds.CREATES}
    pairs = [
        (made[event.correlation_id], at)
        for at, event in enumerate(built.events)
        if event.type in ENDS and event.correlation_id in made
    ]
    first, second = data.draw(st.sampled_from(pairs))
    assert verdict(_exchanged(built, first, second), profile) is not Verdict.CLEAN


@given(LOGS, st.sampled_from(sorted(PROFILES)))
def test_nor_is_one_whose_run_ended_before_it_began(built: LogBuilder, profile: str) -> None:
    assert verdict(_exchanged(built, 0, len(built.events) - 1), profile) is not Verdict.CLEAN


def _exchanged(built: LogBuilder, first: int, second: int) -> Capture:
    def put(one: Event, other: Event) -> Event:
        slotted = {"event_id": other.event_id} if (other.event_id or "").startswith("evnt_0000000000") else {}
        return replace(one, position=other.position, **slotted)

    events = list(built.events)
    events[first], events[second] = put(events[second], events[first]), put(events[first], events[second])
    return replace(built.capture(), log=EventLog(events, built.run_id))
