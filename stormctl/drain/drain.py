"""The pass: pending entries in arrival order, each looked up in the view before it is queued.

Every await is a turn (A1 sync, A2 flush, A3 pull, A4 load); whatever may happen meanwhile happens there.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from stormctl.drain.engine import Entries, Entry, find
from stormctl.drain.inject import POINTS
from stormctl.drain.knobs import Barrier, Check, Guard, Order
from stormctl.drain.marks import write_mark
from stormctl.drain.tenure import Target, Tenure
from stormctl.errors import StormctlError
from stormctl.sim.kernel import Label, Pick, Wait
from stormctl.sweeps.drain import records
from stormctl.sweeps.drain.records import Flush, Ident, PassBegin, PassEnd, PassEntry, Pull

Turns = Generator[Label | Wait | Pick, Any, Any]
#: everything that the loop does touches what the others touch: one space
SPACE = "space"
#: kind of pick: what may go another way there, beside the ordinary one
_FAULTS = {"A1": "fail", "A2": "fail", "A3": "fail", "A4": "loadpark", "queue": "throw", "settle": "cut"}
CANCELLED = None


class PassCrashed(StormctlError):
    """A pass used an index that no longer is one. The loop parks."""


class Failed(Exception):
    """An await of a pass that failed, as it was told to."""


class Pass:
    """One pass of a tenure. :meth:`run` is its turns, and returns how many were queued (None: cancelled)."""

    def __init__(self, tenure: Tenure) -> None:
        self.tenure = tenure
        self.space = tenure.space
        self.knobs = tenure.knobs
        self.counters = tenure.space.counters
        self.queued = 0
        self._sidecars: dict[str, Entries | None] = {}  # None: its sync failed
        self._failed: set[str] = set()
        self._spent = False  # the barrier of this pass

    def run(self) -> Generator[Label | Wait | Pick, Any, int | None]:
        """The pass, if one is owed."""
        tenure, space = self.tenure, self.space
        if not tenure.scan_owed:
            return 0
        tenure.scan_owed = False
        pending = space.engine.pending()
        tenure.note(PassBegin(len(pending), tenure.w, tenure.floor))
        tenure.floor = None
        for doc, entry in self._ordered(pending):
            try:
                stops: bool | None = yield from self._entry(doc, entry)
            finally:
                tenure.aiming = None
            if stops is CANCELLED:
                tenure.note(PassEnd(None, tenure.floor))
                return None
            if stops:
                break
        self.counters.processed += self.queued
        tenure.note(PassEnd(self.queued, tenure.floor))
        return self.queued

    def _ordered(self, pending: list[tuple[str, Entry]]) -> list[tuple[str, Entry]]:
        def place(one: tuple[str, Entry]) -> tuple[Any, ...]:
            doc, entry = one
            seq = float("inf") if entry.seq is None else entry.seq
            return (doc, seq) if self.knobs.order is Order.DOC_SKIP else (seq, doc)

        return sorted(pending, key=place)

    # -- one entry -----------------------------------------------------------------------------------------------

    def _entry(self, doc: str, entry: Entry) -> Turns:
        """What is done with one entry: whether the pass stops; None where its tenure has ended."""
        tenure, knobs = self.tenure, self.knobs
        if doc not in self._sidecars and not (yield from self._sync(doc)):
            return CANCELLED
        stored = self._sidecars[doc]
        if stored is None:
            if doc in self._failed:
                return False  # only where what lags is skipped: its sidecar was deferred once, and that is enough
            self._failed.add(doc)
            return self._defer(doc, entry, -1, None, records.DEFER_SYNC, doc)
        index = find(stored, entry.ident)
        if index is None:
            return self._say(doc, entry, -1, None, records.VANISHED)
        if knobs.recheck_consumed and stored[index].consequenced:
            return self._say(doc, entry, index, None, records.SKIP_CONSUMED)
        seen = self._seen(doc, index)
        if not self._matches(seen, entry) and not self._spent and knobs.barrier is not Barrier.OFF:
            self._spent = True
            if not (yield from self._synchronize()):
                return CANCELLED
            stored = self._sidecars[doc] = self.space.engine.entries(doc)
            if knobs.refind:
                index = find(stored, entry.ident)
            elif index >= len(stored):
                raise PassCrashed(f"index {index} of {doc} is gone", remedy="Find the entry again behind the barrier.")
            if index is None:
                return self._say(doc, entry, -1, None, records.VANISHED)
            if knobs.recheck_consumed and stored[index].consequenced:
                return self._say(doc, entry, index, None, records.SKIP_CONSUMED)
            seen = self._seen(doc, index)
            if self._matches(seen, entry):
                self.counters.visibility_recoveries += 1
        if not self._matches(seen, entry):
            self.counters.visibility_deferrals += 1
            return self._defer(doc, entry, index, seen, records.DEFER_VIEW, str(entry.event_id))
        tenure.streaks.pop(str(entry.event_id), None)
        return (yield from self._take(Target(doc, index, entry.ident, self.space.engine.head), stored, seen))

    def _take(self, target: Target, stored: Entries, seen: Ident | None) -> Turns:
        """An entry that may be queued: unless a twin was consequenced, or a copy of it is under way."""
        tenure, knobs = self.tenure, self.knobs
        event_id, seq = target.ident
        entry = Entry(event_id, seq)
        twin = any(
            one.event_id == event_id and one.seq is not None and one.seq != seq and one.consequenced for one in stored
        )
        if twin:
            self.counters.skipped_idempotent += 1
            if tenure.wave is not None:  # a notice has nowhere to go once the park has begun
                write_mark(tenure, tenure.wave, target, skip=True)
            return self._say(target.doc, entry, target.at, seen, records.SKIP_TWIN)
        if event_id in tenure.in_flight:
            self.counters.drain_in_flight_skips += 1
            return self._say(target.doc, entry, target.at, seen, records.SKIP_INFLIGHT)
        tenure.aiming = target.doc
        parked = "loadpark" in (yield from reach(tenure, "A4", target.doc))
        if "A4" in knobs.tenure_checks and not tenure.active:
            return CANCELLED
        if parked:
            return self._defer(target.doc, entry, target.at, seen, records.DEFER_LOADPARK, "")
        self.counters.queue_calls += 1
        outcome = yield from at_once(tenure, "queue", target.doc)
        if "throw" in outcome or tenure.disposed:
            tenure.release_guard(event_id)
            return self._defer(target.doc, entry, target.at, seen, records.DEFER_QUEUE, f"queue\0{event_id}")
        if knobs.guard is not Guard.NONE:
            tenure.in_flight[event_id] = "queued"
        tenure.streaks.pop(f"queue\0{event_id}", None)
        tenure.queue.append(target)
        self.queued += 1
        return self._say(target.doc, entry, target.at, seen, records.QUEUE)

    # -- the awaits ----------------------------------------------------------------------------------------------

    def _sync(self, doc: str) -> Turns:
        """Watch a sidecar, once in a pass; whether the pass goes on."""
        tenure = self.tenure
        outcome = yield from reach(tenure, "A1", doc)
        if "A1" in self.knobs.tenure_checks and not tenure.active:
            return False
        if "fail" in outcome:
            self._sidecars[doc] = None
        else:
            self._sidecars[doc] = self.space.engine.entries(doc)
            tenure.streaks.pop(doc, None)
        return True

    def _synchronize(self) -> Turns:
        """The barrier: publish, then wait for a response that arrives behind everything that was published. Whether the
        pass goes on; a failure is swallowed, and what the view has then decides."""
        self.counters.visibility_barriers += 1
        tenure, checks = self.tenure, self.knobs.tenure_checks
        try:
            if self.knobs.barrier is not Barrier.PULL:
                yield from self._flush()
                if "A2" in checks and not tenure.active:
                    return False
            if self.knobs.barrier is Barrier.DURABILITY:
                yield Wait(
                    Label("durable", SPACE, writes=True), lambda: not tenure.view.sealed, "its own sealed writes"
                )
            elif self.knobs.barrier is not Barrier.FLUSH:
                yield from self._pull()
        except Failed as failed:
            return not (failed.args[0] in checks and not tenure.active)
        return not ("A3" in checks and not tenure.active)

    def _flush(self) -> Turns:
        tenure = self.tenure
        tenure.note(Flush("begin"))
        if "fail" in (yield from reach(tenure, "A2")):
            tenure.note(Flush("fail"))
            raise Failed("A2")
        tenure.transport.flush()
        tenure.note(Flush("end"))

    def _pull(self) -> Turns:
        tenure = self.tenure
        tenure.note(Pull("begin"))
        if "fail" in (yield from reach(tenure, "A3")):
            tenure.note(Pull("fail"))
            raise Failed("A3")
        number = tenure.transport.pull()
        yield Wait(
            Label("pulled", SPACE, writes=True), lambda: tenure.transport.answered >= number, "an ordered response"
        )
        tenure.note(Pull("end"))

    # -- small ---------------------------------------------------------------------------------------------------

    def _seen(self, doc: str, index: int) -> Ident | None:
        found = self.tenure.view.at(doc, index)
        return None if found is None else found.ident

    def _matches(self, seen: Ident | None, entry: Entry) -> bool:
        match self.knobs.check:
            case Check.NONE:
                return True
            case Check.ID:
                return seen is not None and seen[0] == entry.event_id
        return seen == entry.ident

    def _say(self, doc: str, entry: Entry, index: int, seen: Ident | None, action: str) -> bool:
        self.tenure.note(PassEntry(doc, entry.event_id or "", entry.seq, index, seen, action))
        return False

    def _defer(self, doc: str, entry: Entry, index: int, seen: Ident | None, action: str, key: str) -> bool:
        """Note what stopped the pass, hold the watermark down where that is done, and arm the backstop."""
        tenure, knobs = self.tenure, self.knobs
        self._say(doc, entry, index, seen, action)
        view = action in (records.DEFER_VIEW, records.DEFER_SYNC)
        held = (view and (knobs.floor_input or knobs.floor_settle)) or (
            action == records.DEFER_QUEUE and knobs.floor_on_queue_throw
        )
        if held and tenure.active:
            tenure.floor = 1 if entry.seq is None else entry.seq
        if key:
            tenure.streak(key)
        tenure.arm()
        return knobs.order is Order.ARRIVAL or action == records.DEFER_LOADPARK


def reach(tenure: Tenure, point: str, doc: str = "") -> Generator[Label | Wait | Pick, Any, frozenset[str]]:
    """An await: others may take their turns before it is over; then how it came out."""
    yield Label(POINTS[point], SPACE, writes=True, detail=doc)
    return (yield from at_once(tenure, point, doc))


def at_once(tenure: Tenure, place: str, doc: str = "") -> Generator[Label | Wait | Pick, Any, frozenset[str]]:
    """A place where something may go wrong without anybody waiting."""
    space = tenure.space
    outcome = space.arrive(place, doc)
    if place in space.setup.faults and space.faults_left > 0:
        picked = yield Pick(_FAULTS[place], ("ok", _FAULTS[place]))
        if picked:
            space.faults_left -= 1
            outcome |= {_FAULTS[place]}
    return outcome


__all__ = ["CANCELLED", "SPACE", "Pass", "PassCrashed", "Turns", "at_once", "reach"]
