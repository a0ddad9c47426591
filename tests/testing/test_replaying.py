"""Replays as a user's tests use them: one pass, one per prefix, many logs; and failures that read well."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from stormctl.engine.door import Outcome, Perturbation
from stormctl.errors import UsageError
from stormctl.history import EventLog
from stormctl.readers import write_capture
from stormctl.testing import (
    LogBuilder,
    ReplayFailure,
    assert_replays,
    replay,
    replay_many,
    replay_prefixes,
    run_serially,
)
from stormctl.workloads.registry import WORKLOADS


@dataclass(frozen=True)
class Order:
    id: str = ""
    pay_within_ms: float = 1000.0


async def order(wf: Any, input: Order) -> str:
    shelf = await wf.step("reserve", input.id)
    await wf.sleep(input.pay_within_ms)
    return f"{await wf.step('ship', shelf)}"


def built() -> LogBuilder:
    return (
        LogBuilder()
        .run_created("order", id="o-1")
        .run_started()
        .step(0, "reserve", "o-1")
        .wait_created(1, in_ms=1000)
        .wait_completed(1)
        .step(2, "ship", None)
        .run_completed("None")
    )


class TestOneReplay:
    def test_it_draws_what_the_body_asks_for_with_the_recorded_input(self) -> None:
        made = replay(order, built().until(5))
        assert [draw.label for draw in made.draws] == ["step:reserve", "wait"]
        assert [draw.arguments for draw in made.draws] == [("o-1",), 1000.0]
        assert made.outcome is Outcome.SUSPENDED

    @pytest.mark.parametrize("input", [{"id": "o-2"}, Order("o-2")])
    def test_another_input_may_be_given(self, input: Any) -> None:
        assert replay(order, built().until(2), input=input).draws[0].arguments == ("o-2",)

    def test_a_log_may_be_a_builder_a_log_or_a_capture(self) -> None:
        log = built().log()
        assert replay(order, built()) == replay(order, built().capture())
        assert replay(order, log, input={"id": "o-1"}) == replay(order, built())
        assert replay(order, EventLog(log.events, log.run_id), input=Order("o-1")).outcome is Outcome.COMPLETED

    def test_a_body_without_a_dataclass_gets_what_was_recorded(self) -> None:
        async def plain(wf: Any, input: Any) -> Any:
            return input

        assert replay(plain, LogBuilder().run_created(id="o-1")).value == {"id": "o-1"}
        assert replay(plain, LogBuilder().run_created()).value is None
        assert replay(plain, LogBuilder().run_created(), input=[1]).value == [1]

    def test_events_may_be_hidden_and_reading_perturbed(self) -> None:
        assert len(replay(order, built().until(5), hidden=[4]).draws) == 1
        slow = replay(order, built(), perturbation=Perturbation(hydration_ms=50.0))
        assert (slow.duration_ms or 0) > (replay(order, built()).duration_ms or 0)
        assert slow.draws == replay(order, built()).draws

    def test_a_workload_of_ours_is_replayed_as_well(self) -> None:
        storm = WORKLOADS["step-storm"]
        quiet = run_serially(storm, storm.input_type(token="t", rounds=1, width=2))
        assert replay(storm, quiet, generation="nets").outcome is Outcome.COMPLETED

    def test_a_name_or_a_body_that_is_none_is_refused_with_a_remedy(self) -> None:
        with pytest.raises(UsageError, match="there is no generation 'nest'"):
            replay(order, built(), generation="nest")
        with pytest.raises(UsageError, match="is a plain function"):
            replay(lambda wf, input: None, built())  # type: ignore[arg-type, return-value]

    def test_every_prefix_by_default_and_those_that_are_asked_for(self) -> None:
        assert [len(made.draws) for made in replay_prefixes(order, built())] == [1, 1, 1, 1, 2, 2, 3, 3, 3, 3, 3]
        assert [made.prefix for made in replay_prefixes(order, built(), prefixes=[9, 3])] == [9, 3]


class TestFailures:
    def failure(self, log: LogBuilder, body: Any = order) -> ReplayFailure:
        with pytest.raises(ReplayFailure) as caught:
            assert_replays(body, log, generation="nets")
        return caught.value

    def test_a_log_that_the_body_follows_is_none(self) -> None:
        for place in range(1, len(built().events) + 1):
            assert_replays(order, built().until(place))

    def test_a_step_under_another_name_is_told_with_both(self) -> None:
        said = self.failure(built().changed(3, name="release"))
        assert (said.reason, said.position) == ("name", 3)
        assert str(said).splitlines()[:4] == [
            f"order does not replay {built().run_id} under nets",
            "  position  3",
            "  expected  step_created of step:release",
            "  actual    step:reserve",
        ]

    def test_a_body_that_raises_where_the_run_went_on(self) -> None:
        async def broken(wf: Any, input: Any) -> None:
            raise ValueError("no such sku")

        said = self.failure(built(), broken)
        assert (said.reason, said.expected, said.actual) == (
            "raised",
            "the run goes on to run_completed",
            "ValueError: no such sku",
        )

    def test_a_body_that_waits_where_the_run_returned(self) -> None:
        async def longer(wf: Any, input: Order) -> str:
            value = await order(wf, input)
            await wf.step("mail")
            return value

        said = self.failure(built(), longer)
        assert (said.reason, said.position, said.actual) == ("unfinished", 11, "the body waits for step:mail")

    def test_a_failed_run_may_raise_and_a_corrupted_one_may_complete(self) -> None:
        async def broken(wf: Any, input: Any) -> None:
            await wf.step("reserve", "o-1")
            raise ValueError("no")

        assert_replays(broken, built().until(5).run_failed("USER_ERROR"))
        assert_replays(order, built().until(9).run_failed())

    def test_a_failure_crosses_from_another_process(self) -> None:
        said = self.failure(built().changed(3, name="release"))
        again = pickle.loads(pickle.dumps(said))
        assert (str(again), vars(again)) == (str(said), vars(said))

    def test_pytest_shows_it_without_a_walk_through_the_engine(self) -> None:
        assert issubclass(ReplayFailure, AssertionError)


class TestMany:
    def logs(self) -> list[LogBuilder]:
        return [built(), built().changed(3, name="release"), built().until(4)]

    def test_every_log_has_its_result(self) -> None:
        results = replay_many(order, self.logs(), generation="nets")
        assert [one.failure is None for one in results] == [True, False, True]
        assert [one.generation for one in results] == ["nets"] * 3
        assert results[0].replay is not None
        assert results[0].replay.outcome is Outcome.COMPLETED

    def test_failures_are_collected_and_raised_on_demand(self) -> None:
        replay_many(order, self.logs()[:1]).raise_failures()
        with pytest.raises(ReplayFailure):
            replay_many(order, self.logs()).raise_failures()

    def test_several_are_raised_together(self, tmp_path: Path) -> None:
        (tmp_path / "bad.ndjson").write_text("{")
        results = replay_many(order, [*self.logs(), tmp_path / "bad.ndjson"])
        with pytest.raises(ExceptionGroup, match="2 of 4 logs do not replay") as caught:
            results.raise_failures()
        assert [one.reason for one in caught.value.exceptions] == ["name", "unreadable"]  # type: ignore[attr-defined]

    def test_the_first_can_be_raised_at_once(self) -> None:
        seen: list[str] = []

        def logs() -> Any:
            for log in self.logs():
                seen.append(log.run_id)
                yield log

        with pytest.raises(ReplayFailure):
            replay_many(order, logs(), fail_fast=True)
        assert len(seen) == 2

    def test_paths_and_folders_are_opened(self, tmp_path: Path) -> None:
        written = write_capture(built().capture(), tmp_path)
        for path in (written, str(written), tmp_path):
            (result,) = replay_many(order, [path])
            assert (result.failure, result.source) == (None, str(written))

    def test_a_path_that_holds_nothing_is_a_failure_and_no_traceback(self, tmp_path: Path) -> None:
        (result,) = replay_many(order, [tmp_path / "none.ndjson"])
        assert result.replay is None
        assert result.failure is not None
        assert result.failure.reason == "unreadable"
        assert result.failure.source == str(tmp_path / "none.ndjson")
