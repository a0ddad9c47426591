"""One replay is a function of its inputs; what it says about a pass is what the runtime must write."""

from __future__ import annotations

import random
from dataclasses import replace as changed
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.engine.door import CALM, Create, Outcome, Pass, Perturbation
from stormctl.engine.engines import engine_for
from stormctl.engine.hook import HookConflict
from stormctl.engine.identity import Bodies, Ordinal
from stormctl.engine.primitives import StepFailed
from stormctl.errors import UsageError
from stormctl.history import Capture, EventLog, Inline, Sealed, ids, kinds
from stormctl.readers.open import open_captures
from stormctl.testing import RUN_ID
from stormctl.workloads.registry import WORKLOADS, workload
from tests.conftest import ROOT
from tests.engine.writing import Writer, engine, labels, opened, replay, table

BOTH = pytest.mark.parametrize("generation", ["nets", "dispenser"])


# -- generated workflows ---------------------------------------------------------------------------------------------


async def a_branch(wf, what: str, index: int) -> None:
    if what == "race":
        winner = await wf.race(wf.step("work", index).then(lambda _: "work"), wf.sleep(1000).then(lambda _: "watchdog"))
        if winner == "watchdog":
            await wf.step("recover", index)
        await wf.step("finalize", index)
    elif what == "hook":
        hook = wf.hook(f"door {index}")
        winner = await wf.race(hook.next().then(lambda _: "hook"), wf.sleep(1000).then(lambda _: "watchdog"))
        await wf.step(f"after {winner}", index)
        hook.dispose()
    elif what == "steps":
        for number in range(3):
            await wf.step(f"step {number}", index)
    elif what == "sleep":
        await wf.sleep(500)
        await wf.step("after sleep", index)
    elif what == "poke":
        wf.hook(f"poke {index}")


def body_of(branches: list[str]):
    async def body(wf, _input):
        await wf.all([a_branch(wf, what, index) for index, what in enumerate(branches)])
        await wf.step("end")
        return len(branches)

    return body


@st.composite
def workflows(draw) -> list[str]:
    """Steps and unread hooks beside one branch that waits: two waits do not wait for each other (#3139)."""
    branches = draw(st.lists(st.sampled_from(["steps", "poke"]), max_size=3))
    branches.insert(draw(st.integers(0, len(branches))), draw(st.sampled_from(["race", "hook", "sleep"])))
    return branches


def written(branches: list[str], seed: int) -> EventLog:
    """A log that a well-behaved store and its writer made of the workflow."""
    return Writer(body_of(branches), random.Random(seed), longest=60).write()


seeds = st.integers(0, 1 << 32)


class TestLogsOfAWellBehavedStore:
    @given(workflows(), seeds, st.integers(0, 8), st.integers(0, 5), st.integers(0, 6), seeds)
    def test_bind_alike_under_the_dispenser_however_long_reading_takes(self, branches, seed, hops, ms, jitter, noise):
        log = written(branches, seed)
        lengths = range(2, len(log) + 1)
        small = engine(body_of(branches), "dispenser")
        slow = Perturbation(hydration_hops=hops, hydration_ms=float(ms), jitter_ms=jitter, seed=noise)
        for calm, other in zip(small.passes(log, lengths), small.passes(log, lengths, perturbation=slow), strict=True):
            assert table(other) == table(calm)
            assert other.outcome is calm.outcome

    @given(workflows(), seeds)
    def test_are_read_to_their_end_and_no_extension_renames_a_call(self, branches, seed):
        log = written(branches, seed)
        previous: list[tuple[int, str, str]] = []
        for one in engine(body_of(branches), "dispenser").passes(log, range(2, len(log) + 1)):
            assert one.divergence is None
            now = table(one)
            assert now[: len(previous)] == previous
            previous = now

    @given(workflows(), seeds, st.lists(st.integers(2, 60), max_size=6))
    def test_are_read_alike_by_a_retained_session_and_by_cold_replays(self, branches, seed, cuts):
        log = written(branches, seed)
        assert_session_is_cold_replay(engine(body_of(branches), "dispenser"), log, cuts)

    @pytest.mark.parametrize("seed", range(25))
    def test_of_a_storm_in_small_bind_alike_too(self, seed):
        branches = ["poke", "race", "race", "race"]
        log = written(branches, seed)
        small = engine(body_of(branches), "dispenser")
        calm = [table(one) for one in small.passes(log, range(2, len(log) + 1))]
        slow = Perturbation(hydration_hops=seed % 9, hydration_ms=seed % 4, jitter_ms=5, seed=seed)
        assert [table(one) for one in small.passes(log, range(2, len(log) + 1), perturbation=slow)] == calm


