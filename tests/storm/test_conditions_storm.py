"""The defect of each storage condition, in a storm: the smallest plan that shows it, and the twin that must not.

Whole storms on the memory world in virtual time, so that a plan gives the same storm each time. What each defect is on
the store's own level: `tests/worlds/test_presets.py`. Plans for real stores: `configs/conditions/`.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest

from stormctl.engine.workflow import Workflow
from stormctl.history import Capture, kinds
from stormctl.storm.plan import load_plan
from stormctl.workloads import registry
from stormctl.workloads.base import Act, Pressure, Resume, RunEnded, Sleep, WaitForHook, Workload
from stormctl.worlds import Point
from tests.storm.making import plan
from tests.storm.whole import OnPoint, Whole, both, shared_snapshots, slow_at, stale_decisions, whole

#: One round of step-storm whose branches end on both sides of the watchdog, and one of hook-storm.
STEPS: dict[str, Any] = {"rounds": 1, "width": 3, "jitter_buckets": 7}
HOOKS: dict[str, Any] = {"rounds": 1, "width": 4, "resume": "burst"}


def stormed(*conditions: str, slow: OnPoint | None = None, sweeps: bool = False, **changes: Any) -> Whole:
    """A storm of a few attempts under each of the conditions."""
    wanted = plan(
        **{
            "time_scale": 1.0,
            "storage_scale": 1.0,
            "attempts": 4,
            "concurrency": 12,
            "cap": "60s",
            "input": STEPS,
            "matrix": {"condition": list(conditions)},
            **changes,
        }
    )
    with TemporaryDirectory() as place:
        return whole(wanted, Path(place), slow=slow, sweeps=sweeps)


def messages(storm: Whole, condition: str) -> list[str]:
    return [one.error_message or "" for one in storm.of(condition) if one.outcome.gates]


def all_completed(storm: Whole, condition: str) -> bool:
    return storm.outcomes(condition) == {"completed": len(storm.of(condition))}


# -- the tail fence -------------------------------------------------------------------------------------------------


@cache
def pressed() -> Whole:
    """Receipts come three times as fast as a create reaches the store."""
    delay = {"delay": "publish", "creates": {"median": "200ms", "p99": "400ms", "longest": "600ms"}}
    return stormed(
        "seq-tail",
        "seq-final",
        attempts=2,
        cap="6s",
        faults=[delay],
        input={
            "rounds": 1,
            "width": 2,
            "attr_writes": 0,
            "step_delay_ms": 1500,
            "step_delay_jitter_ms": 450,
            "jitter_buckets": 7,
            "watchdog_ms": 1500,
            "between_round_sleep_ms": 0,
            "poke_interval_ms": 60,
            "poke_jitter_ms": 0,
            "poke_max": 5000,
        },
    )


class TestTheTailFence:
    def test_corrupts_nothing_and_lets_no_run_go_on(self) -> None:
        tail = pressed().of("seq-tail")
        assert [one.outcome.stuck for one in tail] == [True, True]
        assert [log.log.has_positions for log in pressed().logs("seq-tail")] == [True, True]
        assert all(one.pressure["resumes_sent"] > 50 for one in tail)

    def test_costs_ten_times_the_restarts_of_a_fence_of_decisions(self) -> None:
        tail, final = pressed().work("seq-tail"), pressed().work("seq-final")
        assert all_completed(pressed(), "seq-final")
        assert tail.restarts_per_run > 100
        assert tail.restarts_per_run > 5 * final.restarts_per_run
        assert tail.reinvocations > 10 > final.reinvocations
        assert (tail.stuck, final.stuck) == (2, 0)

    def test_shows_in_the_table_that_a_storm_ends_with(self) -> None:
        lines = pressed().table.split("restarts/run", 1)[1].splitlines()
        rows = {line.split()[0]: line.split() for line in lines if " + dispenser" in line}
        tail, final = rows["seq-tail"], rows["seq-final"]
        assert float(tail[3]) > 5 * float(final[3])
        assert (tail[-1], final[-1]) == ("2", "0")


# -- credit by snapshot ---------------------------------------------------------------------------------------------

SNAP = "seq-decision-snap"
#: The same fence, with the credit of the final form alone.
BY_WRITER = "seq-decision-snap[credit_key=writer]"


@cache
def overlapping() -> Whole:
    """Hooks are resumed in a burst around their watchdogs: deliveries that have read the same overlap. Seed 1 also has
    ends of waits that lose against a decision, which the gate on all appends refuses."""
    return stormed(
        SNAP,
        BY_WRITER,
        "seq-final",
        seed=1,
        scenario="hook-storm",
        generation="nets",
        storage_scale=3,
        attempts=6,
        concurrency=6,
        faults=[{"delay": "publish", "receipts": "20ms"}],
        input=HOOKS,
    )


class TestCreditBySnapshot:
    def test_admits_decisions_of_two_writers_that_had_read_the_same(self) -> None:
        logs = overlapping().logs(SNAP)
        assert sum(map(shared_snapshots, logs)) >= 5
        assert sum(map(stale_decisions, logs)) >= 5

    @pytest.mark.parametrize("closed", [BY_WRITER, "seq-final"])
    def test_is_closed_by_credit_to_the_writer(self, closed: str) -> None:
        logs = overlapping().logs(closed)
        assert overlapping().work(closed).refused > 0
        assert [shared_snapshots(log) for log in logs] == [0] * 6
        assert [stale_decisions(log) for log in logs] == [0] * 6
        assert all_completed(overlapping(), closed)

    def test_refuses_facts_for_nothing_where_the_gate_is_on_all(self) -> None:
        useless = {one: sum(run.work.get("useless", 0) for run in overlapping().of(one)) for one in (SNAP, BY_WRITER)}
        assert min(useless.values()) > 0
        facts = [run.work.get("behind.type.wait_completed", 0) for run in overlapping().of(SNAP)]
        assert sum(facts) == useless[SNAP]
        assert sum(run.work.get("useless", 0) for run in overlapping().of("seq-final")) == 0
        assert re.search(r"seq-decision-snap \+ nets +[\d.]+ +\d+ \([1-9]\d*\)", overlapping().table)


# -- reads under the lock -------------------------------------------------------------------------------------------

REPEATED = re.compile(r"the log is not dense: (\d+) followed by \1$")


def repeats(storm: Whole, condition: str) -> int:
    """The runs that the density gate ended, because two events have one seq."""
    ended = [one for one in storm.of(condition) if one.outcome == "contract-error"]
    assert all(one.error_code == "WORLD_CONTRACT_ERROR" for one in ended)
    assert all(REPEATED.match(one.error_message or "") for one in ended)
    return len(ended)


class TestReadsUnderTheLock:
    """One read in twenty takes longer than the lock's limit (300 ms here), and half of the publications 50 ms."""

    def storm(self, condition: str) -> Whole:
        slow = both(slow_at(Point.POST_READ, share=0.05, ms=400, seed=1), slow_at(Point.PUBLISH, share=0.5, ms=50))
        return stormed(condition, slow=slow, sweeps=True)

    def test_end_runs_with_one_seq_given_twice(self) -> None:
        buggy = self.storm("seq-buggy-30s[stale_ms=300]")
        assert repeats(buggy, "seq-buggy-30s[stale_ms=300]") >= 1
        assert buggy.findings("dense", "seq-buggy-30s[stale_ms=300]") >= 1

    @pytest.mark.parametrize(
        "closed", ["seq-buggy-30s[stale_ms=300,post_reads=outside]", "seq-final[stale_ms=300,post_reads=inside]"]
    )
    def test_do_not_outside_of_it_nor_under_careful_locks(self, closed: str) -> None:
        storm = self.storm(closed)
        assert all_completed(storm, closed)
        assert storm.findings("dense", closed) == 0


