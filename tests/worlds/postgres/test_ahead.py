"""Reading ahead and writing behind changes how many trips an append makes, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormctl.history import Event
from stormctl.worlds import Appended, AppendRequest, Refused, Snapshot, World
from stormctl.worlds.memory import MemoryWorld
from stormctl.worlds.postgres.links import Links
from tests.worlds.making import ATTR, HOOK, HOOK_2, NOW, OTHER_RUN, RUN, STEP, STEP_2, WAIT, want
from tests.worlds.postgres.making import condition, query, run, world_of

pytestmark = pytest.mark.storm

LOCKED = ("seq-final", "seq-tail", "seq-decision-snap", "seq-buggy-admit", "in-band")
FREE = ("main", "slots-sql", "slots-reserve", "guard", "slots-stage-shared", "mint-slot")

STEPS = [STEP, STEP_2]
HOOKS = [HOOK, HOOK_2]


@st.composite
def requests(draw: st.DrawFn) -> AppendRequest:
    run_id = draw(st.sampled_from([RUN, RUN, RUN, OTHER_RUN]))
    kind = draw(
        st.sampled_from(
            ["run_created", "run_started", "run_completed", "run_failed", "run_cancelled", "attr_set"]
            + ["step_created", "step_started", "lazy", "step_completed", "step_failed", "step_retrying"] * 2
            + ["hook_created", "hook_received", "hook_disposed", "wait_created", "wait_completed"] * 2
        )
    )
    snapshot = None
    if draw(st.booleans()):
        count = draw(st.integers(0, 12))
        snapshot = Snapshot(count, str(count), draw(st.sampled_from("AB")), NOW * 2, draw(st.integers(0, 3)))
    more: dict[str, Any] = {}
    corr: str | None = None
    if kind == "lazy":
        kind, more = "step_started", {"lazy": True, "name": "step//a//b", "payload": [1]}
        corr = draw(st.sampled_from(STEPS))
    elif kind.startswith("step"):
        corr = draw(st.sampled_from(STEPS))
        more = {"name": "step//a//b", "payload": {"x": draw(st.integers(0, 3))}}
    elif kind.startswith("hook"):
        corr = draw(st.sampled_from(HOOKS))
        more = {"token": draw(st.sampled_from(["one", "two"])), "payload": 3}
    elif kind.startswith("wait"):
        corr, more = WAIT, {"resume_at": NOW}
    elif kind == "attr_set":
        corr, more = ATTR, {"data": {"changes": [{"key": "k", "value": "v"}]}}
    else:
        more = {"name": "flow", "payload": {"input": 1}}
    return replace(want(kind, corr, run=run_id, writer=draw(st.sampled_from("AB")), **more), snapshot=snapshot)


def without_cursor(request: AppendRequest) -> AppendRequest:
    snapshot = request.snapshot
    return request if snapshot is None else replace(request, snapshot=replace(snapshot, cursor=None))


def said(answer: Appended | Refused) -> Any:
    if isinstance(answer, Refused):
        return answer.refusal, answer.reason, answer.body.keys()
    return [told(event) for event in answer.events], [told(event) for event in answer.skipped]


def told(event: Event) -> Any:
    """All of an event but what the clock and chance gave it."""
    payload = None if event.payload is None else event.payload.load()
    return (
        event.type,
        event.correlation_id,
        event.position,
        event.name,
        event.token,
        event.resume_at,
        payload,
        event.data,
    )


async def outcome(world: World, script: list[list[AppendRequest]]) -> Any:
    answers = []
    for batch in script:
        mine = [replace(request, run_id=batch[0].run_id) for request in batch]
        answers.append([said(answer) for answer in await world.append_batch(mine)])
    logs = [[told(event) for event in (await world.load(run_id)).events] for run_id in (RUN, OTHER_RUN)]
    rows = [await world.run(run_id) for run_id in (RUN, OTHER_RUN)]
    hooks = [await world.hook(token) for token in ("one", "two")]
    return answers, logs, rows, hooks


scripts = st.lists(st.lists(requests(), min_size=1, max_size=3), min_size=1, max_size=14)
STARTED = [[want("run_created", payload={"a": 1}, name="flow")], [want("run_started")]]


@settings(max_examples=60)
@given(name=st.sampled_from(LOCKED), atomic=st.booleans(), script=scripts)
def test_one_trip_and_many_give_the_same_store_as_memory(
    dsn: str, name: str, atomic: bool, script: list[list[AppendRequest]]
) -> None:
    found = condition(name, batch_atomic=atomic)

    async def main() -> None:
        expected = await outcome(MemoryWorld(found), STARTED + script)
        for reads_ahead in (True, False):
            async with world_of(dsn, found, reads_ahead=reads_ahead, audit=False) as world:
                assert await outcome(world, STARTED + script) == expected, reads_ahead

    run(main())


@settings(max_examples=40)
@given(name=st.sampled_from(FREE), script=scripts)
def test_operations_that_commit_one_by_one_give_the_same_store_as_memory(
    dsn: str, name: str, script: list[list[AppendRequest]]
) -> None:
    async def main() -> None:
        found = condition(name)
        if name == "main":  # memory cannot show two owners of a token that was looked at one after another
            found = replace(found, unique_tokens=True)
        # Cursors are each world's own.
        script[:] = STARTED + [[without_cursor(one) for one in batch] for batch in script]
        expected = await outcome(MemoryWorld(found), script)
        async with world_of(dsn, found, audit=False) as world:
            assert await outcome(world, script) == expected

    run(main())


def test_an_append_under_the_lock_is_two_round_trips(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trips: list[int] = []

    async def main() -> None:
        async with world_of(dsn, "seq-final", audit=False) as world:
            await world.append(want("run_created", payload=1, name="flow"))
            take = Links.take

            async def counting(links: Links) -> Any:
                link = await take(links)
                send = link.pipe.run

                async def one(calls: Any, *more: Any) -> Any:
                    trips.append(len(calls))
                    return await send(calls, *more)

                monkeypatch.setattr(link.pipe, "run", one)
                return link

            monkeypatch.setattr(Links, "take", counting)
            assert isinstance(await world.append(want("step_created", STEP, name="s", payload=1)), Appended)
            monkeypatch.setattr(Links, "take", take)

    run(main())
    assert len(trips) == 2


def test_the_end_of_the_log_is_kept_with_the_run(dsn: str) -> None:
    async def main() -> str:
        async with world_of(dsn, "seq-final") as world:
            await world.append(want("run_created", payload=1, name="flow"))
            await world.append(want("run_started"))
            await world.append(want("step_created", STEP, name="s", payload=1, count=2, snapshot_writer="W"))
            await world.append(want("step_started", STEP))
            return world.space

    space = run(main())
    assert query(
        dsn,
        "select next_event_seq, last_fenced_seq, writer_snapshot, writer_base_count from stormctl.workflow_runs "
        "where space = %s",
        space,
    ) == [(4, 3, "W", 2)]
    assert query(
        dsn,
        "select seq, type, fenced, fence_count, writer_id from stormctl.workflow_events where space = %s order by seq",
        space,
    ) == [
        (1, "run_created", False, None, "w"),
        (2, "run_started", False, None, "w"),
        (3, "step_created", True, 2, "w"),
        (4, "step_started", False, None, "w"),
    ]
