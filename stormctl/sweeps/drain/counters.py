"""The counters agree with what happened, and with each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from stormctl.sweeps.drain import records
from stormctl.sweeps.drain.base import drain_sweep
from stormctl.sweeps.drain.records import (
    Activate,
    Admit,
    Counters,
    DrainTrace,
    Flush,
    PassBegin,
    PassEnd,
    PassEntry,
    Pull,
    Timer,
    Wave,
)
from stormctl.sweeps.finding import Fault

#: consecutive passes that one thing stopped: at exactly so many it counts as stuck
STUCK_AFTER = 8
_RECOVERED = frozenset(
    {records.QUEUE, records.SKIP_TWIN, records.SKIP_INFLIGHT, records.DEFER_QUEUE, records.DEFER_LOADPARK}
)


@drain_sweep("drain-counters", kinds=("mismatch", "identity", "back"))
def counters(trace: DrainTrace) -> Iterator[Fault]:
    """Do the reported counters equal what the records say?"""
    tally = _Tally()
    before: dict[str, int] = {}
    for index, record in enumerate(trace.records):
        if not isinstance(record.what, Counters):
            tally.take(record.tenure, record.what)
            continue
        told = dict(record.what.values)
        for name, (least, most) in tally.expected().items():
            if name in told and not least <= told[name] <= most:
                wanted = str(least) if least == most else f"{least} to {most}"
                yield Fault("mismatch", f"{name} is {told[name]}, and the records say {wanted}", (index,), name)
        for name in sorted(name for name, value in before.items() if told.get(name, value) < value):
            yield Fault("back", f"{name} falls from {before[name]} to {told[name]}", (index,), name)
        for name, text in _unequal(told):
            yield Fault("identity", text, (index,), name)
        before = told


def _unequal(told: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """What the counters say of each other and is not so."""
    barriers, recoveries = told.get("visibilityBarriers", 0), told.get("visibilityRecoveries", 0)
    if recoveries > barriers:
        yield "visibilityRecoveries", f"{recoveries} recoveries of {barriers} barriers"
    armed, fired = told.get("deferredRescansArmed", 0), told.get("deferredRescansFired", 0)
    if fired > armed:
        yield "deferredRescansFired", f"{fired} timers fired of {armed} that were armed"


class _Tally:
    """What the counters should be, from the records before them."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._tries: dict[int, bool] = {}  # a barrier of the tenure's pass that nothing has come of yet
        self._queued: Counter[int] = Counter()
        self._open = 0  # barriers of passes that were cancelled: they may have recovered, or not
        self._streaks: dict[tuple[int, str], int] = {}

    def take(self, tenure: int, what: object) -> None:
        """Take in a record."""
        counts = self._counts
        match what:
            case PassBegin():
                self._tries[tenure] = False
                self._queued[tenure] = 0
            case Flush(phase="begin") | Pull(phase="begin"):
                if not self._tries.get(tenure):
                    counts["visibilityBarriers"] += 1
                self._tries[tenure] = True
            case PassEntry():
                self._entry(tenure, what)
            case PassEnd():
                self._open += what.queued is None and bool(self._tries.get(tenure))
                if what.queued is not None:
                    counts["processed"] += self._queued[tenure]
                self._tries[tenure] = False
            case Timer(phase="arm"):
                counts["deferredRescansArmed"] += 1
            case Timer(phase="fire"):
                counts["deferredRescansFired"] += 1
            case Wave():
                counts["waves"] += 1
            case Activate():
                counts["appended"] += len(what.pending)
            case Admit(deduped=False):
                counts["admitted"] += 1

    def _entry(self, tenure: int, what: PassEntry) -> None:
        counts, action = self._counts, what.action
        if self._tries.get(tenure):
            counts["visibilityRecoveries"] += action in _RECOVERED
            self._tries[tenure] = False
        self._queued[tenure] += action == records.QUEUE
        counts["visibilityDeferrals"] += action == records.DEFER_VIEW
        counts["skippedIdempotent"] += action == records.SKIP_TWIN
        counts["drainInFlightSkips"] += action == records.SKIP_INFLIGHT
        counts["queueCalls"] += action in (records.QUEUE, records.DEFER_QUEUE)
        key = {
            records.DEFER_SYNC: what.doc,
            records.DEFER_VIEW: f"event {what.event_id}",
            records.DEFER_QUEUE: f"queue {what.event_id}",
        }.get(action)
        if action != records.DEFER_SYNC:
            self._streaks.pop((tenure, what.doc), None)
        if action in _RECOVERED:
            self._streaks.pop((tenure, f"event {what.event_id}"), None)
        if action == records.QUEUE:
            self._streaks.pop((tenure, f"queue {what.event_id}"), None)
        if key is not None:
            self._streaks[tenure, key] = count = self._streaks.get((tenure, key), 0) + 1
            counts["preQueueDeferralStuck"] += count == STUCK_AFTER

    def expected(self) -> dict[str, tuple[int, int]]:
        """Each counter with the least and the most that it may be."""
        counts = self._counts
        exact = (
            "visibilityBarriers", "visibilityDeferrals", "deferredRescansArmed", "deferredRescansFired",
            "preQueueDeferralStuck", "skippedIdempotent", "drainInFlightSkips", "processed", "waves",
        )  # fmt: skip
        found = {name: (counts[name], counts[name]) for name in exact}
        recovered = counts["visibilityRecoveries"]
        found["visibilityRecoveries"] = recovered, recovered + self._open
        # a notice that a park overtook was not counted, and a trace does not say which
        found["appended"] = counts["appended"], counts["appended"] + counts["admitted"]
        return found
