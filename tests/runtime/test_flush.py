"""The writes of one view: what they say was read, how they are sent, and what the store tells in return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormctl.engine.generations import DISPENSER
from stormctl.engine.workflow import Workflow
from stormctl.history import Event, ids, kinds
from stormctl.runtime import ops
from stormctl.runtime.delivery import Ending
from stormctl.runtime.rules import Rules
from stormctl.worlds.base import Appended, AppendRequest, Refusal, Refused
from tests.runtime import bodies
from tests.runtime.bodies import Nothing, scenario
from tests.runtime.driving import Stage
from tests.runtime.refusing import behind, outside, refuse

RULES = Rules(generation=DISPENSER)


async def everything(wf: Workflow, _input: Nothing) -> str:
    """Hooks, background and inline steps, an attribute, a wait, and something left pending at the end."""
    hook = wf.hook("door")
    await wf.set_attributes({"phase": "one"})
    await wf.all([wf.step("work", index) for index in range(4)] + [wf.sleep(1_000)])
    hook.dispose()
    wf.step("work", "never run")
    return "done"


async def given_up_and_taken_again(wf: Workflow, _input: Nothing) -> str:
    first = wf.hook("door")
    first.dispose()
    wf.hook("door")
    await wf.step("work")
    return "done"


def to_the_end(stage: Stage) -> Stage:
    """Deliver whatever was sent until the run has ended."""
    stage.deliver()
    for _ in range(40):
        if stage.types[-1] in kinds.RUN_TERMINAL:
            return stage
        message = stage.sent.pop(0).message
        stage.now += 2_000
        stage.deliver(step_id=message.step_id, step_name=message.step_name, data=message.data)
    raise AssertionError(stage.types)


# -- what was read --------------------------------------------------------------------------------------------------


class TestWhatWasRead:
    def test_is_told_by_every_write_that_a_replay_derived_and_by_no_other(self) -> None:
        stage = to_the_end(Stage(scenario(everything)))
        told = {(request.type, request.lazy) for request in stage.appended if request.snapshot is not None}
        untold = {(request.type, request.lazy) for request in stage.appended if request.snapshot is None}
        assert told == {
            (kinds.STEP_CREATED, False),
            (kinds.HOOK_CREATED, False),
            (kinds.WAIT_CREATED, False),
            (kinds.WAIT_COMPLETED, False),
            (kinds.ATTR_SET, False),
            (kinds.STEP_STARTED, True),
            (kinds.RUN_COMPLETED, False),
        }
        assert untold == {
            (kinds.RUN_STARTED, False),
            (kinds.STEP_STARTED, False),
            (kinds.STEP_COMPLETED, False),
            (kinds.HOOK_DISPOSED, False),
        }

    def test_is_not_told_when_a_run_fails(self) -> None:
        stage = Stage(scenario(bodies.raises))
        stage.deliver()
        assert (stage.appended[-1].type, stage.appended[-1].snapshot) == (kinds.RUN_FAILED, None)

    def test_is_told_by_nobody_when_the_guard_is_off(self) -> None:
        stage = to_the_end(Stage(scenario(everything), rules=replace(RULES, send_snapshot=False)))
        assert all(request.snapshot is None for request in stage.appended)

    def test_names_count_cursor_writer_and_the_latest_time(self) -> None:
        stage = Stage(scenario(bodies.five_steps))
        stage.deliver()
        snapshot = next(request.snapshot for request in stage.appended if request.snapshot is not None)
        assert (snapshot.count, snapshot.cursor, snapshot.writer, snapshot.in_band) == (2, "2", "wrt_1", None)
        assert snapshot.watermark == ids.ulid_ms(stage.events[1].event_id or "")


# -- one after another where the store counts -----------------------------------------------------------------------


class TestAStoreThatCountsInBand:
    def test_admits_every_write_of_a_whole_run(self) -> None:
        stage = to_the_end(Stage(scenario(everything), in_band=0))
        assert stage.notes("restart") == []
        decisions = [request for request in stage.appended if request.snapshot is not None]
        told = [request.snapshot.in_band for request in decisions if request.snapshot is not None]
        assert None not in told
        # facts name the count and do not move it, decisions move it by what lands
        expected = 0
        for request, count in zip(decisions, told, strict=True):
            assert count == expected
            if kinds.is_decision(request.type, lazy_start=request.lazy):
                expected += 2 if request.lazy else 1
        assert stage.in_band == expected

    def test_gets_its_writes_one_at_a_time(self) -> None:
        stage = Stage(scenario(bodies.five_steps), in_band=0)
        stage.deliver()
        first_start = next(index for index, op in enumerate(stage.asked) if _is_lazy(op))
        together = [op for op in stage.asked[:first_start] if isinstance(op, ops.Together)]
        assert together == []
        starts = [index for index, op in enumerate(stage.asked) if _is_lazy(op)][:3]
        assert starts == list(range(first_start, first_start + 3))  # all claims before any body

    def test_and_its_twin_that_does_not_count_gets_them_at_once(self) -> None:
        stage = Stage(scenario(bodies.five_steps))
        stage.deliver()
        widths = [len(op.parts) for op in stage.asked if isinstance(op, ops.Together)]
        assert widths[:2] == [2, 3]

    def test_is_sent_nothing_more_of_a_flush_whose_first_write_was_outrun(self) -> None:
        stage = Stage(scenario(bodies.five_steps), in_band=0)
        foreign = [1]

        def answer(request: AppendRequest) -> None:
            if request.type == kinds.STEP_CREATED and foreign[0]:
                foreign[0] -= 1
                outside(stage)
                stage.in_band = (stage.in_band or 0) + 1

        stage.answer = answer  # type: ignore[assignment]
        assert stage.deliver().restarts == 1
        until = next(index for index, op in enumerate(stage.asked) if isinstance(op, ops.Note) and op.what == "restart")
        sent = [op.request.type for op in stage.asked[:until] if isinstance(op, ops.Append)]
        assert sent == [kinds.RUN_STARTED, kinds.STEP_CREATED]

    def test_refusing_a_claim_leaves_the_claimed_steps_to_run_to_their_end(self) -> None:
        stage = Stage(scenario(bodies.five_steps), in_band=0)
        left = [1]

        def answer(request: AppendRequest) -> Refused | None:
            if request.lazy and request.payload == [1] and left[0]:
                left[0] -= 1
                outside(stage)
                return Refused(Refusal.PRECONDITION, "outrun")
            return None

        stage.answer = answer
        stage.deliver()
        until = next(index for index, op in enumerate(stage.asked) if isinstance(op, ops.Note) and op.what == "restart")
        before = [op.request for op in stage.asked[:until] if isinstance(op, ops.Append)]
        assert [request.payload for request in before if request.lazy] == [[0], [1]]
        assert [request.payload for request in before if request.type == kinds.STEP_COMPLETED] == [[0]]

    def test_is_read_in_full_after_a_refusal_because_a_delta_tells_no_count(self) -> None:
        stage = Stage(scenario(bodies.five_steps), in_band=0)
        behind(stage, kinds.STEP_CREATED, times=1, body=lambda: {"events": [], "cursor": "2"})
        stage.deliver()
        (note,) = stage.notes("restart")
        assert (note["source"], note["delta"]) == ("full-reload", "not-allowed")

    def test_an_existing_create_moves_no_count(self) -> None:
        stage = Stage(scenario(bodies.five_steps), in_band=0)
        stage.answer = refuse(Refusal.CONFLICT, kinds.STEP_CREATED, times=1)
        stage.deliver()
        told = [request.snapshot.in_band for request in stage.appended if request.snapshot is not None]
        assert told[:3] == [0, 0, 1]


def _is_lazy(op: ops.Op) -> bool:
    return isinstance(op, ops.Append) and op.request.lazy


# -- as one ---------------------------------------------------------------------------------------------------------


class TestABatch:
    def stage(self, body: object = bodies.five_steps, in_band: int | None = None) -> Stage:
        return Stage(scenario(body), rules=replace(RULES, batch_atomic=True), in_band=in_band)

    def batches(self, stage: Stage) -> list[list[str]]:
        return [[request.type for request in op.requests] for op in stage.asked if isinstance(op, ops.AppendBatch)]

    def test_holds_the_creates_of_a_phase_and_another_one_the_claims(self) -> None:
        stage = self.stage()
        stage.deliver()
        assert self.batches(stage)[:2] == [[kinds.STEP_CREATED] * 2, [kinds.STEP_STARTED] * 3]

    def test_comes_to_the_same_log_as_single_writes(self) -> None:
        whole, single = to_the_end(self.stage(everything)), to_the_end(Stage(scenario(everything)))
        assert sorted(whole.types) == sorted(single.types)
        assert {event.correlation_id for event in whole.events} == {event.correlation_id for event in single.events}

    def test_keeps_the_order_of_one_token(self) -> None:
        stage = self.stage(given_up_and_taken_again)
        stage.deliver()
        assert self.batches(stage)[0] == [kinds.HOOK_CREATED, kinds.HOOK_DISPOSED, kinds.HOOK_CREATED]

    def test_that_is_refused_is_refused_whole(self) -> None:
        stage = self.stage()
        behind(stage, kinds.STEP_CREATED, times=1, moves=False, body=lambda: {"events": [], "cursor": "2"})
        assert stage.deliver().restarts == 1
        (note,) = stage.notes("behind")
        assert note["writes"] == 2
        assert stage.notes("pass")[1]["events"] == 2

    def test_of_one_is_a_plain_write(self) -> None:
        stage = self.stage(bodies.nap)
        stage.deliver()
        assert self.batches(stage) == []
        assert kinds.WAIT_CREATED in stage.types

    def test_names_the_count_as_it_grows_where_the_store_counts(self) -> None:
        stage = to_the_end(self.stage(everything, in_band=0))
        assert stage.notes("restart") == []

    def test_and_its_twin_without_the_rule_sends_none(self) -> None:
        stage = Stage(scenario(bodies.five_steps))
        stage.deliver()
        assert self.batches(stage) == []


# -- what the store skipped -----------------------------------------------------------------------------------------


class Skipping:
    """A store of slots that tells a writer what it skipped, and hides it from the reads that follow."""

    def __init__(self, stage: Stage, *, truncated: bool = False, foreign: bool = False) -> None:
        self.stage = stage
        self.truncated = truncated
        self.foreign = foreign
        self.done = False
        stage.answer = self.answer

    def answer(self, request: AppendRequest) -> Appended | None:
        if not request.lazy or self.done:
            return None
        self.done = True
        skipped: Sequence[Event] = (outside(self.stage),)
        if self.foreign:
            skipped = [replace(event, run_id="wrun_other") for event in skipped]
        landed = self.stage.land(request)
        return replace(landed, skipped=tuple(skipped), more_skipped=self.truncated)


class TestSkippedEvents:
    def stage(self) -> Stage:
        return Stage(scenario(bodies.five_steps), slots=True)

    def seen_by_the_second_pass(self, stage: Stage) -> int:
        """Deliver while reads behind a cursor tell nothing new."""
        stage.bend = lambda page: replace(page, events=()) if page.events and page.events[0].position != 1 else page
        stage.rules = replace(stage.rules, slot_gap_check=False, max_loops=3)
        stage.deliver()
        return int(stage.notes("pass")[1]["events"])

    def test_are_in_the_view_of_the_next_pass(self) -> None:
        stage = self.stage()
        Skipping(stage)
        assert self.seen_by_the_second_pass(stage) == 3
        assert stage.counted["report"] == 1

    @pytest.mark.parametrize("how", ["truncated", "foreign"])
    def test_of_a_report_that_is_not_whole_are_thrown_away(self, how: str) -> None:
        stage = self.stage()
        Skipping(stage, truncated=how == "truncated", foreign=how == "foreign")
        assert self.seen_by_the_second_pass(stage) == 2
        assert stage.notes("report") == [{"events": 1, "truncated": True}]

    @pytest.mark.parametrize("truncated", [False, True])
    def test_leave_a_dense_view_in_the_order_of_slots_when_the_log_is_read_on(self, truncated: bool) -> None:
        stage = self.stage()
        Skipping(stage, truncated=truncated)
        assert stage.deliver().ending is Ending.PARKED
        assert not stage.notes("reread")
        assert stage.notes("pass")[1]["events"] == len(stage.events)

    @settings(max_examples=30)
    @given(st.lists(st.booleans(), min_size=1, max_size=8))
    def test_leave_every_view_dense_however_often_a_store_skips(self, skips: list[bool]) -> None:
        """As a store of slots does: whatever lies between the writer's highest slot and its own, siblings included."""
        stage = self.stage()
        turns = iter(skips)

        def answer(request: AppendRequest) -> Appended | None:
            if request.snapshot is None:
                return None
            if next(turns, False):
                outside(stage)
            skipped = tuple(stage.events[request.snapshot.count :])
            return replace(stage.land(request), skipped=skipped)

        stage.answer = answer
        to_the_end(stage)
        assert stage.types.count(kinds.STEP_COMPLETED) == 5
        assert stage.types[-1] == kinds.RUN_COMPLETED
        assert not stage.notes("reread")