def assert_session_is_cold_replay(small, log: EventLog, cuts: list[int]) -> None:
    places = sorted({min(cut, len(log)) for cut in cuts} | {2, len(log)})
    session = small.open(log[: places[0]])
    warm = [session.first]
    warm += [session.extend(log.events[low:high]) for low, high in pairwise(places)]
    session.close()
    for one, cold in zip(warm, small.passes(log, places), strict=True):
        assert without_times(one) == without_times(cold), f"at prefix {cold.prefix}"


def without_times(one: Pass) -> Pass:
    """A pass without its virtual times: a wait that was drawn earlier is due earlier until its create is in the log."""
    return changed(one, duration_ms=None, pending=tuple(changed(item, resume_at=None) for item in one.pending))


# -- by example --------------------------------------------------------------------------------------------------------


class TestAPassIsAFunctionOfItsInputs:
    @BOTH
    @pytest.mark.parametrize("perturbation", [CALM, Perturbation(5, 1.5, 7, 11)])
    def test_the_same_inputs_give_the_same_pass(self, generation, perturbation):
        branches = ["race", "hook", "poke", "race", "steps"]
        log = written(branches, 4)
        first, second = (
            list(engine(body_of(branches), generation).passes(log, range(len(log) + 1), perturbation=perturbation))
            for _ in range(2)
        )
        assert first == second

    def test_passes_come_in_the_order_in_which_they_are_asked_for(self):
        log = opened().step(0, "step 0").log()
        small = engine(body_of(["steps"]))
        assert [one.prefix for one in small.passes(log, [4, 0, 4, 2])] == [4, 0, 4, 2]
        assert [one.consumed for one in small.passes(log, [4, 0, 4, 2])] == [4, 0, 4, 2]

    def test_jitter_moves_time_and_nothing_else(self):
        log = opened().step(0, "step 0").step(1, "step 1").step(2, "step 2")
        calm = replay(body_of(["steps"]), log)
        slow = replay(body_of(["steps"]), log, perturbation=Perturbation(jitter_ms=50, seed=3))
        other = replay(body_of(["steps"]), log, perturbation=Perturbation(jitter_ms=50, seed=4))
        assert calm.duration_ms < slow.duration_ms
        assert slow.duration_ms != other.duration_ms
        assert table(calm) == table(slow) == table(other)

    def test_an_engine_tells_its_name_and_workload(self):
        made = engine_for("nets", workload("step-storm"), workload("step-storm").parse_input({}))
        assert (made.name, made.workload) == ("nets", "step-storm")

    def test_an_unknown_generation_is_a_usage_error_that_lists_the_known(self):
        with pytest.raises(UsageError, match="no generation 'net'") as raised:
            engine_for("net", workload("step-storm"), None)
        assert "nets" in raised.value.remedy


