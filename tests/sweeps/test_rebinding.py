"""Rebinding: draw tables of consecutive prefixes, by any engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.engine.door import Create, Divergence, Draw, Outcome, Pass, Pending, Perturbation, Session
from stormctl.errors import UsageError
from stormctl.history import Capture, EventLog, ids
from stormctl.readers.open import open_captures
from stormctl.sweeps import PrefixRange, SweepPlan, Verdict, sweep_log
from stormctl.sweeps.finding import Fault
from stormctl.sweeps.rebinding import Rebinding, faults, rebinding
from stormctl.testing import LogBuilder
from stormctl.workloads.base import Workload

Table = Sequence[tuple[Any, ...]]
STORMS = Path(__file__).parents[2] / "fixtures" / "storms" / "logs"


def drawn(row: Draw | tuple[Any, ...]) -> Draw:
    """A draw from rank, kind, name, arguments and, where it is known, the id."""
    return row if isinstance(row, Draw) else Draw(*row)


class Scripted:
    """An engine that answers from a list: a draw table per prefix length, or the divergence there."""

    name = "scripted"
    workload = None

    def __init__(self, tables: Sequence[Table | None], diverges: dict[int, str] | None = None) -> None:
        self._tables = tables
        self._diverges = diverges or {}

    def passes(
        self,
        log: EventLog,
        prefixes: Iterable[int],
        *,
        hidden: frozenset[int] = frozenset(),
        perturbation: Perturbation | None = None,
    ) -> Iterator[Pass]:
        for length in prefixes:
            table = self._tables[length - 1]
            draws: Any = None if table is None else tuple(map(drawn, table))
            outcome = Outcome.DIVERGED if length in self._diverges else Outcome.SUSPENDED
            yield Pass(length, outcome, draws, divergence=self._divergence(log, length))

    def open(self, log: EventLog) -> Session:
        raise NotImplementedError

    def _divergence(self, log: EventLog, length: int) -> Divergence | None:
        text = self._diverges.get(length)
        if text is None:
            return None
        event = log[length - 1]
        return Divergence(
            "name", length - 1, event.position, event.event_id, event.type, log.rank(event), "step:a", "step:b", text
        )


A, B = (1, "step", "a", [0]), (1, "step", "b", [0])
HOOK = (0, "hook", None, "t")


def three(*, positions: bool = True) -> LogBuilder:
    return LogBuilder(positions=positions).run_created().hook_created(0).step_created(1, "a")


def rebound(tables: Sequence[Table | None], builder: LogBuilder | None = None, **how: Any) -> Rebinding:
    log = (builder or three()).log()
    diverges = how.pop("diverges", None)
    return rebinding(log, Scripted(tables, diverges), range(1, len(log) + 1), **how)


class TestFlips:
    def test_a_table_that_only_grows_has_none(self) -> None:
        found = rebound([[], [HOOK], [HOOK, A]])
        assert (found.prefixes, found.clean_through, found.flips, found.divergence) == (3, 3, (), None)

    def test_a_rank_that_goes_to_another_call_is_a_flip(self) -> None:
        (flip,) = rebound([[HOOK], [HOOK, A], [HOOK, B]]).flips
        assert (flip.before, flip.after, flip.rank, flip.was, flip.now) == (2, 3, 1, "step:a", "step:b")
        assert not flip.input_changed

    def test_a_rank_that_goes_from_a_step_to_a_wait_is_a_flip(self) -> None:
        (flip,) = rebound([[HOOK], [HOOK, A], [HOOK, (1, "wait", None, 2500)]]).flips
        assert (flip.was, flip.now, flip.input_changed) == ("step:a", "wait", True)

    def test_another_input_of_the_same_call_counts_only_when_asked(self) -> None:
        tables = [[HOOK], [HOOK, A], [HOOK, (1, "step", "a", [1])]]
        assert rebound(tables).flips == ()
        (flip,) = rebound(tables, include_input_only=True).flips
        assert flip.input_changed
        assert not flip.renames

    def test_a_rank_that_one_table_lacks_is_no_flip(self) -> None:
        assert rebound([[HOOK, A], [HOOK], [HOOK, B]]).flips == ()

    def test_tables_with_holes_are_compared_by_rank(self) -> None:
        (flip,) = rebound([[HOOK], [A, (3, "step", "c", [])], [HOOK, B, (3, "step", "c", [])]]).flips
        assert (flip.rank, flip.was, flip.now) == (1, "step:a", "step:b")

    def test_prefixes_of_a_log_without_positions_are_named_by_their_length(self) -> None:
        (flip,) = rebound([[A], [A], [B]], three(positions=False)).flips
        assert (flip.before, flip.after) == (2, 3)

    def test_prefixes_are_named_by_position(self) -> None:
        builder = three().edited(lambda events: events.__delitem__(0))
        found = rebound([[A], [B]], builder)
        assert (found.flips[0].before, found.flips[0].after, found.clean_through) == (2, 3, 3)

    @given(st.lists(st.lists(st.sampled_from("abc"), max_size=5), min_size=2, max_size=5))
    def test_flips_are_the_ranks_that_both_tables_hold_and_name_otherwise(self, names: list[list[str]]) -> None:
        builder = LogBuilder()
        for _ in names:
            builder.event("noop")
        tables = [[(rank, "step", name, None) for rank, name in enumerate(row)] for row in names]
        wanted = [
            (length, rank)
            for length, (before, after) in enumerate(pairwise(names), start=1)
            for rank, (was, now) in enumerate(zip(before, after, strict=False))
            if was != now
        ]
        assert [(flip.before, flip.rank) for flip in rebound(tables, builder).flips] == wanted


def count(number: int) -> str:
    return f"{number:026d}"


class TestIds:
    """A flip is one id that means two calls; where ids follow the ranks that is one rank that does."""

    def test_ids_of_one_sequence_are_compared_by_rank_although_the_kind_is_in_front_of_them(self) -> None:
        base = ids.ordinal("01KE0000000000000000000000")
        was = [(rank, "step", "a", [], f"step_{ids.body_of(base + rank)}") for rank in range(3)]
        now = [*was[:2], (2, "wait", None, 10, f"wait_{ids.body_of(base + 2)}")]
        (flip,) = rebound([was[:1], was, now]).flips
        assert (flip.rank, flip.was, flip.now, flip.id) == (2, "step:a", "wait", None)

    def test_a_rank_that_goes_to_another_id_is_no_flip_where_ids_are_counted_by_kind(self) -> None:
        was = [(0, "step", "a", [], f"step_{count(1)}"), (1, "step", "b", [], f"step_{count(2)}")]
        now = [was[0], (1, "wait", None, 10, f"wait_{count(1)}"), (2, "step", "b", [], f"step_{count(2)}")]
        assert rebound([was[:1], was, now]).flips == ()

    def test_an_id_that_goes_to_another_call_is_one_wherever_it_was_drawn(self) -> None:
        was = [(0, "step", "a", [], f"step_{count(1)}"), (1, "step", "b", [], f"step_{count(2)}")]
        now = [(0, "wait", None, 10, f"wait_{count(1)}"), (1, "step", "b", [], f"step_{count(1)}")]
        found = rebound([was[:1], was, now])
        (flip,) = found.flips
        assert (flip.rank, flip.was, flip.now, flip.id) == (0, "step:a", "step:b", f"step_{count(1)}")

    def test_two_calls_that_changed_places_kept_their_ids(self) -> None:
        first, second = ("step_01KE0000007FY3Z5MWVX8KQ1GA", "step_01KE0000003M4W2QHZZ0B6TXRC")
        was = [(0, "step", "a", [], first), (1, "step", "b", [], second)]
        now = [(0, "step", "b", [], second), (1, "step", "a", [], first)]
        assert rebound([was[:1], was, now]).flips == ()

    def test_ids_that_changed_places_under_the_same_calls_are_two_flips(self) -> None:
        first, second = ("step_01KE0000007FY3Z5MWVX8KQ1GA", "step_01KE0000003M4W2QHZZ0B6TXRC")
        was = [(0, "step", "a", [], first), (1, "step", "b", [], second)]
        now = [(0, "step", "a", [], second), (1, "step", "b", [], first)]
        found = rebound([was[:1], was, now]).flips
        assert [(flip.id, flip.was, flip.now) for flip in found] == [
            (first, "step:a", "step:b"),
            (second, "step:b", "step:a"),
        ]

    def test_the_finding_names_the_id(self) -> None:
        one = f"step_{count(1)}"
        tables = [[], [(0, "step", "a", [], one)], [(0, "step", "b", [], one)]]
        capture = three().capture()
        (fault,) = faults(capture, rebound(tables))
        assert isinstance(fault, Fault)
        assert fault.message == f"under scripted, id {one} is step:a up to 2 and step:b from 3 on"

    @given(st.lists(st.lists(st.sampled_from("abc"), max_size=6), min_size=2, max_size=4))
    def test_ids_by_call_site_never_flip(self, calls: list[list[str]]) -> None:
        builder = LogBuilder()
        tables = []
        for row in calls:
            builder.event("noop")
            made = [f"step_{name}{row[:rank].count(name):025d}" for rank, name in enumerate(row)]
            tables.append([(rank, "step", name, [], id) for rank, (name, id) in enumerate(zip(row, made, strict=True))])
        assert rebound(tables, builder).flips == ()


class TestDivergence:
    def test_the_first_one_ends_the_clean_prefixes(self) -> None:
        found = rebound([[], [HOOK], [HOOK, A]], diverges={2: "no place for it", 3: "nor for this"})
        assert found.clean_through == 1
        assert found.divergence is not None
        assert (found.divergence.prefix, found.divergence.position, found.divergence.rank) == (2, 2, 0)
        assert found.divergence.text == "no place for it"

    def test_later_clean_prefixes_do_not_count(self) -> None:
        assert rebound([[], [], []], diverges={2: "x"}).clean_through == 1

    def test_when_the_very_first_diverges_nothing_is_clean(self) -> None:
        assert rebound([[], [], []], diverges={1: "x"}).clean_through is None

    def test_flips_behind_a_divergence_are_still_seen(self) -> None:
        assert len(rebound([[A], [A], [B]], diverges={1: "x"}).flips) == 1


class TestPasses:
    """The engine is asked once, and nothing of it runs on afterwards."""

    def test_the_engine_is_asked_for_all_prefixes_at_once(self) -> None:
        asked = []

        class Asked(Scripted):
            def passes(self, log: EventLog, prefixes: Iterable[int], **how: Any) -> Iterator[Pass]:
                asked.append(list(prefixes))
                return super().passes(log, asked[-1], **how)

        rebinding(three().log(), Asked([[], [HOOK], [HOOK, A]]), iter([1, 2, 3]))
        assert asked == [[1, 2, 3]]

    def test_its_passes_are_closed_when_the_sweep_breaks_off(self) -> None:
        closed = []

        class Closed(Scripted):
            def passes(self, log: EventLog, prefixes: Iterable[int], **how: Any) -> Iterator[Pass]:
                try:
                    yield from super().passes(log, prefixes, **how)
                finally:
                    closed.append(True)

        def stop(length: int, _replay: Pass) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            rebinding(three().log(), Closed([[], [], []]), [1, 2, 3], observer=stop)
        assert closed == [True]

    @pytest.mark.parametrize("jobs", [1, 3])
    def test_an_engine_that_can_use_several_processes_is_told_how_many(self, jobs: int) -> None:
        engine = Scripted([[], [HOOK], [HOOK, A]])
        engine.jobs = 0  # type: ignore[attr-defined]
        plan = SweepPlan(workload="step-storm", engines=("scripted",), open=lambda *_: engine, jobs=jobs)
        sweep_log(three().capture(), plan)
        assert engine.jobs == jobs  # type: ignore[attr-defined]


class TestReport:
    """The sweep as part of a log's report."""

    def report(self, engine: object, **how: Any) -> Any:
        def opened(_name: str, _workload: Workload, _input: Any) -> Any:
            return engine

        capture = three().capture()
        return sweep_log(capture, SweepPlan(workload="step-storm", engines=("scripted",), open=opened, **how))

    def result(self, engine: object, **how: Any) -> Any:
        return self.report(engine, **how).sweeps[-1]

    def test_a_flip_is_fatal_and_shows_both_bindings_and_the_event_between(self) -> None:
        result = self.result(Scripted([[HOOK], [HOOK, A], [HOOK, B]]))
        (finding,) = result.findings
        assert result.verdict is Verdict.VIOLATED
        assert finding.positions == (3,)
        assert finding.witness == (
            "prefix 2: rank 1 is step:a",
            "3 step_created rank 1 step:a (the event that flips it)",
            "prefix 3: rank 1 is step:b",
        )
        assert finding.key == "rebinding/flip/scripted/1/step:a/step:b"

    def test_a_divergence_is_fatal_and_shows_its_event(self) -> None:
        (finding,) = self.result(Scripted([[], [], []], diverges={3: "it says b"})).findings
        assert finding.witness == ("3 step_created rank 1 step:a", "replayed from prefix 3: it says b")

    def test_an_engine_that_does_not_tell_its_draws_leaves_it_unknown(self) -> None:
        result = self.result(Scripted([None, None, None]))
        assert (result.verdict, result.missing) == (
            Verdict.UNKNOWN,
            ("the draws of scripted, which this engine does not tell",),
        )

    def test_an_engine_that_breaks_leaves_it_unknown(self) -> None:
        report = self.report(Scripted([]))
        assert report.sweeps[-1].verdict is Verdict.UNKNOWN
        assert "IndexError" in report.sweeps[-1].missing[0]
        assert report.rebinding == ()

    def test_a_range_without_prefixes_leaves_it_unknown(self) -> None:
        result = self.result(Scripted([]), prefixes=PrefixRange(first=90))
        assert result.missing == ("a prefix in the given range",)

    def test_without_engines_it_is_not_part_of_the_report(self) -> None:
        report = sweep_log(three().capture(), SweepPlan(workload="step-storm"))
        assert "rebinding" not in [result.sweep for result in report.sweeps]


