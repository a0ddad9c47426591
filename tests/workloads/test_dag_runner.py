"""dag-runner: the scheduler, hooks that are bound in between, and the generation that its runs need."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormctl.engine.door import Outcome
from stormctl.engine.engines import engine_for
from stormctl.history import kinds
from stormctl.testing import LogBuilder
from stormctl.workloads import base as acts
from stormctl.workloads.base import Pressure
from stormctl.workloads.dag_runner import DAG_RUNNER, Input, evaluate_time, worker_nodes
from tests.storm.stage import storm
from tests.workloads.acting import payloads, played, sleeps
from tests.workloads.virtual import Run

INPUT = Input(token="t")


def creates(log):
    return Counter(event.name or event.type for event in log if event.type in kinds.CREATES)


class TestTheNodes:
    def test_evaluate_for_the_published_times(self):
        assert [evaluate_time(INPUT, node) for node in range(10)] == [
            1500, 3250, 2500, 1750, 3500, 2750, 2000, 3750, 3000, 2250,
        ]  # fmt: skip

    def test_every_third_is_a_worker(self):
        assert worker_nodes(INPUT) == [2, 5, 8, 11]
        assert worker_nodes(Input(worker_every=0)) == []
        assert worker_nodes(Input(worker_every=1, nodes=3)) == [0, 1, 2]


class TestTheDriver:
    def test_calls_every_worker_back_after_its_delay(self):
        pressure = Pressure()
        seen = played(DAG_RUNNER.driver(INPUT, pressure), now=4)
        assert sleeps(seen) == [2500.0] * 4
        assert sorted(payload["node"] for payload in payloads(seen)) == [2, 5, 8, 11]
        assert pressure.details == {"callbacks_sent": 4}

    def test_looks_for_the_next_hook_while_a_callback_is_on_its_way(self):
        driver = DAG_RUNNER.driver(INPUT, Pressure())
        assert isinstance(driver.send(None), acts.RunEnded)
        assert driver.send(False) == acts.WaitForHook("t:node:2", 240_000.0)
        callback, rest = driver.send("hook").drivers
        assert callback.send(None) == acts.Sleep(2500.0)
        rest.send(None)
        assert rest.send(False) == acts.WaitForHook("t:node:5", 240_000.0)

    def test_a_missing_hook_is_told(self):
        pressure = Pressure()
        played(DAG_RUNNER.driver(INPUT, pressure), hooks=False)
        assert pressure.hook_missing
        assert pressure.details == {"callbacks_sent": 0}

    def test_without_workers_there_is_nothing_to_do(self):
        assert played(DAG_RUNNER.driver(Input(worker_every=0), Pressure())) == []


class TestAWholeRun:
    def test_keeps_its_width_in_flight_and_numbers_the_nodes_as_they_end(self):
        run = Run(DAG_RUNNER, INPUT, generation="registered")
        value = run.to_the_end()
        assert DAG_RUNNER.check(value, INPUT) is None
        assert [record["order"] for record in value["ledger"]] == list(range(1, 13))
        assert value["bindsConfirmed"] == 6
        assert {record["node"] for record in value["ledger"] if record["callback"] == "received"} == {2, 5, 8, 11}
        flying: set[int] = set()
        most = 0
        for event in run.log:
            if event.name == "claimNodeStep" and event.type == kinds.STEP_CREATED:
                flying.add(event.payload.load()[2])
            if event.name == "transitionNodeStep" and event.type == kinds.STEP_COMPLETED:
                flying.discard(event.payload.load()["node"])
            most = max(most, len(flying))
        assert most == 5

    @pytest.mark.parametrize("seed", range(3))
    def test_completes_where_a_registration_waits_for_its_turn_in_the_log(self, seed):
        seen = storm("dag-runner", "seq-final", "registered", seed=seed)
        assert seen.row is not None
        assert seen.row.status == "completed", seen.row.error_message
        value = seen.row.output
        assert seen.code.check(value, seen.input) is None
        assert creates(seen.log) == dict(seen.code.counts(seen.input, seen.code.stragglers(value)))
        assert seen.code.roles is not None
        assert seen.code.roles(seen.input, seen.log).excesses == ()
        assert seen.code.vacuous(value, seen.input, seen.log, seen.pressure) is None
        assert sum(row["deliveries"] for row in seen.journal) < 100

    @pytest.mark.parametrize("generation", ["nets", "dispenser"])
    def test_is_corrupted_by_generations_in_which_a_registration_overtakes_results(self, generation):
        """What #4201 was written for: no concurrent writer, and four fresh replays that diverge at one event."""
        seen = storm("dag-runner", "seq-final", generation)
        assert seen.row is not None
        assert seen.row.error_code == "CORRUPTED_EVENT_LOG"
        assert "belongs to finishNodeStep, but with rank 17 the workflow calls enqueueWorkerStep" in (
            seen.row.error_message or ""
        )

    @pytest.mark.parametrize("generation", ["nets", "dispenser"])
    def test_without_workers_these_generations_complete_too(self, generation):
        seen = storm("dag-runner", "seq-final", generation, worker_every=0)
        assert seen.row is not None
        assert seen.row.status == "completed", seen.row.error_message
        assert seen.code.check(seen.row.output, seen.input) is None
        wanted = seen.code.counts(seen.input, 0)
        assert creates(seen.log) == {name: count for name, count in wanted.items() if count}

    def test_a_worker_that_nobody_calls_back_is_ended_by_its_watchdog(self):
        input = Input(token="t", nodes=3, worker_callback_ms=9000.0)
        run = Run(DAG_RUNNER, input, generation="registered")
        value = run.to_the_end()
        assert DAG_RUNNER.stragglers(value) == 1
        assert "no callback arrived" in (DAG_RUNNER.vacuous(value, input, None, Pressure()) or "")
        assert DAG_RUNNER.check(value, input) is None

    def test_while_a_registration_is_awaited_no_step_runs_inline(self):
        run = Run(DAG_RUNNER, Input(token="t", nodes=2, worker_every=1), generation="registered")
        run.to_the_end()
        hooks = [index for index, event in enumerate(run.log) if event.type == kinds.HOOK_CREATED]
        engine = engine_for("registered", DAG_RUNNER, run.input)
        for index in hooks:
            (one,) = engine.passes(run.log, [index])
            assert one.outcome is Outcome.SUSPENDED
            assert any(item.awaited for item in one.pending)
            assert not any(item.create == "lazy" for item in one.pending)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 3), st.integers(0, 2))