class TestHiddenEvents:
    async def body(self, wf, _input):
        return await wf.race(wf.step("work").then(lambda _: "work"), wf.sleep(1000).then(lambda _: "watchdog"))

    def log(self):
        return opened().step_created(0, "work").wait_created(1).wait_completed(1).step_completed(0)

    def test_a_hidden_event_is_not_seen(self):
        assert replay(self.body, self.log()).value == "watchdog"
        assert replay(self.body, self.log(), hidden=frozenset({4})).value == "work"
        assert replay(self.body, self.log(), hidden=frozenset({4, 5})).outcome is Outcome.SUSPENDED

    def test_the_other_events_keep_their_index(self):
        log = self.log().wait_completed(9).step_created(5, "stray")
        one = replay(self.body_that_goes_on, log, hidden=frozenset({2}))
        assert one.divergence is not None
        assert (one.divergence.index, one.divergence.position) == (7, 8)
        assert one.parked == (6,)

    async def body_that_goes_on(self, wf, _input):
        await wf.all([wf.step("work"), wf.sleep(1000)])
        await wf.step("more")

    def test_hiding_the_last_events_is_a_shorter_prefix(self):
        log = self.log().log()
        small = engine(self.body)
        shorter = next(iter(small.passes(log, [4])))
        hidden = next(iter(small.passes(log, [6], hidden=frozenset({4, 5}))))
        assert changed(hidden, prefix=4) == shorter

    def test_an_index_outside_the_log_hides_nothing(self):
        assert replay(self.body, self.log(), hidden=frozenset({-1, 99})) == replay(self.body, self.log())


class TestARetainedSession:
    @BOTH
    def test_goes_on_where_the_log_grew(self, generation):
        log = opened().step(0, "step 0").step_created(1, "step 1").step_completed(1).log()
        session = engine(body_of(["steps"]), generation).open(log[:2])
        assert labels(session.first) == ["step:step 0"]
        assert labels(session.extend(log.events[2:5])) == ["step:step 0", "step:step 1"]
        assert labels(session.extend(log.events[5:])) == ["step:step 0", "step:step 1", "step:step 2"]
        session.close()

    def test_an_extension_by_nothing_suspends_again(self):
        session = engine(body_of(["steps"])).open(opened().log())
        assert session.extend([]).outcome is Outcome.SUSPENDED

    def test_a_suspension_of_before_does_not_end_the_next_pass(self):
        """The extension holds an event that must be set aside first, which takes far longer than a suspension."""
        log = opened().step_created(0, "step 0").wait_completed(7).step_completed(0).log()
        assert_session_is_cold_replay(engine(body_of(["steps"])), log, [3])
        wrong = opened().step_created(0, "step 0").step_created(5, "stray").log()
        assert_session_is_cold_replay(engine(body_of(["steps"])), wrong, [3])

    @pytest.mark.parametrize("end", [["completed"], ["failed"], ["diverged"]])
    def test_what_has_ended_stays_ended(self, end):
        async def body(wf, _input):
            value = await wf.step("a")
            assert value != "bad"
            return value

        log = opened()
        if end == ["diverged"]:
            log.step_created(0, "b")
        else:
            log.step_created(0, "a").step_completed(0, "bad" if end == ["failed"] else "good")
        session = engine(body).open(log.log())
        assert session.first.outcome.value == end[0]
        again = session.extend(opened().step_created(5, "x").events[2:])
        assert (again.outcome, again.value, again.error) == (
            session.first.outcome,
            session.first.value,
            session.first.error,
        )

    def test_reads_our_own_storms_as_cold_replays_do(self):
        captures = [one for one in open_captures([ROOT / "fixtures" / "logs"]) if isinstance(one, Capture)]
        storms = [one for one in captures if one.run is not None and one.run.workload in WORKLOADS]
        assert storms
        for capture in storms:
            code = workload(capture.run.workload)
            made = engine_for("dispenser", code, code.parse_input(capture.run.input))
            cuts = list(range(10, len(capture.log), 25))
            ends = {one.outcome for one in made.passes(capture.log, [*cuts, len(capture.log)])}
            if Outcome.DIVERGED not in ends:  # what a session that went astray is fed next is not defined
                assert_session_is_cold_replay(made, capture.log, cuts)


