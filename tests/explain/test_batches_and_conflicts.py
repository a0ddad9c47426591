"""Creates grouped by writer, measured against logs whose writers are known, and what two writers disagree in."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormctl.engine.engines import engine_for
from stormctl.engine.generations import generation
from stormctl.engine.replay import ReplayEngine
from stormctl.explain import batches_of, reconstruct
from stormctl.explain.conflicts import Clash, conflicts_of
from stormctl.explain.hidden import asks_for, leave_one_out
from stormctl.explain.known import known_writers, snapshots_shared
from stormctl.explain.writers import Reconstruction
from stormctl.history import Capture, EventLog, Evidence
from stormctl.readers.open import open_captures
from stormctl.testing import LogBuilder
from stormctl.workloads.registry import workload
from tests.explain.overlap import Overlap
from tests.explain.seeded import around_the_flip, busy
from tests.replayed import Once
from tests.storm.stage import Latency, storm

NAME = "wrun-41KZYJ92TP-storm-log.json"


def opened() -> LogBuilder:
    return LogBuilder().run_created("small").run_started()


@pytest.fixture(scope="module")
def real(shared_data: Path) -> EventLog:
    path = shared_data / NAME
    if not path.is_file():
        pytest.skip(f"{NAME} is not beside this clone")
    (capture,) = open_captures([path])
    assert isinstance(capture, Capture)
    return capture.log


class TestTheRealLog:
    @pytest.fixture(scope="class")
    def storm_engine(self) -> ReplayEngine:
        code = workload("step-storm")
        return engine_for("nets", code, code.parse_input({}))

    @pytest.fixture(scope="class")
    def origins(self, real: EventLog, storm_engine: ReplayEngine, replayed_once: Once) -> Reconstruction:
        with replayed_once():
            return reconstruct(real, storm_engine)

    def test_batches_are_those_that_upstream_found(self, real: EventLog, origins: Reconstruction) -> None:
        found = batches_of(real, origins)
        written = {tuple(create.place for create in batch.creates): batch for batch in found}

        def prefixes(*places: int) -> list[int]:
            return [real.name_of_prefix(length) for length in written[places].prefixes]

        assert 605 in prefixes(606, 607, 608, 609, 615, 617)
        assert prefixes(625, 626, 627, 628, 629, 631, 633) == [623, 624]
        assert prefixes(630) == [610, 611]
        assert [create.place for create in written[(630,)].also] == [633], "197 can be either's"

    def test_the_two_writers_gave_one_call_two_ranks(
        self, real: EventLog, storm_engine: ReplayEngine, origins: Reconstruction
    ) -> None:
        conflicts = conflicts_of(real, storm_engine, origins, batches_of(real, origins))
        by_clash = {one.clash: one for one in conflicts}
        assert [create.place for create in by_clash[Clash.CALL].creates] == [630, 631]
        rank = by_clash[Clash.RANK]
        assert (rank.one.rank, rank.one.label, rank.other.label) == (198, "step:finalizeStep", "step:releaseStep")
        assert by_clash[Clash.INPUT].one.rank == 197
        assert len(conflicts) == 3


class TestAWholeStormWhoseWritersAreKnown:
    """The audit of a storm on a store with dense positions is the truth: a snapshot there is a prefix."""

    @pytest.fixture(scope="class", params=[1, 2, 3])
    def captured(self, request: pytest.FixtureRequest) -> Capture:
        seen = storm(
            "step-storm",
            "seq-final",
            "nets",
            seed=request.param,
            cap_s=60,
            latency=Latency(median_ms=40),
            rounds=2,
            width=4,
            step_delay_ms=1800.0,
            jitter_buckets=7,
            poke_interval_ms=150.0,
        )
        return Capture("storm", seen.log, Evidence("storm"), run=seen.row, audit=tuple(seen.audit))

    def engine(self, captured: Capture) -> ReplayEngine:
        assert captured.run is not None
        code = workload("step-storm")
        return engine_for("nets", code, code.parse_input(captured.run.input))

    def test_every_true_prefix_is_among_those_that_explain(self, captured: Capture) -> None:
        found = reconstruct(captured.log, self.engine(captured))
        known = known_writers(captured)
        assert len(known) >= len(found.counted()), "the audit knows them all"
        for index, writer in known.items():
            origin = found.origin_at(index)
            assert origin is not None
            assert origin.explained, origin
            assert writer.length in origin.prefixes or writer.length in origin.alike

    def test_batches_mix_two_writers_only_where_both_ask_alike(self, captured: Capture) -> None:
        known = known_writers(captured)
        batches = batches_of(captured.log, reconstruct(captured.log, self.engine(captured)))
        found = reconstruct(captured.log, self.engine(captured))
        right = total = 0
        for batch in batches:
            writers = Counter(known[create.index].writer for create in batch.creates if create.index in known)
            right += max(writers.values(), default=0)
            total += sum(writers.values())
            for create in batch.creates:
                origin = found.origin_at(create.index)
                assert origin is not None
                assert batch.length in origin.prefixes, "the batch's prefix asks for every create of it"
        assert right >= 0.75 * total, f"{right} of {total} creates lie with the writer of most of their batch"


class TestTheAuditOfAStoreWithoutPositions:
    @pytest.fixture(scope="class")
    def captured(self, root: Path) -> Capture:
        (capture,) = open_captures([root / "fixtures" / "storms" / "logs" / "hook-storm-corrupted.ndjson"])
        assert isinstance(capture, Capture)
        return capture

    def test_gives_views_with_holes_that_ask_for_what_was_written(self, captured: Capture) -> None:
        assert captured.run is not None
        code = workload("hook-storm")
        engine = engine_for("nets", code, code.parse_input(captured.run.input))
        known = known_writers(captured)
        assert len(known) == 30
        assert any(one.hidden for one in known.values())
        wrong = []
        for one in known.values():
            assert one.length is not None
            (replay,) = engine.passes(captured.log, (one.length,), hidden=frozenset(one.hidden))
            if not asks_for(replay, one.create):
                wrong.append(one.create.place)
        assert wrong == [39, 40], "one writer's cursor had skipped an event, which its count cannot tell"

    def test_leaving_one_event_out_finds_what_that_writer_had_skipped(self, captured: Capture) -> None:
        assert captured.run is not None
        code = workload("hook-storm")
        engine = engine_for("nets", code, code.parse_input(captured.run.input))
        found = reconstruct(captured.log, engine)
        views = [leave_one_out(captured.log, engine, origin.create).view for origin in found.unexplained]
        assert [view and view.hidden for view in views] == [(23,), (23,)]

    def test_knows_which_writers_shared_a_snapshot(self, captured: Capture) -> None:
        shared = snapshots_shared(known_writers(captured).values())
        assert {len(writers) for writers in shared.values()} == {2}
        assert 29 in shared


class TestLeaveOneOut:
    async def body(self, wf: object, _input: object) -> None:
        async def branch(index: int) -> None:
            await wf.step("work", index)  # type: ignore[attr-defined]
            await wf.step("after", index)  # type: ignore[attr-defined]

        await wf.all([branch(index) for index in range(4)])  # type: ignore[attr-defined]

    def log(self) -> LogBuilder:
        built = opened()
        for index in range(4):
            built.step_created(index, "work", index).step_started(index)
        for index in range(4):
            built.step_completed(index)
        return built

    @given(st.integers(0, 2))
    @settings(max_examples=10)
    def test_finds_the_event_that_was_hidden_from_its_writer(self, lost: int) -> None:
        made = Overlap(self.body, self.log(), "registered")
        hidden = 10 + lost
        made.write(made.read(hidden=[hidden]), ranks=[4 + lost], hidden=[hidden])
        engine = ReplayEngine(self.body, None, generation("registered"))
        found = reconstruct(made.log(), engine)
        (origin,) = [one for one in found.unexplained if one.create.rank == 4 + lost]
        search = leave_one_out(made.log(), engine, origin.create)
        assert search.view is not None
        (missing,) = search.view.hidden
        assert 10 <= missing <= hidden, "any of the earlier ones shifts the later branches alike"

    def test_tries_what_is_known_to_be_late_first(self) -> None:
        made = Overlap(self.body, self.log(), "registered")
        made.write(made.read(hidden=[10]), ranks=[4], hidden=[10])
        engine = ReplayEngine(self.body, None, generation("registered"))
        (origin,) = reconstruct(made.log(), engine).unexplained
        search = leave_one_out(made.log(), engine, origin.create, first=[10])
        assert search.view is not None
        assert (search.view.hidden, search.tried) == ((10,), 1)

    def test_finds_nothing_for_what_no_view_asks_for_and_says_how_far_it_looked(self) -> None:
        built = self.log().step_created(4, "stranger")
        engine = ReplayEngine(self.body, None, generation("registered"))
        (origin,) = reconstruct(built.log(), engine).unexplained
        search = leave_one_out(built.log(), engine, origin.create)
        assert (search.view, search.tried, search.facts) == (None, 4, 4)
        short = leave_one_out(built.log(), engine, origin.create, most=2)
        assert (short.view, short.tried) == (None, 2)


class TestConflicts:
    def test_two_writers_around_a_flip_clash_over_its_ranks(self) -> None:
        made = around_the_flip(42, "nets")
        engine = ReplayEngine(busy, None, generation("nets"))
        found = reconstruct(made.log(), engine)
        conflicts = conflicts_of(made.log(), engine, found, batches_of(made.log(), found))
        assert any(one.clash is not Clash.INPUT for one in conflicts)
        for one in conflicts:
            assert one.one.writer != one.other.writer
            assert one.stale.length <= one.fresh.length

    def test_two_writers_of_one_binding_do_not(self) -> None:
        built = TestLeaveOneOut().log()
        made = Overlap(TestLeaveOneOut().body, built, "registered")
        made.write(made.read(made.length - 1))
        made.write(made.read())
        engine = ReplayEngine(TestLeaveOneOut().body, None, generation("registered"))
        found = reconstruct(made.log(), engine)
        batches = batches_of(made.log(), found)
        assert len(batches) >= 2
        assert conflicts_of(made.log(), engine, found, batches) == ()
