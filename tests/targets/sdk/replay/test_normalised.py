"""What an engine passes over in a log it passes over in a replay: creates that are there twice (4.x), ends that are
there twice (5.x). The profile says what they are worth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stormctl.engine.door import Pass
from stormctl.history import Capture, Event, EventLog, ids, kinds
from stormctl.readers.sdk_json import READER
from stormctl.sweeps import SweepPlan, sweep_log
from stormctl.targets.sdk import projects
from stormctl.targets.sdk.replay import Bundle, bundle_of_version, pools
from stormctl.targets.sdk.replay.engine import SdkEngine
from tests.targets.sdk.replay.tiny import BODY, STEP, bundle, capture, tiny_events

#: One step after the other, as an engine has it: a step that is there twice is one, and only the first end is seen.
ENGINE = f"""
  const created = new Set(events.filter((one) => one.eventType === 'step_created').map((one) => one.correlationId));
  const done = new Set(events.filter((one) => one.eventType === 'step_completed').map((one) => one.correlationId));
  if (events.some((one) => one.eventType.startsWith('run_') && !/created|started/.test(one.eventType))) return;
  const id = 'step_{BODY}' + 'ABCDEFGH'[done.size];
  if (!created.has(id)) await next('step_created', id, {{ stepName: '{STEP}', input: bytes([]) }});
"""


def step(number: int) -> str:
    return f"step_{BODY}{'ABCDEFGH'[number]}"


def written(events: Sequence[Event], *, slots: bool) -> Capture:
    """The events with the ids of the run's own steps, numbered as they now stand."""
    renamed = []
    for place, event in enumerate(events, 1):
        if (
            event.correlation_id is not None
            and event.correlation_id.startswith("step_")
            and len(event.correlation_id) < 9
        ):
            event = replace(event, correlation_id=step(int(event.correlation_id[5:])))
        named = ids.slot_id(place) if slots else f"evnt_01M8PJ0K{place:018d}"
        renamed.append(replace(event, event_id=named, position=place if slots else None))
    return capture(renamed)


def passes(made: Bundle, found: Capture, lengths: Sequence[int] | None = None) -> list[Pass]:
    wanted = list(range(1, len(found.log) + 1)) if lengths is None else list(lengths)
    try:
        return list(SdkEngine(made, found).passes(found.log, wanted))
    finally:
        pools.close()


def told(one: Pass) -> Any:
    """What a pass says, but for how long its prefix was."""
    asked = [(item.rank, item.kind, item.name, item.create) for item in one.pending]
    draws = [(draw.rank, draw.label) for draw in one.draws or ()]
    lost = None if one.divergence is None else (one.divergence.event_id, one.divergence.text)
    return one.outcome, asked, draws, lost, one.value


def without(found: Capture, dropped: set[int]) -> tuple[Capture, list[int]]:
    """The capture without events, and for each length of the whole log that of what is left of it."""
    kept = [event for index, event in enumerate(found.log) if index not in dropped]
    lengths = [sum(index not in dropped for index in range(length)) for length in range(1, len(found.log) + 1)]
    return replace(found, log=EventLog(kept, found.log.run_id)), lengths


class TestByHand:
    def test_a_log_with_a_create_twice_is_replayed_as_one_without(self, node: str, tmp_path: Path) -> None:
        made = bundle(tmp_path, ENGINE)
        events = tiny_events(3)
        again = [*events[:4], events[2], *events[4:6], events[4], events[6], events[7]]
        twice, once = written(again, slots=False), written(events, slots=False)
        found, plain = passes(made, twice), passes(made, once)
        shorter = {4: 4, 5: 4, 6: 5, 7: 6, 8: 6, 9: 7, 10: 8}
        for length, other in shorter.items():
            assert told(found[length - 1]) == told(plain[other - 1]), length
        assert any(one.pending for one in plain)  # there is something to compare

    @pytest.mark.parametrize("slots", [False, True])
    def test_a_log_that_was_ended_twice_is_replayed_as_one_that_was_not(
        self, node: str, tmp_path: Path, *, slots: bool
    ) -> None:
        made = bundle(tmp_path, ENGINE)
        plain = written(tiny_events(3, slots=slots), slots=slots)
        ended = written(tiny_events(3, slots=slots, ends=[9, 10, 11]), slots=slots)
        assert [event.type for event in ended.log].count(kinds.RUN_COMPLETED) == 3
        last = told(passes(made, plain)[-1])
        assert last[1] != []
        assert [told(one) for one in passes(made, ended)[-4:]] == [last] * 4

    def test_what_a_terminal_event_of_a_step_says_twice_is_given_as_it_is(self, node: str, tmp_path: Path) -> None:
        """It is the engine that takes the first; a replay must not take it away."""
        made = bundle(tmp_path, ENGINE)
        events = tiny_events(2)
        again = written([*events, events[3]], slots=False)
        assert told(passes(made, again)[-1]) == told(passes(made, written(events, slots=False))[-1])


