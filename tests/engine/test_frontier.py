"""One walk for many prefixes says of each what a cold replay of that prefix says, in every field."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stormctl.engine import children, frontier
from stormctl.engine import replay as replaying
from stormctl.engine.door import AttributeHandling, Outcome, Pass, Perturbation
from stormctl.engine.engines import engine_for
from stormctl.engine.generations import GENERATIONS
from stormctl.engine.prepared import HIDDEN, Prepared
from stormctl.engine.replay import ReplayEngine
from stormctl.history import Capture, Event, EventLog
from stormctl.readers.open import open_captures, open_file
from stormctl.testing import RUN_ID
from stormctl.workloads.registry import WORKLOADS, workload
from tests.conftest import ROOT
from tests.engine.writing import Writer, engine, opened

ALL = pytest.mark.parametrize("generation", [*GENERATIONS, "nets[ids=per-kind]", "dispenser[clock=delivered]"])
SOME = pytest.mark.parametrize("generation", ["nets", "unarmed", "dispenser", "registered"])


@pytest.fixture(autouse=True)
def forks(monkeypatch: pytest.MonkeyPatch) -> list[children.Child]:
    """Every child that was forked. However short a prefix is, a process is forked for it."""
    made: list[children.Child] = []
    fork = children.fork

    def counted(*arguments: Any) -> children.Child | None:
        child = fork(*arguments)
        if child is not None:
            made.append(child)
        return child

    monkeypatch.setattr(children, "fork", counted)
    monkeypatch.setattr(replaying, "SHORT", 0)
    return made


def whole(one: Pass) -> dict[str, Any]:
    """Every field of a pass, those too that two passes need not agree in to be equal."""
    told = {field.name: getattr(one, field.name) for field in fields(one)}
    told["draws"] = [(draw.rank, draw.kind, draw.name, draw.arguments, draw.id) for draw in one.draws]
    return told


def cold(engine: ReplayEngine, log: EventLog, lengths: Sequence[int], **how: Any) -> list[Pass]:
    """The passes one by one: a single length is always replayed by itself."""
    return [next(iter(engine.passes(log, [length], **how))) for length in lengths]


def check(engine: ReplayEngine, log: EventLog, lengths: Sequence[int] | None = None, **how: Any) -> list[Pass]:
    """The shared walk against cold replays; the passes."""
    lengths = range(len(log) + 1) if lengths is None else lengths
    found = list(engine.passes(log, lengths, **how))
    for one, other in zip(found, cold(engine, log, lengths, **how), strict=True):
        assert whole(one) == whole(other)
    return found


def captures() -> Iterator[Capture]:
    for item in open_captures([ROOT / "fixtures" / "logs", ROOT / "fixtures" / "storms" / "logs"]):
        if isinstance(item, Capture) and (item.run is None or item.run.workload in (None, *WORKLOADS)):
            yield item


# -- made logs -------------------------------------------------------------------------------------------------------


async def a_branch(wf: Any, what: str, index: int) -> None:
    if what == "race":
        winner = await wf.race(wf.step("work", index).then(lambda _: "work"), wf.sleep(1000).then(lambda _: "watchdog"))
        await wf.step(f"after {winner}", index)
    elif what == "hook":
        hook = wf.hook(f"door {index}")
        await hook.registered()
        winner = await wf.race(hook.next().then(lambda _: "hook"), wf.sleep(1000).then(lambda _: "watchdog"))
        await wf.step(f"after {winner}", index)
        hook.dispose()
    elif what == "clock":
        await wf.step("look", index)
        await wf.step("late", wf.now())
        await wf.sleep(10)
    elif what == "sleeps":
        for number in range(3):
            await wf.step(f"step {number}", index)
            await wf.sleep(100 + number)
    elif what == "attributes":
        await wf.set_attributes({"at": str(index)})
        await wf.step("set", index)
    else:
        wf.hook(f"poke {index}")


def body_of(branches: list[str]) -> Any:
    async def body(wf: Any, _input: Any) -> list[str]:
        await wf.all([a_branch(wf, what, index) for index, what in enumerate(branches)])
        await wf.step("end")
        return branches

    return body


BRANCHES = st.lists(st.sampled_from(["race", "hook", "clock", "sleeps", "attributes", "poke"]), min_size=1, max_size=4)


def later(events: Iterable[Event]) -> EventLog:
    """The same events after the time in the run's id, so that each of them moves the clock."""
    moved = [changed(event, created_at=(event.created_at or 0) + 10**8) for event in events]
    return EventLog(moved, RUN_ID)