def test_the_counts_follow_from_the_nodes(nodes, width, every, binds):
    input = Input(token="t", nodes=nodes, width=width, worker_every=every, prelude_binds=binds)
    run = Run(DAG_RUNNER, input, generation="registered")
    value = run.to_the_end()
    assert DAG_RUNNER.check(value, input) is None
    wanted = DAG_RUNNER.counts(input, 0)
    assert creates(run.log) == {name: count for name, count in wanted.items() if count}
    assert DAG_RUNNER.roles is not None
    assert DAG_RUNNER.roles(input, run.log).excesses == ()


class TestTheLedger:
    def value(self):
        return {
            "bindsConfirmed": 3,
            "ledger": [
                {"node": 1, "worker": False, "callback": "none", "order": 1},
                {"node": 0, "worker": True, "callback": "received", "order": 2},
            ],
        }

    small = Input(nodes=2)

    def test_that_adds_up_passes(self):
        assert DAG_RUNNER.check(self.value(), self.small) is None

    @pytest.mark.parametrize(
        ("place", "change", "said"),
        [
            (0, {"node": 0}, "node 0 is done twice"),
            (1, {"callback": "none"}, "node 0 is a worker and its callback is none"),
            (0, {"callback": "watchdog"}, "node 1 is no worker and its callback is watchdog"),
            (0, {"node": None}, "record 0 names no node"),
        ],
    )
    def test_that_does_not_is_told(self, place, change, said):
        value = self.value()
        value["ledger"][place] |= change
        assert said in (DAG_RUNNER.check(value, self.small) or "")

    def test_a_lost_node_and_a_lost_bind_show(self):
        assert DAG_RUNNER.check(self.value(), Input(nodes=3)) == "the ledger has 2 nodes of 3"
        value = {**self.value(), "bindsConfirmed": 2}
        assert DAG_RUNNER.check(value, self.small) == "2 binds were confirmed where 2 + 1 should be"
        assert DAG_RUNNER.check([], self.small) == "the run returned no ledger"
        assert DAG_RUNNER.ledger_code == "BAD_DAG_RUNNER_LEDGER"


class TestCalibration:
    def test_the_published_numbers_are_fine(self):
        assert DAG_RUNNER.warnings(INPUT) == []

    def test_a_width_that_runs_inline_and_a_late_callback_are_warned_of(self):
        assert "run inline" in DAG_RUNNER.warnings(Input(width=3))[0]
        assert "after the watchdog" in DAG_RUNNER.warnings(Input(worker_callback_ms=6000.0))[0]

    def test_a_thirteenth_claim_of_twelve_nodes_is_an_excess(self):
        log = LogBuilder().run_created().run_started()
        for rank in range(12):
            log.step_created(rank, "claimNodeStep")
        assert DAG_RUNNER.roles is not None
        assert DAG_RUNNER.roles(INPUT, log.log()).excesses == ()
        assert DAG_RUNNER.roles(INPUT, log.step_created(12, "claimNodeStep").log()).excesses[0].count == 13