# -- admission after the effects ------------------------------------------------------------------------------------

LATE, ROLLED_BACK = "seq-buggy-admit", "seq-buggy-admit[rollback=full]"


@cache
def late() -> Whole:
    """Every run of this seed has a refused create in it, and most a refused step."""
    return stormed(
        LATE,
        ROLLED_BACK,
        "seq-final",
        seed=2,
        scenario="hook-storm",
        generation="nets",
        storage_scale=3,
        cap="40s",
        input=HOOKS,
        sweeps=True,
    )


def stranded(capture: Capture) -> set[str | None]:
    """Steps that were started and that no event created."""
    created = {event.correlation_id for event in capture.log if event.type == kinds.STEP_CREATED}
    return {event.correlation_id for event in capture.log if event.type == kinds.STEP_STARTED} - created


class TestAdmissionAfterTheEffects:
    def test_strands_steps(self) -> None:
        assert sum(map(len, map(stranded, late().logs(LATE)))) >= 2
        assert late().findings("lifecycle", LATE) >= 2

    def test_wedges_every_run_that_has_a_create_refused(self) -> None:
        assert [str(one.outcome) for one in late().of(LATE)] == ["dormant"] * 4
        for one, log in zip(late().of(LATE), late().logs(LATE), strict=True):
            assert one.work["refused"] > 0
            refused = {record.correlation_id for record in log.audit or () if record.reason.startswith("precondition")}
            written = {event.correlation_id for event in log.log if event.type in kinds.CREATES}
            assert refused - written, "what was refused could never be written again"

    @pytest.mark.parametrize("closed", [ROLLED_BACK, "seq-final"])
    def test_is_harmless_in_a_store_that_rolls_back_and_before_any_effect(self, closed: str) -> None:
        assert all_completed(late(), closed)
        assert late().work(closed).refused > 0
        assert [stranded(log) for log in late().logs(closed)] == [set()] * 4
        assert late().findings("lifecycle", closed) == 0


