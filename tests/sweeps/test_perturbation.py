"""Perturbation: one prefix replayed many ways, by any engine."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from stormctl.engine.door import Draw, Outcome, Pass, Perturbation
from stormctl.errors import UsageError
from stormctl.history import EventLog
from stormctl.readers import open_captures
from stormctl.sweeps import SweepPlan, SweepResult, Verdict, sweep_log, sweep_report
from stormctl.sweeps.perturbation import MOST_PREFIXES, Perturbed, Unlike, difference, perturbed, sample
from stormctl.sweeps.rebinding import FirstDivergence, Flip, Rebinding
from stormctl.sweeps.ways import away
from stormctl.testing import LogBuilder
from stormctl.workloads.base import Workload
from tests.engine import known_faults
from tests.engine.writing import engine
from tests.sweeps.perturbed_engine import CALM_TABLE, HOOK, OTHER_TABLE, Moody, lost, steady


def builder(events: int = 3) -> LogBuilder:
    made = LogBuilder().run_created().hook_created(0)
    for rank in range(1, events - 1):
        made.step_created(rank, "settleStep")
    return made


def found_by(engine: Moody, count: int = 50, events: int = 3) -> Perturbed:
    log = builder(events).log()
    return perturbed(log, engine, range(1, len(log) + 1), count)


class TestAnEngineThatOneKnobMoves:
    @pytest.mark.parametrize(
        ("rule", "smallest"),
        [
            (lambda way, _: way.hydration_hops == 1, {"hydration_hops": 1}),
            (lambda way, _: way.hydration_hops > 6, {"hydration_hops": 7}),
            (lambda way, _: way.hydration_ms > 4, {"hydration_ms": 5.0}),
            (lambda way, _: way.warm > 1, {"warm": 2}),
            (lambda way, _: way.timer_ms > 1, {"timer_ms": 2.0}),
            (lambda way, _: way.attributes == "parked", {"attributes": "parked"}),
            (lambda way, _: way.attributes == "dropped", {"attributes": "dropped"}),
            (lambda way, _: way.jitter_ms > 1, {"jitter_ms": 2}),
            (lambda way, _: way.jitter_hops > 2, {"jitter_hops": 3}),
        ],
    )
    def test_is_caught_with_that_knob_as_the_smallest_and_both_bindings(
        self, rule: Any, smallest: dict[str, Any]
    ) -> None:
        (one,) = found_by(Moody(rule)).differences
        assert away(one.perturbation) == smallest
        assert one.unlike == Unlike("draws", 1, "step:settleStep", "wait")

    def test_is_shown_at_the_shortest_prefix_that_does_it(self) -> None:
        found = found_by(Moody(lambda way, length: length > 4 and way.hydration_ms > 0), events=8)
        (one,) = found.differences
        assert (one.prefix, one.index, one.prefixes) == (5, 4, 4)
        assert one.passes % 4 == 0

    def test_has_a_twin_that_nothing_moves(self) -> None:
        engine = steady()
        found = found_by(engine)
        assert (found.differences, found.more, found.blank) == ((), 0, False)
        assert found.replays == len(engine.asked) == 3 * 51

    def test_is_replayed_a_bounded_number_of_times_whatever_it_does(self) -> None:
        wild = Moody(lambda way, length: (hash(way) ^ length) % 3 == 0)
        found = found_by(wild, count=200, events=40)
        assert found.replays == len(wild.asked) <= MOST_PREFIXES * 201 + 8 * 160


class TestWhatDiffers:
    log: EventLog = builder().log()

    def of(self, calm: Pass | tuple[Draw, ...], other: Pass | tuple[Draw, ...]) -> Unlike | None:
        both = [one if isinstance(one, Pass) else Pass(3, Outcome.SUSPENDED, one) for one in (calm, other)]
        return difference(self.log, *both)

    def test_nothing_in_two_passes_that_say_the_same(self) -> None:
        assert self.of(CALM_TABLE, CALM_TABLE) is None

    def test_the_first_rank_that_is_bound_to_another_call(self) -> None:
        assert self.of(CALM_TABLE, OTHER_TABLE) == Unlike("draws", 1, "step:settleStep", "wait")

    def test_a_rank_that_one_of_them_did_not_draw(self) -> None:
        assert self.of(CALM_TABLE, CALM_TABLE[:2]) == Unlike("draws", 2, "wait", "not drawn")
        assert self.of((HOOK,), CALM_TABLE) == Unlike("draws", 1, "not drawn", "step:settleStep")

    def test_another_input_of_the_same_call(self) -> None:
        other = (HOOK, Draw(1, "step", "settleStep", [2]), CALM_TABLE[2])
        assert self.of(CALM_TABLE, other) == Unlike("draws", 1, "step:settleStep", "step:settleStep with another input")

    def test_another_outcome_of_one_table(self) -> None:
        done = Pass(3, Outcome.COMPLETED, CALM_TABLE, value=1)
        assert self.of(CALM_TABLE, done) == Unlike("outcome", None, "suspended", "completed")
        other = Pass(3, Outcome.COMPLETED, CALM_TABLE, value=2)
        assert self.of(done, other) == Unlike("outcome", None, "completed", "completed with another value")
        assert self.of(done, done) is None

    def test_a_suspension_that_left_results_behind(self) -> None:
        early = Pass(3, Outcome.SUSPENDED, CALM_TABLE, undelivered=6)
        assert self.of(CALM_TABLE, early) == Unlike(
            "outcome", None, "suspended", "suspended with 6 results undelivered"
        )

    def test_a_divergence_at_another_place(self) -> None:
        unlike = self.of(lost(), lost(index=2, position=3))
        assert unlike == Unlike(
            "outcome", None, "diverged at 1, of step:settleStep, at wait", "diverged at 3, of step:settleStep, at wait"
        )

    def test_not_the_order_of_calls_whose_ids_do_not_follow_it(self) -> None:
        def called(*names: str) -> tuple[Draw, ...]:
            return tuple(Draw(at, "step", name, id=f"step_{name}") for at, name in enumerate(names))

        assert self.of(called("a", "b"), called("b", "a")) is None
        assert self.of(called("a", "b"), called("b")) == Unlike("draws", 0, "step:a", "not drawn")

    def test_not_what_a_pass_that_was_cut_off_had_no_time_to_draw(self) -> None:
        short = Pass(1, Outcome.DIVERGED, CALM_TABLE[:1], divergence=lost().divergence)
        assert self.of(lost(), short) is None

    def test_not_a_run_that_ends_while_an_attribute_write_is_parked(self) -> None:
        stranded = lost(reason="stranded", event_type="attr_set")
        assert self.of(Pass(3, Outcome.COMPLETED, CALM_TABLE), stranded) is None


class TestTheSample:
    log: EventLog = builder(100).log()

    def found(self, *flips: int, diverges: int | None = None) -> Rebinding:
        divergence = None if diverges is None else FirstDivergence(diverges, diverges, 1, "a", "b", "", diverges - 1)
        moved = tuple(Flip(after - 1, after, 1, "a", "b", input_changed=False) for after in flips)
        return Rebinding("moody", "", 100, None, moved, divergence)

    def test_is_everything_where_there_is_little(self) -> None:
        assert sample(range(4, 16), self.log) == list(range(4, 16))

    def test_holds_the_longest_prefix_and_spreads_over_the_rest(self) -> None:
        chosen = sample(range(1, 101), self.log)
        assert len(chosen) == MOST_PREFIXES
        assert chosen[-1] == 100
        assert max(after - before for before, after in pairwise(chosen)) <= 10

    def test_holds_both_sides_of_a_flip_and_of_the_first_divergence(self) -> None:
        chosen = sample(range(1, 101), self.log, self.found(42, diverges=77))
        assert {41, 42, 76, 77, 100} <= set(chosen)
        assert len(chosen) == MOST_PREFIXES

    def test_stays_small_among_many_flips(self) -> None:
        chosen = sample(range(1, 101), self.log, self.found(*range(20, 60), diverges=90))
        assert len(chosen) == MOST_PREFIXES
        assert {89, 90, 100} <= set(chosen)

    def test_keeps_to_the_prefixes_that_were_asked_for(self) -> None:
        assert set(sample(range(50, 90), self.log, self.found(20, 60))) <= set(range(50, 90))
        assert sample([], self.log) == []


class TestReport:
    """The sweep as part of a log's report."""

    def report(self, engine: object, **how: Any) -> Any:
        def opened(_name: str, _workload: Workload, _input: Any) -> Any:
            return engine

        plan = SweepPlan(workload="step-storm", engines=("moody",), open=opened, **{"perturb": 20, **how})
        return sweep_log(builder().capture(), plan)

    def result(self, report: Any) -> SweepResult:
        (found,) = [one for one in report.sweeps if one.sweep == "perturbation"]
        return found

    def test_a_difference_is_fatal_and_shows_both_bindings(self) -> None:
        report = self.report(Moody(lambda way, length: length == 3 and way.hydration_ms > 4))
        result = self.result(report)
        (finding,) = result.findings
        assert result.verdict is Verdict.VIOLATED
        assert finding.positions == (3,)
        assert finding.message == (
            "under moody, prefix 3 does not give one answer: calm, rank 1 is step:settleStep; "
            "with hydration_ms=5, it is wait"
        )
        assert finding.witness == (
            "3 step_created rank 1 step:settleStep (the end of the prefix)",
            "calm: rank 1 is step:settleStep",
            "hydration_ms=5: rank 1 is wait",
        )
        assert finding.key == "perturbation/draws/moody/1/step:settleStep/wait"

    def test_another_outcome_is_told_as_one(self) -> None:
        early = Pass(3, Outcome.SUSPENDED, CALM_TABLE, undelivered=6)
        (finding,) = self.result(self.report(Moody(lambda way, _: way.warm > 0, other=early))).findings
        assert finding.message.endswith(
            "calm, it ends suspended; with warm=1, it ends suspended with 6 results undelivered"
        )
        assert finding.key == "perturbation/outcome/moody/suspended/suspended with 6 results undelivered"

    def test_it_stands_in_json(self) -> None:
        report = self.report(Moody(lambda way, _: way.jitter_hops > 2), perturb=50)
        (log,) = sweep_report([report])["logs"]
        (found,) = log["perturbation"]
        assert (found["engine"], found["prefixes"], found["of"], found["ways"]) == ("moody", [1, 2, 3], 3, 50)
        (one,) = found["differences"]
        assert one == {
            "kind": "draws", "prefix": 1, "rank": 1, "calm": "step:settleStep", "other": "wait",
            "perturbation": {"jitter_hops": 3, "seed": 0}, "prefixes": 3, "passes": one["passes"],
        }  # fmt: skip

    def test_it_is_left_out_where_it_was_not_asked_for(self) -> None:
        report = self.report(steady(), perturb=0)
        assert "perturbation" not in [one.sweep for one in report.sweeps]
        assert sweep_report([report])["logs"][0]["perturbation"] == []

    def test_an_engine_that_does_not_tell_its_draws_leaves_it_unknown(self) -> None:
        none: Any = None
        engine = Moody(lambda _way, _length: False, calm=Pass(1, Outcome.SUSPENDED, none))
        result = self.result(self.report(engine))
        assert result.verdict is Verdict.UNKNOWN
        assert result.missing == ("the draws of moody, which this engine does not tell",)

    @pytest.mark.parametrize("error", [RuntimeError("it broke"), UsageError("it broke", remedy="Mend it.")])
    def test_an_engine_that_breaks_leaves_it_unknown(self, error: Exception) -> None:
        def broken(way: Perturbation, _length: int) -> bool:
            if way != Perturbation():
                raise error
            return False

        result = self.result(self.report(Moody(broken)))
        assert result.verdict is Verdict.UNKNOWN
        assert "it broke" in str(result.missing[0])

    def test_without_a_workload_it_is_unknown(self) -> None:
        report = sweep_log(builder().capture(), SweepPlan(engines=("nets",), perturb=5))
        assert self.result(report).verdict is Verdict.UNKNOWN