@st.composite
def runs(draw: Any, longest: int = 36) -> tuple[Any, EventLog]:
    """A body and a log of it: as a well-behaved writer left it, or with events moved, lost and written twice."""
    body = body_of(draw(BRANCHES))
    events = list(Writer(body, random.Random(draw(st.integers(0, 1 << 32))), longest=longest).write())
    for _ in range(draw(st.integers(0, 2))):
        how, at, to = draw(st.sampled_from(["move", "lose", "again"])), *draw(st.tuples(*[st.integers(2, 40)] * 2))
        if at < len(events):
            event = events[at]
            if how != "again":
                del events[at]
            if how != "lose":
                events.insert(to, event)
    return body, later(events) if draw(st.booleans()) else EventLog(events, RUN_ID)


class TestEveryPrefix:
    @ALL
    @settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(run=runs())
    def test_of_made_logs_and_of_damaged_ones(self, generation: str, run: tuple[Any, EventLog]) -> None:
        body, log = run
        check(engine(body, generation), log)

    @SOME
    @settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        run=runs(),
        hidden=st.frozensets(st.integers(0, 36), max_size=8),
        hops=st.integers(0, 9),
        jitter=st.integers(0, 4),
        seed=st.integers(0, 1 << 32),
        warm=st.integers(0, 20),
        grain=st.sampled_from([1.0, 4.0]),
        attributes=st.sampled_from(AttributeHandling),
    )
    def test_with_events_hidden_and_reading_perturbed(
        self, generation: str, run: tuple[Any, EventLog], hidden: frozenset[int], hops: int, jitter: int, **varied: Any
    ) -> None:
        body, log = run
        seed, warm, grain, attributes = varied.values()
        perturbation = Perturbation(hops, 0.5, jitter, seed, jitter, warm, grain, attributes)
        check(engine(body, generation), log, hidden=hidden, perturbation=perturbation)

    @pytest.mark.parametrize("generation", ["nets", "registered"])
    def test_of_the_fixtures(self, generation: str, forks: list[children.Child]) -> None:
        ended = set()
        for capture in captures():
            code = WORKLOADS[(capture.run.workload if capture.run else None) or "step-storm"]
            input = code.parse_input(capture.run.input if capture.run else {})
            lengths = range(max(0, len(capture.log) - 30), len(capture.log) + 1)
            ended |= {one.outcome for one in check(engine_for(generation, code, input), capture.log, lengths)}
        assert ended >= {Outcome.SUSPENDED, Outcome.COMPLETED, Outcome.DIVERGED}
        assert len(forks) > 50

    @pytest.mark.parametrize("generation", ["nets", "dispenser", "turnstile"])
    def test_of_the_production_log_where_something_happens(
        self, generation: str, shared_data: Path, forks: list[children.Child]
    ) -> None:
        path = shared_data / "wrun-41KZYJ92TP-storm-log.json"
        if not path.is_file():
            pytest.skip("the production log is not beside this clone")
        (capture,) = open_file(path)
        assert isinstance(capture, Capture)
        code = workload("step-storm")
        log = capture.log
        lengths = [*range(40, 60), *range(log.length_of_prefix(600), len(log) + 1)]
        found = check(engine_for(generation, code, code.parse_input({})), log, lengths)
        assert {one.outcome for one in found} == {Outcome.SUSPENDED, Outcome.DIVERGED}
        assert forks


async def reads_late(wf: Any, _input: Any) -> str:
    door = wf.hook("door")
    await wf.step("first")
    await wf.step("second")
    return str(await door.next())


async def two_steps(wf: Any, _input: Any) -> str:
    await wf.all([wf.step("a", 1), wf.step("b", 2)])
    return str(await wf.step("c"))


def a_run() -> EventLog:
    built = opened().step_created(0, "a", 1).step_started(0).step_created(1, "b", 2).step_started(1)
    built.step_completed(0, 1).step_completed(1, 2).step_created(2, "c").step_started(2).step_completed(2, "end")
    return built.run_completed("end").log()


