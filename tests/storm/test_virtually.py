"""Whole storms in virtual time, as `stormctl sim storm` runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stormctl.errors import PlanError
from stormctl.outside import Outside, outside
from stormctl.storm.events import AttemptLanded, StormFinished
from stormctl.storm.folder import StormFolder
from stormctl.storm.plan import Plan
from stormctl.storm.virtual import EPOCH_MS, run_virtually
from stormctl.storm.virtually import play
from stormctl.worlds.mint import now_ms
from tests.storm.making import plan

TWO = plan(
    name="two", attempts=3, seed=5, time_scale=0.25, storage_scale=1.0, hydration_jitter_ms=1, world="local",
    condition=None, generation=None,
    matrix={"pair": [
        {"condition": "main", "generation": "nets"}, {"condition": "seq-final", "generation": "dispenser"},
    ]},
    input={"rounds": 2, "width": 4, "jitter_buckets": 7},
)  # fmt: skip


def left_behind(folder: Path) -> dict[str, bytes]:
    """Every file of a storm's folder, by name."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def played(wanted: Plan, place: Path, jobs: int = 1) -> Path:
    folder = StormFolder.create(wanted, place)
    *_, last = play(wanted, folder, jobs=jobs)
    assert isinstance(last, StormFinished)
    assert (last.landed, last.planned) == (wanted.total, wanted.total)
    return folder.path


def test_one_seed_leaves_one_folder_however_many_processes_share_it(tmp_path: Path) -> None:
    first = left_behind(played(TWO, tmp_path / "a"))
    assert left_behind(played(TWO, tmp_path / "b", jobs=2)) == first
    assert sum(name.startswith("logs/") and name.endswith(".ndjson") for name in first) == 6


def test_another_seed_is_another_storm(tmp_path: Path) -> None:
    first = left_behind(played(TWO, tmp_path / "a"))
    other = left_behind(played(plan_with(seed=6), tmp_path / "b"))
    assert set(other) != set(first)


def plan_with(**changes: object) -> Plan:
    from dataclasses import replace

    return replace(TWO, **changes)  # type: ignore[arg-type]


def test_attempts_come_cell_by_cell(tmp_path: Path) -> None:
    landed = [event for event in play(TWO, StormFolder.create(TWO, tmp_path)) if isinstance(event, AttemptLanded)]
    assert [event.attempt.cell.condition for event in landed] == ["main"] * 3 + ["seq-final"] * 3


def test_a_storm_that_is_left_early_says_so_and_leaves_no_parts(tmp_path: Path) -> None:
    folder = StormFolder.create(TWO, tmp_path)
    events = play(TWO, folder)
    next(event for event in events if isinstance(event, AttemptLanded))
    events.close()
    assert '"reason": "interrupted"' in (folder.path / "storm.json").read_text()
    assert not (folder.path / "parts").exists()


def test_software_that_is_not_ours_takes_real_time(tmp_path: Path) -> None:
    wanted = plan_with(target="sdk")
    with pytest.raises(PlanError):
        list(play(wanted, StormFolder.create(TWO, tmp_path)))


class TestTheClock:
    def test_begins_at_one_time_of_day_and_jumps(self) -> None:
        import asyncio

        async def main(clock: object) -> tuple[int, int]:
            before = now_ms()
            await asyncio.sleep(3600)
            return before, now_ms()

        assert run_virtually(main) == (EPOCH_MS, EPOCH_MS + 3_600_000)

    def test_ids_follow_from_the_seed_and_the_real_ones_come_back(self) -> None:
        async def main(clock: object) -> list[str]:
            return [outside().ulid(), outside().token(4), outside().ulid(), str(outside().random().random())]

        assert run_virtually(main, 1) == run_virtually(main, 1) != run_virtually(main, 2)
        assert type(outside()) is Outside


@pytest.mark.parametrize("hashseed", ["0", "random"])
def test_the_command_prints_its_tables_and_leaves_the_same_folder_in_a_fresh_process(
    tmp_path: Path, hashseed: str
) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(
        "schema: stormctl.plan/1\nname: small\nseed: 3\nscenario: hook-storm\nworld: local\ncondition: main\n"
        "generation: nets\nattempts: 2\ntime_scale: 0.1\ninput: {rounds: 1, width: 3}\n"
    )
    command = [sys.executable, "-m", "stormctl", "sim", "storm", str(file), "--jobs", "1", "--report-only", "--out"]
    environment = {**os.environ, "PYTHONHASHSEED": hashseed, "COLUMNS": "80"}
    found = []
    for name in ("a", "b"):
        done = subprocess.run(
            [*command, str(tmp_path / name)], env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "in virtual time" in done.stdout + done.stderr
        assert "completed" in done.stdout
        found.append(left_behind((tmp_path / name / "small" / "latest").resolve()))
    assert found[0] == found[1]
