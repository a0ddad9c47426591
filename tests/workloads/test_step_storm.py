"""step-storm: the delay formula, the pump, the ledger and the roles, each by hand."""

from __future__ import annotations

import copy

import pytest

from stormctl.testing import LogBuilder
from stormctl.workloads import base as acts
from stormctl.workloads import step_storm, storm
from stormctl.workloads.base import Pressure
from stormctl.workloads.step_storm import STEP_STORM, Input, branch_delay


class TestTheDelayFormula:
    def test_is_upstreams_with_the_published_input(self):
        rounds = [{branch_delay(Input(), round, index) for index in range(8)} for round in range(6)]
        assert rounds == [{1700}, {2450}, {1950}, {2700}, {2200}, {1700}]

    @pytest.mark.parametrize("buckets", [4, 7])
    def test_spreads_inside_a_round_where_five_does_not_divide_it(self, buckets):
        for round in range(6):
            delays = {branch_delay(Input(jitter_buckets=buckets), round, index) for index in range(8)}
            assert len(delays) == min(buckets, 8)

    def test_reaches_from_1450_to_2950_with_seven_buckets(self):
        delays = [branch_delay(Input(jitter_buckets=7), round, index) for round in range(6) for index in range(8)]
        assert (min(delays), max(delays)) == (1450, 2950)

    @pytest.mark.parametrize("off", [{"step_delay_jitter_ms": 0.0}, {"jitter_buckets": 1}, {"jitter_buckets": 0}])
    def test_is_the_base_without_jitter(self, off):
        assert {branch_delay(Input(**off), round, index) for round in range(6) for index in range(8)} == {2200}

    def test_is_never_negative(self):
        assert branch_delay(Input(step_delay_ms=100.0), 0, 0) == 0

    def test_a_storm_that_cannot_straddle_its_watchdog_says_so(self):
        assert STEP_STORM.warnings(Input()) == []
        (warning,) = STEP_STORM.warnings(Input(watchdog_ms=5000.0))
        assert "2200 +- 500 ms" in warning


class Pump:
    """Drives the driver by hand: hooks are there, the run lives for so many pokes, randomness is one number."""

    def __init__(self, input: Input, *, pokes: int, accepted: bool = True, chance: float = 0.0) -> None:
        self.pressure = Pressure()
        self.slept: list[float] = []
        self.tokens: list[str] = []
        self.payloads: list[object] = []
        driver = STEP_STORM.driver(input, self.pressure)
        reply: object = None
        while True:
            try:
                act = driver.send(reply)
            except StopIteration:
                return
            match act:
                case acts.WaitForHook(token, _):
                    reply = "hook_1"
                    self.tokens.append(token)
                case acts.RunEnded():
                    reply = len(self.slept) >= pokes
                case acts.Resume(token, payload):
                    self.tokens.append(token)
                    self.payloads.append(payload)
                    reply = accepted
                case acts.Uniform():
                    reply = chance
                case acts.Sleep(ms):
                    self.slept.append(ms)
                    reply = None


class TestThePump:
    def test_pokes_every_750_ms_and_a_seeded_bit(self):
        assert Pump(Input(token="t"), pokes=3).slept == [750, 750, 750]
        assert Pump(Input(token="t"), pokes=1, chance=0.999).slept == [750 + 249]

    def test_slows_down_by_the_decay_factor_after_64_pokes(self):
        slept = Pump(Input(token="t"), pokes=70).slept
        assert slept == [750.0] * 63 + [6000.0] * 7

    def test_counts_failed_pokes_towards_the_decay(self):
        pump = Pump(Input(token="t"), pokes=70, accepted=False)
        assert pump.slept[62:65] == [750.0, 6000.0, 6000.0]
        assert (pump.pressure.resumes_sent, pump.pressure.resumes_failed) == (70, 70)

    def test_a_decay_of_one_restores_the_runaway(self):
        assert set(Pump(Input(token="t", poke_decay_factor=1.0), pokes=80).slept) == {750.0}

    def test_pokes_one_hook_with_upstreams_payload(self):
        pump = Pump(Input(token="t"), pokes=2)
        assert set(pump.tokens) == {"t:poke"}
        assert pump.payloads == [{"index": -1, "round": -1}] * 2

    @pytest.mark.parametrize(("ended", "missing"), [(False, True), (True, False)])
    def test_says_when_its_hook_never_came_unless_the_run_ended_first(self, ended, missing):
        pressure = Pressure()
        driver = STEP_STORM.driver(Input(token="t"), pressure)
        assert isinstance(driver.send(None), acts.WaitForHook)
        assert isinstance(driver.send(None), acts.RunEnded)
        with pytest.raises(StopIteration):
            driver.send(ended)
        assert pressure.hook_missing is missing
        assert pressure.resumes_sent == 0


class TestTheSettleStep:
    def test_writes_its_attribute_as_often_as_asked_and_then_works(self):
        body = step_storm.storm.settle_step(1700.0, "wrun", 2, 5, 2)
        assert [next(body) for _ in range(3)] == [
            acts.SetAttributes({"settle": "2/5/0"}),
            acts.SetAttributes({"settle": "2/5/1"}),
            acts.Sleep(1700.0),
        ]
        with pytest.raises(StopIteration) as returned:
            next(body)
        assert returned.value.value == {"round": 2, "index": 5}


