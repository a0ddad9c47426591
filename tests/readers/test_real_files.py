"""Every captured file of the reference data loads, and holds what was counted in it when it was captured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from stormctl.history import COMMIT_TIMES, Capture, EventLog, Facet, kinds
from stormctl.readers import open_captures


@dataclass
class Counted:
    """What a plain look at some logs counts."""

    twice: Counter[str] = field(default_factory=Counter)
    two_ends: int = 0
    runs_going_on: int = 0
    after_the_end: Counter[str] = field(default_factory=Counter)
    before_their_create: Counter[str] = field(default_factory=Counter)


def count(logs: Sequence[EventLog]) -> Counted:
    found = Counted()
    for log in logs:
        types = Counter((event.type, event.correlation_id) for event in log)
        found.twice.update(type for (type, _), times in types.items() if times > 1)
        ends = [index for index, event in enumerate(log) if event.is_terminal]
        found.two_ends += len(ends) > 1
        late = [event.type for event in log.events[ends[0] :] if not event.is_terminal] if ends else []
        found.runs_going_on += bool(late)
        found.after_the_end.update(late)
        created = {
            event.correlation_id: index
            for index, event in reversed(list(enumerate(log)))
            if event.type in kinds.CREATES
        }
        early = {
            (event.kind, event.correlation_id)
            for index, event in enumerate(log)
            if created.get(event.correlation_id, -1) > index
        }
        found.before_their_create.update(kind for kind, _ in early)
    return found


def captures(path: Path) -> list[Capture]:
    found = list(open_captures([path]))
    assert all(isinstance(one, Capture) for one in found), found
    return [one for one in found if isinstance(one, Capture)]


@pytest.fixture(scope="session")
def wdk(shared_data: Path) -> Path:
    folder = shared_data / "wdk"
    if not folder.is_dir():
        pytest.skip("the captures of the real worlds are not beside this clone")
    return folder


def test_every_file_loads(shared_data: Path, wdk: Path) -> None:
    listed = [*wdk.glob("inspect-*/*.json"), *(shared_data / "sdk").rglob("*.json"), *shared_data.glob("*.json")]
    files = [*listed, *wdk.glob("local-*.tgz"), wdk / "pg-v4-runs.csv.gz"]
    assert len(files) >= 32
    for file in files:
        assert captures(file), file


def test_three_processes_on_4_x_wrote_creates_starts_and_ends_twice(wdk: Path) -> None:
    found = captures(wdk / "race-v4.tgz")
    counted = count([one.log for one in found])
    twice = {type: counted.twice[type] for type in ("step_created", "wait_created", "run_started", "hook_created")}
    assert twice == {"step_created": 8, "wait_created": 8, "run_started": 8, "hook_created": 0}
    assert counted.two_ends == 8
    assert all(Facet.COMMIT_STAMPS in one.evidence.missing and COMMIT_TIMES not in one.data for one in found)
    assert any(one.data.get("claims") for one in found)


def test_three_processes_on_5_x_did_not(wdk: Path) -> None:
    logs = [one.log for one in captures(wdk / "race-v5.tgz")]
    counted = count(logs)
    once = ("step_created", "wait_created", "hook_created", "run_started", "step_completed", "wait_completed")
    assert {type: counted.twice[type] for type in once} == dict.fromkeys(once, 0)
    assert counted.two_ends == 0
    assert all(log.has_positions for log in logs)


@pytest.mark.parametrize(
    ("name", "runs", "late"),
    [
        ("term-v4.tgz", 45, {"hook_received": 121, "step_created": 61}),
        ("term-v5.tgz", 3, {"step_created": 14}),
    ],
)
def test_events_that_came_after_the_end_of_their_run(wdk: Path, name: str, runs: int, late: dict[str, int]) -> None:
    found = captures(wdk / name)
    counted = count([one.log for one in found])
    assert len(found) == 60
    assert (counted.runs_going_on, dict(counted.after_the_end)) == (runs, late)


def test_followers_that_came_before_their_create(wdk: Path) -> None:
    counted = count([one.log for one in captures(wdk / "follow-v5.tgz")])
    assert counted.before_their_create == {"step": 4, "wait": 4}


def test_the_dump_of_a_postgres_world_has_the_worlds_order(wdk: Path) -> None:
    found = captures(wdk / "pg-v4-events.csv.gz")
    assert sum(len(one.log) for one in found) == 4561
    inversions = [
        sum(1 for one, other in pairwise(capture.log) if (other.created_at or 0) < (one.created_at or 0))
        for capture in found
        if len(capture.log) == 363
    ]
    assert inversions == [97, 102]
    counted = count([one.log for one in found])
    assert counted.twice["run_started"] == 19
    assert all(Facet.COMMIT_STAMPS in one.evidence.missing for one in found)
    rows = sum(Facet.ROWS not in one.evidence.missing for one in found)
    assert (len(found), rows) == (346, 345)  # one run of the store has events and no row


def test_listings_of_the_command_line_are_the_runs_of_the_store_that_they_show(wdk: Path) -> None:
    for version in ("4", "5"):
        stored = {one.log.run_id: one for one in captures(wdk / f"local-v{version}.tgz")}
        for name in ("events.json", "events-data.json"):
            (shown,) = captures(wdk / f"inspect-v{version}" / name)
            log = stored[shown.log.run_id].log
            assert [event.event_id for event in shown.log] == [event.event_id for event in log]
            assert not shown.evidence.truncated
            assert Facet.ROWS not in shown.evidence.missing


def test_the_whole_folder_is_read_by_one_command(wdk: Path) -> None:
    found = list(open_captures([wdk / "inspect-v4", wdk / "pg-v4-events.csv.gz"]))
    assert all(isinstance(one, Capture) for one in found)
    assert len(found) == 2 + 346
