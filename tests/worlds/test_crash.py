"""Killed writers: whatever point they died at, the next append finds rows, claims, fence and credit right."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stormctl.history import Event
from stormctl.worlds import SEQ_FINAL, Appended, Point, Refused
from stormctl.worlds.rows import Kind, fold, fold_run
from tests.worlds.crashing import DEATHS
from tests.worlds.making import HOOK, RUN, STEP, STEP_2, WAIT, joined, local, make_run, timeless, types, want

ROOT = Path(__file__).resolve().parents[2]
BEFORE = [
    *make_run(),
    want("hook_created", HOOK, token="t"),
    want("wait_created", WAIT, resume_at=1),
]
LOCKED = [Point.VALIDATE, Point.EFFECTS, Point.ALLOCATE, Point.PUBLISH, Point.COUNTER, Point.UNLOCK]


def kill_at(folder: Path, what: str, point: Point) -> None:
    """Let another process die at a point of that append."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "tests.worlds.crashing", str(folder), what, str(point)]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": path}, check=False, capture_output=True)
    assert done.returncode == -9, done.stderr.decode()


def dense(events: tuple[Event, ...]) -> bool:
    return [event.position for event in events] == list(range(1, len(events) + 1))


@pytest.mark.parametrize(
    ("what", "point"),
    [("step_created", point) for point in LOCKED]
    + [("lazy", Point.PUBLISH), ("lazy", Point.COUNTER)]
    + [(what, Point.PUBLISH) for what in ("wait_completed", "hook_disposed", "run_completed")]
    + [(what, Point.COUNTER) for what in ("wait_completed", "hook_disposed", "run_completed")],
    ids=str,
)
def test_an_append_after_a_kill_finds_everything_right(tmp_path: Path, what: str, point: Point) -> None:
    async def go() -> None:
        world = local(tmp_path, SEQ_FINAL)
        for request in BEFORE:
            assert isinstance(await world.append(request), Appended)
        kill_at(tmp_path, what, point)
        landed = point in (Point.COUNTER, Point.UNLOCK)
        again = await world.append(DEATHS[what])
        events = (await world.load(RUN)).events
        assert dense(events), types(events)
        # What was published counts; what was not can be done again, once.
        assert types(events).count(DEATHS[what].type) == 1
        assert isinstance(again, Refused if landed else Appended), again
        assert timeless(world.store.read_run(RUN)) == timeless(fold_run(events))
        ended = any(event.is_terminal for event in events)
        for kind, entity in ((Kind.STEP, STEP), (Kind.WAIT, WAIT), (Kind.HOOK, HOOK)):
            expected = None if ended and kind is not Kind.STEP else fold(events, entity)
            assert timeless(world.store.read_entity(kind, RUN, entity)) == timeless(expected)
        held = await world.hook("t")
        assert (held is not None) == (not ended and what != "hook_disposed")
        await world.close()

    asyncio.run(go())


def test_fence_and_credit_survive_a_kill_between_publication_and_counter(tmp_path: Path) -> None:
    async def go() -> list[str]:
        world = local(tmp_path, SEQ_FINAL)
        for request in BEFORE:
            await world.append(request)
        kill_at(tmp_path, "step_created", Point.COUNTER)  # seq 5, fenced, credit (dying, 4)
        answers = []
        for writer, count in (("B", 4), ("dying", 4), ("B", 5), ("B", 6)):
            step = want(
                "step_created", STEP_2 if writer == "dying" else WAIT.replace("wait", "step"), name="s", payload=1
            )
            answer = await world.append(
                want(step.type, step.correlation_id, name="s", payload=1, writer=writer, count=count)
            )
            answers.append("admitted" if isinstance(answer, Appended) else str(answer.refusal))
        assert dense((await world.load(RUN)).events)
        await world.close()
        return answers

    assert asyncio.run(go()) == ["precondition", "admitted", "precondition", "admitted"]


def test_a_refused_append_after_a_kill_still_mends_the_counter(tmp_path: Path) -> None:
    async def go() -> None:
        world = local(tmp_path, SEQ_FINAL)
        for request in BEFORE:
            await world.append(request)
        kill_at(tmp_path, "step_created", Point.COUNTER)
        refused = await world.append(want("wait_created", WAIT, resume_at=1))
        assert isinstance(refused, Refused)
        other = joined(tmp_path)
        assert isinstance(await other.append(want("wait_completed", WAIT)), Appended)
        assert dense((await other.load(RUN)).events)
        await other.close()
        await world.close()

    asyncio.run(go())
