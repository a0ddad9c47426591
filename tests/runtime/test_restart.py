"""Writes that are refused for what their writer had not read: the recovery of the precondition protocol, by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from stormctl.history import ids, kinds
from stormctl.runtime import ops
from stormctl.runtime.delivery import Delivery, Ending
from stormctl.worlds.base import AppendRequest, Page, Refusal, Refused
from stormctl.worlds.wire import event_to_wire, refusal_body
from tests.runtime import bodies
from tests.runtime.bodies import scenario
from tests.runtime.driving import Stage
from tests.runtime.refusing import behind, outside, refuse


def five_steps() -> Stage:
    return Stage(scenario(bodies.five_steps))


def one_restart(stage: Stage) -> Mapping[str, Any]:
    (note,) = stage.notes("restart")
    return note


def full_loads(stage: Stage) -> int:
    return sum(isinstance(op, ops.Load) and op.after is None for op in stage.asked)


# -- how often ------------------------------------------------------------------------------------------------------


class TestALogThatDoesNotChange:
    def test_stops_the_delivery_after_one_restart(self) -> None:
        stage = five_steps()
        behind(stage, kinds.STEP_CREATED, moves=False)
        delivery = stage.deliver()
        assert (delivery.ending, delivery.restarts) == (Ending.REINVOKED, 1)
        note = one_restart(stage)
        assert (note["outcome"], note["stalled"], note["added"]) == ("unchanged", "reload-unchanged", 0)

    def test_makes_every_refusal_of_the_flush_a_useless_one(self) -> None:
        stage = five_steps()
        behind(stage, kinds.STEP_CREATED, moves=False)
        stage.deliver()
        assert stage.counted["restart.useless"] == 2
        assert stage.counted["stalled.reload-unchanged"] == 1

    def test_outranks_a_count_that_is_not_reached(self) -> None:
        stage = five_steps()
        behind(stage, kinds.STEP_CREATED, moves=False, body=lambda: {"recordedAtOrBelow": 9, "stateUpdatedAt": 10**15})
        stage.deliver()
        note = one_restart(stage)
        assert (note["satisfied"], note["stalled"]) == (False, "reload-unchanged")

    def test_and_its_twin_that_grows_once_lets_the_run_go_on(self) -> None:
        stage = five_steps()
        behind(stage, kinds.STEP_CREATED, times=1)
        delivery = stage.deliver()
        assert (delivery.ending, delivery.restarts) == (Ending.PARKED, 1)
        assert one_restart(stage)["outcome"] == "grew"
        assert stage.counted["restart.useless"] == 0


class TestALogThatGrowsButNotEnough:
    BODY: Mapping[str, Any] = {"recordedAtOrBelow": 9, "stateUpdatedAt": 10**15}

    def test_stops_the_delivery_short_of_what_was_recorded(self) -> None:
        stage = five_steps()
        behind(stage, kinds.STEP_CREATED, body=lambda: self.BODY)
        delivery = stage.deliver()
        assert (delivery.ending, delivery.restarts) == (Ending.REINVOKED, 1)
        note = one_restart(stage)
        assert (note["outcome"], note["stalled"]) == ("grew", "reload-short-of-recorded")
        assert (note["recorded"], note["held"], note["satisfied"]) == (9, len(stage.events), False)

    def test_and_its_twin_that_holds_just_as_many_is_satisfied(self) -> None:
        stage = five_steps()
        body = lambda: {"recordedAtOrBelow": len(stage.events), "stateUpdatedAt": stage.now}  # noqa: E731
        behind(stage, kinds.STEP_CREATED, times=1, body=body)
        delivery = stage.deliver()
        assert (delivery.ending, delivery.restarts) == (Ending.PARKED, 1)
        note = one_restart(stage)
        assert (note["satisfied"], note["stalled"], note["held"]) == (True, None, note["recorded"])

    def test_does_not_count_what_is_newer_than_the_stores_time(self) -> None:
        stage = five_steps()
        body = lambda: {"recordedAtOrBelow": len(stage.events), "stateUpdatedAt": stage.now - 1}  # noqa: E731
        behind(stage, kinds.STEP_CREATED, body=body)
        stage.deliver()
        note = one_restart(stage)
        assert (note["held"], note["stalled"]) == (note["recorded"] - 1, "reload-short-of-recorded")


class TestALogThatSatisfies:
    def test_is_replayed_three_times_and_then_the_run_is_invoked_again_later(self) -> None:
        stage = five_steps()
        behind(stage, kinds.STEP_CREATED, body=lambda: {"recordedAtOrBelow": 1, "stateUpdatedAt": stage.now})
        delivery = stage.deliver(reinvocations=2)
        assert (delivery.ending, delivery.restarts, delivery.passes) == (Ending.REINVOKED, 3, 4)
        assert [note["satisfied"] for note in stage.notes("restart")] == [True] * 3
        assert stage.notes("reinvocation") == [{"reinvocations": 3, "why": "budget"}]
        again = stage.sent[-1]
        assert (again.message.reinvocations, again.delay_ms) == (3, stage.rules.reinvoke_delay_ms)

    def test_never_sends_a_refused_write_again_but_a_new_one(self) -> None:
        stage = five_steps()
        behind(stage, kinds.STEP_CREATED)
        stage.deliver()
        counts = [
            request.snapshot.count
            for request in stage.appended
            if request.type == kinds.STEP_CREATED and request.snapshot is not None
        ]
        # two creates a pass, both refused, and each refusal moved the log by one
        assert counts == [2, 2, 4, 4, 6, 6, 8, 8]

    def test_and_its_twin_that_is_refused_twice_comes_through(self) -> None:
        stage = five_steps()
        behind(stage, kinds.STEP_CREATED, times=4)
        delivery = stage.deliver()
        assert (delivery.ending, delivery.restarts) == (Ending.PARKED, 2)
        assert not stage.notes("reinvocation")


class TestTheRun:
    @pytest.mark.parametrize("moves", [True, False])
    def test_fails_when_a_sixth_reinvocation_would_be_needed(self, moves: bool) -> None:
        stage = five_steps()
        behind(stage, kinds.STEP_CREATED, moves=moves)
        assert stage.deliver(reinvocations=5).ending is Ending.FAILED
        end = stage.events[-1]
        assert (end.type, end.data["errorCode"]) == (kinds.RUN_FAILED, "RUNTIME_ERROR")
        assert stage.notes("exhausted") == [{"reinvocations": 6, "why": "budget" if moves else "reload-unchanged"}]
        assert not [sent for sent in stage.sent if sent.message.reinvocations]

    def test_is_invoked_again_a_fifth_time(self) -> None:
        stage = five_steps()
        behind(stage, kinds.STEP_CREATED)
        assert stage.deliver(reinvocations=4).ending is Ending.REINVOKED
        assert stage.sent[-1].message.reinvocations == 5

    def test_does_not_forget_its_divergences_when_it_is_invoked_again(self) -> None:
        stage = five_steps()
        behind(stage, kinds.STEP_CREATED)
        stage.deliver(divergences=2, divergent_event="evnt_x")
        again = stage.sent[-1].message
        assert (again.divergences, again.divergent_event, again.reinvocations) == (2, "evnt_x", 1)

    def test_is_invoked_again_as_a_run_when_a_step_message_had_to_give_up(self) -> None:
        stage = five_steps()
        first = stage.deliver()
        assert first.ending is Ending.PARKED
        one, two = (sent.message for sent in stage.sent if sent.message.step_id)
        stage.deliver(step_id=one.step_id, step_name=one.step_name, data=one.data)
        behind(stage, kinds.RUN_COMPLETED)
        stage.deliver(step_id=two.step_id, step_name=two.step_name, data=two.data)
        again = stage.sent[-1].message
        assert (again.step_id, again.step_name, dict(again.data), again.reinvocations) == (None, None, {}, 1)


# -- where ----------------------------------------------------------------------------------------------------------


def nap_at_its_end() -> Stage:
    stage = Stage(scenario(bodies.nap))
    stage.deliver()
    stage.now += 1_000
    stage.asked.clear()
    return stage


class TestTheSite:
    @pytest.mark.parametrize(
        ("make", "type", "site"),
        [
            (five_steps, kinds.STEP_CREATED, "suspension-create"),
            (five_steps, kinds.STEP_STARTED, "inline-claim"),
            (nap_at_its_end, kinds.WAIT_COMPLETED, "replay-write"),
            (nap_at_its_end, kinds.RUN_COMPLETED, "replay-write"),
        ],
    )
    def test_is_told_with_every_restart(self, make: Callable[[], Stage], type: str, site: str) -> None:
        stage = make()
        behind(stage, type, times=1)
        delivery = stage.deliver()
        assert (delivery.ending in (Ending.PARKED, Ending.COMPLETED), delivery.restarts) == (True, 1)
        assert one_restart(stage)["reason"] == site
        (note,) = stage.notes("behind")
        assert (note["site"], note["types"]) == (site, {type: 1})

    def test_refusals_of_facts_are_counted_apart(self) -> None:
        stage = nap_at_its_end()
        behind(stage, kinds.WAIT_COMPLETED, times=1)
        stage.deliver()
        assert (stage.counted["behind.facts"], stage.counted["behind.type.wait_completed"]) == (1, 1)
        stage = five_steps()
        behind(stage, kinds.STEP_STARTED, times=1)
        stage.deliver()
        assert stage.counted["behind.facts"] == 0


class TestSiblings:
    def test_all_settle_before_the_restart(self) -> None:
        stage = five_steps()
        behind(stage, kinds.STEP_CREATED, times=1)
        stage.deliver()
        until = next(index for index, op in enumerate(stage.asked) if isinstance(op, ops.Note) and op.what == "restart")
        sent = [op.request.type for op in stage.asked[:until] if isinstance(op, ops.Append)]
        assert sent.count(kinds.STEP_CREATED) == 2
        assert kinds.STEP_STARTED not in sent

    def test_that_were_claimed_run_to_their_end_first(self) -> None:
        stage = five_steps()
        left = [1]

        def second_claim_is_refused(request: AppendRequest) -> Refused | None:
            if request.lazy and request.payload == [1] and left[0]:
                left[0] -= 1
                outside(stage)
                return Refused(Refusal.PRECONDITION, "behind")
            return None

        stage.answer = second_claim_is_refused
        stage.deliver()
        until = next(index for index, op in enumerate(stage.asked) if isinstance(op, ops.Note) and op.what == "restart")
        before = [op.request for op in stage.asked[:until] if isinstance(op, ops.Append)]
        assert [request.payload for request in before if request.type == kinds.STEP_COMPLETED] == [[0], [2]]

    def test_a_refused_precondition_counts_for_more_than_an_existing_create(self) -> None:
        stage = five_steps()
        answers = iter([Refusal.CONFLICT, Refusal.PRECONDITION])

        def answer(request: AppendRequest) -> Refused | None:
            refusal = next(answers, None) if request.type == kinds.STEP_CREATED else None
            if refusal is None:
                return None
            outside(stage)
            return Refused(refusal, "by the test")

        stage.answer = answer
        assert stage.deliver().restarts == 1

    def test_and_its_twin_with_an_existing_create_alone_restarts_nothing(self) -> None:
        stage = five_steps()
        stage.answer = refuse(Refusal.CONFLICT, kinds.STEP_CREATED, times=1)
        assert stage.deliver().restarts == 0


# -- which log ------------------------------------------------------------------------------------------------------


def delta(stage: Stage, after: int = 2, **changed: Any) -> Callable[[], dict[str, Any]]:
    """A body with everything behind the first so many events, its last event changed."""

    def body() -> dict[str, Any]:
        told = refusal_body(Page(tuple(stage.events[after:]), str(len(stage.events))), None)
        told["events"][-1].update(changed)
        return told

    return body


def refused_with(body: Callable[[Stage], Callable[[], Mapping[str, Any]]], type: str = kinds.STEP_CREATED) -> Stage:
    stage = five_steps()
    behind(stage, type, times=1, body=body(stage))
    delivery = stage.deliver()
    assert (delivery.ending, delivery.restarts) == (Ending.PARKED, 1)
    return stage


class TestADelta:
    def test_that_is_sound_stands_in_for_a_full_read(self) -> None:
        stage = refused_with(delta)
        note = one_restart(stage)
        assert (note["source"], note["outcome"], note["added"], note["delta"]) == ("inline-delta", "grew", 1, "used")
        assert full_loads(stage) == 1
        passes = [note["events"] for note in stage.notes("pass")]
        assert passes[:2] == [2, 3]

    @pytest.mark.parametrize(
        "changed",
        [
            pytest.param({"runId": "wrun_01KE0000000000000000000009"}, id="another run"),
            pytest.param({"eventId": None}, id="no event id"),
            pytest.param({"eventId": 7}, id="an event id that is no string"),
            pytest.param({"eventType": "step_exploded"}, id="an unknown type"),
            pytest.param({"createdAt": "yesterday"}, id="a time that is none"),
            pytest.param({"eventData": {"input": {"0": 100, "1": 101}}}, id="a buffer that JSON has mangled"),
            pytest.param({"eventData": {"output": "text"}}, id="a payload that is no bytes"),
        ],
    )
    def test_with_one_bad_event_is_refused_whole_and_the_log_is_read(self, changed: dict[str, Any]) -> None:
        def two_events(stage: Stage) -> Callable[[], dict[str, Any]]:
            return delta(stage, after=1, **changed)

        stage = refused_with(two_events)
        note = one_restart(stage)
        assert (note["source"], note["delta"], note["outcome"]) == ("full-reload", "bad", "grew")
        assert full_loads(stage) == 2

    def test_that_is_bad_does_not_spoil_the_counts_beside_it(self) -> None:
        def body(stage: Stage) -> Callable[[], dict[str, Any]]:
            return lambda: {"events": 7, "recordedAtOrBelow": 1, "stateUpdatedAt": stage.now}

        note = one_restart(refused_with(body))
        assert (note["delta"], note["satisfied"]) == ("bad", True)

    def test_is_used_at_the_first_restart_only(self) -> None:
        stage = five_steps()
        behind(stage, kinds.STEP_CREATED, times=4, body=delta(stage))
        stage.deliver()
        assert [(note["source"], note["delta"]) for note in stage.notes("restart")] == [
            ("inline-delta", "used"),
            ("full-reload", "not-allowed"),
        ]

    def test_that_brings_nothing_does_not_stall_the_delivery(self) -> None:
        stage = five_steps()
        behind(stage, kinds.STEP_CREATED, times=1, moves=False, body=lambda: {"events": [], "cursor": "2"})
        delivery = stage.deliver()
        note = one_restart(stage)
        assert (note["source"], note["outcome"], note["stalled"]) == ("inline-delta", "unchanged", None)
        assert (delivery.ending, stage.counted["restart.useless"]) == (Ending.PARKED, 0)

    def test_is_not_judged_by_the_counts(self) -> None:
        def body(stage: Stage) -> Callable[[], dict[str, Any]]:
            return lambda: {**delta(stage)(), "recordedAtOrBelow": 99, "stateUpdatedAt": stage.now}

        note = one_restart(refused_with(body))
        assert (note["source"], note["satisfied"], note["stalled"]) == ("inline-delta", None, None)

    def test_without_a_cursor_leaves_the_next_read_where_it_was(self) -> None:
        stage = refused_with(lambda stage: lambda: {"events": [event_to_wire(stage.events[-1])]})
        assert one_restart(stage)["source"] == "inline-delta"
        second = [op.after for op in stage.asked if isinstance(op, ops.Load)][1]
        assert second == "2"


class TestADeltaAfterAnInlineClaim:
    def claims(self, refused: int) -> Stage:
        """The first so many of the three claims are refused, once, each with a sound delta."""
        stage = five_steps()
        behind(stage, kinds.STEP_STARTED, times=refused, body=delta(stage))
        stage.deliver()
        return stage

    def test_is_not_used_when_a_sibling_claim_was_accepted(self) -> None:
        note = self.claims(refused=2).notes("restart")[0]
        assert (note["reason"], note["source"], note["delta"]) == ("inline-claim", "full-reload", "not-allowed")

    def test_is_used_when_all_claims_were_refused(self) -> None:
        note = self.claims(refused=3).notes("restart")[0]
        assert (note["reason"], note["source"], note["delta"]) == ("inline-claim", "inline-delta", "used")

    def test_is_used_at_another_site_although_a_sibling_landed(self) -> None:
        note = one_restart(refused_with(delta))
        assert (note["reason"], note["delta"]) == ("suspension-create", "used")


class TestALogThatLosesEvents:
    def test_is_only_told(self) -> None:
        stage = five_steps()
        behind(stage, kinds.STEP_CREATED, times=1)

        def bend(page: Page) -> Page:
            if full_loads(stage) > 1:
                return page
            extra = replace(page.events[-1], event_id=f"evnt_{ids.compose(stage.now, 99)}", position=3)
            return replace(page, events=(*page.events, extra))

        stage.bend = bend
        delivery: Delivery = stage.deliver()
        note = one_restart(stage)
        assert (note["outcome"], note["dropped"], note["stalled"]) == ("shrank", 1, None)
        assert delivery.ending is Ending.PARKED