class TestOurEngines:
    """On the logs of our own storms."""

    @pytest.mark.parametrize(
        "log", ["step-storm-flips", "step-storm-clean", "hook-storm-clean", "hook-storm-corrupted"]
    )
    def test_the_dispenser_gives_one_answer(self, root: Any, log: str) -> None:
        assert self.perturb(root, log, "dispenser").differences == ()

    @pytest.mark.parametrize("log", ["step-storm-flips", "step-storm-clean"])
    def test_nets_do_not(self, root: Any, log: str) -> None:
        found = self.perturb(root, log, "nets")
        assert (len(found.prefixes), found.ways) == (MOST_PREFIXES, 16)
        assert {one.unlike.kind for one in found.differences} == {"draws"}
        assert {"hydration_ms": 1.0} in [away(one.perturbation) for one in found.differences]

    def perturb(self, root: Any, log: str, engine: str) -> Perturbed:
        from stormctl.engine.engines import engine_for
        from stormctl.workloads.registry import WORKLOADS

        (capture,) = open_captures([root / "fixtures" / "storms" / "logs" / f"{log}.ndjson"])
        workload = WORKLOADS[capture.run.workload]  # type: ignore[union-attr]
        made = engine_for(engine, workload, workload.parse_input(capture.run.input))  # type: ignore[union-attr]
        return perturbed(capture.log, made, range(1, len(capture.log) + 1, 7), 16)  # type: ignore[union-attr]


