"""Runs of the real SDK, replayed by our generations: what the SDK read to its end we read to its end.

A fixed engine over a log that an older one wrote is an oracle: it rejects the log at exactly the first continuation
that contradicts it. The real SDK 5.0.0-beta.55 did so at the events named here.
"""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from stormctl.engine.door import Outcome, Pass
from stormctl.engine.engines import engine_for
from stormctl.history import Event, EventLog, kinds
from stormctl.workloads.base import Workload
from stormctl.workloads.registry import workload

BOTH = pytest.mark.parametrize("generation", ["nets", "dispenser"])
FIELDS = {
    "token": "token",
    "rounds": "rounds",
    "width": "width",
    "watchdogMs": "watchdog_ms",
    "workMs": "work_ms",
    "spreadMs": "spread_ms",
    "gapMs": "gap_ms",
    "reconcileMin": "reconcile_min",
}


@pytest.fixture
def captured(shared_data: Path):
    """Reads a capture by its path below ``sdk/``: the log, its workload and the input that it was started with."""

    def read(path: str) -> tuple[EventLog, Workload, Any]:
        file = shared_data / "sdk" / path
        if not file.is_file():
            pytest.skip(f"{path} is not beside this clone")
        stored = json.loads(file.read_text())
        rows = stored["events"] if isinstance(stored, dict) else stored
        began = rows[0]["eventData"]
        code = workload("capture-step-storm" if began["workflowName"].endswith("stepStorm") else "capture-hook-storm")
        given = devalue(base64.b64decode(began["input"]["$bytes"]).removeprefix(b"devl"))
        return EventLog([event(row) for row in rows]), code, code.parse_input(given)

    return read


def devalue(text: bytes) -> dict[str, Any]:
    """The first argument of a flattened argument list, by the fields that the port has."""
    values = json.loads(text)
    return {FIELDS[key]: values[index] for key, index in values[1].items() if key in FIELDS}


def event(row: dict[str, Any]) -> Event:
    data = row.get("eventData") or {}
    return Event(
        type=row["eventType"],
        run_id=row["runId"],
        event_id=row["eventId"],
        correlation_id=row.get("correlationId"),
        created_at=epoch_ms(row["createdAt"]),
        name=data.get("stepName"),
        token=data.get("token"),
        resume_at=epoch_ms(data.get("resumeAt")),
    )


def epoch_ms(text: str | None) -> int | None:
    return None if text is None else round(datetime.fromisoformat(text).timestamp() * 1000)


def whole(log: EventLog, code: Workload, input: Any, generation: str) -> Pass:
    return next(iter(engine_for(generation, code, input).passes(log, [len(log)])))


@BOTH
@pytest.mark.parametrize(
    "path",
    [
        "runs/v5b55-clean-stepStorm-00.json",
        "local-5.0.0-beta.55-stepStorm-completed.json",
        "local-5.0.0-beta.55-hookStorm-completed.json",
        "local-4.8.9-tiny-completed.json",
    ],
)
def test_a_run_that_the_sdk_completed_is_completed_with_the_same_calls(captured, path, generation):
    log, code, input = captured(path)
    one = whole(log, code, input, generation)
    assert one.outcome is Outcome.COMPLETED, one.divergence
    assert one.consumed == len(log)
    assert code.check(one.value, input) is None
    created = {row.correlation_id for row in log if row.type in kinds.CREATES}
    assert len(one.draws) == len(created)


@BOTH
@pytest.mark.parametrize(
    ("path", "position", "reason", "expected", "actual"),
    [
        ("runs/v5b35-clean-stepStorm-00.json", 110, "name", "step:release", "step:recover"),
        ("runs/v5b35-clean-stepStorm-05.json", 43, "name", "step:release", "step:recover"),
        ("runs/v489-clean-hookStorm-03.json", 36, "name", "step:release", "step:recover"),
    ],
)
def test_an_older_engines_log_is_rejected_at_the_first_contradiction(
    captured, path, position, reason, expected, actual, generation
):
    found = whole(*captured(path), generation).divergence
    assert found is not None
    assert (found.index + 1, found.reason, found.expected, found.actual) == (position, reason, expected, actual)


@BOTH
def test_two_creates_of_one_wait_diverge_where_the_wait_ends_at_the_first_ones_time(captured, generation):
    """The SDK names the same event: resumeAt ...611Z, expected ...612Z."""
    log, code, input = captured("runs/v489-tiny-hookStorm.json")
    found = whole(log, code, input, generation).divergence
    assert found is not None
    assert (found.index + 1, found.reason) == (27, "resume-at")
    assert found.event_id == "evnt_01M8PJ0MWM7MR4C6ZM3XMY3HW1"
    creates = [row.resume_at for row in log if row.type == kinds.WAIT_CREATED and row.body == log[found.index].body]
    assert (creates[0], creates[-1]) == (log[found.index].resume_at, log[found.index].resume_at + 1)


@BOTH
def test_hiding_one_event_explains_a_log_that_no_prefix_could_have_written(captured, generation):
    """Event 36 of this run was written by somebody who had read 32 and not 31: the SDK's engine says so too."""
    log, code, input = captured("runs/v489-clean-hookStorm-03.json")
    engine = engine_for(generation, code, input)
    wrong = log[35]
    explaining = []
    for hidden in range(2, 35):
        (one,) = engine.passes(log, [35], hidden=frozenset({hidden}))
        rank = log.rank(wrong)
        if one.divergence is None and any(
            item.rank == rank and item.name == wrong.short_name and item.create is not None for item in one.pending
        ):
            explaining.append(hidden + 1)
    assert explaining == [31]


class TestACleanLogThatIsCorruptedOnPurpose:
    @pytest.fixture
    def clean(self, captured):
        return captured("runs/v5b55-clean-stepStorm-00.json")

    def first_divergence(self, clean, edit) -> tuple[int, str]:
        log, code, input = clean
        events = list(log.events)
        edit(events)
        found = whole(EventLog(events, log.run_id), code, input, "dispenser").divergence
        assert found is not None
        return found.index, found.reason

    def test_a_renamed_step_diverges_at_its_create(self, clean):
        log = clean[0]
        for index in (place for place, row in enumerate(log) if row.type == kinds.STEP_CREATED):

            def rename(events, index=index):
                events[index] = replace(events[index], name="step//./src//somebodyElse")

            assert self.first_divergence(clean, rename) == (index, "name")

    def test_a_lost_create_of_a_wait_diverges_where_the_wait_ends(self, clean):
        log = clean[0]
        lost = next(place for place, row in enumerate(log) if row.type == kinds.WAIT_CREATED)
        ends = next(
            place
            for place, row in enumerate(log)
            if row.type == kinds.WAIT_COMPLETED and row.correlation_id == log[lost].correlation_id
        )
        assert self.first_divergence(clean, lambda events: events.pop(lost)) == (ends - 1, "resume-at")

    def test_a_watchdog_moved_before_the_result_that_beat_it_diverges_at_the_continuation(self, clean):
        """The SDK, given the same edit, diverges at event 31 too."""
        log = clean[0]
        wins = next(place for place, row in enumerate(log) if row.type == kinds.STEP_COMPLETED)
        late = next(
            place
            for place, row in enumerate(log)
            if row.type == kinds.WAIT_COMPLETED and log.rank(row) == (log.rank(log[wins]) or 0) + 1
        )
        index, reason = self.first_divergence(clean, lambda events: events.insert(wins, events.pop(late)))
        assert (index + 1, reason) == (31, "name")
