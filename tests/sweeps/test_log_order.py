"""Log order: what a race's branch says against what its log says."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stormctl.history import Capture, Event, EventLog, Evidence, Facet, Inline, RunRow, Sealed, kinds
from stormctl.readers import open_captures
from stormctl.sweeps import PROFILES, SweepPlan, SweepResult, Verdict, sweep_log
from stormctl.sweeps.log_order import silently_wrong
from stormctl.testing import LogBuilder
from stormctl.workloads.base import Workload
from stormctl.workloads.races import Race, Trail
from stormctl.workloads.registry import WORKLOADS
from tests.workloads.virtual import Run

Judge = Callable[..., SweepResult]
DECLARED = [name for name, workload in WORKLOADS.items() if workload.races is not None]


def one_branch(*, settled_first: bool, recovers: bool) -> LogBuilder:
    """A step-storm of one branch: its settlement and its watchdog both end, and the branch goes on."""
    run = LogBuilder().run_created("step-storm", rounds=1, width=1, token="t").run_started().hook_created(0, "t:poke")
    run_id = run.run_id
    run.step_created(1, "settleStep", 1700.0, run_id, 0, 0, 1).wait_created(2).step_started(1)
    if settled_first:
        run.step_completed(1).wait_completed(2)
    else:
        run.wait_completed(2).step_completed(1)
    if recovers:
        return run.step(3, "recoverStep", run_id, 0, 0).step(4, "finalizeStep", run_id, 0, 0, "watchdog")
    return run.step(3, "finalizeStep", run_id, 0, 0, "settled")


def sealed(capture: Capture) -> Capture:
    """The capture without its values, as an artefact keeps it."""
    events = [
        event if event.payload is None else replace(event, payload=Sealed(event.payload.digest))
        for event in capture.log
    ]
    return replace(capture, log=EventLog(events, capture.log.run_id))


class TestABranch:
    @pytest.mark.parametrize(
        ("settled_first", "recovers", "right"),
        [(True, False, True), (False, True, True), (True, True, False), (False, False, False)],
    )
    def test_the_first_result_in_the_log_must_be_the_one_it_goes_on_with(
        self, judge: Judge, settled_first: bool, recovers: bool, right: bool
    ) -> None:
        built = one_branch(settled_first=settled_first, recovers=recovers)
        for capture in (built.capture(), sealed(built.capture())):
            result = judge("log-order", capture)
            assert result.verdict is (Verdict.CLEAN if right else Verdict.VIOLATED)

    def test_the_finding_names_the_branch_and_both_results(self, judge: Judge) -> None:
        (finding,) = judge("log-order", one_branch(settled_first=False, recovers=False)).findings
        assert finding.message == (
            "branch (0, 0) went on with step:finalizeStep at 9, as after settled, which contradicts the log's order: "
            "watchdog was first, by wait_completed at 7"
        )
        assert finding.key == "log-order/contradiction/0/0"
        assert finding.positions == (7, 9)
        assert [line.split(" ", 2)[1] for line in finding.witness] == [
            "wait_completed",
            "step_completed",
            "step_created",
        ]

    def test_no_profile_forgives_it(self, judge: Judge) -> None:
        for profile in PROFILES:
            built = one_branch(settled_first=False, recovers=False)
            assert judge("log-order", built, profile=profile).verdict is Verdict.VIOLATED

    def test_a_branch_that_has_not_gone_on_says_nothing(self, judge: Judge) -> None:
        assert judge("log-order", one_branch(settled_first=True, recovers=False).until(8)).verdict is Verdict.CLEAN

    def test_going_on_with_a_racer_that_never_ended_is_a_contradiction(self, judge: Judge) -> None:
        built = one_branch(settled_first=True, recovers=False)
        without = built.without(7)
        (finding,) = judge("log-order", without).findings
        assert "watchdog was first" in finding.message

    def test_nobody_has_won(self, judge: Judge) -> None:
        built = one_branch(settled_first=True, recovers=True).without(8).without(7)
        (finding,) = judge("log-order", built).findings
        assert finding.message.endswith("nobody has won its race")

    def test_a_log_that_was_read_in_part_accuses_nobody_for_what_was_not_read(self, judge: Judge) -> None:
        built = one_branch(settled_first=True, recovers=False).without(7)
        result = judge("log-order", built, truncated=True)
        assert (result.findings, result.missing) == ((), ("the whole log",))
        wrong = judge("log-order", one_branch(settled_first=False, recovers=False), truncated=True)
        assert wrong.verdict is Verdict.VIOLATED

    def test_a_number_may_be_written_as_javascript_writes_it(self, judge: Judge) -> None:
        built = one_branch(settled_first=False, recovers=False)

        def whole(event: Event) -> Event:
            if event.type != kinds.STEP_CREATED or event.payload is None:
                return event
            values = [int(v) if isinstance(v, float) else v for v in event.payload.load()]
            return replace(event, payload=Inline(values))

        capture = built.capture()
        capture = replace(capture, log=EventLog([whole(event) for event in capture.log], capture.log.run_id))
        assert judge("log-order", capture).verdict is Verdict.VIOLATED


class TestWhatItNeeds:
    def test_without_step_inputs_it_is_unknown(self, judge: Judge) -> None:
        result = judge("log-order", one_branch(settled_first=True, recovers=False), missing=[Facet.INPUTS])
        assert (result.verdict, result.missing) == (Verdict.UNKNOWN, ("step inputs",))

    def test_without_a_workload_it_is_unknown(self, judge: Judge) -> None:
        result = judge("log-order", LogBuilder().run_created().step(0, "a"))
        assert result.missing == ("a workload (name it with --workload)",)

    def test_a_workload_whose_races_nobody_declared_is_not_asked(self) -> None:
        report = sweep_log(LogBuilder().run_created("dag-runner").run_started().capture(), SweepPlan())
        assert "log-order" not in [result.sweep for result in report.sweeps]
        assert WORKLOADS["dag-runner"].races is None

    def test_wake_loop_needs_the_payloads_of_its_wakes(self, judge: Judge) -> None:
        run = completed("wake-loop", 5)
        assert judge("log-order", run).verdict is Verdict.CLEAN
        result = judge("log-order", sealed(run))
        assert result.verdict is Verdict.UNKNOWN
        assert str(result.missing[0]).startswith("the payload of the hook_received at")


# -- whole runs -------------------------------------------------------------------------------------------------------


def some_input(workload: Workload, chance: random.Random) -> Any:
    """An input with which both sides of a race win now and then."""
    known = workload.input_type.__dataclass_fields__
    choices: dict[str, list[Any]] = {
        "jitter_buckets": [4, 5, 7],
        "resume": ["burst", "stagger"],
        "heartbeat_ms": [100.0, 600.0, 1500.0, 4000.0],
        "return_on_wake": [True, False],
        "sleep_branch_wait_count": [0, 2],
        "resume_delay_ms": [3000.0, 15_000.0],
    }
    given = {key: chance.choice(values) for key, values in choices.items() if key in known}
    sizes = {"rounds": 2, "width": chance.choice([2, 3, 5]), "wakes": 6}
    return workload.input_type(token="t", **given, **{key: value for key, value in sizes.items() if key in known})


def played(name: str, seed: int, generation: str = "dispenser") -> tuple[Any, Run]:
    workload, chance = WORKLOADS[name], random.Random(seed)
    input = some_input(workload, chance)
    run = Run(workload, input, seed=seed, generation=generation, latency=lambda _n, _a: chance.random() * 400)
    run.to_the_end()
    return input, run


def races(name: str, input: Any, log: EventLog) -> list[Race]:
    declared = WORKLOADS[name].races
    assert declared is not None
    return list(declared(input, Trail(log)))


def completed(name: str, seed: int) -> Capture:
    from dataclasses import asdict

    input, run = played(name, seed)
    value = run.last.value if run.last is not None else None
    return Capture("x", run.log, Evidence("x"), RunRow("completed", name, asdict(input), value))


class TestHonestRuns:
    @pytest.mark.parametrize("generation", ["queue", "nets", "dispenser", "rearm"])
    @pytest.mark.parametrize("name", DECLARED)
    def test_a_run_that_one_writer_wrote_never_contradicts_itself(self, name: str, generation: str) -> None:
        found = [race for seed in range(25) for race in races(name, *_log(name, seed, generation))]
        assert [race for race in found if race.contradictions] == []
        # and it was not for want of races: both sides have won, and most branches have gone on
        assert len({race.first for race in found} - {None}) == (1 if name == "blocked-branch" else 2)
        assert sum(bool(race.written) for race in found) > len(found) * 0.8

    @pytest.mark.parametrize("name", ["step-storm", "hook-storm", "capture-step-storm", "capture-hook-storm"])
    def test_every_branch_of_a_storm_is_judged(self, name: str) -> None:
        for seed in range(5):
            input, run = played(name, seed)
            found = races(name, input, run.log)
            assert len(found) == input.rounds * input.width
            assert all(race.written for race in found)

    def test_the_turnstile_takes_a_heartbeat_for_a_wake_that_it_claims_late(self) -> None:
        """The fault of that generation which #3879 mended: an unread payload has no barrier once it was let go."""
        found = [race for seed in range(60) for race in races("wake-loop", *_log("wake-loop", seed, "turnstile"))]
        wrong = [race for race in found if race.contradictions]
        assert wrong
        assert {race.first for race in wrong} == {"wake"}


