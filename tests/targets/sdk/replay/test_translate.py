"""What a bundle's engine asked for, as a pass like any other engine's."""

from __future__ import annotations

from typing import Any

import pytest

from stormctl.engine.door import Create, Outcome
from stormctl.history import EventLog, kinds
from stormctl.readers import devalue
from stormctl.targets.sdk.replay.answer import Answer, Asked
from stormctl.targets.sdk.replay.translate import RefusedPass, Translator
from stormctl.targets.sdk.replay.transplant import Transplant
from stormctl.testing import LogBuilder

SETTLE, RELEASE = "step//./workflows/storms//settle", "step//./workflows/storms//release"


def built() -> LogBuilder:
    """A run that has a settled step, a wait that is on, and a hook."""
    return (
        LogBuilder(positions=False)
        .run_created("step-storm")
        .run_started()
        .hook_created(0, token="poke")
        .step_created(1, SETTLE, {"n": 1})
        .wait_created(2)
        .step_started(1)
        .step_completed(1, 7)
    )


def answer(prefix: int, *asked: Asked, **given: Any) -> Answer:
    fields = {"queued": (), "ended": "returned", "error": None, "calls": {}, "ms": 1.0, "hidden": frozenset()}
    return Answer(prefix=prefix, asked=asked, **{**fields, **given})


def step(log: LogBuilder, rank: int, name: str, *arguments: Any, type: str = kinds.STEP_CREATED) -> Asked:
    return Asked(type, log.id("step", rank), name, payload=encoded({"args": list(arguments)}))


def encoded(value: Any) -> bytes:
    return b"devl" + devalue_text(value)


def devalue_text(value: Any) -> bytes:
    """The value in devalue's flat form, for the few shapes that these tests need."""
    import json

    slots: list[Any] = []

    def put(one: Any) -> int:
        place = len(slots)
        slots.append(None)
        if isinstance(one, dict):
            slots[place] = {key: put(inner) for key, inner in one.items()}
        elif isinstance(one, list):
            slots[place] = [put(inner) for inner in one]
        else:
            slots[place] = one
        return place

    put(value)
    return json.dumps(slots).encode()


def failed(message: str, code: str = "CORRUPTED_EVENT_LOG") -> Asked:
    return Asked(kinds.RUN_FAILED, data={"errorCode": code, "error": {"message": message}})


def diverged(log: EventLog, index: int, sentence: str) -> Asked:
    return failed(
        "Workflow replay diverged 4 times after 3 recovery replays; latest divergent event was "
        f"{log[index].event_id}. Last divergence: Replay divergence: {sentence}\n\nLearn more: https://example.test"
    )


def test_the_encoding_of_these_tests_is_devalues() -> None:
    assert devalue.decode(encoded({"args": [1, "two", {"three": [3]}]})) == {"args": [1, "two", {"three": [3]}]}


class TestTheTable:
    def test_it_holds_what_the_prefix_holds_and_what_was_asked_for(self) -> None:
        log = built()
        found = Translator(log.log()).pass_of(answer(7, step(log, 3, RELEASE, 1)))
        assert [(draw.rank, draw.label) for draw in found.draws] == [
            (0, "hook"),
            (1, "step:settle"),
            (2, "wait"),
            (3, "step:release"),
        ]
        assert found.outcome is Outcome.SUSPENDED

    def test_an_entity_of_a_later_event_is_not_there_yet(self) -> None:
        log = built()
        found = Translator(log.log()).pass_of(answer(3, step(log, 1, SETTLE, {"n": 1})))
        assert [draw.label for draw in found.draws] == ["hook", "step:settle"]

    def test_a_hidden_create_is_nobodys(self) -> None:
        found = Translator(built().log()).pass_of(answer(7, hidden=frozenset({4})))
        assert [draw.rank for draw in found.draws] == [0, 1]

    def test_one_draw_is_one_object_in_every_pass(self) -> None:
        log = built()
        translator = Translator(log.log())
        one, other = (translator.pass_of(answer(length, step(log, 3, RELEASE, 1))) for length in (6, 7))
        assert all(a is b for a, b in zip(one.draws, other.draws, strict=True))

    def test_a_step_that_was_started_before_it_was_created_has_its_input(self) -> None:
        log = LogBuilder().run_created().run_started()
        log.event(kinds.STEP_STARTED, 0, name=SETTLE).step_created(0, SETTLE, 5)
        asked, held = (
            Translator(log.log()).pass_of(answer(length, step(log, 0, SETTLE, 5))).draws[0] for length in (2, 3)
        )
        assert asked.digest == held.digest


