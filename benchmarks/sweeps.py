"""How long a sweep over every prefix of a log takes, beside replaying each prefix by itself in the same run.

    python benchmarks/sweeps.py

CPU seconds are those of this process and of the children that it forked. The real log of vercel/workflow #3543 is used
where it is at hand, else a step storm of that size; the long logs are step storms of many rounds, made here.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from _measure import Times, show
from replay import ROOT, a_log

CPU_GOAL_S = 1.5
LONG = 10_000
SHORTER = 2_500
LONG_GOAL_S = 30.0
GROWTH_GOAL = 5.0
#: how many prefixes of a long log are replayed by themselves, to reckon what all of them would take
SAMPLE = 20


def main() -> None:
    sys.path.insert(0, str(ROOT))
    from stormctl.engine.generations import GENERATIONS
    from stormctl.sweeps.rebinding import rebinding
    from stormctl.workloads.registry import workload

    code = workload("step-storm")
    log, given, where = a_log()
    print(f"Every prefix of {len(log)} events of step-storm ({where}); the reference replays each by itself.")
    lengths = range(1, len(log) + 1)
    for name in GENERATIONS:
        engine = an_engine(name, code, given)
        naive = once(spent, partial(one_by_one, engine, log, lengths))
        shared = once(spent, partial(rebinding, log, engine, lengths))
        show(f"{name}: CPU", shared, "s", goal=CPU_GOAL_S, peer=naive)

    jobs = os.cpu_count() or 1
    log, given = a_long_log(LONG)
    print(f"Every prefix of a made log, with {jobs} processes; the reference is reckoned from {SAMPLE} of them.")
    for name in ("nets", "turnstile"):
        engine = an_engine(name, code, given, jobs=jobs)
        took = {}
        for size in (SHORTER, LONG):
            part = log[:size]
            sweep = partial(rebinding, part, engine, range(1, size + 1))
            before = spent()
            took[size] = once(time.perf_counter, sweep)
            used = spent() - before
            naive = reckoned(engine, part)
            goal = LONG_GOAL_S if size == LONG else None
            show(f"{name}: {size} events", took[size], "s", goal=goal, peer=naive)
            show(f"{name}: {size} events, CPU", Times(used, used), "s")
        grown = took[LONG].best / took[SHORTER].best
        verdict = "met" if grown < GROWTH_GOAL else "missed"
        print(f"  {name}: growth from {SHORTER} to {LONG} events   {grown:.2f} x   goal {GROWTH_GOAL:g} x: {verdict}")


def an_engine(name: str, code: Any, given: dict[str, Any], *, jobs: int = 1) -> Any:
    """The engine of a generation for the workload that wrote a log."""
    from stormctl.engine.engines import engine_for

    engine = engine_for(name, code, code.parse_input(given))
    engine.jobs = jobs
    return engine


def a_long_log(events: int) -> tuple[Any, dict[str, Any]]:
    """So many events of a step storm without a fault, and its input. Rounds are played until the log is long enough."""
    sys.path.insert(0, str(ROOT))
    from stormctl.workloads.registry import workload
    from tests.workloads.virtual import Run

    code = workload("step-storm")
    rounds = max(1, events // 100)
    while True:
        given = {"token": "bench", "rounds": rounds, "jitter_buckets": 7}
        run = Run(code, code.parse_input(given), latency=lambda _name, _arguments: 50.0)
        run.to_the_end()
        if len(run.log) >= events:
            return run.log[:events], given
        rounds += max(1, rounds // 4)


def spent() -> float:
    """CPU seconds of this process and of the children that it has waited for."""
    return sum(
        used.ru_utime + used.ru_stime
        for used in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    )


def once(clock: Callable[[], float], action: Callable[[], object]) -> Times:
    """One go: these take seconds each, and a second one says no more."""
    began = clock()
    action()
    took = clock() - began
    return Times(took, took)


def one_by_one(engine: Any, log: Any, lengths: Iterable[int]) -> None:
    """Replay every prefix by itself, and keep none of the passes."""
    for length in lengths:
        for _ in engine.passes(log, [length]):
            pass


def reckoned(engine: Any, log: Any) -> Times:
    """What replaying every prefix by itself would take, from some that lie evenly over the log."""
    lengths: Iterable[int] = [round((number + 0.5) * len(log) / SAMPLE) for number in range(SAMPLE)]
    sampled = once(time.perf_counter, partial(one_by_one, engine, log, lengths))
    whole = sampled.best * len(log) / SAMPLE
    return Times(whole, whole)


if __name__ == "__main__":
    main()
