"""Replays of bodies that are not ours: there is a pass, or one sentence that names the body and the prefix."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

import pytest

from stormctl.engine import watchdog
from stormctl.engine.door import Outcome, Pass
from stormctl.engine.engines import engine_for
from stormctl.sweeps import SweepPlan, Verdict, sweep_log
from stormctl.testing import LogBuilder, run_serially
from stormctl.workloads.registry import WORKLOADS
from stormctl.workloads.user import load_workload, of_body
from stormctl.workloads.user_engine import BodyStuck, user_engine


def built() -> LogBuilder:
    return LogBuilder().run_created(id="o-1").run_started().step(0, "a")


def passes(body: Any, prefixes: Any = (1, 5)) -> list[Pass]:
    return list(user_engine("nets", of_body(body, "shop.py:order"), None).passes(built().log(), prefixes))


class TestABodyThatMisbehaves:
    @pytest.mark.parametrize("error", [ValueError("no"), KeyError("id"), ExceptionGroup("two", [ValueError()])])
    def test_what_raises_has_failed_with_its_error(self, error: Exception) -> None:
        async def order(wf: Any, input: Any) -> None:
            raise error

        assert {(made.outcome, made.error) for made in passes(order)} == {
            (Outcome.FAILED, f"{type(error).__name__}: {error}")
        }

    def test_what_awaits_something_foreign_is_told_so(self) -> None:
        class Foreign:
            def __await__(self) -> Any:
                yield "something"

        async def order(wf: Any, input: Any) -> None:
            await Foreign()

        assert passes(order)[0].error == "TypeError: a workflow may only await what its own primitives return"

    def test_asyncio_has_no_loop_in_a_workflow(self) -> None:
        async def order(wf: Any, input: Any) -> None:
            await asyncio.sleep(1)

        assert passes(order)[0].outcome is Outcome.FAILED
        assert "RuntimeError" in str(passes(order)[0].error)

    @pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), lambda: 1])
    def test_what_returns_something_odd_has_completed(self, value: Any) -> None:
        async def order(wf: Any, input: Any) -> Any:
            return value

        assert passes(order)[0].outcome is Outcome.COMPLETED

    @pytest.mark.parametrize("leave", [SystemExit(3), asyncio.CancelledError(), GeneratorExit()])
    def test_what_tries_to_end_the_process_does_not(self, leave: BaseException) -> None:
        async def order(wf: Any, input: Any) -> None:
            await wf.step("a")
            raise leave

        with pytest.raises(BodyStuck) as caught:
            passes(order)
        assert str(caught.value) == f"shop.py:order raised {type(leave).__name__}, replayed from prefix 5"

    def test_an_interrupt_is_the_users(self) -> None:
        async def order(wf: Any, input: Any) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            passes(order)

    def test_what_loops_for_ever_is_named_with_the_prefix(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(watchdog, "LIMIT_S", 0.1)

        async def order(wf: Any, input: Any) -> None:
            await wf.step("a")
            while True:
                pass

        with pytest.raises(BodyStuck) as caught:
            passes(order, range(1, 6))
        assert str(caught.value) == (
            "shop.py:order ran for 0.1 s without coming to its next event, replayed from prefix 5"
        )
        assert caught.value.remedy.startswith("Look for a loop in it")

    def test_what_it_prints_goes_to_standard_error(self, capsys: pytest.CaptureFixture[str]) -> None:
        async def order(wf: Any, input: Any) -> None:
            print("here")

        passes(order, [1])
        captured = capsys.readouterr()
        assert (captured.out, captured.err) == ("", "here\n")


class TestARetainedSession:
    def test_it_gives_the_pass_over_the_longer_log(self) -> None:
        async def order(wf: Any, input: Any) -> Any:
            return await wf.step("a")

        log = built().log()
        session = user_engine("nets", of_body(order, "shop.py:order"), None).open(log[:3])
        assert session.first.outcome is Outcome.SUSPENDED
        assert session.extend(log[3:].events).outcome is Outcome.COMPLETED
        session.close()

    def test_a_loop_that_an_extension_sets_off_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(watchdog, "LIMIT_S", 0.1)

        async def order(wf: Any, input: Any) -> None:
            await wf.step("a")
            while True:
                pass

        log = built().log()
        session = user_engine("nets", of_body(order, "shop.py:order"), None).open(log[:3])
        with pytest.raises(BodyStuck, match=r"shop.py:order ran for 0.1 s .* replayed from prefix 5"):
            session.extend(log[3:].events)
        session.close()


class TestInASweep:
    def sweep(self, write: Path, text: str, log: LogBuilder | None = None) -> Any:
        write.write_text(text)
        plan = SweepPlan(workload=f"{write}:order", engines=("nets",))
        return sweep_log((log or built()).run_completed().capture(), plan)

    @pytest.fixture
    def shop(self, tmp_path: Path) -> Path:
        return tmp_path / "shop.py"

    def test_a_body_alone_is_judged_by_replays_and_not_by_a_ledger(self, shop: Path) -> None:
        report = self.sweep(shop, "async def order(wf, input):\n    return await wf.step('a')\n")
        assert report.verdict is Verdict.CLEAN
        assert {"rebinding", "lifecycle"} < {one.sweep for one in report.sweeps}
        assert not {"roles", "ledger"} & {one.sweep for one in report.sweeps}

    def test_a_body_that_raises_where_the_run_went_on_is_no_clean_replay(self, shop: Path) -> None:
        report = self.sweep(shop, "async def order(wf, input):\n    raise ValueError('no')\n")
        assert report.verdict is Verdict.UNKNOWN
        assert list(report.reasons) == [
            "log-order is unknown: it lacks a replay that follows the log beyond its end",
            "rebinding is unknown: it lacks a replay by nets that does not fail "
            "(from prefix 1, shop.py:order raised ValueError: no, and the run went on)",
        ]

    def test_a_body_that_raises_at_the_end_of_a_failed_run_is_one(self, shop: Path) -> None:
        shop.write_text("async def order(wf, input):\n    await wf.step('a')\n    raise ValueError('no')\n")
        plan = SweepPlan(workload=f"{shop}:order", engines=("nets",))
        report = sweep_log(built().run_failed("USER_ERROR").capture(), plan)
        assert [one.verdict for one in report.sweeps if one.sweep == "rebinding"] == [Verdict.CLEAN]

    def test_a_loop_is_a_reason_and_hides_no_other_sweep(self, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(watchdog, "LIMIT_S", 0.1)
        log = built().step_created(0, "a")
        report = self.sweep(shop, "async def order(wf, input):\n    while True: pass\n", log)
        assert "ran for 0.1 s without coming to its next event, replayed from prefix 1" in " ".join(report.reasons)
        assert report.fatal_by_sweep() == {"lifecycle": 1}

    def test_an_input_that_does_not_fit_is_a_reason(self, shop: Path) -> None:
        text = "from dataclasses import dataclass\n@dataclass\nclass Order:\n    sku: str\n"
        report = self.sweep(shop, text + "async def order(wf, input: Order): ...\n")
        assert "an input that shop.py:order takes (shop.py:order has no input 'id')" in " ".join(report.reasons)

    def test_a_file_that_only_a_log_names_is_never_executed(self, shop: Path) -> None:
        shop.write_text("raise SystemExit('executed')\n")
        capture = LogBuilder().run_created(f"{shop}:order").capture()
        report = sweep_log(capture, SweepPlan(engines=("nets",)))
        assert f"a workload named '{shop}:order'" in " ".join(report.reasons)

    def test_a_plan_fits_another_process(self, shop: Path) -> None:
        import pickle

        shop.write_text("async def order(wf, input): ...\n")
        plan = SweepPlan(workload=f"{shop}:order", engines=("nets",))
        assert pickle.loads(pickle.dumps(plan)) == plan


def test_our_own_workload_from_a_file_is_swept_as_under_its_name(tmp_path: Path, root: Path) -> None:
    from stormctl.readers import open_captures

    (tmp_path / "mine.py").write_text("from stormctl.workloads.step_storm import STEP_STORM\n")
    loaded = load_workload(f"{tmp_path}/mine.py:STEP_STORM")
    assert dataclasses.replace(loaded, source=None) == WORKLOADS["step-storm"]
    for name in ("clean-step-storm", "3543-finalized-twice"):
        (capture,) = open_captures([root / "fixtures" / "logs" / f"{name}.ndjson"])
        swept = [
            sweep_log(capture, SweepPlan(workload=workload, engines=("nets",)))
            for workload in ("step-storm", f"{tmp_path}/mine.py:STEP_STORM")
        ]
        assert swept[0] == swept[1]


def test_a_long_log_gives_the_passes_that_our_own_engine_gives() -> None:
    """Long ones are swept by forking one walk, in which the body lives on."""
    storm = WORKLOADS["step-storm"]
    input = storm.input_type(token="t", rounds=3, width=4)
    log = run_serially(storm, input).log()
    assert len(log) > 150
    lengths = range(1, len(log) + 1)
    ours = list(engine_for("dispenser", storm, input).passes(log, lengths))
    assert list(user_engine("dispenser", storm, input).passes(log, lengths)) == ours


def test_a_loop_behind_the_end_of_a_long_prefix_is_found_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "LIMIT_S", 0.2)
    log = LogBuilder().run_created().run_started()
    for rank in range(60):
        log.step(rank, "a")

    async def order(wf: Any, input: Any) -> None:
        for _ in range(50):
            await wf.step("a")
        while True:
            pass

    made = user_engine("nets", of_body(order, "order"), None).passes(log.log(), range(1, len(log.events) + 1))
    with pytest.raises(BodyStuck, match="replayed from prefix 152"):
        for _ in made:
            pass
