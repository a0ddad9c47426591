"""Kills at random points of both worlds: no acknowledged event is lost, no position twice or missing, no run forgotten.

``STORMCTL_KILLS=1000`` makes it a thousand over both (some minutes); by default it is a handful.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stormctl.storm.faults.fired import read_fired
from stormctl.worlds.condition import Point
from tests.postgres_server import needs_postgres
from tests.storm.real import Storm

pytestmark = [pytest.mark.storm]
KILLS = int(os.environ.get("STORMCTL_KILLS", "16")) // 2
#: appends of about one run, so that most runs lose a worker or two
CHANCE = 0.012


def faults() -> list[dict[str, Any]]:
    """One fault for every point of an append, and one for step bodies, with so many kills between them."""
    places = [*map(str, Point), "step body"]
    each, more = divmod(KILLS, len(places))
    limits = [each + (index < more) for index in range(len(places))]
    return [
        {"kill": "worker", "at": place, "probability": CHANCE, "limit": limit}
        for place, limit in zip(places, limits, strict=True)
        if limit
    ]


def rows(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text().splitlines():
        yield json.loads(line)


@pytest.mark.timeout(90 + 30 * KILLS)
@pytest.mark.parametrize("world", ["local", "postgres"])
def test_kills_at_random_points_lose_nothing_that_was_acknowledged(tmp_path: Path, world: str) -> None:
    if world == "postgres":
        needs_postgres()
    storm = Storm.start(
        tmp_path,
        "--report-only",
        world=world,
        condition="seq-final[stale_ms=5000]",
        attempts=max(8, KILLS // 2),
        concurrency=3,
        time_scale=0.02,
        budget="30m",
        cap="3000s",
        faults=faults(),
    )
    try:
        ended = storm.end(60 + 30 * KILLS)
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