class TestWhatEndsEarly:
    @SOME
    def test_events_set_aside(self, generation: str) -> None:
        built = opened().hook_created(0, "door").step_created(1, "first").step_started(1)
        built.hook_received(3, "to nobody").wait_completed(7).step_completed(1).step_created(2, "second")
        found = check(engine(reads_late, generation), built.step_started(2).step_completed(2).log())
        assert any(one.parked for one in found)

    @SOME
    def test_an_event_set_aside_under_one_that_ends_the_run(self, generation: str) -> None:
        built = opened().step_created(0, "a", 1).step_created(1, "b", 2).hook_received(9, "to nobody")
        built.step_completed(0).step_completed(1).step_created(2, "c").step_completed(2, "end").run_completed("end")
        found = check(engine(two_steps, generation), built.log())
        assert found[-1].divergence is not None
        assert found[-1].divergence.reason == "stranded"

    @SOME
    def test_a_run_that_ended(self, generation: str, forks: list[children.Child]) -> None:
        found = check(engine(two_steps, generation), a_run())
        assert found[-1].outcome is Outcome.COMPLETED
        assert [one.prefix for one in found] == list(range(len(a_run()) + 1))
        assert forks

    def test_behind_a_divergence_every_prefix_has_it_and_nothing_is_forked(self, forks: list[children.Child]) -> None:
        built = opened().step_created(0, "other").step_started(0)
        for _ in range(40):
            built.event("noop")
        found = check(engine(two_steps), built.log())
        assert {one.divergence and one.divergence.index for one in found[3:]} == {2}
        assert len(forks) < 5

    def test_a_prefix_longer_than_the_log_is_the_whole_log(self) -> None:
        found = check(engine(two_steps), a_run(), [3, 4, 20, 30])
        assert [one.prefix for one in found] == [3, 4, 20, 30]

    def test_the_empty_log_and_hidden_ends(self) -> None:
        log = a_run()
        check(engine(two_steps), log, hidden=frozenset(range(len(log))))
        check(engine(two_steps), log, hidden=frozenset({2, 3, 6, 7, 8, 9, 11}))


class TestOrder:
    @given(st.lists(st.integers(0, 14), max_size=8))
    @settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_passes_come_as_they_were_asked_for(self, lengths: list[int]) -> None:
        found = list(engine(two_steps).passes(a_run(), iter(lengths)))
        assert list(map(whole, found)) == list(map(whole, cold(engine(two_steps), a_run(), lengths)))

    def test_several_children_at_once_change_nothing(self, forks: list[children.Child]) -> None:
        log, maker = a_run(), engine(two_steps)
        one = list(maker.passes(log, range(len(log) + 1)))
        first = len(forks)
        maker.jobs = 3
        assert list(map(whole, maker.passes(log, range(len(log) + 1)))) == list(map(whole, one))
        assert len(forks) == 2 * first > 0

    def test_no_more_children_than_jobs_are_about(self, monkeypatch: pytest.MonkeyPatch) -> None:
        running: list[int] = []
        fork = children.fork

        def counted(work: Any, others: Any) -> children.Child | None:
            running.append(len(list(others)) + 1)
            return fork(work, others)

        monkeypatch.setattr(children, "fork", counted)
        maker = engine(two_steps)
        maker.jobs = 2
        assert len(list(maker.passes(a_run(), range(13)))) == 13
        assert max(running) == 2

    def test_runs_of_lengths(self) -> None:
        assert list(frontier.ascending([])) == []
        assert list(frontier.ascending([1, 1, 3, 2, 5, 4])) == [[1, 1, 3], [2, 5], [4]]

    @given(st.lists(st.booleans(), max_size=12), st.lists(st.integers(-1, 14), max_size=8).map(sorted))
    def test_a_prefix_ends_with_what_is_not_hidden(self, shown: list[bool], lengths: list[int]) -> None:
        other = Prepared(HIDDEN.event)
        prepared = [other if one else HIDDEN for one in shown]
        wanted = [len("".join("x" if one else " " for one in shown[: max(0, at)]).rstrip()) for at in lengths]
        assert frontier.ends(prepared, lengths) == wanted

    def test_a_draw_is_one_object_in_all_passes_that_saw_it(self) -> None:
        *_, before, after = engine(two_steps).passes(a_run(), range(13))
        assert all(map(lambda one, other: one is other, before.draws, after.draws))


def no_children_left(made: list[children.Child]) -> bool:
    """Whether none of these runs or waits to be reaped. Other tests of this process have children, too."""
    for child in made:
        try:
            os.waitpid(child.pid, os.WNOHANG)
        except ChildProcessError:
            continue
        return False
    return True


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


