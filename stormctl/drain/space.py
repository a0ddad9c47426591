"""One space in one run: the store, the clock, the records, and the tenures that come and go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stormctl.drain.clock import Clock
from stormctl.drain.counters import Counters
from stormctl.drain.engine import Engine, Entry, find
from stormctl.drain.inject import Injection
from stormctl.drain.setup import Setup
from stormctl.drain.tenure import Notice, Tenure
from stormctl.drain.trace import Recorder
from stormctl.sweeps.drain.records import Admit, Apply, Compact, Consequence, What

#: the owner of writes that an injection sealed
SHADOW = "shadow"


class Space:
    """See the module. ``tenure`` is the one that was activated last."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.knobs = setup.knobs
        self.engine = Engine()
        self.clock = Clock(setup.until)
        self.counters = Counters()
        self.recorder = Recorder()
        self.tenure: Tenure | None = None
        self.parking: Callable[[Tenure], None] = lambda tenure: None  # the model spawns who does the rest of it
        self.called: list[str] = []  # events whose handlers ran, in order
        self.waves: list[WaveSeen] = []
        self.faults_left = setup.most_faults
        self._visits: dict[tuple[str, str], int] = {}
        self._by_place: dict[str, list[Injection]] = {}
        for one in setup.injections:
            self._by_place.setdefault(one.place, []).append(one)

    def note(self, what: What, tenure: int = 0) -> None:
        """Write something down."""
        self.recorder.now = self.clock.now
        self.recorder.note(tenure, what)

    # -- injections ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Do what is done before the loop begins, and set the alarms of what has its time."""
        for one in self._by_place.get("start", ()):
            self.act(one)
        for one in self._by_place.get("", ()):
            self.clock.at(one.ms, lambda one=one: self.act(one))  # type: ignore[misc]  # bound at once

    def arrive(self, place: str, doc: str = "") -> frozenset[str]:
        """The loop is at a place: what is to be done there is done; the outcomes that it shall have."""
        known = self._by_place.get(place)
        if not known:
            return frozenset()
        found = set()
        visits = {}
        for name in dict.fromkeys(("", doc)):
            visits[name] = self._visits[place, name] = self._visits.get((place, name), 0) + 1
        for one in known:
            if one.doc in visits and one.nth in (0, visits[one.doc]):
                if one.action in ("fail", "throw", "cut", "loadpark"):
                    found.add(one.action)
                else:
                    self.act(one)
        return frozenset(found)

    def act(self, one: Injection) -> None:
        """Do something from outside."""
        match one.action, one.words:
            case "admit", (doc, event_id):
                self.admit(doc, event_id, told=True)
            case "deliver", _:
                self.deliver()
            case "compact", (doc,):
                self.compact(doc)
            case "consequence", (doc, event_id):
                self.consequence(doc, event_id)
            case "strip", (doc,):
                self.engine.strip(doc)
                self.touched(doc)
                for entry in self.engine.entries(doc):
                    if entry.seq is None and entry.event_id is not None:
                        self.note(Compact(doc, ((entry.event_id, self._stripped(doc, entry)),)))
                        self.note(Admit(doc, entry.event_id, None))
                        self.note(Consequence(doc, entry.event_id, None))
            case "unrelated", _:
                self.unrelated()
            case "shadow", (doc, value):
                self.shadow(doc, value)
            case "release", _:
                self.release()
            case "park", _:
                self.park()

    def _stripped(self, doc: str, entry: Entry) -> int | None:
        """The seq that an entry had before it was stripped: the last that was admitted under its event id."""
        return max(
            (
                record.what.seq
                for record in self.recorder.records
                if isinstance(record.what, Admit)
                and (record.what.doc, record.what.event_id) == (doc, entry.event_id)
                and record.what.seq is not None
            ),
            default=None,
        )

    # -- what others do ------------------------------------------------------------------------------------------

    def touched(self, doc: str) -> None:
        """A sidecar changed: it goes out when somebody flushes, or by itself where the transport has a timer."""
        tenure = self.tenure
        if tenure is None or tenure.disposed:
            return
        transport = tenure.transport
        first = not transport.dirty
        transport.touch(doc)
        if first and self.knobs.fanout_ms is not None:
            self.clock.at(self.clock.now + self.knobs.fanout_ms, transport.flush)

    def admit(self, doc: str, event_id: str, *, told: bool) -> None:
        """A client appends an event."""
        seq = self.engine.admit(doc, event_id)
        self.note(Admit(doc, event_id, seq, deduped=seq is None))
        if seq is not None:
            self.touched(doc)
            if told:
                self._tell(Notice(seq, appends=1))

    def compact(self, doc: str) -> None:
        """Consumed history is taken out."""
        gone = self.engine.compact(doc)
        if gone:
            self.note(Compact(doc, gone))
            self.touched(doc)
            self._tell(Notice(self.engine.head), only_observed=True)

    def consequence(self, doc: str, event_id: str) -> None:
        """Another writer consequences the first pending entry of an event."""
        waiting = [one for where, one in self.engine.pending() if where == doc and one.event_id == event_id]
        if waiting and find(self.engine.entries(doc), waiting[0].ident) is not None:
            self.engine.consequence(doc, waiting[0].ident)
            self.note(Consequence(doc, event_id, waiting[0].seq))
            self.touched(doc)
            self._tell(Notice(self.engine.head), only_observed=True)

    def unrelated(self) -> None:
        """A commit that touches no stream."""
        self._tell(Notice(self.engine.commit()), only_observed=True)

    def deliver(self) -> None:
        """Everything that changed arrives at once."""
        tenure = self.tenure
        if tenure is not None:
            tenure.transport.flush()
            while tenure.transport.wire:
                self.receive(tenure)

    def receive(self, tenure: Tenure) -> None:
        """The next frame arrives."""
        frame = tenure.transport.receive()
        if frame.response:
            self.counters.responses += 1
        else:
            self.note(Apply(frame.doc, frame.version), tenure.number)

    def shadow(self, doc: str, value: str) -> None:
        """A write that the loop sealed and that has no outcome yet hides a sidecar."""
        if self.tenure is not None:
            event_id, _, seq = value.partition("@")
            entries = () if value == "absent" else (Entry(event_id, int(seq) if seq else None),)
            self.tenure.view.seal(doc, SHADOW, entries)

    def release(self) -> None:
        """Those writes are withdrawn."""
        if self.tenure is not None:
            self.tenure.view.release(SHADOW)

    def park(self) -> None:
        """The tenure ends: what is done at once is done, and who does the rest is spawned."""
        tenure = self.tenure
        if tenure is not None and tenure.active:
            tenure.park()
            self.parking(tenure)

    def _tell(self, notice: Notice, *, only_observed: bool = False) -> None:
        if self.tenure is not None and self.tenure.active and (self.setup.observed or not only_observed):
            self.tenure.tell(notice)

    @property
    def pending_idents(self) -> tuple[tuple[str, str | None, int | None], ...]:
        """What waits for its consequence: sidecar, event id, seq."""
        return tuple((doc, one.event_id, one.seq) for doc, one in self.engine.pending())


class WaveSeen:
    """A wave as the table of golden results has it: the time, W, the shared log, and what is pending under W."""

    __slots__ = ("log", "seq", "t", "under", "w")

    def __init__(self, space: Any, seq: int) -> None:
        self.t, self.seq, self.w = space.clock.now, seq, space.engine.watermark
        self.log = tuple(space.engine.log)
        self.under = tuple(
            one.event_id for _, one in space.engine.pending() if one.seq is not None and one.seq <= self.w
        )

    def __str__(self) -> str:
        return f"({self.w},[{','.join(self.log)}],[{','.join(map(str, self.under))}])"