def ledger(input: Input) -> dict:
    """The value of a run in which branch 0 of every round straggled."""
    winners = [storm.WATCHDOG] + [storm.SETTLED] * (input.width - 1)
    return {
        "runId": "wrun",
        "rounds": input.rounds,
        "width": input.width,
        "ledger": [
            {
                "round": round,
                "branches": [
                    {"round": round, "index": index, "winner": winner} for index, winner in enumerate(winners)
                ],
                "stragglers": 1,
                "reconciled": input.reconcile_base + 1,
            }
            for round in range(input.rounds)
        ],
    }


class TestTheLedgerCheck:
    def test_passes_a_ledger_that_agrees_with_itself_and_its_input(self):
        assert storm.check_ledger(ledger(Input()), Input()) is None

    @pytest.mark.parametrize(
        ("spoil", "problem"),
        [
            (lambda value: "nothing", "the run returned no object"),
            (lambda value: None, "the run returned no object"),
            (lambda value: value.update(ledger="x"), "the ledger is no list"),
            (lambda value: value["ledger"].pop(), "the ledger has 5 rounds of 6"),
            (lambda value: value["ledger"].__setitem__(2, 7), "round 2: the record is no object"),
            (lambda value: value["ledger"][2].update(round=3), "round 2: the record says round 3"),
            (lambda value: value["ledger"][1].update(branches=None), "round 1: the record does not hold 8 branches"),
            (lambda value: value["ledger"][1]["branches"].pop(), "round 1: the record does not hold 8 branches"),
            (
                lambda value: value["ledger"][0].update(stragglers=2),
                "round 0: 1 branches straggled and the record says 2",
            ),
            (
                lambda value: value["ledger"][0]["branches"][3].update(winner="watchdog"),
                "round 0: 2 branches straggled and the record says 1",
            ),
            (
                lambda value: value["ledger"][5].update(reconciled=2),
                "round 5: 2 steps reconciled where 2 + 1 should have",
            ),
        ],
    )
    def test_names_the_first_disagreement(self, spoil, problem):
        value = copy.deepcopy(ledger(Input()))
        spoiled = spoil(value)
        if problem == "the run returned no object":
            value = spoiled
        assert storm.check_ledger(value, Input()) == problem

    def test_reports_rounds_in_order(self):
        value = ledger(Input())
        value["ledger"][4]["stragglers"] = 9
        value["ledger"][3]["reconciled"] = 9
        assert storm.check_ledger(value, Input()).startswith("round 3")

    def test_the_stragglers_of_a_run_are_those_of_its_rounds(self):
        assert STEP_STORM.stragglers(ledger(Input())) == 6


class TestRoles:
    """Two rounds of two branches."""

    input = Input(rounds=2, width=2)

    def log(self, *names: str) -> LogBuilder:
        built = LogBuilder().run_created().run_started()
        for rank, name in enumerate(names):
            built.step_created(rank, name)
        return built

    def excesses(self, *names: str) -> list[tuple[int, str, int, int]]:
        assert STEP_STORM.roles is not None
        report = STEP_STORM.roles(self.input, self.log(*names).log())
        return [(found.index, found.role, found.limit, found.count) for found in report.excesses]

    def test_one_finalization_per_branch_is_what_a_round_allows(self):
        assert self.excesses("settleStep", "settleStep", "finalizeStep", "finalizeStep") == []

    def test_the_event_with_which_a_branch_is_finalized_twice(self):
        """The defect of the production log: 41 finalizations beside 40 settlements."""
        names = ("settleStep", "settleStep", "finalizeStep", "finalizeStep", "finalizeStep")
        assert self.excesses(*names) == [(6, "finalizeStep", 2, 3)]

    def test_is_no_excess_once_the_next_round_has_begun(self):
        names = ("settleStep", "settleStep", "finalizeStep", "finalizeStep", "settleStep", "finalizeStep")
        assert self.excesses(*names) == []

    def test_reconciliation_may_run_once_more_per_branch(self):
        opened = ("settleStep", "settleStep")
        assert self.excesses(*opened, *["reconcileStep"] * 4) == []
        assert self.excesses(*opened, *["reconcileStep"] * 5) == [(8, "reconcileStep", 4, 5)]

    def test_a_role_before_any_branch_is_one_too_many(self):
        assert self.excesses("recoverStep") == [(2, "recoverStep", 0, 1)]

    def test_only_the_first_excess_of_a_role_is_told(self):
        found = self.excesses("settleStep", "releaseStep", "releaseStep", "releaseStep", "releaseStep")
        assert found == [(5, "releaseStep", 2, 3)]

    def test_the_same_entity_created_twice_counts_once(self):
        log = self.log("settleStep", "settleStep", "finalizeStep", "finalizeStep").step_created(3, "finalizeStep")
        assert STEP_STORM.roles is not None
        assert STEP_STORM.roles(self.input, log.log()).excesses == ()

    def test_steps_of_other_names_have_no_limit(self):
        assert self.excesses("settleStep", *["otherStep"] * 9) == []