class TestPending:
    async def steps_waits_and_hooks(self, wf, _input):
        hook = wf.hook("door")
        gone = wf.hook("gone")
        gone.dispose()
        await wf.all(
            [
                *[wf.step(f"s{index}", index) for index in range(5)],
                wf.sleep(2000),
                wf.set_attributes({"stage": "one"}),
                hook.next(),
            ]
        )

    def test_the_first_three_uncreated_steps_are_lazy_and_the_rest_eager(self):
        one = replay(self.steps_waits_and_hooks, opened())
        assert [(item.name or item.kind, item.create) for item in one.pending] == [
            ("hook", Create.HOOK),
            ("hook", Create.HOOK),
            ("s0", Create.LAZY),
            ("s1", Create.LAZY),
            ("s2", Create.LAZY),
            ("s3", Create.EAGER),
            ("s4", Create.EAGER),
            ("wait", Create.WAIT),
            ("attr", Create.ATTRIBUTE),
        ]

    def test_a_created_step_takes_no_place_among_the_lazy(self):
        log = opened().hook_created(0, "door").step_created(2, "s0").step_created(4, "s2")
        one = replay(self.steps_waits_and_hooks, log)
        assert {item.name: item.create for item in one.pending if item.kind == "step"} == {
            "s0": None,
            "s1": Create.LAZY,
            "s2": None,
            "s3": Create.LAZY,
            "s4": Create.LAZY,
        }

    def test_each_carries_what_its_create_needs(self):
        one = replay(self.steps_waits_and_hooks, opened())
        hook, gone, step, wait, attr = (one.pending[index] for index in (0, 1, 2, 7, 8))
        assert (hook.token, hook.disposed) == ("door", False)
        assert (gone.token, gone.disposed) == ("gone", True)
        assert (step.name, step.arguments) == ("s0", (0,))
        assert wait.resume_at == ids.ulid_ms(RUN_ID) + 2000
        assert attr.arguments == {"stage": "one"}
        assert [item.correlation_id for item in one.pending] == [
            f"{item.kind}_{ids.body_of(ids.seeded_base(RUN_ID) + item.rank)}" for item in one.pending
        ]

    def test_a_disposed_hook_is_pending_until_the_log_says_so(self):
        async def body(wf, _input):
            wf.hook("door").dispose()
            await wf.step("a")

        log = opened().hook_created(0, "door")
        hook = replay(body, log).pending[0]
        assert (hook.created, hook.create, hook.disposed) == (True, None, True)
        assert [item.kind for item in replay(body, log.hook_disposed(0)).pending] == ["step"]

    def test_the_log_tells_who_runs_a_step_and_how_often_it_was_tried(self):
        log = opened().step_created(0, "a").event(kinds.STEP_STARTED, 0, data={"ownerMessageId": "msg_1"})
        one = replay(lambda wf, _input: one_step(wf), log)
        assert [(item.owner, item.attempts, item.retry_at) for item in one.pending] == [("msg_1", 1, None)]
        log.event(kinds.STEP_RETRYING, 0, data={"retryAfter": 5000})
        one = replay(lambda wf, _input: one_step(wf), log)
        assert [(item.owner, item.attempts, item.retry_at) for item in one.pending] == [(None, 1, 5000)]
        one = replay(lambda wf, _input: one_step(wf), log.step_started(0))
        assert [(item.owner, item.attempts, item.retry_at) for item in one.pending] == [(None, 2, None)]

    def test_the_recorded_time_of_a_wait_counts_and_not_a_new_one(self):
        async def body(wf, _input):
            await wf.sleep(1000)

        log = opened().wait_created(0, in_ms=123)
        assert replay(body, log).pending[0].resume_at == log.events[-1].resume_at

    def test_a_completed_body_still_wants_its_creates_written(self):
        async def body(wf, _input):
            wf.step("never awaited")
            hook = wf.hook("door")
            hook.dispose()
            return "early"

        one = replay(body, opened())
        assert (one.outcome, one.value) == (Outcome.COMPLETED, "early")
        assert [(item.kind, item.create, item.disposed) for item in one.pending] == [
            ("step", Create.LAZY, False),
            ("hook", Create.HOOK, True),
        ]


async def one_step(wf):
    return await wf.step("a")


