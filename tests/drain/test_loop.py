"""The loop in situations of its own: counters at their points, the floor, the timer, tenures, words for all of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stormctl.drain.inject import parse
from stormctl.drain.knobs import G2, G4, PRESETS, SUMMARIES, Barrier, Ghosts, Knobs, preset
from stormctl.drain.latency import EDGES, compare, measure
from stormctl.drain.model import DrainModel, Play
from stormctl.drain.setup import Setup, scripted
from stormctl.drain.table import ADMITTED
from stormctl.errors import UsageError
from stormctl.sim.kernel import TapeChooser, play
from stormctl.sweeps.drain.records import Flush, PassEnd, PassEntry
from tests.drain.traces import seen


def run(knobs: Knobs, *injections: str, until: int = 1_000, **more: object) -> Play:
    setup = scripted("run", knobs, *injections, until=until, **more)  # type: ignore[arg-type]
    found = play(DrainModel(setup), TapeChooser(), most=5_000).instance
    assert isinstance(found, Play)
    return found


class TestTheBarrier:
    def test_is_tried_once_in_a_pass_however_many_lag(self) -> None:
        counters = run(G2, *ADMITTED, "start: admit a C").space.counters
        assert (counters.visibility_barriers, counters.visibility_recoveries, counters.responses) == (1, 1, 1)

    def test_is_not_tried_where_the_view_is_current(self) -> None:
        counters = run(G2, *ADMITTED, "start: deliver").space.counters
        assert (counters.visibility_barriers, counters.responses) == (0, 0)

    def test_a_second_mismatch_of_the_pass_defers_without_one(self) -> None:
        records = [record.what for record in run(G2, *ADMITTED, "A2: shadow b absent").space.recorder.records]
        first = records[: next(at for at, what in enumerate(records) if isinstance(what, PassEnd))]
        assert [what.action for what in first if isinstance(what, PassEntry)] == ["queue", "defer_view"]
        assert [what.phase for what in first if isinstance(what, Flush)] == ["begin", "end"]

    @pytest.mark.parametrize("barrier", [Barrier.FLUSH, Barrier.PULL])
    def test_half_of_it_is_not_enough(self, barrier: Barrier) -> None:
        counters = run(replace(G2, barrier=barrier), *ADMITTED, until=0).space.counters
        assert (counters.visibility_barriers, counters.visibility_recoveries) == (1, 0)

    def test_is_not_needed_where_changes_go_out_by_themselves_in_time(self) -> None:
        setup = Setup("late", replace(G2, fanout_ms=5, barrier=Barrier.OFF), scripted("x", G2, *ADMITTED).injections)
        found = play(DrainModel(replace(setup, until=2_000)), TapeChooser()).instance
        assert isinstance(found, Play)
        assert found.space.engine.log == ["A", "B"]

    def test_a_pass_that_its_park_cancelled_counts_nothing_as_processed(self) -> None:
        space = run(G2, *ADMITTED, "A3: park").space
        assert (space.counters.visibility_barriers, space.counters.processed) == (1, 0)
        assert space.called == []
        ends = [record.what for record in space.recorder.records if isinstance(record.what, PassEnd)]
        assert [one.queued for one in ends] == [None]


class TestTenures:
    @pytest.mark.parametrize("point", ["A1", "A2", "A3"])
    @pytest.mark.parametrize("also", ["", "fail"])
    def test_leave_events_pending_when_they_end_during_an_await(self, point: str, also: str) -> None:
        injections = [f"{point}: park", *([f"{point}: {also}"] if also else [])]
        space = run(G2, *ADMITTED, *injections).space
        assert (space.called, space.engine.watermark, len(space.engine.pending())) == ([], 1, 2)

    def test_the_fourth_await_is_checked_by_the_last_generation_alone(self) -> None:
        injections = (*ADMITTED, "start: deliver", "A4: park")
        assert run(G4, *injections).space.called == []
        assert "drain-tenure/queued-after-park" in seen(run(G2, *injections).trace())

    def test_the_next_one_runs_what_was_left(self) -> None:
        found = run(G4, *ADMITTED, "A3: park", tenures=2)
        assert (found.space.engine.log, found.space.engine.pending()) == (["A", "B"], [])
        assert found.space.counters.appended == 2 + 2 + 0  # each counts once in each tenure
        assert seen(found.trace()) == set()

    def test_one_that_is_idle_for_long_parks_by_itself_and_not_before(self) -> None:
        early, late = (run(G4, *ADMITTED, until=until) for until in (29_000, 31_000))
        assert early.space.tenure is not None
        assert late.space.tenure is not None
        assert (early.space.tenure.active, late.space.tenure.active) == (True, False)

    def test_an_event_that_waits_keeps_its_tenure(self) -> None:
        found = run(G4, *ADMITTED, "A1 (*): fail", until=60_000)
        assert found.space.tenure is not None
        assert found.space.tenure.active


class TestDeferrals:
    def test_eight_passes_in_a_row_count_as_stuck_once(self) -> None:
        counters = run(G2, *ADMITTED, "A1 (*): fail", until=250 * 20).space.counters
        assert counters.pre_queue_deferral_stuck == 1
        assert counters.deferred_rescans_fired == 20
        assert run(G2, *ADMITTED, "A1 (*): fail", until=250 * 6).space.counters.pre_queue_deferral_stuck == 0

    def test_arming_an_armed_timer_is_nothing(self) -> None:
        counters = run(G2, *ADMITTED, "A1 (*): fail", "100ms: admit b C", until=240).space.counters
        assert (counters.deferred_rescans_armed, counters.deferred_rescans_fired) == (1, 0)

    def test_input_scans_again_before_the_timer(self) -> None:
        found = run(G2, *ADMITTED, "A2: fail", "100ms: unrelated", "100ms: admit b C", until=200)
        assert found.space.engine.log == ["A", "B", "C"]

    def test_the_watermark_goes_up_to_the_floor_and_not_over_it(self) -> None:
        found = run(G2, "start: admit a A", "start: deliver", "start: admit b B", "A2 (*): fail", until=0)
        assert [wave.w for wave in found.space.waves] == [2, 3]

    def test_a_load_park_stops_the_pass_and_sets_no_floor(self) -> None:
        found = run(G2, *ADMITTED, "start: deliver", "A4: loadpark", until=0)
        assert "drain-coverage/residual-load" in seen(found.trace())

    def test_a_legacy_entry_that_was_consumed_does_not_hold_up_its_next_admission(self) -> None:
        again = ("300ms: strip a", "300ms: strip b", "300ms: admit a A", "300ms: admit b B")
        found = run(G2, *ADMITTED, *again)
        assert found.space.called == ["A", "B", "A", "B"]
        assert found.space.counters.skipped_idempotent == 0

    def test_a_numbered_twin_that_was_consumed_does(self) -> None:
        found = run(G2, *ADMITTED, "300ms: admit a A")
        assert found.space.called == ["A", "B"]
        assert found.space.counters.skipped_idempotent == 1
        assert found.space.engine.pending() == []
        assert seen(found.trace()) == set()

    def test_marks_the_index_at_which_a_compaction_left_the_entry(self) -> None:
        found = run(G2, *ADMITTED, "300ms: admit a C", "A3 (2): compact a", "A3 (2): deliver")
        assert found.space.engine.log == ["A", "B", "C"]
        entries = [one.what for one in found.space.recorder.records if isinstance(one.what, PassEntry)]
        assert (entries[-1].event_id, entries[-1].stored_i) == ("C", 0)

    def test_a_store_that_refuses_ghosts_throws_the_whole_wave_back(self) -> None:
        knobs = replace(PRESETS["G-1"], ghosts=Ghosts.REFUSE)
        found = run(knobs, "start: admit a A", "settle: cut", until=600)
        assert not any(one.event_id is None for one in found.space.engine.entries("a"))
        assert found.space.engine.log == ["A"]


class TestLatency:
    def test_a_deferral_costs_the_backstop_with_the_floor_alone_and_nothing_with_the_barrier(self) -> None:
        neither, floor, both = compare(events=60, seed=4)
        assert set(neither.waits) == set(both.waits) == {0}
        assert max(floor.waits) == 250
        assert floor.mean > 50
        assert (floor.deferrals, both.deferrals) == (60, 0)

    def test_one_event_alone_waits_for_the_whole_backstop(self) -> None:
        alone = measure("x", replace(G2, barrier=Barrier.OFF), events=1, seed=0, steady=True)
        assert alone.waits == (250,)

    def test_a_histogram_counts_each_event_once(self) -> None:
        for one in compare(events=40, seed=1):
            assert sum(one.histogram()) == len(one.waits) == 40
            assert len(one.histogram()) == len(EDGES)


class TestWords:
    @pytest.mark.parametrize(
        "text",
        ["start: admit a A", "A2: fail", "A3 (2): compact a", "A1 b (*): fail", "250ms: release", "A2: shadow a x@102"],
    )
    def test_an_injection_is_printed_as_it_is_written(self, text: str) -> None:
        assert str(parse(text)) == text

    @pytest.mark.parametrize(
        "text",
        [
            "", "fail", "A2 fail", "A2: explode", "A10: fail", "A5: fail", "queue: fail", "A2: throw", "250ms: fail",
            "A1: admit a", "A1: admit A x", "A1: admit a x y", "A1 (0): fail", "99999999ms: park",
            "A1: admit a \x1b[2J",
        ],
    )  # fmt: skip
    def test_what_is_no_injection_is_a_usage_error(self, text: str) -> None:
        with pytest.raises(UsageError):
            parse(text)

    def test_a_preset_takes_knobs_in_brackets(self) -> None:
        found = preset("G2[barrier=off,timer_ms=none,refind=off,tenure_checks=A1+A4,check=id]")
        assert (found.barrier, found.timer_ms, found.refind) == (Barrier.OFF, None, False)
        assert found.tenure_checks == ("A1", "A4")
        assert preset("G2") == G2

    @pytest.mark.parametrize(
        "text",
        ["G7", "G2[", "G2[barrier]", "G2[barrier=on]", "G2[colour=red]", "G2[refind=1]", "G2[timer_ms=x]",
         "G2[tenure_checks=A9]"],
    )  # fmt: skip
    def test_what_is_no_preset_is_a_usage_error(self, text: str) -> None:
        with pytest.raises(UsageError):
            preset(text)

    def test_every_preset_says_what_it_is(self) -> None:
        assert set(PRESETS) == set(SUMMARIES)
