"""Kills at random points of both worlds: no acknowledged event is lost, no position twice or missing, no run forgotten.

``STORMCTL_KILLS=1000`` makes it a thousand over both (some minutes); by default it is a handful.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stormctl.storm.faults.fired import read_fired
from stormctl.worlds.condition import Point
from tests.postgres_server import needs_postgres
from tests.storm.real import Storm

pytestmark = [pytest.mark.storm]
KILLS = int(os.environ.get("STORMCTL_KILLS", "8")) // 2
#: step bodies, and every point of an append in its order
PLACES = ("step body", *map(str, Point))
WORLDS = ("local", "postgres")
#: of many, one comes in the appends of about one run, so that most runs lose a worker or two; a few come early, so that
#: all of them come
CHANCE = 0.012 if KILLS > 50 else 0.05
#: a run has that many appends for each step body
APPENDS_PER_BODY = 5


def chance(place: str) -> float:
    return CHANCE * APPENDS_PER_BODY if place == "step body" else CHANCE


def faults(world: str, kills: int) -> list[dict[str, Any]]:
    """So many kills over all places; where they are fewer, over places far apart, and other ones in each world."""
    first = WORLDS.index(world)
    dealt = ((index * len(WORLDS) + first) * len(PLACES) // (kills * len(WORLDS)) for index in range(kills))
    if kills > len(PLACES):
        dealt = (index % len(PLACES) for index in range(kills))
    return [
        {"kill": "worker", "at": PLACES[place], "probability": chance(PLACES[place]), "limit": limit}
        for place, limit in sorted(Counter(dealt).items())
    ]


def test_a_few_kills_are_spread_over_the_worlds_and_many_are_everywhere() -> None:
    few = [{one["at"] for one in faults(world, 4)} for world in WORLDS]
    assert few == [{"step body", "lock", "effects", "publish"}, {"enter", "validate", "allocate", "unlock"}]
    for world in WORLDS:
        many = faults(world, 500)
        assert [one["at"] for one in many] == list(PLACES)
        assert sum(one["limit"] for one in many) == 500


def rows(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text().splitlines():
        yield json.loads(line)


@pytest.mark.timeout(180 + 30 * KILLS)
@pytest.mark.parametrize("world", WORLDS)
def test_kills_at_random_points_lose_nothing_that_was_acknowledged(tmp_path: Path, world: str) -> None:
    if world == "postgres":
        needs_postgres()
    storm = Storm.start(
        tmp_path,
        "--report-only",
        world=world,
        condition="seq-final[stale_ms=5000]",
        attempts=max(4, KILLS // 2),
        concurrency=3,
        time_scale=0.02,
        budget="30m",
        cap="3000s",
        faults=faults(world, KILLS),
    )
    try:
        ended = storm.end(120 + 30 * KILLS)
    finally:
        storm.kill()
    assert (ended.code, ended.err) == (0, "")
    fired = list(read_fired(storm.folder))
    assert ended.out.count(" took its place") >= len(fired) >= KILLS // 2
    for row in storm.attempts():
        assert row["outcome"] in ("completed", "dormant", "slow"), row
        log = list(rows(storm.folder / "logs" / f"{row['run_id']}.ndjson"))
        assert [event["position"] for event in log] == list(range(1, len(log) + 1))
        ids = {event["event_id"] for event in log}
        assert len(ids) == len(log)
        audit = [one for one in rows(storm.folder / "audit" / f"{row['run_id']}.ndjson") if one.get("admitted")]
        acknowledged = {one["event_id"] for one in audit if one["event_id"] is not None}
        assert acknowledged
        if row["outcome"] == "completed":
            assert acknowledged <= ids