class TestChildren:
    @LINUX
    def test_nothing_is_left_of_them(self, forks: list[children.Child]) -> None:
        before = open_files()
        list(engine(two_steps).passes(a_run(), range(13)))
        assert open_files() == before
        assert no_children_left(forks)

    @LINUX
    def test_nothing_is_left_of_them_when_nobody_wants_the_rest(self, forks: list[children.Child]) -> None:
        before = open_files()
        maker = engine(two_steps)
        maker.jobs = 4
        passes = maker.passes(a_run(), range(13))
        next(passes)
        next(passes)
        passes.close()  # type: ignore[attr-defined]
        assert forks
        assert open_files() == before
        assert no_children_left(forks)

    def test_one_that_is_killed_is_replaced_by_a_cold_replay(
        self, monkeypatch: pytest.MonkeyPatch, forks: list[children.Child]
    ) -> None:
        mortal = frontier.SharedWalk._answer

        def answer(self: Any, asked: Any) -> bytes:
            if asked.frontiers[0].end % 3 == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return mortal(self, asked)

        monkeypatch.setattr(frontier.SharedWalk, "_answer", answer)
        check(engine(two_steps), a_run())
        assert forks
        assert no_children_left(forks)

    def test_when_all_of_them_die_no_more_are_made(
        self, monkeypatch: pytest.MonkeyPatch, forks: list[children.Child]
    ) -> None:
        built = opened()
        for rank in range(40):
            built.step_created(rank, "a", rank).step_completed(rank)

        async def body(wf: Any, _input: Any) -> None:
            for number in range(40):
                await wf.step("a", number)

        monkeypatch.setattr(frontier.SharedWalk, "_answer", lambda self, asked: os._exit(3))
        check(engine(body), built.log())
        assert len(forks) == frontier.MISSES

    def test_a_silent_one_is_killed_in_time(self, monkeypatch: pytest.MonkeyPatch, forks: list[children.Child]) -> None:
        monkeypatch.setattr(children, "PATIENCE_S", 0.2)
        monkeypatch.setattr(children, "_LOOK_MS", 50)
        child = children.fork(lambda: time.sleep(60) or b"")
        assert child is not None
        assert child.answer() is None
        assert no_children_left(forks)

    def test_one_that_dies_while_another_process_holds_its_pipe_is_missed(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(children, "_LOOK_MS", 50)
        pipe, held = os.pipe, []

        def leaking() -> tuple[int, int]:
            ours, theirs = pipe()
            held.append(os.dup(theirs))
            return ours, theirs

        monkeypatch.setattr(os, "pipe", leaking)
        child = children.fork(lambda: os.kill(os.getpid(), signal.SIGKILL) or b"")
        assert child is not None
        assert child.answer() is None
        os.close(*held)

    def test_a_long_answer_comes_whole(self) -> None:
        long = os.urandom(1 << 20)
        child = children.fork(lambda: long)
        assert child is not None
        assert child.answer() == long

    def test_an_interrupt_is_its_parents(self, capfd: pytest.CaptureFixture[str]) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            child = children.fork(lambda: time.sleep(0.1) or b"x")
            assert child is not None
            os.kill(child.pid, number)
            assert child.answer() == b"x"
        assert capfd.readouterr() == ("", "")

    def test_an_interrupted_sweep_leaves_none(
        self, monkeypatch: pytest.MonkeyPatch, forks: list[children.Child]
    ) -> None:
        mortal = frontier.SharedWalk._answer
        parent = os.getpid()

        def answer(self: Any, asked: Any) -> bytes:
            os.kill(parent, signal.SIGINT)
            time.sleep(60)
            return mortal(self, asked)

        monkeypatch.setattr(frontier.SharedWalk, "_answer", answer)
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
        try:
            with pytest.raises(KeyboardInterrupt):
                list(engine(two_steps).passes(a_run(), range(13)))
        finally:
            signal.signal(signal.SIGINT, before)
        assert no_children_left(forks)

    def test_it_prints_nothing_and_flushes_nothing(self, tmp_path: Path) -> None:
        path = tmp_path / "buffered"
        with path.open("w") as file:
            file.write("once")  # still in the buffer when the child ends
            child = children.fork(lambda: (print("child"), print("child", file=sys.stderr), b"x")[-1])
            assert child is not None
            assert child.answer() == b"x"
        assert path.read_text() == "once"

    @LINUX
    def test_it_dies_with_its_parent(self) -> None:
        def parent() -> bytes:
            grandchild = children.fork(lambda: time.sleep(60) or b"")
            assert grandchild is not None
            return str(grandchild.pid).encode()

        child = children.fork(parent)
        assert child is not None
        answer = child.answer()
        assert answer is not None
        until = time.monotonic() + 10
        while os.path.exists(f"/proc/{int(answer)}/fd") and time.monotonic() < until:
            time.sleep(0.01)
        assert not os.path.exists(f"/proc/{int(answer)}/exe") or time.monotonic() < until

    def test_a_system_that_makes_none(self, monkeypatch: pytest.MonkeyPatch, forks: list[children.Child]) -> None:
        def refused() -> int:
            raise BlockingIOError("too many processes")

        monkeypatch.setattr(os, "fork", refused)
        before = open_files()
        check(engine(two_steps), a_run())
        assert not forks
        assert open_files() == before

    def test_a_platform_without_them(self, monkeypatch: pytest.MonkeyPatch, forks: list[children.Child]) -> None:
        monkeypatch.delattr(os, "fork")
        assert not children.can_fork()
        check(engine(two_steps), a_run())
        assert not forks

    def test_beside_another_thread(self, forks: list[children.Child]) -> None:
        stop = threading.Event()
        thread = threading.Thread(target=stop.wait)
        thread.start()
        try:
            check(engine(two_steps), a_run())
        finally:
            stop.set()
            thread.join()
        assert forks

    def test_in_another_thread(self, forks: list[children.Child]) -> None:
        found: list[list[Pass]] = []
        thread = threading.Thread(target=lambda: found.append(check(engine(two_steps), a_run())))
        thread.start()
        thread.join()
        assert found
        assert forks

    def test_the_collector_is_left_as_it_was(self) -> None:
        list(engine(two_steps).passes(a_run(), range(13)))
        assert gc.isenabled()
        assert gc.get_freeze_count() == 0


class Local:
    """Equal to its like, and of a class that pickle finds."""

    def __init__(self, at: int) -> None:
        self.at = at

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Local) and other.at == self.at

    def __hash__(self) -> int:
        return self.at


