"""The races of bodies that declare none: found by replay, named by line, and judged by where the results stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stormctl.history import Capture, EventLog
from stormctl.readers import open_captures
from stormctl.sweeps import LogReport, SweepPlan, Verdict, sweep_log
from stormctl.sweeps.log_order import contradictions
from stormctl.testing import LogBuilder
from stormctl.workloads.races import Trail, Untold
from stormctl.workloads.registry import WORKLOADS
from stormctl.workloads.user import load_workload, of_body

RACES = '''"""An order that waits for a payment, and gives up after a while."""


async def order(wf, input):
    paid = wf.step("pay").then(lambda _: "paid")
    late = wf.sleep(2000).then(lambda _: "late")
    winner = await wf.race(paid, late)
    await wf.step("ship" if winner == "paid" else "cancel")
    return winner


async def branches(wf, input):
    async def pay():
        await wf.step("ask")
        await wf.step("pay")
        return "paid"

    async def give_up():
        await wf.sleep(2000)
        return "late"

    winner = await wf.race(pay(), give_up())
    await wf.step("ship" if winner == "paid" else "cancel")


async def doorbell(wf, input):
    hook = wf.hook("door")
    winner = await wf.race(hook.next().then(lambda _: "opened"), wf.sleep(2000).then(lambda _: "late"))
    await wf.step("ship" if winner == "opened" else "cancel")


async def nested(wf, input):
    both = wf.all([wf.step("a"), wf.step("b")]).then(lambda _: "both")
    winner = await wf.race(both, wf.race(wf.sleep(2000), wf.sleep(3000)).then(lambda _: "late"))
    await wf.step("ship" if winner == "both" else "cancel")


async def ready(wf, input):
    first, second = wf.step("a"), wf.step("b")
    await wf.all([first, second])
    winner = await wf.race(first.then(lambda _: "a"), second.then(lambda _: "b"))
    await wf.step("ship" if winner == "a" else "cancel")


async def unread(wf, input):
    hook, pause = wf.hook("door"), wf.sleep(2000)
    await wf.step("a")
    winner = await wf.race(hook.next().then(lambda _: "opened"), pause.then(lambda _: "late"))
    await wf.step("ship" if winner == "opened" else "cancel")


async def same(wf, input):
    await wf.race(wf.step("pay"), wf.sleep(2000))
    await wf.step("ship")
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "shop.py"
    path.write_text(RACES)
    return path


def swept(file: Path, name: str, built: LogBuilder) -> Any:
    """What the sweep says of a log, with the body named as a user names it."""
    report = sweep_log(built.capture(), SweepPlan(workload=f"{file}:{name}", find=load_workload))
    assert isinstance(report, LogReport)
    return next(one for one in report.sweeps if one.sweep == "log-order")


def begun() -> LogBuilder:
    return LogBuilder().run_created().run_started()


def results(first: str, last: str, *, over: bool = True) -> LogBuilder:
    """The log of ``order``: a payment and a wait that end in the order given, and then the step ``last``."""
    built = (
        begun().event("step_created", 0, name="pay").event("step_started", 0, name="pay").wait_created(1, in_ms=2000)
    )
    ends = {"paid": ("step_completed", 0), "late": ("wait_completed", 1)}
    for what in (first, *(one for one in ends if one != first)):
        built = built.event(*ends[what], **({"name": "pay"} if what == "paid" else {}))
    built = built.step(2, last)
    return built.run_completed("paid" if last == "ship" else "late") if over else built


class TestABranchThatContradictsItsLog:
    @pytest.mark.parametrize(("first", "last"), [("paid", "cancel"), ("late", "ship")])
    def test_is_found_in_a_body_that_declares_nothing(self, file: Path, first: str, last: str) -> None:
        found = swept(file, "order", results(first, last))
        assert found.verdict is Verdict.VIOLATED
        (finding,) = found.findings
        assert "race 1 (line 7, order) went on with" in finding.message
        winner = {"paid": "step pay", "late": "the wait of 2000 ms"}[first]
        assert f"{winner} was first" in finding.message

    @pytest.mark.parametrize(("first", "last"), [("paid", "ship"), ("late", "cancel")])
    def test_and_not_in_its_twin(self, file: Path, first: str, last: str) -> None:
        assert swept(file, "order", results(first, last)).verdict is Verdict.CLEAN

    @pytest.mark.parametrize(("last", "verdict"), [("cancel", Verdict.VIOLATED), ("ship", Verdict.CLEAN)])
    def test_also_of_a_run_that_still_goes_on(self, file: Path, last: str, verdict: Verdict) -> None:
        assert swept(file, "order", results("paid", last, over=False)).verdict is verdict

    @pytest.mark.parametrize(("last", "verdict"), [("cancel", Verdict.VIOLATED), ("ship", Verdict.CLEAN)])
    def test_where_a_racer_is_a_branch_of_several_awaits(self, file: Path, last: str, verdict: Verdict) -> None:
        built = begun().event("step_created", 0, name="ask").wait_created(1, in_ms=2000)
        built = built.event("step_started", 0, name="ask").event("step_completed", 0, name="ask")
        built = built.step(2, "pay").event("wait_completed", 1).step(3, last).run_completed()
        assert swept(file, "branches", built).verdict is verdict

    @pytest.mark.parametrize(("last", "verdict"), [("cancel", Verdict.VIOLATED), ("ship", Verdict.CLEAN)])
    def test_where_a_racer_is_a_payload(self, file: Path, last: str, verdict: Verdict) -> None:
        built = begun().event("hook_created", 0, token="door").wait_created(1, in_ms=2000)
        built = built.event("hook_received", 0, token="door").event("wait_completed", 1)
        assert swept(file, "doorbell", built.step(2, last).run_completed()).verdict is verdict

    @pytest.mark.parametrize(
        ("wait_at", "last", "verdict"),
        [(1, "ship", Verdict.VIOLATED), (1, "cancel", Verdict.CLEAN), (2, "ship", Verdict.CLEAN)],
    )
    def test_where_racers_are_made_of_others(self, file: Path, wait_at: int, last: str, verdict: Verdict) -> None:
        built = begun()
        for rank, name in ((0, "a"), (1, "b")):
            built = built.event("step_created", rank, name=name).event("step_started", rank, name=name)
        built = built.wait_created(2, in_ms=2000).wait_created(3, in_ms=3000)
        ends = [("step_completed", 0, "a"), ("step_completed", 1, "b")]
        ends.insert(wait_at, ("wait_completed", 2, ""))
        for kind, rank, name in ends:
            built = built.event(kind, rank, **({"name": name} if name else {}))
        assert swept(file, "nested", built.step(4, last).run_completed()).verdict is verdict


def test_between_racers_that_were_ready_the_body_decides(file: Path) -> None:
    built = begun()
    for rank, name in ((0, "a"), (1, "b")):
        built = built.event("step_created", rank, name=name).event("step_started", rank, name=name)
    built = built.event("step_completed", 1, name="b").event("step_completed", 0, name="a")
    assert swept(file, "ready", built.step(2, "ship").run_completed()).verdict is Verdict.CLEAN


def test_a_racer_that_was_ready_beats_a_payload_that_nobody_had_read(file: Path) -> None:
    built = begun().event("hook_created", 0, token="door").wait_created(1, in_ms=2000)
    built = built.event("step_created", 2, name="a").event("step_started", 2, name="a")
    built = built.event("hook_received", 0, token="door").event("wait_completed", 1)
    built = built.event("step_completed", 2, name="a").step(3, "cancel").run_completed()
    assert swept(file, "unread", built).verdict is Verdict.CLEAN


def test_branches_that_look_alike_in_the_log_are_given_the_benefit_of_the_doubt(file: Path) -> None:
    assert swept(file, "same", results("late", "ship")).verdict is Verdict.CLEAN


def test_a_log_that_no_replay_follows_is_not_judged(file: Path) -> None:
    found = swept(file, "order", results("paid", "refund"))
    assert found.verdict is Verdict.UNKNOWN
    assert "a replay that follows the log beyond 8" in str(found.missing)


def test_a_result_that_is_nowhere_convicts_nobody(file: Path) -> None:
    """The step went on as after the wait, and the log has no end of the wait: what became of it cannot be told."""
    built = begun().step(0, "pay").wait_created(1, in_ms=2000).step(2, "cancel").run_completed()
    assert swept(file, "order", built).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("name", ["hook-storm", "step-storm", "capture-step-storm", "capture-hook-storm"])
def test_replayed_scenarios_of_ours_are_told_as_their_declarations_tell_them(root: Path, name: str) -> None:
    compared = 0
    for capture in open_captures([root / "fixtures" / "storms" / "logs"]):
        if isinstance(capture, Capture) and capture.run is not None and capture.run.workload == name:
            compared += same(capture)
    if not compared:
        pytest.skip(f"no completed log of {name} among the fixtures")


def test_completed_runs_of_the_real_sdk_are_told_as_their_declarations_tell_them(
    shared_data: Path,
) -> None:
    """Up to eight contradictions a run, found without the declaration."""
    folder = shared_data / "sdk"
    paths = [*sorted(folder.glob("*-completed.json")), *sorted((folder / "runs").glob("*.json"))]
    captures = [one for one in open_captures(paths) if isinstance(one, Capture)]
    assert sum(map(same, captures)) >= 7


def same(capture: Capture) -> int:
    """Compare the contradictions of a completed run: 1 when there was something to compare."""
    assert capture.run is not None
    if capture.run.status != "completed" or capture.run.workload not in WORKLOADS:
        return 0
    code = WORKLOADS[capture.run.workload]
    given = code.parse_input(dict(capture.run.input))
    assert code.races is not None
    try:
        declared = places(capture.log, list(code.races(given, Trail(capture.log))))
    except Untold:
        return 0
    bare = of_body(code.body, "theirs.py:body")
    assert bare.races is not None
    assert places(capture.log, list(bare.races(given, Trail(capture.log)))) == declared
    return 1


def places(log: EventLog, races: Any) -> set[int]:
    """Where the results stand that were first and did not win."""
    return {fault.at[0] for fault in contradictions(log, races)}
