"""Fence and credit: the published vectors, in memory and in a folder, and after the counter was lost."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.worlds import SEQ_FINAL, Appended, AppendRequest, Condition, Refusal, Refused
from stormctl.worlds import fence as rules
from stormctl.worlds.condition import Credit, Fence, Gate
from stormctl.worlds.local import LocalWorld
from stormctl.worlds.memory import MemoryWorld
from stormctl.worlds.store_ops import Tail
from tests.worlds.making import HOOK, RUN, WAIT, corr, joined, local, make_run, memory, want

#: A log of five whose last decision is the fourth event.
FIVE = [
    *make_run(),
    want("hook_created", HOOK, token="t", writer="seed", count=2),
    want("wait_created", WAIT, resume_at=1, writer="seed", count=3),
    want("hook_received", HOOK, token="t", payload=1),
]


def create(number: int, writer: str, count: int, cursor: str | None = None) -> AppendRequest:
    return want(
        "step_created", corr("step", 100 + number), name="s", payload=1, writer=writer, count=count, cursor=cursor
    )


RECEIPT = want("hook_received", HOOK, token="t", payload=2)
VECTORS = [
    (create(1, "A", 5), 6),
    (create(2, "A", 5), 7),
    (create(3, "B", 5), None),
    (RECEIPT, 8),
    (create(5, "B", 8), 9),
    (create(6, "A", 5), None),
    (want("wait_completed", WAIT, writer="A", count=3), 10),
]
SNAPSHOT_CREDIT = replace(SEQ_FINAL, credit_key=Credit.SNAPSHOT)
TAIL_FENCE = replace(SEQ_FINAL, fence=Fence.TAIL)


@pytest.fixture(params=["memory", "local"])
def world_of(request: pytest.FixtureRequest, tmp_path: Path):  # type: ignore[no-untyped-def]
    def make(condition: Condition) -> MemoryWorld | LocalWorld:
        return memory(condition) if request.param == "memory" else local(tmp_path, condition)

    return make


async def positions(world: MemoryWorld | LocalWorld, requests: list[AppendRequest]) -> list[int | None]:
    """Where each landed; None for a refused precondition."""
    found: list[int | None] = []
    for request in requests:
        answer = await world.append(request)
        if isinstance(answer, Refused):
            assert answer.refusal is Refusal.PRECONDITION, answer
            found.append(None)
        else:
            assert isinstance(answer, Appended)
            found.append(answer.events[0].position)
    return found


def run_vectors(world: MemoryWorld | LocalWorld, requests: list[AppendRequest]) -> list[int | None]:
    async def go() -> list[int | None]:
        assert await positions(world, FIVE) == [1, 2, 3, 4, 5]
        found = await positions(world, requests)
        events = (await world.load(RUN)).events
        assert [event.position for event in events] == list(range(1, len(events) + 1))
        await world.close()
        return found

    return asyncio.run(go())


class TestTheVectors:
    def test_of_the_decision_fence_with_writer_credit(self, world_of) -> None:  # type: ignore[no-untyped-def]
        found = run_vectors(world_of(SEQ_FINAL), [request for request, _ in VECTORS])
        assert found == [expected for _, expected in VECTORS] == [6, 7, None, 8, 9, None, 10]

    def test_with_credit_by_snapshot_two_writers_with_one_cursor_interleave(self, world_of) -> None:  # type: ignore[no-untyped-def]
        same = [create(1, "A", 5, "5"), create(2, "A", 5, "5"), create(3, "B", 5, "5")]
        assert run_vectors(world_of(SNAPSHOT_CREDIT), same) == [6, 7, 8]

    def test_of_the_tail_fence_which_a_receipt_moves(self, world_of) -> None:  # type: ignore[no-untyped-def]
        requests = [
            create(1, "A", 5),
            create(2, "A", 5),
            create(3, "B", 5),
            RECEIPT,
            create(4, "B", 7),
            create(5, "B", 8),
        ]
        assert run_vectors(world_of(TAIL_FENCE), requests) == [6, 7, None, 8, None, 9]

    def test_a_refused_decision_leaves_nothing_behind(self, world_of) -> None:  # type: ignore[no-untyped-def]
        later = [create(1, "A", 5), create(3, "B", 5), create(3, "B", 6)]
        assert run_vectors(world_of(SEQ_FINAL), later) == [6, None, 7]

    def test_the_gate_decides_whether_facts_are_looked_at(self, world_of) -> None:  # type: ignore[no-untyped-def]
        every = replace(SEQ_FINAL, gate=Gate.ALL)
        fact = want("wait_completed", WAIT, writer="A", count=3)
        assert run_vectors(world_of(every), [fact]) == [None]


class TestALostCounter:
    def test_is_restored_with_fence_and_credit(self, tmp_path: Path) -> None:
        async def go() -> list[int | None]:
            world = local(tmp_path, SEQ_FINAL)
            await positions(world, FIVE)
            found: list[int | None] = []
            for request, _ in VECTORS:
                counter = Path(world.store.layout.counter(RUN))
                counter.unlink(missing_ok=True)
                found += await positions(world, [request])
            await world.close()
            return found

        assert asyncio.run(go()) == [6, 7, None, 8, 9, None, 10]

    def test_that_is_damaged_is_restored_by_another_process(self, tmp_path: Path) -> None:
        async def go() -> list[int | None]:
            world = local(tmp_path, SEQ_FINAL)
            await positions(world, [*FIVE, create(1, "A", 5)])
            Path(world.store.layout.counter(RUN)).write_bytes(b'{"seq": 4, "lastEv')
            other = joined(tmp_path)
            found = await positions(other, [create(2, "A", 5), create(3, "B", 5), create(4, "B", 7)])
            await other.close()
            await world.close()
            return found

        assert asyncio.run(go()) == [7, None, 8]

    def test_without_the_journal_refuses_when_in_doubt(self, tmp_path: Path) -> None:
        async def go() -> list[int | None]:
            world = local(tmp_path, SEQ_FINAL)
            await positions(world, [*FIVE, create(1, "A", 5)])
            Path(world.store.layout.counter(RUN)).unlink()
            Path(world.store.layout.journal(RUN)).unlink()
            await world.close()
            other = joined(tmp_path)
            found = await positions(other, [create(2, "A", 5), create(2, "A", 6)])
            await other.close()
            return found

        assert asyncio.run(go()) == [None, 7]


class TestAdmission:
    @given(
        st.lists(
            st.tuples(st.sampled_from("ABC"), st.integers(0, 12), st.sampled_from(["step_created", "hook_received"])),
            max_size=20,
        )
    )
    def test_never_lets_a_decision_past_a_foreign_decision_it_had_not_read(
        self, script: list[tuple[str, int, str]]
    ) -> None:
        tail = Tail()
        decided: list[tuple[int, str, int]] = []  # (seq, writer, base)
        for writer, count, kind in script:
            count = min(count, tail.seq)
            mark = rules.admit(SEQ_FINAL, tail, want(kind, "x", writer=writer, count=count))
            unread = [entry for entry in decided if entry[0] > count]
            if kind == "hook_received":
                assert mark is not None
                assert not mark.fenced
            elif mark is not None:
                assert all((who, base) == (writer, count) for _, who, base in unread)
            else:
                assert any((who, base) != (writer, count) for _, who, base in unread)
            if mark is not None:
                seq = tail.seq + 1
                from stormctl.history import Event

                tail = rules.advance(tail, Event(kind, event_id=f"e{seq}", position=seq), mark)
                if mark.fenced:
                    decided.append((seq, writer, count))
