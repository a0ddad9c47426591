"""The engine's own latencies, from the times in one log.

They are defined as upstream's benchmarks define theirs (vercel/workflow #2820, #3522), so that numbers can be laid side
by side. A log holds when an event was minted, not when a body began or ended, so each includes the store's share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from stormctl.history import kinds

FIRST_STEP = "time to first step"
INLINE = "step to step, inline"
HOP = "step to step, queue hop"
UNSPLIT = "step to step"
FAN_FIRST = "fan-out, first"
FAN_LAST = "fan-out, last"
OVERHEAD = "workflow overhead"

#: Every latency in the order of the tables, with what it measures.
LATENCIES = {
    FIRST_STEP: "from the run's creation to the start of its first step, with whatever it awaited before",
    INLINE: "from one step's end to the next one's start, both written by one delivery",
    HOP: "the same across two deliveries, so with a message through the queue between them",
    UNSPLIT: "the same where no audit says who wrote them",
    FAN_FIRST: "from the first create of two or more steps made together to the first end among them",
    FAN_LAST: "from there to the last end, where all of them ended",
    OVERHEAD: "from the run's creation to its last step's end, without the time in which any step ran",
}
_TOGETHER = kinds.CREATES | {kinds.ATTR_SET, kinds.STEP_STARTED}


class Step(NamedTuple):
    """What of an event is measured: ``at`` is epoch milliseconds, ``writer`` the delivery that wrote it."""

    type: str
    correlation_id: str | None
    at: float | None
    writer: str | None


def latencies_of(log: Sequence[Step]) -> dict[str, list[float]]:
    """Milliseconds by latency, those without a sample left out. Nothing where the log holds no times.

    Step to step is taken only where the end of a step left none in flight and nothing else (a wait that ended, a hook
    that was resumed) came before the next start: what a body waits for is no overhead.
    """
    if not log or log[0].at is None:
        return {}
    seen = _Seen(log[0].at)
    for event in log:
        if event.at is not None:
            seen.take(event, event.at)
    return seen.finish()


@dataclass(slots=True)
class _Seen:
    """The state of one walk over a log."""

    began: float
    samples: dict[str, list[float]] = field(default_factory=dict)
    in_flight: set[str] = field(default_factory=set)
    known: set[str] = field(default_factory=set)
    running: dict[str, float] = field(default_factory=dict)
    busy: list[tuple[float, float]] = field(default_factory=list)
    ended: Step | None = None
    batch: dict[str, float] = field(default_factory=dict)
    fans: list[tuple[float, dict[str, float | None]]] = field(default_factory=list)
    fan_of: dict[str, dict[str, float | None]] = field(default_factory=dict)

    def add(self, name: str, value: float) -> None:
        self.samples.setdefault(name, []).append(value)

    def take(self, event: Step, at: float) -> None:
        kind, step = event.type, event.correlation_id
        if kind not in _TOGETHER:
            self.close_batch()
        if step is None:
            return
        if kind == kinds.STEP_CREATED:
            self.create(step, at)
        elif kind == kinds.STEP_STARTED:
            self.create(step, at)
            self.start(event, step, at)
        elif kind in kinds.STEP_TERMINAL:
            self.end(event, step, at)
        elif kind in (kinds.WAIT_COMPLETED, kinds.HOOK_RECEIVED):
            self.ended = None

    def create(self, step: str, at: float) -> None:
        if step in self.known:
            return
        self.known.add(step)
        self.in_flight.add(step)
        self.batch[step] = at

    def start(self, event: Step, step: str, at: float) -> None:
        if step in self.running or step not in self.in_flight:
            return  # started again, or after its end: the first one counts
        self.running[step] = at
        if FIRST_STEP not in self.samples:
            self.add(FIRST_STEP, at - self.began)
        before, self.ended = self.ended, None
        if before is None or before.at is None or self.in_flight != {step}:
            return
        if before.writer is None or event.writer is None:
            self.add(UNSPLIT, at - before.at)
        else:
            self.add(INLINE if before.writer == event.writer else HOP, at - before.at)

    def end(self, event: Step, step: str, at: float) -> None:
        if step not in self.in_flight:
            return
        self.in_flight.discard(step)
        began = self.running.pop(step, None)
        if began is not None:
            self.busy.append((began, max(began, at)))
        self.ended = None if self.in_flight else event
        fan = self.fan_of.pop(step, None)
        if fan is not None:
            fan[step] = at

    def close_batch(self) -> None:
        if len(self.batch) > 1:
            fan: dict[str, float | None] = dict.fromkeys(self.batch)
            self.fans.append((min(self.batch.values()), fan))
            self.fan_of.update(dict.fromkeys(fan, fan))
        if self.batch:
            self.batch = {}

    def finish(self) -> dict[str, list[float]]:
        for began, fan in self.fans:
            ends = [end for end in fan.values() if end is not None]
            if ends:
                self.add(FAN_FIRST, min(ends) - began)
            if len(ends) == len(fan):
                self.add(FAN_LAST, max(ends) - began)
        if self.busy:
            last = max(end for _, end in self.busy)
            self.add(OVERHEAD, last - self.began - _union(self.busy))
        return {name: self.samples[name] for name in LATENCIES if name in self.samples}


def _union(spans: list[tuple[float, float]]) -> float:
    """How long at least one of the spans held."""
    total, until = 0.0, float("-inf")
    for began, ended in sorted(spans):
        total += max(0.0, ended - max(began, until))
        until = max(until, ended)
    return total
