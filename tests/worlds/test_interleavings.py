"""Two writers stopped between every two points, in every order."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from stormctl.history import Event, kinds
from stormctl.worlds import MAIN, SEQ_FINAL, Appended, AppendRequest, Condition, Point, Refusal, Refused
from tests.worlds.making import (
    HOOK,
    HOOK_2,
    OTHER_RUN,
    RUN,
    STEP,
    STEP_2,
    WAIT,
    interleavings,
    joined,
    local,
    make_run,
    some_interleavings,
    types,
    want,
)

RUNNING = make_run()
LIVE = [*RUNNING, want("step_created", STEP, name="s", payload=1), want("step_started", STEP)]
HOOKED = [*RUNNING, want("hook_created", HOOK, token="t")]

PAIRS: dict[str, tuple[list[AppendRequest], AppendRequest, AppendRequest]] = {
    "the same step": (
        RUNNING,
        want("step_created", STEP, name="a", payload=1, writer="A"),
        want("step_created", STEP, name="b", payload=2, writer="B"),
    ),
    "the same wait": (
        RUNNING,
        want("wait_created", WAIT, resume_at=5, writer="A"),
        want("wait_created", WAIT, resume_at=6, writer="B"),
    ),
    "run_started twice": (RUNNING[:1], want("run_started", writer="A"), want("run_started", writer="B")),
    "two ends": (RUNNING, want("run_completed", writer="A"), want("run_failed", writer="B", data={"error": "x"})),
}
GUARDED: dict[str, tuple[list[AppendRequest], AppendRequest, AppendRequest]] = {
    "two lazy starts": (
        RUNNING,
        want("step_started", STEP, name="a", payload=1, lazy=True, writer="A"),
        want("step_started", STEP, name="b", payload=2, lazy=True, writer="B"),
    ),
    "two ends of a step": (LIVE, want("step_completed", STEP, payload=1), want("step_failed", STEP, payload=2)),
    "a wait completed twice": (
        [*RUNNING, want("wait_created", WAIT, resume_at=5)],
        want("wait_completed", WAIT, writer="A"),
        want("wait_completed", WAIT, writer="B"),
    ),
    "a hook disposed of twice": (HOOKED, want("hook_disposed", HOOK, writer="A"), want("hook_disposed", HOOK)),
    "the same hook": (
        RUNNING,
        want("hook_created", HOOK, token="t", writer="A"),
        want("hook_created", HOOK, token="t", writer="B"),
    ),
}


def sane(events: tuple[Event, ...]) -> None:
    """What a log of seq-final is, always."""
    assert [event.position for event in events] == list(range(1, len(events) + 1))
    found = [event.event_id or "" for event in events]
    assert found == sorted(set(found))
    assert all(before.created_at < after.created_at for before, after in pairwise(events))  # type: ignore[operator]
    created = Counter(event.correlation_id for event in events if event.type in kinds.CREATES)
    assert not created or max(created.values()) == 1
    assert sum(event.is_terminal for event in events) <= 1
    assert types(events).count("run_started") <= 1


def once(events: tuple[Event, ...]) -> bool:
    """Whether nothing that can happen once happened twice."""
    try:
        sane(tuple(Event(e.type, e.run_id, f"{i:09d}", e.correlation_id, i + 1, i) for i, e in enumerate(events)))
    except AssertionError:
        return False
    return True


class TestUnderMain:
    @pytest.mark.parametrize("name", PAIRS)
    def test_both_writers_can_win(self, name: str) -> None:
        before, one, other = PAIRS[name]
        doubled = all_ways = 0
        for _, store, _ in interleavings(MAIN, before, [one, other]):
            all_ways += 1
            doubled += not once(store.log(RUN).events())
        assert 0 < doubled < all_ways

    @pytest.mark.parametrize("name", GUARDED)
    def test_a_claim_lets_only_one_through(self, name: str) -> None:
        before, one, other = GUARDED[name]
        for schedule, store, answers in interleavings(MAIN, before, [one, other]):
            landed = [answer for answer in answers if isinstance(answer, Appended)]
            assert len(landed) == 1, schedule
            refused = next(answer for answer in answers if isinstance(answer, Refused))
            assert refused.refusal in (Refusal.CONFLICT, Refusal.NOT_FOUND)
            assert len(store.log(RUN).events()) == len(before) + len(landed[0].events)


class TestUnderSeqFinal:
    @pytest.mark.parametrize("name", [*PAIRS, *GUARDED])
    def test_exactly_one_writer_wins_in_every_order(self, name: str) -> None:
        before, one, other = (PAIRS | GUARDED)[name]
        ways = 0
        for _, store, answers in interleavings(SEQ_FINAL, before, [one, other]):
            ways += 1
            sane(store.log(RUN).events())
            wins = sum(isinstance(answer, Appended) and bool(answer.events) for answer in answers)
            assert wins == 1
            assert not store.held
        assert ways > 1

    def test_two_decisions_from_one_prefix_cannot_both_land(self) -> None:
        one = want("step_created", STEP, name="a", payload=1, writer="A", count=2)
        other = want("step_created", STEP_2, name="b", payload=2, writer="B", count=2)
        for _, store, answers in interleavings(SEQ_FINAL, RUNNING, [one, other]):
            sane(store.log(RUN).events())
            assert sorted(type(answer).__name__ for answer in answers) == ["Appended", "Refused"]

    def test_a_receipt_never_lands_behind_the_end(self) -> None:
        end, receipt = want("run_completed"), want("hook_received", HOOK, token="t", payload=1)
        for _, store, _ in interleavings(SEQ_FINAL, HOOKED, [end, receipt]):
            assert store.log(RUN).events()[-1].type == "run_completed"
        behind = [
            store
            for _, store, _ in interleavings(MAIN, HOOKED, [end, receipt])
            if any(event.is_terminal for event in store.log(RUN).events())
            and len(store.log(RUN).events()) == len(HOOKED) + 2
        ]
        assert behind, "under main a receipt can land after the run's end was decided"


class TestATokenOfTwoRuns:
    @pytest.mark.parametrize("condition", [MAIN, SEQ_FINAL], ids=lambda condition: condition.name)
    def test_has_one_owner_in_every_order(self, condition: Condition) -> None:
        before = [*make_run(), *make_run(OTHER_RUN)]
        one = want("hook_created", HOOK, token="t")
        other = want("hook_created", HOOK_2, token="t", run=OTHER_RUN)
        for store in some_interleavings(condition, before, [one, other], 300):
            last = [store.log(run).events()[-1].type for run in (RUN, OTHER_RUN)]
            assert sorted(last) == ["hook_conflict", "hook_created"]


@pytest.mark.parametrize("point", list(Point))
class TestInAFolder:
    """One process stops at a point, another appends meanwhile; both write the same step from the same prefix."""

    def stop_at(
        self, folder: Path, condition: Condition, point: Point
    ) -> tuple[list[Appended | Refused], tuple[Event, ...]]:
        async def go() -> tuple[list[Appended | Refused], tuple[Event, ...]]:
            there, go_on = asyncio.Event(), asyncio.Event()
            pausing = False

            async def pause(at: Point, request: AppendRequest) -> None:
                if pausing and at is point and request.writer == "A":
                    there.set()
                    await go_on.wait()

            first = local(folder, condition, on_point=pause)
            for request in RUNNING:
                await first.append(request)
            second = joined(folder)
            pausing = True
            one = want("step_created", STEP, name="a", payload=1, writer="A", count=2)
            other = want("step_created", STEP, name="b", payload=2, writer="B", count=2)
            slow = asyncio.create_task(first.append(one))
            await there.wait()
            quick = asyncio.create_task(second.append(other))
            # nothing holds the quick writer up under main, so the machine may be as busy as it likes
            await asyncio.wait([quick], timeout=30 if condition is MAIN else 0.05)
            go_on.set()
            answers = [await slow, await quick]
            events = (await second.load(RUN)).events
            await second.close()
            await first.close()
            return answers, events

        return asyncio.run(go())

    def test_under_seq_final_one_wins_wherever_it_stops(self, tmp_path: Path, point: Point) -> None:
        answers, events = self.stop_at(tmp_path, SEQ_FINAL, point)
        sane(events)
        assert sorted(type(answer).__name__ for answer in answers) == ["Appended", "Refused"]

    def test_under_main_both_win_between_check_and_write(self, tmp_path: Path, point: Point) -> None:
        answers, events = self.stop_at(tmp_path, MAIN, point)
        both = all(isinstance(answer, Appended) for answer in answers)
        window = point in (Point.ADMIT, Point.EFFECTS)
        assert both == window
        assert len(events) == (4 if window else 3)