@dataclass(frozen=True)
class Slept:
    token: str = ""
    sleep_ms: float = 1000.0
    every_ms: float = 100.0


async def sleep_once(wf: Workflow, input: Slept) -> str:
    """A hook that stays open to the run's end, as those of the storms do not: they dispose of theirs first."""
    wf.hook(input.token)
    await wf.sleep(input.sleep_ms)
    return "slept"


def resume_at_the_end(input: Slept, pressure: Pressure) -> Generator[Act, Any, None]:
    yield WaitForHook(input.token, 60_000.0)
    yield Sleep(input.sleep_ms)
    while not (yield RunEnded()):
        pressure.resumes_sent += 1
        if not (yield Resume(input.token, {})):
            pressure.resumes_failed += 1
        yield Sleep(input.every_ms)


ONE_SLEEP = Workload(
    name="one-sleep",
    summary="a hook and one sleep",
    input_type=Slept,
    body=sleep_once,
    steps={},
    driver=resume_at_the_end,
    check=lambda value, _input: None if value == "slept" else f"it returned {value!r}",
    stragglers=lambda _value: 0,
    counts=lambda _input, _stragglers: {},
)


class TestARefusedEnd:
    """The writer of the run's end is slow to the store, so that a receipt comes first. The fence is seq-tail's."""

    def receipts(self, condition: str) -> tuple[int, int]:
        """How many receipts were refused because the run was ending while its log went on, and how many landed."""
        with patch.dict(registry.WORKLOADS, {ONE_SLEEP.name: ONE_SLEEP}):
            end = slow_at(Point.LOCK, share=1, ms=600, types=frozenset({kinds.RUN_COMPLETED}))
            storm = stormed(
                condition, slow=end, scenario=ONE_SLEEP.name, attempts=1, cap="6s", storage_scale=0, input={}
            )
        (log,) = storm.logs(condition)
        sent = [record for record in log.audit or () if record.type == kinds.HOOK_RECEIVED]
        ends = [record for record in log.audit or () if record.type == kinds.RUN_COMPLETED]
        assert any(record.reason.startswith("precondition") for record in ends)
        return sum(record.reason == "expired: the run is ending" for record in sent), sum(one.admitted for one in sent)

    def test_shuts_the_run_for_receipts_although_it_lives(self) -> None:
        refused, landed = self.receipts("seq-buggy-admit[fence=tail]")
        assert refused > landed

    @pytest.mark.parametrize("closed", ["seq-buggy-admit[fence=tail,rollback=full]", "seq-final[fence=tail]"])
    def test_leaves_nothing_behind_where_it_is_rolled_back_or_comes_before_the_mark(self, closed: str) -> None:
        refused, landed = self.receipts(closed)
        assert refused == 0 < landed


