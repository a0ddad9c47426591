"""Bodies that never end: a pass is left in real time, wherever it loops, and everything else is left alone."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from stormctl.engine.door import Outcome, Pass
from stormctl.engine.generations import NETS
from stormctl.engine.replay import ReplayEngine
from stormctl.engine.watchdog import Endless, watched
from stormctl.testing import LogBuilder

LIMIT_S = 0.1


def log(steps: int = 1) -> Any:
    built = LogBuilder().run_created().run_started()
    for rank in range(steps):
        built.step(rank, "a")
    return built.log()


def replayed(body: Any, *, limit_s: float = LIMIT_S, max_draws: int = 1000, steps: int = 1) -> list[Pass]:
    engine = ReplayEngine(watched(body, limit_s=limit_s, max_draws=max_draws), None, NETS)
    return list(engine.passes(log(steps), range(1, len(log(steps)) + 1)))


async def spins(wf: Any, _input: Any) -> None:
    while True:
        pass


async def spins_later(wf: Any, _input: Any) -> None:
    await wf.step("a")
    while True:
        pass


async def spins_in_a_branch(wf: Any, input: Any) -> None:
    await wf.all([wf.run(spins_later(wf, input)), wf.sleep(1000)])


async def spins_in_a_callback(wf: Any, _input: Any) -> None:
    def forever(_value: Any) -> None:
        while True:
            pass

    await wf.step("a").then(forever)


async def awaits_what_has_settled(wf: Any, _input: Any) -> None:
    done = wf.step("a")
    while True:
        await wf.race(done, wf.all([]))


async def blocks(wf: Any, _input: Any) -> None:
    time.sleep(3600)


async def swallows_exceptions(wf: Any, _input: Any) -> None:
    while True:
        try:
            time.sleep(0.001)
        except Exception:
            continue


ENDLESS = [
    spins,
    spins_later,
    spins_in_a_branch,
    spins_in_a_callback,
    awaits_what_has_settled,
    blocks,
    swallows_exceptions,
]


@pytest.mark.parametrize("body", ENDLESS, ids=lambda body: body.__name__)
def test_a_body_that_never_ends_is_left(body: Any) -> None:
    began = time.monotonic()
    with pytest.raises(Endless, match=r"ran for 0\.1 s without coming to its next event"):
        replayed(body)
    assert time.monotonic() - began < 10


def test_a_body_that_asks_for_ever_is_left_before_it_fills_the_memory() -> None:
    async def asks(wf: Any, _input: Any) -> None:
        while True:
            wf.step("a")

    with pytest.raises(Endless, match="asked for more than 1,000 steps, waits and hooks"):
        replayed(asks, limit_s=5)


def test_a_forked_copy_of_a_pass_is_watched_too() -> None:
    """A sweep forks at the end of a prefix, and timers are not inherited."""

    children: list[int] = []

    async def forks(wf: Any, _input: Any) -> None:
        child = os.fork()
        if child:
            children.append(child)
            return
        try:
            await spins(wf, None)
        except Endless:
            os._exit(7)

    list(ReplayEngine(watched(forks, limit_s=LIMIT_S), None, NETS).passes(log(), [1]))
    (child,) = children
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_tick_within_a_callback_of_the_garbage_collector_waits_for_the_next() -> None:
    """What is raised there gets lost, with a warning; test runners install such callbacks."""
    waited: list[str] = []

    def slowly(phase: str, _info: Any) -> None:
        busy(LIMIT_S / 2 if phase == "start" else 0)
        waited.append(phase)

    def busy(seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            pass

    async def collects(wf: Any, _input: Any) -> None:
        while True:
            gc.collect(0)
            busy(LIMIT_S / 2)

    gc.callbacks.append(slowly)
    try:
        with pytest.raises(Endless):
            replayed(collects, limit_s=LIMIT_S)
    finally:
        gc.callbacks.remove(slowly)
    assert waited


class TestWhatIsLeftAlone:
    async def honest(self, wf: Any, _input: Any) -> Any:
        for _ in range(4):
            await wf.step("a")
        return "done"

    def test_an_honest_body_gives_the_passes_that_it_gives_unwatched(self) -> None:
        whole = range(1, len(log(4)) + 1)
        plain = list(ReplayEngine(self.honest, None, NETS).passes(log(4), whole))
        assert replayed(self.honest, steps=4) == plain

    def test_a_slow_pass_that_moves_on_is_not_left(self) -> None:
        async def slow(wf: Any, _input: Any) -> str:
            for _ in range(8):
                await wf.step("a")
                time.sleep(LIMIT_S / 3)
            return "done"

        built = log(8)
        (made,) = ReplayEngine(watched(slow, limit_s=LIMIT_S), None, NETS).passes(built, [len(built)])
        assert made.value == "done"

    def test_time_that_passes_between_two_passes_is_not_the_bodys(self) -> None:
        engine = ReplayEngine(watched(self.honest, limit_s=LIMIT_S), None, NETS)
        for made in engine.passes(log(4), [3, 4, 5]):
            assert made.outcome is Outcome.SUSPENDED
            until = time.monotonic() + 2 * LIMIT_S
            while time.monotonic() < until:
                pass

    def test_in_another_thread_a_body_runs_unwatched(self) -> None:
        made: list[Pass] = []
        thread = threading.Thread(target=lambda: made.extend(replayed(self.honest, steps=4)))
        thread.start()
        thread.join()
        assert made[-1].value == "done"


class TestTheTimer:
    """There is one per process, and somebody else may be using it."""

    @pytest.fixture
    def others(self) -> Iterator[Callable[[], int]]:
        """A timer of somebody else's that fires in 50 ms; how often it has."""
        fired: list[int] = []

        def fire(number: int, _frame: FrameType | None) -> None:
            fired.append(number)

        handler = signal.signal(signal.SIGALRM, fire)
        before = signal.setitimer(signal.ITIMER_REAL, 0.05)
        yield lambda: len(fired)
        signal.setitimer(signal.ITIMER_REAL, *before)
        signal.signal(signal.SIGALRM, handler)

    def test_it_still_fires_while_a_body_is_watched(self, others: Callable[[], int]) -> None:
        with pytest.raises(Endless):
            replayed(spins, limit_s=0.3)
        assert others() == 1

    def test_it_fires_in_time_after_a_pass(self, others: Callable[[], int]) -> None:
        replayed(TestWhatIsLeftAlone().honest)
        assert others() == 0
        time.sleep(0.1)
        assert others() == 1

    def test_nothing_ticks_once_no_body_is_watched(self) -> None:
        before = signal.getsignal(signal.SIGALRM)
        replayed(TestWhatIsLeftAlone().honest)
        assert signal.getsignal(signal.SIGALRM) is before


def test_a_body_that_catches_everything_ends_its_process_with_a_sentence() -> None:
    script = """
from stormctl.engine.generations import NETS
from stormctl.engine.replay import ReplayEngine
from stormctl.engine.watchdog import watched
from stormctl.testing import LogBuilder

async def body(wf, input):
    while True:
        try:
            while True:
                pass
        except:
            pass

list(ReplayEngine(watched(body, limit_s=0.05), None, NETS).passes(LogBuilder().run_created().log(), [1]))
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout) == (4, "")
    assert ran.stderr.startswith("stormctl: a workflow ran for 0.05 s without coming to its next event, and catches")
    assert ran.stderr.count("\n") == 1