class TestRanges:
    @pytest.mark.parametrize(
        ("text", "lengths"),
        [
            ("all", [1, 2, 3]),
            ("2:3", [2, 3]),
            ("2:", [2, 3]),
            (":2", [1, 2]),
            ("3:3", [3]),
            ("9:", []),
            ("0:9", [1, 2, 3]),
        ],
    )
    def test_ends_are_included_and_named_by_position(self, text: str, lengths: list[int]) -> None:
        assert list(PrefixRange.parse(text).lengths(three().log())) == lengths

    def test_positions_name_prefixes_also_where_a_log_starts_late(self) -> None:
        log = three().edited(lambda events: events.__delitem__(0)).log()
        assert list(PrefixRange.parse("3:3").lengths(log)) == [2]

    @pytest.mark.parametrize("text", ["", ":", "a:b", "3", "5:2", "-1:4", "1:2:3", "１:2"])
    def test_anything_else_is_refused_with_a_remedy(self, text: str) -> None:
        with pytest.raises(UsageError) as refused:
            PrefixRange.parse(text)
        assert refused.value.remedy


class TestDecisions:
    """The prefixes at which a binding can change are fewer than all, and enough."""

    @pytest.mark.parametrize("engine", ["nets", "opposite"])
    @pytest.mark.parametrize("path", sorted(STORMS.glob("*.ndjson")), ids=lambda path: path.stem)
    def test_they_find_what_all_prefixes_find(self, path: Path, engine: str) -> None:
        (capture,) = open_captures([path])
        assert isinstance(capture, Capture)
        every, some = (
            sweep_log(capture, SweepPlan(engines=(engine,), prefixes=PrefixRange.parse(text))).rebinding[0]
            for text in ("all", "decisions")
        )
        assert some.prefixes < 0.7 * every.prefixes
        assert told(some) == told(every)

    def test_one_of_the_storms_flips(self) -> None:
        (capture,) = open_captures([STORMS / "step-storm-flips.ndjson"])
        assert isinstance(capture, Capture)
        plan = SweepPlan(engines=("nets",), prefixes=PrefixRange.parse("decisions"))
        assert len(sweep_log(capture, plan).rebinding[0].flips) == 4


