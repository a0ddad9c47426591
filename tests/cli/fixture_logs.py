"""The small logs under fixtures/logs, as they are made. Each is named by what went wrong; each fault has a sound twin.

``STORMCTL_UPDATE=1 pytest tests/cli`` writes them, and the stored output of every command over them, anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from stormctl.history import Capture, Event, EventLog, ids
from stormctl.testing import START_MS, LogBuilder, run_serially
from stormctl.workloads.registry import WORKLOADS


def step_storm() -> LogBuilder:
    workload = WORKLOADS["step-storm"]
    return run_serially(workload, workload.input_type(token="demo", rounds=2, width=2), late=[2])


def hook_storm() -> LogBuilder:
    workload = WORKLOADS["hook-storm"]
    return run_serially(workload, workload.input_type(token="demo", rounds=1, width=2))


def run() -> LogBuilder:
    return LogBuilder().run_created().run_started()


def first(storm: LogBuilder, name: str) -> int:
    return next(place for place, event in enumerate(storm.events, 1) if event.name == name)


def finalized_twice() -> Capture:
    storm = step_storm()
    place = [at for at, event in enumerate(storm.events, 1) if event.name == "finalizeStep"][-1]
    create = next(event for event in storm.events if event.correlation_id == storm.events[place - 1].correlation_id)
    twin = storm.until(place).event(create.type)
    last = twin.events[-1]
    twin.events[-1] = replace(last, correlation_id=storm.id("step", 300), name=create.name, payload=create.payload)
    return twin.run_failed().capture()


def renamed() -> Capture:
    storm = step_storm()
    place = first(storm, "releaseStep")
    return storm.changed(place, name="recoverStep").until(place).capture(live=True)


def without_positions() -> Capture:
    def strip(events: list[Event]) -> None:
        events[:] = [replace(event, position=None) for event in events]

    return step_storm().edited(strip).capture()


def late_publication() -> Capture:
    built = run().hook_created(0).hook_received(0).hook_disposed(0).run_completed()
    return built.capture(audit=built.published(1, 2, 4, 3, 5, 6))


CAPTURES: dict[str, Callable[[], Capture]] = {
    "clean-step-storm": lambda: step_storm().capture(),
    "clean-hook-storm": lambda: hook_storm().capture(),
    "clean-step-storm-without-positions": without_positions,
    "2029-step-bound-to-another-name": renamed,
    "2039-step-created-twice": lambda: run().step_created(0, "charge").repeated(3).step_started(0).capture(),
    "2228-id-behind-position": lambda: step_storm().swapped(9, 12).capture(),
    "2331-step-started-after-its-end": lambda: run().step(0, "charge").step_started(0).capture(),
    "2331-step-started-again-after-a-retry": lambda: (
        run()
        .step_created(0, "charge")
        .step_started(0, 1)
        .step_retrying(0)
        .step_started(0, 2)
        .step_completed(0)
        .capture()
    ),
    "3147-published-late": late_publication,
    "3492-position-lost": lambda: (
        run().hook_created(0).hook_received(0).hook_received(0).hook_disposed(0).run_completed().without(4).capture()
    ),
    "3543-finalized-twice": finalized_twice,
    "3656-slot-and-ulid-ids": lambda: (
        LogBuilder(slots=True)
        .run_created()
        .run_started()
        .step(0, "charge")
        .changed(2, event_id=f"evnt_{ids.compose(START_MS, 2)}")
        .capture()
    ),
    "3696-one-rank-step-and-wait": lambda: run().step_created(9, "finalize").wait_created(9).capture(),
    "4017-failed-with-a-clean-log": lambda: step_storm().until(24).run_failed().capture(),
    "4199-step-started-twice-and-lost": lambda: (
        run().step_created(0, "charge").step_started(0).step_started(0).run_failed().capture()
    ),
    "4199-step-started-twice-and-ended": lambda: (
        run().step_created(0, "charge").step_started(0).step_started(0).step_completed(0).capture()
    ),
}


def capture_of(name: str) -> Capture:
    """The capture of a fixture, under its name."""
    made = CAPTURES[name]()
    return replace(made, log=EventLog(made.log.events, made.log.run_id))
