"""What an explanation says as a whole: honest where it cannot know, bounded in what it costs."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormctl.engine.door import Engine
from stormctl.errors import UsageError
from stormctl.explain import Answer, ExplainPlan, Explanation, classes, explain
from stormctl.explain.explain import _latent
from stormctl.history import Capture, RunRow, kinds
from stormctl.readers.open import open_captures
from stormctl.sweeps.base import Scenario
from stormctl.sweeps.plan import open_own
from stormctl.testing import LogBuilder, run_serially
from stormctl.workloads.registry import WORKLOADS
from tests.replayed import Once

NAME = "wrun-41KZYJ92TP-storm-log.json"


def quiet_storm(**given: Any) -> LogBuilder:
    code = WORKLOADS["step-storm"]
    return run_serially(code, code.input_type(token="t", rounds=2, width=2, **given), late=[2])


class TestTheRealLog:
    @pytest.fixture(scope="class")
    def found(self, shared_data: Path, replayed_once: Once) -> Explanation:
        path = shared_data / NAME
        if not path.is_file():
            pytest.skip(f"{NAME} is not beside this clone")
        (capture,) = open_captures([path])
        assert isinstance(capture, Capture)
        with replayed_once():
            return explain(capture, ExplainPlan(workload="step-storm", engines=("nets", "registered")))

    def test_names_the_class_and_what_closed_it(self, found: Explanation) -> None:
        assert found.answer is Answer.EXPLAINED
        assert found.named is not None
        assert (found.named.name, found.named.group, found.named.closed_by) == (
            "net-order-flip",
            "engine determinism",
            (3554,),
        )
        flip = "rank 198 is step:finalizeStep up to prefix 611 and step:releaseStep from 612 on"
        assert flip in found.named.evidence[0]

    def test_names_the_guilty_write_and_both_writers(self, found: Explanation) -> None:
        assert found.guilty is not None
        assert (found.guilty.position, found.guilty.rank, found.guilty.label) == (631, 199, "step:finalizeStep")
        assert found.guilty.writer is not None
        assert found.guilty.writer.prefixes == ((623, 624),)
        pair = next(pair for pair in found.bindings if pair.clash == "one call, two ranks")
        assert (pair.one.position, pair.one.writer.prefixes) == (630, ((610, 611),))
        assert (pair.other.position, pair.other.writer.prefixes) == (631, ((623, 624),))

    def test_says_that_nets_wrote_it_and_today_would_not(self, found: Explanation) -> None:
        assert (found.written_by, found.written_by_sure) == ("nets", True)
        rows = {row.engine: row for row in found.generations}
        assert (rows["nets"].explained, rows["nets"].creates, rows["nets"].unexplained) == (204, 204, ())
        for name in ("registered",):
            assert (rows[name].explained, rows[name].unexplained, rows[name].flips) == (203, (631,), 0)
            assert rows[name].clean_through == 630
        assert found.today is not None
        assert found.today.would == "no"
        assert "no generation can read this log to its end" in found.today.text

    def test_tells_it_in_order(self, found: Explanation) -> None:
        words = [beat.word for beat in found.story]
        assert words == ["first", "then", "however", "then", "then", "then", "so"]
        assert "610 or 611" in found.story[0].text
        assert found.story[1].text == "612 step_completed rank 192 step:finalizeStep is read"
        assert len(found.witness) <= 6


class TestHonesty:
    def test_nothing_wrong_is_clean_and_says_what_that_rests_on(self) -> None:
        found = explain(quiet_storm().capture())
        assert found.answer is Answer.CLEAN
        assert found.headline == "nothing wrong found: registered explains 24 of 24 creates, and no sweep found a fault"
        assert (found.named, found.guilty, found.story, found.witness) == (None, None, (), ())
        assert found.left_out == (
            "rearm, turnstile, dispenser, nets, parked-idle, transitive, opposite, queue, dispenser-v1, unarmed: not "
            "needed, the log is sound under registered",
        )

    def test_without_a_workload_it_says_so(self) -> None:
        log = LogBuilder().run_created().run_started().step(0, "charge").run_completed()
        found = explain(log.capture())
        assert found.answer is Answer.NEEDS_WORKLOAD
        assert "a workload (name it with --workload)" in found.headline
        assert any(text.startswith("which write is to blame") for text in found.open)

    def test_the_wrong_workload_is_doubted_before_the_log(self) -> None:
        log = quiet_storm().capture(run=RunRow("completed"))
        found = explain(log, ExplainPlan(workload="hook-storm"))
        assert found.answer is Answer.OPEN
        assert "is it the right workload" in found.headline
        assert (found.guilty, found.story, found.today) == (None, (), None)

    def test_a_corruption_that_no_class_fits_is_told_as_that(self) -> None:
        storm = quiet_storm()
        place = next(at for at, event in enumerate(storm.events, 1) if event.name == "releaseStep")
        found = explain(storm.changed(place, name="recoverStep").until(place).capture())
        assert found.answer is Answer.UNCLASSIFIED
        assert found.headline == "the log is corrupted, and no class that is known fits"
        assert found.guilty is not None
        assert (found.guilty.position, found.guilty.writer, found.guilty.found_by) == (place, None, "none")

    def test_a_run_that_failed_over_a_sound_log_is_open(self) -> None:
        found = explain(quiet_storm().until(24).run_failed().capture())
        assert found.answer is Answer.OPEN
        assert any(text.startswith("engine suspect") for text in found.open)

    def test_an_empty_log_is_no_reason_to_fail(self) -> None:
        assert explain(LogBuilder().capture()).answer in (Answer.EXPLAINED, Answer.NEEDS_WORKLOAD)


class TestLimits:
    def test_time_that_is_up_leaves_engines_out_and_says_which(self) -> None:
        ticks = itertools.count(step=10.0)
        found = explain(quiet_storm().until(30).capture(), ExplainPlan(seconds=35.0), clock=lambda: next(ticks))
        assert found.answer is Answer.OPEN
        assert any("the time for replays was up" in text for text in found.left_out)
        assert any("were not replayed" in text for text in found.open)

    def test_a_log_too_long_is_swept_and_not_replayed(self) -> None:
        found = explain(quiet_storm().capture(), ExplainPlan(max_events=10))
        assert found.generations == ()
        assert found.answer is Answer.OPEN
        assert found.left_out[0].startswith("all replays: the log has ")

    def test_an_engine_that_cannot_be_opened_is_left_out(self) -> None:
        def broken(name: str, capture: Capture, scenario: Scenario | None) -> Engine:
            if name == "nets":
                raise UsageError("nets is not here", remedy="Install it.")
            return open_own(name, capture, scenario)

        storm = quiet_storm().until(30).capture()
        found = explain(storm, ExplainPlan(engines=("nets", "registered"), open=broken))
        assert [row.engine for row in found.generations] == ["registered"]
        assert found.left_out == ("nets: nets is not here. Install it.",)

    def test_only_the_engines_that_were_named_are_replayed(self) -> None:
        found = explain(quiet_storm().until(30).capture(), ExplainPlan(engines=("dispenser", "nets")))
        assert [row.engine for row in found.generations] == ["nets", "dispenser"]

    def test_a_changed_generation_stands_behind_its_own(self) -> None:
        names = ("nets[clock=delivered]", "nets")
        found = explain(quiet_storm().until(30).capture(), ExplainPlan(engines=names))
        assert [row.engine for row in found.generations] == ["nets", "nets[clock=delivered]"]


class TestTheTable:
    def test_every_class_has_its_words(self) -> None:
        rows = classes()
        assert len({row.name for row in rows}) == len(rows)
        for row in rows:
            assert row.title
            assert row.mechanism[0].islower()
            assert not row.mechanism.endswith(".")
            assert row.closed
            assert row.question
            assert all(1 < number < 10_000 for number in row.closed_by)


_TYPES = sorted(kinds.ALL_TYPES)


@given(st.lists(st.tuples(st.sampled_from(_TYPES), st.integers(0, 12)), max_size=25), st.booleans())
@settings(max_examples=20)
def test_any_log_is_answered_without_a_crash(events: list[tuple[str, int]], named: bool) -> None:
    log = LogBuilder().run_created("step-storm" if named else None)
    for type, rank in events:
        run_event = kinds.kind_of_type(type) == kinds.RUN
        log.event(type, None if run_event else rank, name="settleStep" if type in kinds.STEP_TYPES else None)
    found = explain(log.capture(), ExplainPlan(engines=("registered", "nets")))
    assert found.answer in Answer
    assert found.headline
    assert (found.answer is Answer.CLEAN) <= (found.named is None)


class TestAFlipThatNoTwoWritersMet:
    """The headline may call a run unharmed only where no branch of it contradicts its log."""

    @staticmethod
    def said(**fatal: int) -> str:
        report = SimpleNamespace(fatal_by_sweep=lambda: fatal)
        return _latent(SimpleNamespace(report=report))  # type: ignore[arg-type]

    def test_did_no_harm_where_the_log_agrees(self) -> None:
        assert self.said(rebinding=4).endswith("this run was not harmed by it")

    def test_did_harm_where_branches_contradict_the_log(self) -> None:
        assert self.said(**{"log-order": 4}).endswith("4 of the run's branches contradict its log")