class TestHowABodyEnds:
    def test_a_failed_step_raises_step_failed_with_its_error(self):
        async def body(wf, _input):
            try:
                await wf.step("a")
            except StepFailed as error:
                return f"caught {error}"

        log = opened().step_created(0, "a").event(kinds.STEP_FAILED, 0, payload=Inline("no funds"))
        assert replay(body, log).value == "caught no funds"

    def test_a_step_that_failed_without_an_error_says_so(self):
        one = replay(lambda wf, _input: one_step(wf), opened().step_created(0, "a").step_failed(0))
        assert (one.outcome, one.error) == (Outcome.FAILED, "StepFailed: step failed")

    def test_what_a_body_raises_is_its_failure_in_words(self):
        async def body(wf, _input):
            await wf.step("a")
            raise ValueError("seventeen")

        one = replay(body, opened().step(0, "a"))
        assert (one.outcome, one.error, one.divergence) == (Outcome.FAILED, "ValueError: seventeen", None)

    def test_a_body_that_cannot_be_called_has_failed(self):
        async def no_input(wf):
            return 1

        one = replay(no_input, opened())
        assert one.outcome is Outcome.FAILED
        assert one.error.startswith("TypeError: ")

    def test_a_body_that_is_no_async_function_has_failed(self):
        one = replay(lambda wf, _input: 5, opened())
        assert (one.outcome, one.error) == (
            Outcome.FAILED,
            "TypeError: a workflow runs the coroutines of async functions, not int",
        )

    def test_awaiting_asyncio_is_a_failure_with_a_reason(self):
        import asyncio

        async def body(wf, _input):
            await asyncio.sleep(0)

        assert "only await what its own primitives return" in replay(body, opened()).error

    def test_a_body_that_waits_for_nothing_suspends(self):
        async def body(wf, _input):
            await wf.race()

        assert replay(body, opened()).outcome is Outcome.SUSPENDED

    def test_the_input_is_the_bodys(self):
        async def body(wf, input):
            return [wf.run_id, input]

        assert replay(body, opened(), input=(1, 2)).value == [RUN_ID, (1, 2)]

    def test_an_event_past_the_return_is_no_divergence(self):
        one = replay(lambda wf, _input: one_step(wf), opened().step(0, "a").step_created(1, "b"))
        assert one.outcome is Outcome.COMPLETED

    @BOTH
    def test_bodies_left_waiting_can_clean_up_as_they_like(self, generation):
        seen = []

        async def branch(wf, index):
            try:
                await wf.step("work", index)
            finally:
                seen.append(index)
                await wf.all(branch(wf, 10 + index) for _ in range(2))
                seen.append("never")

        async def body(wf, _input):
            try:
                await wf.all([branch(wf, 0), branch(wf, 1)])
            finally:
                await wf.race(branch(wf, 5), wf.sleep(1))

        assert replay(body, opened(), generation).outcome is Outcome.SUSPENDED
        assert sorted(seen) == [0, 1]


class TestPayloads:
    async def both(self, wf, _input):
        hook = wf.hook("door")
        return [await wf.step("a"), await hook.next()]

    def log(self, payload):
        log = opened().hook_created(0, "door").step_created(1, "a").event(kinds.STEP_COMPLETED, 1, payload=payload)
        return log.event(kinds.HOOK_RECEIVED, 0, payload=payload)

    def test_are_what_the_workflow_is_given(self):
        assert replay(self.both, self.log(Inline({"n": 1}))).value == [{"n": 1}, {"n": 1}]

    def test_that_were_not_captured_are_none(self):
        assert replay(self.both, self.log(Sealed("0123456789abcdef"))).value == [None, None]
        assert replay(self.both, self.log(None)).value == [None, None]

    def test_by_reference_are_loaded(self):
        class Elsewhere:
            digest = "0123456789abcdef"

            def load(self):
                return "loaded"

        assert replay(self.both, self.log(Elsewhere())).value == ["loaded", "loaded"]