def told(found: Rebinding) -> object:
    """What a report says, without how far before a flip the last prefix was."""
    flips = [(flip.after, flip.rank, flip.was, flip.now) for flip in found.flips]
    return flips, found.swaps, found.divergence and found.divergence.index, found.failure, found.answer


class Asking(Scripted):
    """An engine whose passes ask for the same steps, by name and input, from whatever prefix."""

    def __init__(self, *calls: tuple[str, Any]) -> None:
        super().__init__([])
        self._calls = calls

    def passes(self, log: EventLog, prefixes: Iterable[int], **_how: Any) -> Iterator[Pass]:
        ids = {event.name: event.correlation_id or "" for event in log if event.type == "step_created"}
        asked = tuple(
            Pending(rank, "step", ids[name], name, [input], False, Create.EAGER)
            for rank, (name, input) in enumerate(self._calls)
        )
        for length in prefixes:
            yield Pass(length, Outcome.SUSPENDED, (), pending=asked)


class TestSwaps:
    """Creates with another input than a replay of all before them asks for."""

    TWO = LogBuilder().run_created().step_created(0, "a", 0).step_created(1, "b", 1)

    @pytest.mark.parametrize("lengths", [[1, 4], [1, 2, 3, 4]])
    def test_every_create_up_to_the_next_prefix_is_compared(self, lengths: list[int]) -> None:
        log = LogBuilder().run_created().step_created(0, "a", 0).step_created(1, "b", 1).step_created(2, "c", 2).log()
        (found,) = rebinding(log, Asking(("a", 0), ("b", 9), ("c", 2)), lengths).swaps
        assert (found.index, found.label) == (2, "step:b")

    def test_behind_an_event_that_gives_something_the_workflow_may_ask_for_other_things(self) -> None:
        log = LogBuilder().run_created().step_created(0, "a", 0).step_completed(0).step_created(1, "b", 1).log()
        assert rebinding(log, Asking(("a", 0), ("b", 9)), [1, 4]).swaps == ()

    def test_equal_inputs_are_none(self) -> None:
        assert rebinding(self.TWO.log(), Asking(("a", 0), ("b", 1)), [1, 3]).swaps == ()

    def test_where_no_input_agrees_they_may_be_encoded_otherwise(self) -> None:
        assert rebinding(self.TWO.log(), Asking(("a", 5), ("b", 6)), [1, 3]).swaps == ()


@pytest.mark.parametrize("engine", ["nets", "dispenser"])
def test_a_run_without_a_fault_binds_the_same_from_every_prefix(storm: LogBuilder, engine: str) -> None:
    report = sweep_log(storm.capture(), SweepPlan(engines=(engine,)))
    (found,) = report.rebinding
    assert (found.prefixes, found.clean_through, found.flips) == (len(storm.events), len(storm.events), ())
    assert report.verdict is Verdict.CLEAN


def test_a_create_that_carries_another_name_diverges(storm: LogBuilder) -> None:
    place = next(at for at, event in enumerate(storm.events, 1) if event.name == "finalizeStep")
    broken = storm.changed(place, name="releaseStep")
    (found,) = sweep_log(broken.capture(), SweepPlan(engines=("dispenser",))).rebinding
    assert found.divergence is not None
    assert (found.divergence.position, found.clean_through) == (place, place - 1)