def lifecycle(found: Capture, profile: str) -> dict[str, str]:
    """What the lifecycle sweep says of repeats: key without its entity -> severity."""
    report = sweep_log(found, SweepPlan(profile=profile))
    return {"/".join(one.key.split("/")[:2]): str(one.severity) for one in report.findings if one.sweep == "lifecycle"}


class TestByProfile:
    def test_a_create_twice_is_inert_on_4_x(self) -> None:
        events = tiny_events(2)
        found = lifecycle(written([*events[:3], events[2], *events[3:]], slots=False), "workflow@4.8-local")
        assert found["lifecycle/repeat-step-created"] == "inert"

    def test_and_an_end_twice_too_where_a_folder_takes_it(self) -> None:
        found = lifecycle(written(tiny_events(2, ends=[7, 8]), slots=False), "workflow@4.8-local")
        assert found["lifecycle/run-end-repeat"] == "inert"
        strict = lifecycle(written(tiny_events(2, ends=[7, 8]), slots=False), "strict")
        assert strict["lifecycle/run-end-repeat"] == "fatal"


@pytest.mark.sdk
@pytest.mark.timeout(600)
class TestByTheRealEngines:
    @pytest.fixture(scope="class")
    def built(self, real: Callable[..., object]) -> Callable[[str], Bundle]:
        def get(version: str) -> Bundle:
            if projects.find(version) is None:
                real(version)
            return bundle_of_version(version)

        return get

    def test_4_8_9_replays_a_log_with_creates_twice_as_one_without(
        self, built: Callable[[str], Bundle], shared_data: Path
    ) -> None:
        (found,) = READER.read(shared_data / "sdk/runs/v489-clean-stepStorm-03.json")
        seen: set[str] = set()
        again = {
            index
            for index, event in enumerate(found.log)
            if event.type == kinds.STEP_CREATED
            and (event.correlation_id in seen or seen.add(event.correlation_id or ""))  # type: ignore[func-returns-value]
        }
        assert len(again) > 30
        once, lengths = without(found, again)
        some = [*range(10, len(found.log), 12), len(found.log)]
        made = built("4.8.9")
        whole = passes(made, found, some)
        assert [told(one) for one in whole] == [told(one) for one in passes(made, once, [lengths[n - 1] for n in some])]
        assert sum(bool(one.pending) for one in whole) > 5
        assert whole[-1].value is not None

    def test_beta_55_replays_a_log_with_a_result_twice_as_one_without(
        self, built: Callable[[str], Bundle], shared_data: Path
    ) -> None:
        (found,) = READER.read(shared_data / "sdk/runs/v5b55-clean-stepStorm-00.json")
        *events, _end = found.log
        result = next(event for event in reversed(events) if event.type == kinds.STEP_COMPLETED)
        place = len(events) + 1
        more = replace(result, event_id=ids.slot_id(place), position=place if result.position is not None else None)
        once = replace(found, log=EventLog(events, found.log.run_id))
        twice = replace(found, log=EventLog([*events, more], found.log.run_id))
        made = built("5.0.0-beta.55")
        assert told(passes(made, once, [place - 1])[0]) == told(passes(made, twice, [place])[0])

    def test_beta_55_replays_a_log_that_was_ended_twice_as_it_is(
        self, built: Callable[[str], Bundle], shared_data: Path
    ) -> None:
        (found,) = READER.read(shared_data / "sdk/runs/v5b55-clean-stepStorm-00.json")
        end = found.log[len(found.log) - 1]
        assert end.is_terminal
        place = len(found.log) + 1
        more = replace(end, event_id=ids.slot_id(place), position=place if end.position is not None else None)
        twice = replace(found, log=EventLog([*found.log, more], found.log.run_id))
        made = built("5.0.0-beta.55")
        whole, again = passes(made, found, [len(found.log)]), passes(made, twice, [len(twice.log)])
        assert told(whole[0]) == told(again[0])
        assert whole[0].value is not None
        said = {one.key.split("/")[1] for one in sweep_log(twice, SweepPlan(profile="auto")).findings}
        assert "run-end-repeat" in said
