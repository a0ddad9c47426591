"""Resuming a storm: what landed is kept, what its driver left is cancelled and made again, the rest is made."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from ulid import ULID

from stormctl.errors import PlanError, StoreBusy, UnreadableInput, UsageError
from stormctl.storm.driver import run_storm, turns
from stormctl.storm.events import AttemptLanded, StormFinished, StormStarted
from stormctl.storm.folder import StormFolder
from stormctl.storm.outcome import Outcome
from stormctl.storm.resume import Earlier, Lost, resumable, storm_folder
from tests.storm.making import CELL, attempt, collect, plan


def cut_short(place: Path, landed: int, **changes: Any) -> StormFolder:
    """A storm that was stopped after so many attempts had landed."""
    wanted = plan(**changes)
    folder = StormFolder.create(wanted, place)

    async def main() -> None:
        seen = 0
        async with aclosing(run_storm(wanted, folder)) as events:
            async for event in events:
                seen += isinstance(event, AttemptLanded)
                if seen >= landed:
                    return

    asyncio.run(main())
    return folder


def resumed(folder: StormFolder) -> list[Any]:
    found = resumable(folder.path)
    seen: list[Any] = []

    async def main() -> None:
        async with aclosing(run_storm(found.plan, found.folder, earlier=found.earlier)) as events:
            async for event in events:
                seen.append(event)

    asyncio.run(main())
    return seen


class TestAResumedStorm:
    def test_makes_the_attempts_that_did_not_land_and_no_other(self, tmp_path: Path) -> None:
        folder = cut_short(tmp_path, 2, attempts=6, concurrency=1)
        kept = folder.attempts_file.read_text()
        events = resumed(folder)
        assert folder.attempts_file.read_text().startswith(kept)
        rows = [json.loads(line) for line in folder.attempts_file.read_text().splitlines()]
        assert sorted(row["number"] for row in rows) == [1, 2, 3, 4, 5, 6]
        assert isinstance(events[0], StormStarted)
        assert events[0].landed == len(kept.splitlines())
        assert isinstance(events[-1], StormFinished)
        assert (events[-1].landed, events[-1].planned, events[-1].reason) == (6, 6, "done")

    def test_says_of_an_attempt_in_flight_that_it_was_tried_before(self, tmp_path: Path) -> None:
        folder = cut_short(tmp_path, 1, attempts=3, concurrency=3)
        left = [json.loads(line) for line in folder.started_file.read_text().splitlines()]
        landed = [event.attempt for event in resumed(folder) if isinstance(event, AttemptLanded)]
        notes = {one.number: one.note for one in landed}
        for row in left:
            if row["number"] in notes:
                assert notes[row["number"]] == f"tried again: the driver ended during {row['run_id']}"
        assert any(notes.values())

    def test_on_a_folder_store_cancels_the_runs_that_were_in_flight(self, tmp_path: Path) -> None:
        wanted = plan(world="local", attempts=1)
        folder = StormFolder.create(wanted, tmp_path)

        async def driver_dies() -> str:
            """Its run is created and announced, and then nothing is tidied up."""
            from stormctl.storm.embedded import EmbeddedRun
            from stormctl.storm.run import AttemptRun, Lab
            from stormctl.worlds import open_world

            world = open_world("local", folder.store(wanted.cells[0]), "seq-final", role="driver", worker="driver")
            subject = EmbeddedRun(world, f"wrun_{ULID()}", wanted.cells[0].scenario)

            async def announce(run_id: str) -> None:
                folder.announce(wanted.cells[0], 1, run_id)

            await AttemptRun(Lab(wanted, wanted.cells[0], folder), subject, 1).begin(announce)
            await world.close()
            return subject.run_id

        lost = asyncio.run(driver_dies())
        found = resumable(folder.path)
        assert found.earlier.lost == (Lost(wanted.cells[0], 1, lost),)
        seen: list[Any] = []

        async def main() -> Any:
            async with aclosing(run_storm(found.plan, folder, earlier=found.earlier)) as events:
                async for event in events:
                    seen.append(event)
            from stormctl.worlds import open_world

            world = open_world("local", folder.store(wanted.cells[0]), "seq-final", role="worker", worker="reader")
            try:
                return await world.run(lost)
            finally:
                await world.close()

        row = asyncio.run(main())
        assert row.status == "cancelled"
        (made,) = [event.attempt for event in seen if isinstance(event, AttemptLanded)]
        assert made.outcome is Outcome.COMPLETED
        assert made.note is not None

    def test_has_the_seeds_of_the_first_life(self, tmp_path: Path) -> None:
        folder = cut_short(tmp_path, 1, attempts=4)
        assert resumable(folder.path).plan == plan(attempts=4).__class__(
            **{**_fields(plan(attempts=4)), "source": str(folder.path / "plan.yaml")}
        )


def _fields(wanted: Any) -> dict[str, Any]:
    return {name: getattr(wanted, name) for name in wanted.__dataclass_fields__}


class TestWhatCannotBeResumed:
    def test_a_storm_that_is_done(self, tmp_path: Path) -> None:
        wanted = plan(attempts=1)
        folder = StormFolder.create(wanted, tmp_path)
        asyncio.run(collect(wanted, folder, []))
        with pytest.raises(UsageError, match="is done: there is nothing to resume"):
            resumable(folder.path)

    def test_a_storm_whose_driver_lives(self, tmp_path: Path) -> None:
        folder = cut_short(tmp_path, 1, attempts=3)
        with folder.owned(), pytest.raises(StoreBusy, match=r"is running: pid \d+ on "):
            resumable(folder.path)
        assert resumable(folder.path)

    def test_a_plan_of_another_version(self, tmp_path: Path) -> None:
        folder = cut_short(tmp_path, 1, attempts=3)
        (folder.path / "plan.yaml").write_text("schema: stormctl.plan/9\n")
        with pytest.raises(PlanError, match="newer stormctl"):
            resumable(folder.path)

    def test_a_folder_that_is_none(self, tmp_path: Path) -> None:
        with pytest.raises(UnreadableInput, match="is not an artefact folder"):
            resumable(tmp_path)

    def test_an_attempt_in_the_middle_that_is_damaged(self, tmp_path: Path) -> None:
        folder = cut_short(tmp_path, 1, attempts=3)
        whole = folder.attempts_file.read_text()
        folder.attempts_file.write_text("{}\n" + whole)
        with pytest.raises(UnreadableInput, match=r"line 1 of .*attempts\.ndjson is damaged"):
            resumable(folder.path)


def test_a_torn_last_line_is_taken_away_so_that_the_next_one_is_whole(tmp_path: Path) -> None:
    folder = cut_short(tmp_path, 1, attempts=3)
    whole = folder.attempts_file.read_text()
    with folder.attempts_file.open("a") as file:
        file.write('{"scenario": "st')
    found = resumable(folder.path)
    assert folder.attempts_file.read_text() == whole
    assert len(found.earlier.landed) == len(whole.splitlines())


def test_latest_and_a_plans_folder_will_do_as_well(tmp_path: Path) -> None:
    folder = cut_short(tmp_path, 1, attempts=3)
    assert storm_folder(tmp_path / "small").path == folder.path
    assert storm_folder(tmp_path / "small" / "latest").path == folder.path


def test_turns_leave_out_what_landed() -> None:
    wanted = plan(attempts=3)
    earlier = Earlier((attempt(2, cell=CELL),))
    assert [turn.number for turn in turns(wanted, earlier)] == [1, 3]