class TestBodies:
    def test_one_that_raises(self, forks: list[children.Child]) -> None:
        async def body(wf: Any, _input: Any) -> None:
            await wf.all([wf.step("a", 1), wf.step("b", 2)])
            raise ValueError("no more")

        found = check(engine(body), a_run())
        assert found[-1].error == "ValueError: no more"
        assert forks

    def test_one_whose_values_can_be_sent(self, forks: list[children.Child]) -> None:
        async def body(wf: Any, _input: Any) -> Local:
            await wf.all([wf.step("a", 1), wf.step("b", Local(2))])
            return Local(3)

        found = check(engine(body), a_run())
        assert found[-1].value == Local(3)
        assert forks

    def test_one_whose_values_cannot_be_sent(self, forks: list[children.Child]) -> None:
        shared = threading.Lock()

        async def body(wf: Any, _input: Any) -> Any:
            await wf.step("a", shared)
            return shared

        check(engine(body), a_run())
        assert forks

    def test_one_that_ends_the_process(self, forks: list[children.Child]) -> None:
        async def body(wf: Any, _input: Any) -> None:
            await wf.all([wf.step("a", 1), wf.step("b", 2)])
            raise SystemExit(7)

        lengths = range(len(a_run()) + 1)
        passes = engine(body).passes(a_run(), lengths)
        found: list[Pass] = []
        with pytest.raises(SystemExit):
            found.extend(passes)
        assert list(map(whole, found)) == list(map(whole, cold(engine(body), a_run(), lengths[: len(found)])))
        with pytest.raises(SystemExit):
            cold(engine(body), a_run(), [len(found)])
        assert no_children_left(forks)

    def test_one_that_asks_for_the_time_gets_it(self, forks: list[children.Child]) -> None:
        async def body(wf: Any, _input: Any) -> None:
            await wf.all([wf.step("a", 1), wf.step("b", 2)])
            for _ in range(5):
                await wf.step("c", wf.now())

        built = opened().step_created(0, "a", 1).step_started(0).step_created(1, "b", 2)
        built.step_completed(0).step_started(1).step_completed(1)
        for rank in range(2, 6):
            built.event("attr_set").event("attr_set").step_created(rank, "c").step_started(rank).step_completed(rank)
        found = check(engine(body, "nets"), later(built.log()))
        assert len({draw.arguments for one in found for draw in one.draws if draw.rank == 2}) > 1
        assert forks

    def test_a_sleep_ends_by_the_clock_of_its_prefix(self, forks: list[children.Child]) -> None:
        async def body(wf: Any, _input: Any) -> None:
            await wf.all([wf.step("a", 1), wf.step("b", 2)])
            await wf.sleep(100)

        built = opened().step_created(0, "a", 1).step_completed(0).step_created(1, "b", 2).step_completed(1)
        built.event("attr_set").event("attr_set").event("attr_set")
        found = check(engine(body, "nets"), later(built.log()))
        assert len({one.pending[-1].resume_at for one in found[-4:]}) == 4
        assert len(forks) < len(found)