class TestWhatIsStillToBeCreated:
    def test_it_is_in_the_order_of_the_draws_and_has_its_class(self) -> None:
        log = built()
        found = Translator(log.log()).pass_of(
            answer(
                7,
                Asked(kinds.HOOK_CREATED, log.id("hook", 6), token="late"),
                Asked(kinds.WAIT_CREATED, log.id("wait", 4), resume_at=17),
                step(log, 5, RELEASE, 2),
                step(log, 3, RELEASE, 1, type=kinds.STEP_STARTED),
            )
        )
        assert [(item.rank, item.create) for item in found.pending] == [
            (3, Create.LAZY),
            (4, Create.WAIT),
            (5, Create.EAGER),
            (6, Create.HOOK),
        ]
        assert [item.arguments for item in found.pending] == [[1], None, [2], "late"]

    def test_a_start_of_a_step_that_the_log_has_creates_nothing(self) -> None:
        log = built()
        found = Translator(log.log()).pass_of(answer(5, step(log, 1, SETTLE, {"n": 1}, type=kinds.STEP_STARTED)))
        assert found.pending == ()

    def test_a_create_that_is_asked_for_twice_is_one(self) -> None:
        log = built()
        found = Translator(log.log()).pass_of(answer(7, step(log, 3, RELEASE, 1), step(log, 3, RELEASE, 1)))
        assert len(found.pending) == 1

    def test_what_is_no_create_is_left_out(self) -> None:
        log = built()
        asked = (Asked(kinds.WAIT_COMPLETED, log.id("wait", 2)), Asked(kinds.HOOK_DISPOSED, log.id("hook", 0)))
        assert Translator(log.log()).pass_of(answer(7, *asked)).pending == ()


class TestTheEnding:
    def test_a_value_is_returned(self) -> None:
        found = Translator(built().log()).pass_of(answer(7, Asked(kinds.RUN_COMPLETED, payload=encoded({"sum": 7}))))
        assert (found.outcome, found.value) == (Outcome.COMPLETED, {"sum": 7})

    def test_a_divergence_by_name_is_told_as_our_engines_tell_it(self) -> None:
        log = built().log()
        text = f'step event step_created for x belongs to "{SETTLE}", but the current step consumer is "{RELEASE}"'
        found = Translator(log).pass_of(answer(7, diverged(log, 3, text)))
        assert found.outcome is Outcome.DIVERGED
        lost = found.divergence
        assert lost is not None
        assert (lost.index, lost.rank, lost.reason) == (3, 1, "name")
        assert (lost.expected, lost.actual, lost.text) == ("step:settle", "step:release", text)

    def test_a_divergence_of_a_form_that_nobody_has_met_still_names_its_event(self) -> None:
        log = built().log()
        lost = Translator(log).pass_of(answer(7, diverged(log, 4, "something new"))).divergence
        assert lost is not None
        assert (lost.index, lost.reason, lost.expected, lost.text) == (4, "other", "wait", "something new")

    def test_a_failure_of_the_workflow_is_no_divergence(self) -> None:
        found = Translator(built().log()).pass_of(answer(7, failed("boom", "USER_ERROR")))
        assert (found.outcome, found.error, found.divergence) == (Outcome.FAILED, "USER_ERROR: boom", None)

    def test_a_pass_that_had_to_be_ended_is_not_believed(self) -> None:
        refused = answer(7, guard="network", error="it opened a socket to 10.0.0.1")
        with pytest.raises(RefusedPass, match=r"prefix 7 was ended: it opened a socket to 10\.0\.0\.1"):
            Translator(built().log()).pass_of(refused)

    def test_a_handler_that_throws_fails(self) -> None:
        found = Translator(built().log()).pass_of(answer(7, ended="threw", error="TypeError: no"))
        assert (found.outcome, found.error) == (Outcome.FAILED, "TypeError: no")


class TestOtherIds:
    def test_a_log_judged_by_another_version_gets_its_own_ids_back(self) -> None:
        built_log = built()
        log = built_log.log()
        there = Transplant(7, shift=1000)
        far = LogBuilder()
        far._base = built_log._base + 1000
        asked = Asked(kinds.STEP_CREATED, far.id("step", 3), RELEASE, payload=encoded({"args": [1]}))
        found = Translator(log, there).pass_of(answer(7, asked))
        assert found.pending[0].correlation_id == built_log.id("step", 3)

        text = f'step event step_created for {far.id("step", 1)} belongs to "{SETTLE}", but the current step consumer '
        text += f'is "{RELEASE}"'
        message = "latest divergent event was evnt_00000000000000000000000004. Last divergence: Replay divergence: "
        lost = Translator(log, there).pass_of(answer(7, failed(message + text))).divergence
        assert lost is not None
        assert (lost.index, lost.event_id) == (3, log[3].event_id)
        assert built_log.id("step", 1) in lost.text
