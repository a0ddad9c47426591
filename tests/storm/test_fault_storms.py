"""Whole storms with faults, on the memory world: what a kill loses, and what it may not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from stormctl.storm.attempt import Attempt
from stormctl.storm.events import AttemptLanded, WorkerDied
from stormctl.storm.faults.fired import FaultFired, read_fired
from stormctl.storm.folder import StormFolder
from stormctl.storm.outcome import Outcome
from tests.storm.making import plan, storm


def stormed(place: Path, *faults: dict[str, Any], **changes: Any) -> tuple[list[Attempt], list[Any], list[FaultFired]]:
    """The landed attempts, all events, and every firing."""
    wanted = plan(faults=list(faults), **changes)
    folder = StormFolder.create(wanted, place)
    events = storm(wanted, folder)
    landed = [event.attempt for event in events if isinstance(event, AttemptLanded)]
    return landed, events, list(read_fired(folder.path))


def positions(folder: Path, run_id: str | None) -> list[int]:
    import json

    lines = (folder / "logs" / f"{run_id}.ndjson").read_text().splitlines()
    return [json.loads(line)["position"] for line in lines]


class TestAKill:
    @pytest.mark.parametrize("at", ["lock", "effects", "publish", "counter", "unlock", "post-read"])
    def test_at_any_point_costs_deliveries_and_not_the_run(self, tmp_path: Path, at: str) -> None:
        landed, events, fired = stormed(tmp_path, {"kill": "worker", "at": at, "every": 9, "limit": 4}, cap="9000s")
        died = [event for event in events if isinstance(event, WorkerDied)]
        assert len(fired) == len(died) == 4
        assert {one.at for one in fired} == {at}
        assert [event.successor for event in died][:2] == ["in-process-1", "in-process-2"]
        assert sum(event.requeued for event in died) >= 4
        assert {one.outcome for one in landed} == {Outcome.COMPLETED}
        for one in landed:
            folder = next(tmp_path.glob("small/2*"))
            found = positions(folder, one.run_id)
            assert found == list(range(1, len(found) + 1))

    def test_inside_a_step_body_runs_the_step_again(self, tmp_path: Path) -> None:
        landed, _, fired = stormed(tmp_path, {"kill": "worker", "at": "step body", "every": 3, "limit": 2}, cap="9000s")
        assert [one.at for one in fired] == ["step body"] * 2
        assert {one.outcome for one in landed} == {Outcome.COMPLETED}

    def test_that_is_never_drawn_kills_nobody(self, tmp_path: Path) -> None:
        landed, _, fired = stormed(tmp_path, {"kill": "worker", "at": "publish", "probability": 1e-9})
        assert fired == []
        assert {one.outcome for one in landed} == {Outcome.COMPLETED}

    def test_of_everything_leads_nowhere_and_the_runs_are_stuck_not_the_storm(self, tmp_path: Path) -> None:
        landed, _, fired = stormed(
            tmp_path, {"kill": "worker", "at": "publish", "every": 1}, attempts=1, cap="20s", time_scale=0.01
        )
        assert len(fired) > 3
        assert [one.outcome.stuck for one in landed] == [True]


class TestMessages:
    def test_duplicated_or_late_ones_cost_nothing_but_work(self, tmp_path: Path) -> None:
        faults = {"duplicate": "message", "probability": 0.5}, {"delay": "message", "by": "5ms", "every": 3}
        landed, _, fired = stormed(tmp_path, *faults)
        assert Counter(one.label for one in fired).keys() == {"duplicate message", "delay message"}
        assert {one.outcome for one in landed} == {Outcome.COMPLETED}

    def test_dropped_ones_strand_a_run(self, tmp_path: Path) -> None:
        landed, _, fired = stormed(tmp_path, {"drop": "message", "kind": "step", "every": 1}, attempts=1, cap="60s")
        assert fired
        assert [one.outcome.stuck for one in landed] == [True]


def test_a_storm_without_faults_lets_none_fire(tmp_path: Path) -> None:
    landed, events, fired = stormed(tmp_path)
    assert fired == []
    assert not any(isinstance(event, WorkerDied) for event in events)
    assert {one.outcome for one in landed} == {Outcome.COMPLETED}
