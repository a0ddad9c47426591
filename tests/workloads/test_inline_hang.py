"""inline-hang: the pool, the victim that kills its worker, and a run that goes on all the same."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from stormctl.history import kinds
from stormctl.testing import LogBuilder
from stormctl.workloads import base as acts
from stormctl.workloads.base import Pressure, scaled
from stormctl.workloads.inline_hang import INLINE_HANG, Input, task_step
from tests.workloads.acting import payloads, played, sleeps, work_of
from tests.workloads.mortal import mortal_storm
from tests.workloads.virtual import BEGAN, Run

INPUT = Input(token="t")


def kills(seen):
    return dict(INLINE_HANG.in_log(seen.input, seen.log))["kills"]


class TestTheKillWindow:
    def test_is_absolute_from_the_start_of_the_attempt_and_scales(self):
        small = scaled(INPUT, 0.1)
        assert small.kill_until == 0
        assert INLINE_HANG.at_start(small, 1_000_000).kill_until == 1_000_000 + 180_000

    def test_other_scenarios_keep_their_input(self):
        from stormctl.workloads.registry import WORKLOADS

        for code in WORKLOADS.values():
            if code is not INLINE_HANG:
                input = code.input_type()
                assert code.at_start(input, 5) is input

    @pytest.mark.parametrize(
        ("kills", "attempt", "now", "dies"),
        [
            (1, 1, 99, True),
            (1, 1, 100, False),
            (1, 2, 99, False),
            (2, 2, 99, True),
            (0, 7, 99, True),
            (0, 7, 100, False),
        ],
    )
    def test_and_the_number_of_kills_decide_whether_the_victim_dies(self, kills, attempt, now, dies):
        seen, result = work_of(task_step(2500.0, "r", 2, 16, 100.0, kills), attempt=attempt, now=now)
        assert seen[0] == acts.Sleep(2500.0)
        assert isinstance(seen[-1], acts.KillWorker) is dies
        assert (result is None) is dies

    def test_an_ordinary_task_never_asks(self):
        seen, result = work_of(task_step(300.0, "r", 0, 4096))
        assert seen == [acts.Sleep(300.0)]
        assert len(result["payload"]) == 4096


class TestTheDriver:
    def test_pokes_every_five_seconds_until_the_run_ends(self):
        pressure = Pressure()
        seen = played(INLINE_HANG.driver(INPUT, pressure), ends_after=4, now=77)
        assert sleeps(seen) == [5000.0] * 4
        assert payloads(seen) == [{"pokedAt": 77}] * 4
        assert pressure.details == {"pokes": 4}

    def test_a_missing_hook_is_told(self):
        pressure = Pressure()
        played(INLINE_HANG.driver(INPUT, pressure), hooks=False)
        assert pressure.hook_missing


class TestThePool:
    def test_keeps_three_in_flight_and_starts_one_per_completion(self):
        run = Run(INLINE_HANG, INPUT)
        value = run.to_the_end()
        assert sorted(value["tasks"]) == list(range(9))
        flying = most = 0
        for event in run.log:
            flying += (event.type == kinds.STEP_CREATED) - (event.type == kinds.STEP_COMPLETED)
            most = max(most, flying)
        assert most == 3
        started = [event.created_at - BEGAN for event in run.log if event.type == kinds.STEP_CREATED]
        assert started[3:5] == [305, 305]
        assert INLINE_HANG.check(value, INPUT) is None

    def test_the_victim_holds_its_slot_while_the_others_go_on(self):
        value = Run(INLINE_HANG, INPUT).to_the_end()
        assert value["tasks"] == [0, 1, 3, 4, 5, 6, 7, 8, 2]


@pytest.mark.parametrize("generation", ["nets", "dispenser"])
class TestAKilledWorker:
    def test_leaves_a_start_without_an_outcome_and_the_redelivered_message_runs_the_step_again(
        self, monkeypatch, generation
    ):
        seen, killed = mortal_storm(monkeypatch, "inline-hang", generation)
        assert seen.row is not None
        assert seen.row.status == "completed"
        assert seen.code.check(seen.row.output, seen.input) is None
        assert len(killed) == 1
        assert 2500 <= killed[0] < 3500
        starts = Counter(event.correlation_id for event in seen.log if event.type == kinds.STEP_STARTED)
        assert sorted(starts.values())[-1] == 2
        assert kills(seen) >= 1
        assert seen.code.vacuous(seen.row.output, seen.input, seen.log, seen.pressure) is None
        created = Counter(event.name for event in seen.log if event.type == kinds.STEP_CREATED)
        assert created == {"taskStep": 9}

    def test_without_a_redelivery_the_step_is_taken_over_when_its_owners_lease_is_over(self, monkeypatch, generation):
        seen, killed = mortal_storm(monkeypatch, "inline-hang", generation, redeliver=False, lease_ms=20_000.0)
        assert seen.row is not None
        assert seen.row.status == "completed"
        assert seen.code.check(seen.row.output, seen.input) is None
        assert len(killed) == 1
        victim = max(
            Counter(event.correlation_id for event in seen.log if event.type == kinds.STEP_STARTED).items(),
            key=lambda pair: pair[1],
        )[0]
        first, second = (e.created_at for e in seen.log if e.correlation_id == victim and e.type == kinds.STEP_STARTED)
        assert second - first >= 20_000
        assert seen.pressure.details["pokes"] >= 5

    def test_in_every_attempt_within_the_window_dies_again_and_again_as_upstream(self, monkeypatch, generation):
        seen, killed = mortal_storm(monkeypatch, "inline-hang", generation, kills=0, kill_window_ms=10_000.0)
        assert seen.row is not None
        assert seen.row.status == "completed"
        assert len(killed) == 3
        assert all(after - before >= 2_500 for before, after in pairwise(killed))
        assert killed[-1] < 10_000

    def test_that_nobody_kills_completes_and_proves_nothing(self, monkeypatch, generation):
        seen, killed = mortal_storm(monkeypatch, "inline-hang", generation, kill_window_ms=1_000.0)
        assert seen.row is not None
        assert (seen.row.status, killed, kills(seen)) == ("completed", [], 0)
        assert "no worker was killed" in (seen.code.vacuous(seen.row.output, seen.input, seen.log, seen.pressure) or "")
        wanted = seen.code.counts(seen.input, 0)
        created = Counter(event.name or event.type for event in seen.log if event.type in kinds.CREATES)
        assert created == {name: count for name, count in wanted.items() if count}


class TestWhatMustHold:
    @pytest.mark.parametrize(
        ("tasks", "said"),
        [
            ([0, 1], None),
            ([1, 0], None),
            ([0], "1 tasks were done of 2"),
            ([0, 0], "task 1 is missing"),
            (None, "no list"),
        ],
    )
    def test_every_task_is_done_once(self, tasks, said):
        found = INLINE_HANG.check({"tasks": tasks}, Input(tasks=2))
        assert (found is None) if said is None else (said in (found or ""))

    def test_a_tenth_task_of_nine_is_an_excess(self):
        log = LogBuilder().run_created().run_started()
        for rank in range(9):
            log.step_created(rank, "taskStep")
        assert INLINE_HANG.roles is not None
        assert INLINE_HANG.roles(INPUT, log.log()).excesses == ()
        (excess,) = INLINE_HANG.roles(INPUT, log.step_created(9, "taskStep").log()).excesses
        assert (excess.role, excess.limit, excess.count) == ("taskStep", 9, 10)

    def test_a_log_that_was_not_kept_says_nothing_about_kills(self):
        assert INLINE_HANG.vacuous({}, INPUT, None, Pressure()) is None


class TestCalibration:
    def test_the_published_numbers_are_fine(self):
        assert INLINE_HANG.warnings(INPUT) == []
        assert INLINE_HANG.warnings(scaled(INPUT, 0.05)) == []

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"victim_task": 9}, "nobody kills"),
            ({"victim_delay_ms": 200.0}, "before its siblings"),
            ({"kill_window_ms": 2000.0}, "window ends before"),
            ({"width": 4}, "do not all run inline"),
        ],
    )
    def test_what_would_kill_nobody_or_too_early_is_warned_of(self, given, said):
        assert said in INLINE_HANG.warnings(Input(**given))[0]