class TestKnownFaults:
    """Workflows and logs that show what a generation got wrong."""

    @pytest.mark.parametrize(
        ("generation", "differences"),
        [
            ("opposite", [Unlike("draws", 3, "step:after the wait", "step:after the work")]),
            ("transitive", [Unlike("draws", 4, "not drawn", "step:after the work")]),
            ("parked-idle", []),
            ("dispenser", []),
            ("registered", []),
        ],
    )
    def test_a_result_beside_the_end_of_a_wait_tells_cold_from_warm(
        self, generation: str, differences: list[Unlike]
    ) -> None:
        found = self.perturb(known_faults.neighbours, known_faults.neighbours_log(), generation)
        assert [one.unlike for one in found.differences] == differences

    @pytest.mark.parametrize(("generation", "moved"), [("dispenser", True), ("turnstile", False), ("rearm", False)])
    def test_two_payloads_keep_their_order_since_the_turnstile(self, generation: str, moved: bool) -> None:
        found = self.perturb(known_faults.blocked_branch, known_faults.blocked_branch_log(), generation)
        assert bool(found.differences) is moved

    def perturb(self, body: Any, built: LogBuilder, generation: str) -> Perturbed:
        log = built.log()
        return perturbed(log, engine(body, generation), range(1, len(log) + 1), 50)
