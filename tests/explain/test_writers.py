"""Which prefix each create was written from, told by replaying them all."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormctl.engine.door import Create, Pass
from stormctl.engine.engines import engine_for
from stormctl.engine.replay import ReplayEngine
from stormctl.errors import UsageError
from stormctl.explain import Standing, reconstruct, reconstruct_by_generation
from stormctl.explain.creates import creates_of
from stormctl.explain.writers import Reconstruction
from stormctl.history import Capture, EventLog, Inline, Sealed, kinds
from stormctl.readers.open import open_file
from stormctl.testing import LogBuilder, run_serially
from stormctl.workloads.registry import WORKLOADS, workload
from tests.explain.overlap import Overlap
from tests.replayed import Once

NAME = "wrun-41KZYJ92TP-storm-log.json"


def storm(generation: str, name: str = "step-storm", **given: Any) -> ReplayEngine:
    code = workload(name)
    return engine_for(generation, code, code.parse_input(given))


def opened() -> LogBuilder:
    return LogBuilder().run_created("small").run_started()


class Spy:
    """An engine that counts what is asked of it."""

    def __init__(self, engine: ReplayEngine) -> None:
        self.name = engine.name
        self.workload = engine.workload
        self.asked: list[list[int]] = []
        self._engine = engine

    def passes(self, log: EventLog, prefixes: Iterable[int], **more: Any) -> Iterator[Pass]:
        lengths = list(prefixes)
        self.asked.append(lengths)
        return self._engine.passes(log, lengths, **more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


class TestTheRealLog:
    @pytest.fixture(scope="class")
    def log(self, shared_data: Path) -> EventLog:
        path = shared_data / NAME
        if not path.is_file():
            pytest.skip(f"{NAME} is not beside this clone")
        (capture,) = open_file(path)
        assert isinstance(capture, Capture)
        return capture.log

    def test_has_204_step_and_wait_creates_of_which_76_are_pairs(self, log: EventLog) -> None:
        footprints = [create.footprint for create in creates_of(log)]
        assert {kind: footprints.count(kind) for kind in set(footprints)} == {
            Create.LAZY: 76,
            Create.EAGER: 84,
            Create.WAIT: 44,
            Create.HOOK: 1,
        }

    @pytest.fixture(scope="class")
    def ranked(self, log: EventLog, replayed_once: Once) -> list[Reconstruction]:
        with replayed_once():
            return list(reconstruct_by_generation(log, [storm(name) for name in ("dispenser", "nets")]))

    def test_nets_explain_every_create_and_nothing_else_does(self, ranked: list[Reconstruction]) -> None:
        best, *others = ranked
        assert (best.engine, best.explained, len(best.counted()), best.unexplained) == ("nets", 204, 204, ())
        assert all(origin.standing is Standing.EXPLAINED for origin in best.origins), "in the right class, every one"
        for other in others:
            assert other.explained == 203
            (left,) = other.unexplained
            assert (left.create.place, left.create.rank, left.create.label) == (631, 199, "step:finalizeStep")

    def test_the_two_writers_had_read_what_upstream_says(self, log: EventLog, ranked: list[Reconstruction]) -> None:
        found = ranked[0]
        by_place = {origin.create.place: origin for origin in found.origins}

        def named(place: int) -> set[int]:
            return {log.name_of_prefix(length) for length in by_place[place].prefixes}

        assert 610 in named(630)
        assert 612 not in named(630)
        assert by_place[630].staleness(log) == 19
        assert {623, 624} <= named(631)
        assert 610 not in named(631)
        assert [(flip.before, flip.after, flip.rank) for flip in found.flips] == [(611, 612, 198)]


class TestTheWalk:
    def test_asks_for_each_prefix_once(self) -> None:
        log = run_serially(workload("step-storm"), workload("step-storm").input_type(rounds=1, width=2)).log()
        spy = Spy(storm("registered", rounds=1, width=2))
        reconstruct(log, spy)  # type: ignore[arg-type]
        assert spy.asked == [list(range(len(log) + 1))]

    def test_stops_where_the_time_is_up_and_judges_nothing_behind(self) -> None:
        log = run_serially(workload("step-storm"), workload("step-storm").input_type(rounds=1, width=2)).log()
        ticks = iter(range(1000))
        found = reconstruct(log, storm("registered", rounds=1, width=2), seconds=8, clock=lambda: float(next(ticks)))
        assert found.cut == "the time of 8 s was up"
        assert found.replayed < len(log)
        late = [origin for origin in found.origins if origin.create.index >= found.replayed]
        assert late
        assert {origin.standing for origin in late} <= {Standing.UNJUDGED, Standing.EXPLAINED, Standing.OTHER_CLASS}
        assert found.unexplained == ()

    @pytest.mark.parametrize(
        ("error", "said"),
        [
            (UsageError("the input is gone", remedy="Give one."), "the input is gone. Give one."),
            (ValueError("no \x1b such"), "the replay failed: ValueError: no \\x1b such"),
        ],
    )
    def test_an_engine_that_fails_ends_it_and_says_why(self, error: Exception, said: str) -> None:
        class Broken(Spy):
            def passes(self, log: EventLog, prefixes: Iterable[int], **more: Any) -> Iterator[Pass]:
                yield from super().passes(log, list(prefixes)[:3], **more)
                raise error

        log = opened().step(0, "a").step(1, "b").log()
        found = reconstruct(log, Broken(storm("registered")))  # type: ignore[arg-type]
        assert (found.cut, found.replayed) == (said, 3)

    def test_many_prefixes_that_diverge_alike_end_it_and_every_create_is_still_judged(self) -> None:
        code = workload("step-storm")
        built = run_serially(code, code.input_type(rounds=2, width=3))
        place = next(at for at, event in enumerate(built.events, 1) if event.name == "releaseStep")
        log = built.changed(place, name="recoverStep").log()
        found = reconstruct(log, storm("registered", rounds=2, width=3))
        assert found.cut is None
        assert found.replayed < len(log)
        assert {origin.standing for origin in found.origins} <= {
            Standing.EXPLAINED,
            Standing.OTHER_CLASS,
            Standing.UNEXPLAINED,
        }
        assert found.unexplained[0].create.place == place


class TestStandings:
    async def body(self, wf: Any, _input: Any) -> None:
        await wf.all([wf.step("charge", index) for index in range(5)])

    def engine(self) -> ReplayEngine:
        from stormctl.engine.generations import generation

        return ReplayEngine(self.body, None, generation("registered"), workload="small")

    def standings(self, builder: LogBuilder) -> list[Standing]:
        return [origin.standing for origin in reconstruct(builder.log(), self.engine()).origins]

    def test_a_pair_is_lazy_and_a_lone_create_eager(self) -> None:
        log = opened().step_created(0, "charge", 0).step_started(0)
        log.step_created(3, "charge", 3).step_created(4, "charge", 4)
        assert self.standings(log) == [Standing.EXPLAINED] * 3

    def test_a_step_written_in_the_other_way_is_told_apart(self) -> None:
        log = opened().step_created(0, "charge", 0).step_created(3, "charge", 3)
        assert self.standings(log) == [Standing.OTHER_CLASS, Standing.EXPLAINED]

    def test_another_input_is_not_the_same_call(self) -> None:
        log = opened().step_created(3, "charge", 3).step_created(4, "charge", 7)
        found = reconstruct(log.log(), self.engine())
        assert [origin.standing for origin in found.origins] == [Standing.EXPLAINED, Standing.OTHER_INPUT]
        assert [origin.create.rank for origin in found.unexplained] == [4]

    def test_inputs_of_another_encoding_are_not_compared(self) -> None:
        log = opened().step_created(3, "charge", "[1,3]").step_created(4, "charge", "[1,4]")
        found = reconstruct(log.log(), self.engine())
        assert [origin.standing for origin in found.origins] == [Standing.EXPLAINED] * 2
        assert found.compared == frozenset()

    def test_an_input_that_hangs_on_a_result_which_the_log_lacks_is_not_compared(self) -> None:
        async def body(wf: Any, _input: Any) -> None:
            shelf = await wf.step("reserve", "book")
            await wf.step("pack", shelf)

        from stormctl.engine.generations import generation

        log = opened().step_created(0, "reserve", "book").step_started(0).step_completed(0, "shelf 3")
        log.step_created(1, "pack", "shelf 3")
        engine = ReplayEngine(body, None, generation("registered"), workload="small")
        whole = reconstruct(log.log(), engine)
        assert whole.compared == {"reserve", "pack"}
        lacking = reconstruct(log.changed(5, payload=Sealed("0" * 16)).log(), engine)
        assert lacking.compared == {"reserve"}
        assert lacking.unexplained == ()
        wrong = reconstruct(log.changed(6, payload=Inline(["shelf 4"])).log(), engine)
        assert [origin.standing for origin in wrong.unexplained] == [Standing.OTHER_INPUT]

    def test_another_name_or_a_rank_too_many_is_unexplained(self) -> None:
        log = opened().step_created(3, "refund", 3).step_created(9, "charge", 4)
        assert self.standings(log) == [Standing.UNEXPLAINED] * 2

    def test_hooks_are_explained_too_and_counted_apart(self) -> None:
        log = run_serially(workload("hook-storm"), workload("hook-storm").input_type(rounds=1, width=2)).log()
        found = reconstruct(log, storm("registered", "hook-storm", rounds=1, width=2))
        hooks = [origin for origin in found.origins if origin.create.kind == kinds.HOOK]
        assert len(hooks) == 2
        assert all(origin.standing is Standing.EXPLAINED for origin in hooks)
        assert len(found.counted()) == len(found.origins) - 2


# -- any interleaving of writers ---------------------------------------------------------------------------------------


def interleaved(seed: int, generation: str, events: int = 70) -> tuple[Overlap, Any]:
    """A small step-storm whose log several writers wrote, each from a prefix that may be far behind.

    Facts come in any order that the lifecycle permits. Only an eager step is never started directly behind its create:
    that footprint is the one of a lazy step.
    """
    chance = random.Random(seed)
    code = WORKLOADS["step-storm"]
    given = code.input_type(token="t", rounds=2, width=chance.randint(1, 4))
    made = Overlap(code.body, LogBuilder().run_created(code.name).run_started(), generation, input=given)
    queued: list[tuple[Pass, list[int]]] = []
    done: set[tuple[str, int]] = set()
    started: dict[int, int] = {}
    while made.length < events:
        if not queued or chance.random() < 0.2:
            replay = made.read(max(0, made.length - chance.choice([0, 0, 0, 1, 2, 3, 5])))
            if replay.divergence is not None:
                break
            queued.append((replay, [item.rank for item in replay.pending if item.create is not None]))
        if chance.random() < 0.6:
            replay, ranks = chance.choice(queued)
            if ranks:
                made.write(replay, ranks=[ranks.pop(chance.randrange(len(ranks)))])
        else:
            _fact(made, chance, done, started)
        queued = [one for one in queued if one[1]][-3:]
        for event in made.builder.events:
            rank = made.log().rank(event)
            if event.type == kinds.STEP_STARTED and rank is not None:
                started.setdefault(rank, 1)
        if made.read().outcome.value == "completed":
            break
    return made, given


def _fact(made: Overlap, chance: random.Random, done: set[tuple[str, int]], started: dict[int, int]) -> None:
    events, log = made.builder.events, made.log()
    options: list[tuple[str, int]] = []
    for index, event in enumerate(events):
        rank = log.rank(event)
        if rank is None:
            continue
        if event.type == kinds.WAIT_CREATED and ("wait", rank) not in done:
            options.append(("wait", rank))
        elif event.type == kinds.STEP_CREATED and ("step", rank) not in done:
            if rank in started or index < len(events) - 1:
                options.append(("step", rank))
        elif event.type == kinds.HOOK_CREATED and ("poke", rank) not in done:
            options.append(("hook", rank))
    if not options:
        return
    kind, rank = chance.choice(options)
    if kind == "wait":
        done.add((kind, rank))
        made.builder.wait_completed(rank)
    elif kind == "hook":
        made.builder.hook_received(rank)
    elif rank in started:
        done.add((kind, rank))
        made.builder.step_completed(rank)
    else:
        started[rank] = 1
        made.builder.step_started(rank)


@settings(max_examples=8)
@given(st.integers(0, 1 << 32), st.sampled_from(["nets", "dispenser", "registered"]))
def test_the_prefix_that_a_create_was_written_from_is_among_those_that_explain_it(seed: int, generation: str) -> None:
    made, given_ = interleaved(seed, generation)
    code = WORKLOADS["step-storm"]
    found = reconstruct(made.log(), engine_for(generation, code, given_))
    for origin in found.origins:
        if origin.create.index in made.truth:
            assert made.truth[origin.create.index] in origin.prefixes
            assert origin.standing is Standing.EXPLAINED