class TestHooks:
    def test_a_hook_is_read_like_a_stream(self):
        async def body(wf, _input):
            seen = []
            async for payload in wf.hook("door"):
                seen.append(payload)
                if len(seen) == 3:
                    break
            return seen

        log = opened().hook_created(0, "door").hook_received(0, "a").hook_received(0, "b")
        assert replay(body, log).outcome is Outcome.SUSPENDED
        assert replay(body, log.hook_received(0, "c")).value == ["a", "b", "c"]

    def test_reads_take_turns_so_that_a_read_which_lost_a_race_keeps_its_payload(self):
        async def body(wf, _input):
            hook = wf.hook("door")
            first = hook.next()
            winner = await wf.race(first, wf.sleep(10).then(lambda _: "late"))
            return [winner, await hook.next(), await first]

        log = opened().hook_created(0, "door").wait_created(1).wait_completed(1).hook_received(0, "one")
        assert replay(body, log).outcome is Outcome.SUSPENDED
        assert replay(body, log.hook_received(0, "two")).value == ["late", "two", "one"]

    def test_a_hook_that_nobody_reads_suspends_nothing(self):
        async def body(wf, _input):
            wf.hook("poke")
            return "done"

        assert replay(body, opened()).outcome is Outcome.COMPLETED

    def test_a_disposed_hook_is_not_waited_for(self):
        async def body(wf, _input):
            hook = wf.hook("door")
            read = hook.next()
            hook.dispose()
            await read

        one = replay(body, opened().hook_created(0, "door").hook_disposed(0))
        assert (one.outcome, one.pending) == (Outcome.SUSPENDED, ())

    def conflict(self):
        return opened().event(kinds.HOOK_CONFLICT, 0, token="door", data={"conflictingRunId": "wrun_other"})

    @pytest.mark.parametrize("what", ["next", "registered"])
    def test_a_refused_token_is_a_conflict_to_whoever_waits(self, what):
        async def body(wf, _input):
            await getattr(wf.hook("door"), what)()

        one = replay(body, self.conflict())
        assert (one.outcome, one.error) == (Outcome.FAILED, f"{HookConflict.__name__}: wrun_other")

    @pytest.mark.parametrize("what", ["next", "registered"])
    def test_and_to_whoever_asks_later(self, what):
        async def body(wf, _input):
            hook = wf.hook("door")
            await wf.step("a")
            await getattr(hook, what)()

        one = replay(body, self.conflict().step(1, "a"))
        assert (one.outcome, one.error) == (Outcome.FAILED, f"{HookConflict.__name__}: wrun_other")

    def test_a_registered_hook_says_so_whether_asked_before_or_after(self):
        async def body(wf, _input):
            hook = wf.hook("door")
            await hook.registered()
            await wf.step("a")
            await hook.registered()
            return "registered"

        assert replay(body, opened()).outcome is Outcome.SUSPENDED
        assert replay(body, opened().hook_created(0, "door").step(1, "a")).value == "registered"


class TestDraws:
    def test_steps_sleeps_hooks_and_attributes_draw_and_nothing_else_does(self):
        async def nothing(wf):
            return 1

        async def body(wf, _input):
            wf.step("a", 1)
            await wf.run(nothing(wf))
            wf.sleep(10)
            wf.race()
            wf.hook("door")
            wf.now()
            wf.set_attributes({"k": "v"})
            await wf.all([])
            await wf.step("b")

        one = replay(body, opened())
        assert [(draw.rank, draw.label, draw.arguments) for draw in one.draws] == [
            (0, "step:a", (1,)),
            (1, "wait", 10),
            (2, "hook", "door"),
            (3, "attr", {"k": "v"}),
            (4, "step:b", ()),
        ]

    def test_an_id_past_the_end_of_the_sequence_begins_again(self):
        last = (1 << 130) - 1
        bodies = Bodies(last)
        assert bodies[0] == "Z" * 26
        assert bodies[1] == "0" * 26
        assert Ordinal(bodies, "wrun_x").rank("step_" + "Z" * 26) == 0

    @given(st.integers(0, (1 << 130) - 1001), st.integers(0, 1000))
    def test_the_rank_of_a_body_is_where_it_was_drawn(self, base, rank):
        bodies = Bodies(base)
        assert bodies[rank] == ids.body_of(base + rank)
        assert Ordinal(bodies, "wrun_x").rank(f"step_{bodies[rank]}") == rank