# -- slots ----------------------------------------------------------------------------------------------------------


class TestAKillBeforeASlotIsPublished:
    """Nothing is slow here: a gap in the log can only be of the one kill."""

    def storm(self, condition: str) -> Whole:
        kill = {"kill": "worker", "at": "publish", "type": "run_started", "every": 2, "limit": 1}
        storm = stormed(condition, seed=1, storage_scale=0, attempts=2, concurrency=1, faults=[kill], sweeps=True)
        assert [(one.at, one.type) for one in storm.artefact.fired] == [("publish", "run_started")]
        return storm

    @pytest.mark.parametrize("condition", ["slots-stage-shared", "slots-reserve"])
    def test_leaves_a_hole_that_no_later_read_finds_closed(self, condition: str) -> None:
        storm = self.storm(condition)
        struck = storm.artefact.fired[0].run_id
        holed = next(one for one in storm.of(condition) if one.run_id == struck)
        assert (holed.outcome, holed.error_code) == ("corrupted", "CORRUPTED_EVENT_LOG")
        assert re.match(r"the log still has a gap after 3 more reads: \d+ followed by \d+$", holed.error_message or "")
        assert holed.work["reread"] == 3
        assert "reread.closed" not in holed.work
        assert storm.findings("dense", condition) >= 1
        assert storm.outcomes(condition)["completed"] == 1
        assert storm.work(condition).rereads == 3

    @pytest.mark.parametrize("closed", ["slots-link", "slots-sql"])
    def test_leaves_none_where_only_a_publication_takes_a_slot(self, closed: str) -> None:
        storm = self.storm(closed)
        assert all_completed(storm, closed)
        assert storm.findings("dense", closed) == 0
        assert [one.work.get("reread", 0) for one in storm.of(closed)] == [0, 0]


# -- ids minted at entry --------------------------------------------------------------------------------------------


def missed(storm: Whole, condition: str) -> int:
    """How many times a delivery went on for good without an event that was published behind its cursor."""
    from stormctl.sweeps import SweepPlan, sweep_log

    results = [one for log in storm.logs(condition) for one in sweep_log(log, SweepPlan()).sweeps]
    assert sum(one.sweep == "cursor-skip" for one in results) == len(storm.of(condition))
    texts = [finding.message for one in results if one.sweep == "cursor-skip" for finding in one.findings]
    return sum(int(count[1]) for text in texts if (count := re.search(r"\((\d+) misses\)", text)))


class TestIdsMintedAtEntry:
    def test_hide_events_from_readers_for_ever_and_commit_order_hides_none(self) -> None:
        storm = stormed(
            "main",
            "seq-final",
            generation="nets",
            storage_scale=2,
            attempts=6,
            input={**STEPS, "width": 4},
            sweeps=True,
        )
        assert missed(storm, "main") >= 5
        assert storm.findings("cursor-skip", "main") >= 2
        assert missed(storm, "seq-final") == storm.findings("cursor-skip", "seq-final") == 0
        assert storm.findings("commit-order", "main") > 0 == storm.findings("commit-order", "seq-final")
        assert re.search(r"cursor-skip +[1-9]\d* in [1-9] of 6 logs +none in 6 logs", storm.table)


# -- the races of upstream's lock -----------------------------------------------------------------------------------

FINAL = "seq-final[stale_ms=300]"


class TestALockThatIsBrokenEarly:
    """One publication in twenty takes longer than the lock's limit."""

    def storm(self, condition: str) -> Whole:
        return stormed(condition, seed=1, slow=slow_at(Point.PUBLISH, share=0.05, ms=400, seed=1), sweeps=True)

    def test_gives_one_seq_twice_when_its_holder_never_looks(self) -> None:
        early = "seq-final[stale_ms=300,breaking=early]"
        storm = self.storm(early)
        assert repeats(storm, early) >= 2
        assert storm.findings("dense", early) >= 2

    def test_costs_the_holder_its_append_where_it_looks(self) -> None:
        storm = self.storm(FINAL)
        failed = [record for log in storm.logs(FINAL) for record in log.audit or () if "was broken" in record.reason]
        assert len(failed) >= 1
        assert all_completed(storm, FINAL)
        assert storm.findings("dense", FINAL) == 0


