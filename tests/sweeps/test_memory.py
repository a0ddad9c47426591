"""What a sweep remembers of a replay: found again where everything is the same, and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from stormctl.engine.door import Engine, Pass, Session
from stormctl.errors import StormctlError
from stormctl.history import Capture, EventLog
from stormctl.history.kinds import STEP_CREATED
from stormctl.sweeps import SweepPlan, sweep_log
from stormctl.sweeps.memory import Kept, key_of
from stormctl.sweeps.plan import PrefixRange, own_engine
from stormctl.testing import LogBuilder, run_serially
from stormctl.workloads.registry import WORKLOADS

STORM = WORKLOADS["step-storm"]
INPUT = STORM.input_type(token="t", rounds=2, width=2)  # type: ignore[call-arg]


class Dear:
    """An engine that is dear, and says what its passes hang on."""

    workload = None
    replays = 0

    def __init__(self, name: str = "dear", hangs_on: str = "bundle 1") -> None:
        self.name = name
        self._hangs_on = hangs_on
        self._engine = own_engine("nets", STORM, INPUT)

    def passes(self, log: EventLog, prefixes: Iterable[int], **how: Any) -> Iterator[Pass]:
        Dear.replays += 1
        yield from self._engine.passes(log, prefixes, **how)

    def open(self, log: EventLog) -> Session:
        raise NotImplementedError

    def hangs_on(self, _log: EventLog) -> str:
        if not self._hangs_on:
            raise StormctlError("the capture lacks its payloads", remedy="Capture it again.")
        return self._hangs_on


@dataclass
class Remembered:
    """A memory in JSON."""

    rows: dict[str, str] = field(default_factory=dict)

    def recall(self, key: str) -> Kept | None:
        return Kept.from_row(json.loads(self.rows[key])) if key in self.rows else None

    def keep(self, key: str, kept: Kept) -> None:
        self.rows[key] = json.dumps(kept.row())


@pytest.fixture
def memory() -> Remembered:
    Dear.replays = 0
    return Remembered()


def log(late: tuple[int, ...] = (2,)) -> Capture:
    return run_serially(STORM, INPUT, late=list(late)).capture()


def plan(memory: Remembered | None, *, engine: Engine | None = None, **changes: Any) -> SweepPlan:
    made: Engine = engine or Dear()
    given = {"engines": ("dear",), "memory": memory, "open": lambda *_: made, "maps": True, **changes}
    return SweepPlan(workload="step-storm", **given)


def test_the_second_time_nothing_is_replayed_and_the_report_is_the_same(memory: Remembered) -> None:
    first = sweep_log(log(), plan(memory))
    again = sweep_log(log(), plan(memory))
    assert Dear.replays == 1
    assert again == first
    assert again.maps == first.maps
    assert first.rebinding[0].whole
    assert first.rebinding[0].prefixes > 20


def test_a_log_that_cannot_be_followed_is_remembered_with_all_that_was_found(memory: Remembered) -> None:
    whole = log()
    at = [event.type for event in whole.log].index(STEP_CREATED)
    events = [replace(event, name="other") if index == at else event for index, event in enumerate(whole.log)]
    broken = replace(whole, log=EventLog(events, whole.log.run_id))
    first, again = (sweep_log(broken, plan(memory)) for _ in range(2))
    assert (Dear.replays, again) == (1, first)
    assert first.rebinding[0].divergence is not None
    assert first.rebinding[0].lost is not None


def test_it_is_told_under_the_name_that_was_asked_for(memory: Remembered) -> None:
    sweep_log(log(), plan(memory))
    (found,) = sweep_log(log(), plan(memory, engine=Dear("other"))).rebinding
    assert (found.engine, Dear.replays) == ("other", 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"engine": Dear(hangs_on="bundle 2")},
        {"prefixes": PrefixRange(decisive=True)},
        {"include_input_only": True},
        {"prefixes_of": {"dear": PrefixRange(whole=True)}},
    ],
)
def test_whatever_changes_the_answer_is_another_one(memory: Remembered, changes: dict[str, Any]) -> None:
    sweep_log(log(), plan(memory))
    sweep_log(log(), plan(memory, **changes))
    assert Dear.replays == 2
    assert len(memory.rows) == 2


def test_a_log_whose_events_are_called_by_other_positions_is_another_one() -> None:
    capture = log()
    moved = EventLog([replace(one, position=(one.position or 0) + 5) for one in capture.log], capture.log.run_id)
    keys = [key_of(Dear(), one, [3, 4], include_input_only=False) for one in (capture.log, moved)]
    assert keys[0] != keys[1]


def test_an_engine_that_does_not_tell_is_replayed_each_time(memory: Remembered) -> None:
    nets = own_engine("nets", STORM, INPUT)
    assert key_of(nets, log().log, [3], include_input_only=False) is None
    sweep_log(log(), plan(memory, engine=nets))
    assert memory.rows == {}


def test_a_log_that_cannot_be_replayed_is_unknown_and_not_remembered(memory: Remembered) -> None:
    report = sweep_log(log(), plan(memory, engine=Dear(hangs_on="")))
    assert report.rebinding == ()
    assert "a replay by dear: the capture lacks its payloads" in report.reasons[-1]
    assert memory.rows == {}


def test_engines_of_one_sweep_may_replay_other_prefixes() -> None:
    capture = log()
    found = plan(None, prefixes_of={"dear": PrefixRange(decisive=True)})
    assert list(found.lengths("nets", capture.log)) == list(range(1, len(capture.log) + 1))
    assert len(found.lengths("dear", capture.log)) < len(capture.log)
    assert found.lengths("dear", capture.log)[-1] == len(capture.log)


def test_a_builder_is_no_engine_that_tells() -> None:
    assert key_of(LogBuilder(), log().log, [1], include_input_only=False) is None  # type: ignore[arg-type]
