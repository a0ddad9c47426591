"""How long events wait, in virtual time: from the admission to the commit that has their mark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stormctl.drain.inject import Injection
from stormctl.drain.knobs import G1, G2, Barrier, Knobs
from stormctl.drain.model import DrainModel, Play
from stormctl.drain.setup import Setup
from stormctl.sim.kernel import TapeChooser, play
from stormctl.sim.stream import Stream
from stormctl.sweeps.drain.records import Admit, DrainTrace, Ident, Wave

#: the loops that are compared, by what they do about a view that lags
LOOPS: dict[str, Knobs] = {
    "neither (G1)": G1,
    "floor alone": replace(G2, barrier=Barrier.OFF),
    "barrier and floor (G2)": G2,
}
#: upper ends of the classes of a histogram, in ms
EDGES = (0, 50, 100, 150, 200, 249, 250, 1_000)
MOST_EVENTS = 2_000


@dataclass(frozen=True, slots=True)
class Latencies:
    """How long each event waited under one loop, in ms, in the order of admission; ``waves`` counts commits."""

    loop: str
    waits: tuple[int, ...]
    waves: int
    deferrals: int

    def histogram(self) -> tuple[int, ...]:
        """How many waited up to each of :data:`EDGES` and longer than the one before."""
        lows = (-1, *EDGES[:-1])
        return tuple(sum(low < one <= high for one in self.waits) for low, high in zip(lows, EDGES, strict=True))

    @property
    def mean(self) -> float:
        """The mean in ms."""
        return sum(self.waits) / len(self.waits) if self.waits else 0.0


def waits(trace: DrainTrace) -> tuple[int, ...]:
    """How long each event of a trace waited for its mark; one that has none is left out."""
    since: dict[Ident, int] = {}
    found: dict[Ident, int] = {}
    for record in trace.records:
        what = record.what
        if isinstance(what, Admit) and not what.deduped:
            since[what.event_id, what.seq] = record.t
        elif isinstance(what, Wave):
            for _, _, event_id, seq in what.marks:
                found.setdefault((event_id, seq), record.t - since.get((event_id, seq), record.t))
    return tuple(found[ident] for ident in since if ident in found)


def measure(loop: str, knobs: Knobs, *, events: int, seed: int, steady: bool) -> Latencies:
    """Admit events to two streams and see how long each waits; frames go out when the loop flushes.

    Fresh: each pair of events has a space of its own, the second up to 400 ms behind the first. ``steady``: all of them
    follow each other in one space, 1 s apart. There the loop's own last commit lies between the watermark and a new
    event, so that a wave which moves W over that commit scans again at once, whatever the floor holds back.
    """
    stream = Stream("latency", seed)
    events = min(events, MOST_EVENTS)
    found: list[int] = []
    waves = deferrals = 0
    times: list[list[int]] = [[1_000 * at for at in range(1, events + 1)]] if steady else []
    while not steady and 2 * len(times) < events:
        times.append([100, 100 + stream.below(401)])
    for moments in times:
        injections = tuple(
            Injection("", "admit", ("ab"[stream.below(2)], f"e{number}"), ms=at) for number, at in enumerate(moments)
        )
        run = play(DrainModel(Setup("latency", knobs, injections, until=moments[-1] + 10_000)), TapeChooser())
        assert isinstance(run.instance, Play)
        found.extend(waits(run.instance.trace()))
        waves += run.instance.space.counters.waves
        deferrals += run.instance.space.counters.visibility_deferrals
    return Latencies(loop, tuple(found), waves, deferrals)


def compare(*, events: int = 200, seed: int = 0, steady: bool = False) -> Sequence[Latencies]:
    """The same admissions under each of :data:`LOOPS`."""
    return [measure(name, knobs, events=events, seed=seed, steady=steady) for name, knobs in LOOPS.items()]