def _log(name: str, seed: int, generation: str) -> tuple[Any, EventLog]:
    input, run = played(name, seed, generation)
    return input, run.log


class TestSeeded:
    """The same honest runs, in which the results of one race that both ended are put the other way round."""

    @pytest.mark.parametrize("name", [name for name in DECLARED if name not in ("blocked-branch", "wake-loop")])
    def test_a_race_whose_results_are_swapped_contradicts_and_no_other_does(self, name: str) -> None:
        swapped = 0
        for seed in range(10):
            input, run = played(name, seed)
            for race in races(name, input, run.log):
                if len(race.ends) < 2 or not race.written:
                    continue
                first, second = sorted(race.ends.values())
                events = list(run.log.events)
                events.insert(first, events.pop(second))
                found = races(name, input, EventLog(events, run.log.run_id))
                wrong = [one.branch for one in found if one.contradictions]
                assert wrong == [race.branch]
                swapped += 1
                break
        assert swapped >= 5

    def test_a_wake_moved_behind_the_heartbeat_that_it_beat_contradicts(self) -> None:
        swapped = 0
        for seed in range(40):
            input, run = played("wake-loop", seed)
            for race in races("wake-loop", input, run.log):
                if race.first != "wake" or "heartbeat" not in race.ends or not race.written:
                    continue
                events = list(run.log.events)
                events.insert(race.ends["wake"], events.pop(race.ends["heartbeat"]))
                found = races("wake-loop", input, EventLog(events, run.log.run_id))
                assert any(one.contradictions for one in found)
                swapped += 1
                break
        assert swapped

    def test_blocked_branch_leaves_open_what_only_a_replay_could_tell(self) -> None:
        workload = WORKLOADS["blocked-branch"]
        input = workload.input_type(token="t", rounds=1, width=4, watchdog_ms=1000.0)
        run = Run(workload, input, seed=1)
        run.to_the_end()
        assert races("blocked-branch", input, run.log) == []


