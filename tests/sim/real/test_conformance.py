"""What a simulated run stored is what a store in a folder makes of the same appends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from stormctl.engine.generations import generation
from stormctl.history import Event
from stormctl.runtime.rules import Rules
from stormctl.sim.book.bodies import BODIES
from stormctl.sim.kernel import play
from stormctl.sim.oracles import all_of
from stormctl.sim.real import appends
from stormctl.sim.real.machine import RUN_ID
from stormctl.sim.real.scenario import Scenario, Sent
from stormctl.sim.real.system import System
from stormctl.sim.real.worlds import sim_world
from stormctl.sim.strategies.registry import strategy_for
from stormctl.worlds import AppendRequest, Condition
from tests.worlds.stores import Stores, append, logged, word

Made = tuple[list[AppendRequest], list[str]]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Made]:
    """The appends of the runs that the test plays, each with its answers, in the order in which they were done."""
    done: list[Made] = []
    pipeline = appends.append_batch

    def kept(requests: Sequence[AppendRequest], condition: Condition) -> Iterator[Any]:
        answers = yield from pipeline(requests, condition)  # type: ignore[misc]  # a generator that returns
        done.append((list(requests), [word(answer) for answer in answers]))
        return answers

    monkeypatch.setattr(appends, "append_batch", kept)
    return done


def told(events: Sequence[Event]) -> list[tuple[Any, ...]]:
    return [
        (e.position, e.type, e.correlation_id, e.name, e.token, e.payload.digest if e.payload is not None else None)
        for e in events
    ]


async def in_a_folder(folder: Path, condition: str, done: list[Made]) -> tuple[list[str], list[Event]]:
    async with Stores("local", folder, None) as stores:
        world = stores.open(condition)
        answers = [word(answer) for requests, _ in done for answer in await append(world, requests)]
        return answers, list(await logged(world, RUN_ID))


@pytest.mark.parametrize("body", ["fork", "parallel", "tagged"])
def test_a_simulated_log_is_that_of_a_folder_for_the_same_appends(body: str, made: list[Made], tmp_path: Path) -> None:
    world = sim_world("fenced")
    outside = (Sent("H", "review", {"approved": True}),)
    rules = Rules(generation=generation("rearm"))
    model = System(Scenario(body, BODIES[f"book-{body}"], {}, outside, rules, rests=True), world, all_of)
    for number, task in enumerate(strategy_for("random", seed=4).ask(4)):
        made.clear()
        run = play(model, task.chooser())
        done = list(made)
        answers, events = asyncio.run(in_a_folder(tmp_path / str(number), world.condition.name, done))
        assert answers == [answer for _, given in done for answer in given]
        assert told(events) == told(run.instance.events)
        assert len(events) > 5