class TestALockThatIsReleasedBlindly:
    """A holder has published and is slow to give its lock back; whoever broke it is slow to publish."""

    def storm(self, condition: str, seed: int = 1) -> Whole:
        slow = both(
            slow_at(Point.UNLOCK, share=0.05, ms=400, seed=seed), slow_at(Point.PUBLISH, share=0.5, ms=50, seed=seed)
        )
        return stormed(condition, seed=seed, slow=slow)

    def test_lets_a_third_writer_in_beside_the_second_and_gives_one_seq_twice(self) -> None:
        blind = "seq-final[stale_ms=300,breaking=early,release=blind]"
        assert repeats(self.storm(blind), blind) >= 1

    @pytest.mark.parametrize("closed", ["seq-final[stale_ms=300,breaking=early]", FINAL])
    def test_does_not_where_each_gives_back_only_its_own(self, closed: str) -> None:
        assert all_completed(self.storm(closed), closed)


class TestARescan:
    """One holder in ten is slow to give its lock back, so that the next one breaks it and rescans the log."""

    def storm(self, condition: str, seed: int) -> Whole:
        return stormed(
            condition, seed=seed, storage_scale=2, slow=slow_at(Point.UNLOCK, share=0.1, ms=400, seed=seed), sweeps=True
        )

    def test_that_forgets_the_fence_admits_decisions_of_writers_that_had_not_read_the_last_one(self) -> None:
        forgets = "seq-final[stale_ms=300,rescan=forgets]"
        storms = [self.storm(forgets, seed) for seed in (1, 2)]
        assert sum(stale_decisions(log) for storm in storms for log in storm.logs(forgets)) >= 2
        assert sum(storm.findings("dense", forgets) for storm in storms) == 0

    def test_that_restores_it_admits_none(self) -> None:
        for seed in (1, 2):
            storm = self.storm(FINAL, seed)
            assert [stale_decisions(log) for log in storm.logs(FINAL)] == [0] * 4
            assert all_completed(storm, FINAL)


# -- the plans for real stores --------------------------------------------------------------------------------------

PLANS = ("main", "seq-tail", "seq-decision-snap", "seq-buggy-30s", "slots-stage-shared")


class TestThePlans:
    def test_are_all_here(self, root: Path) -> None:
        assert {path.stem for path in (root / "configs" / "conditions").iterdir()} == set(PLANS)

    @pytest.mark.parametrize("name", PLANS)
    def test_put_the_faulty_condition_first_and_its_twin_last(self, root: Path, name: str) -> None:
        found = load_plan(root / "configs" / "conditions" / f"{name}.yaml")
        assert found.name == name
        assert found.cells[0].condition.startswith(name)
        assert found.cells[-1].condition.split("[")[0] in ("seq-final", "slots-link")
        assert {cell.world for cell in found.cells} == {"local"}
        assert found.budget_ms <= 60_000
        text = (root / "configs" / "conditions" / f"{name}.yaml").read_text().splitlines()
        assert [line.startswith("#") for line in text[:3]] == [True, True, False]
        assert text[1].startswith("# Look at ")

    @pytest.mark.parametrize("name", [name for name in PLANS if name != "seq-buggy-30s"])
    def test_run_on_any_world_where_their_faults_can_strike(self, root: Path, tmp_path: Path, name: str) -> None:
        tiny = {"world": ["memory"], "processes": ["1"], "attempts": ["2"]}
        if name == "seq-tail":
            tiny |= {"attempts": ["1"], "cap": ["6s"]}
        planned = load_plan(root / "configs" / "conditions" / f"{name}.yaml", tiny)
        storm = whole(planned, tmp_path)
        assert len(storm.attempts) == planned.total
        assert all_completed(storm, planned.cells[-1].condition)
        assert not any(one.outcome == "infra" for one in storm.attempts)
        if name == "seq-tail":
            assert all(one.outcome.stuck for one in storm.of(name))
        if name == "slots-stage-shared":
            assert storm.outcomes(name)["corrupted"] > 0