# -- the real SDK -----------------------------------------------------------------------------------------------------


def contradictions(path: Path) -> list[str]:
    (capture,) = open_captures([path])
    assert isinstance(capture, Capture)
    report = sweep_log(capture, SweepPlan())
    assert "log-order" not in report.unknown_sweeps
    return [finding.key.partition("contradiction/")[2] for finding in silently_wrong(report.findings)]


@pytest.fixture
def sdk(shared_data: Path) -> Path:
    folder = shared_data / "sdk"
    if not folder.is_dir():
        pytest.skip("the captures of the real SDK are not beside this clone")
    return folder


class TestTheRealSdk:
    @pytest.mark.parametrize(
        ("name", "branches"),
        [
            ("v489-clean-stepStorm-03", ["2/0", "2/2"]),
            ("v489-clean-hookStorm-03", ["0/5"]),
            ("v489-local3-stepStorm-00", []),
            ("v489-tiny-hookStorm", []),
            ("v489pg_1p-stepStorm-03", []),
            ("v5b35-clean-stepStorm-00", ["1/0", "1/1", "1/2", "1/3", "2/0", "2/1", "2/2", "2/4"]),
            ("v5b35-clean-stepStorm-05", ["0/0", "0/2", "0/3"]),
            ("v5b55-clean-stepStorm-00", []),
        ],
    )
    def test_the_wrong_branches_of_each_run(self, sdk: Path, name: str, branches: list[str]) -> None:
        assert contradictions(sdk / "runs" / f"{name}.json") == branches

    def test_a_run_that_the_sdk_called_completed_went_on_at_these_events(self, sdk: Path) -> None:
        """Reference: branch (2,0) has its step at 248 and its wait at 239, (2,2) at 247 and 245; both wrote release."""
        (capture,) = open_captures([sdk / "runs" / "v489-clean-stepStorm-03.json"])
        assert isinstance(capture, Capture)
        assert capture.run is not None
        assert capture.run.status == "completed"
        found = races("capture-step-storm", WORKLOADS["capture-step-storm"].parse_input(capture.run.input), capture.log)
        ends = {race.branch: {racer: index + 1 for racer, index in race.ends.items()} for race in found}
        assert ends[2, 0] == {"settled": 248, "late": 239}
        assert ends[2, 2] == {"settled": 247, "late": 245}

    @pytest.mark.parametrize(("name", "event"), [("v5b35-clean-stepStorm-00", 110), ("v5b35-clean-stepStorm-05", 43)])
    def test_a_good_engine_rejects_these_logs_where_the_first_wrong_branch_is_written(
        self, sdk: Path, name: str, event: int
    ) -> None:
        """The real 5.0.0-beta.55, given the log of an older engine, diverges at the same event."""
        (capture,) = open_captures([sdk / "runs" / f"{name}.json"])
        assert isinstance(capture, Capture)
        findings = silently_wrong(sweep_log(capture, SweepPlan()).findings)
        assert min(finding.positions[1] for finding in findings) == event

    def test_the_versions_that_keep_log_order_have_none(self, sdk: Path) -> None:
        good = [path for path in sdk.rglob("*.json") if "beta.55" in path.name or "b55" in path.name]
        assert len(good) == 3
        assert [contradictions(path) for path in good] == [[], [], []]
        bad = {path.name: contradictions(path) for path in sdk.rglob("*.json") if path not in good}
        assert sum(map(bool, bad.values())) == 7
        assert bad["pg-5.0.0-beta.35-2proc-stepStorm-completed.json"]
