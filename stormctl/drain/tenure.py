"""One tenure: from the lease that was taken to the park. It is never used again; the host makes a new one."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from stormctl.drain.clock import Alarm
from stormctl.drain.engine import Mark
from stormctl.drain.knobs import IDLE_PARK_MS, STUCK_AFTER
from stormctl.drain.transport import Transport
from stormctl.drain.view import View
from stormctl.sweeps.drain.records import Activate, Floor, Ident, Park, Timer, What

if TYPE_CHECKING:
    from stormctl.drain.space import Space

#: notices of commits that were told before, by which late ones are known
LATE_WINDOW = 1024


class Notice(NamedTuple):
    """What the feed says of a commit. ``own`` is the echo of a derived one."""

    seq: int
    appends: int = 0
    own: bool = False


class Target(NamedTuple):
    """What was queued: an entry at the index at which it was seen. ``basis`` is the store's head at that moment."""

    doc: str
    at: int
    ident: Ident
    basis: int


class Contribution(NamedTuple):
    """A sealed transaction: the effects and the mark of one entry, which stand or fall together."""

    target: Target
    mark: Mark
    effects: tuple[str, ...]
    emits: tuple[tuple[str, str], ...] = ()
    skip: bool = False


@dataclass(slots=True, eq=False)
class OpenWave:
    """What was sealed since the last commit. It owns the layers that its writes laid over the view."""

    contributions: list[Contribution] = field(default_factory=list)
    target: int | None = None


class Tenure:
    """The state of a loop, and what does not wait for anything."""

    def __init__(self, space: Space, number: int) -> None:
        self.space, self.number = space, number
        self.knobs = space.knobs
        self.active = True
        self.disposed = False
        self.view = View(self.wake)
        self.transport = Transport(space.engine, self.view)
        self.feed: deque[Notice] = deque()
        self.woken = True
        self.scan_owed = False
        self.floor: int | None = None
        self.wave: OpenWave | None = OpenWave()
        self.queue: deque[Target] = deque()  # handlers that were queued and have not run
        self.in_flight: dict[str | None, str] = {}
        self.aiming: str | None = None  # the sidecar whose entry was seen and is not queued yet
        self.streaks: dict[str, int] = {}
        self.backstop: Alarm | None = None
        self.own_seqs: set[int] = set()
        self.latch = False
        self.w = space.engine.watermark
        self._seen: deque[int] = deque(maxlen=LATE_WINDOW)
        self.scan_head = space.engine.head
        pending = space.engine.pending()
        self.scan_owed = bool(pending)
        space.counters.appended += len(pending)
        self.input_head = self.coverage_head = max(self.scan_head, self.w)
        for doc in space.engine.docs:  # a new runtime loads what is stored, and watches it from then on
            self.transport.touch(doc)
        self.transport.flush()
        while self.transport.wire:
            self.transport.receive()
        self.note(Activate(space.pending_idents, self.w))

    def alive(self) -> bool:
        """Whether the tenure has not been parked, as of now: what it awaited may have changed that."""
        return self.active

    def note(self, what: What) -> None:
        """Write something down."""
        self.space.note(what, self.number)

    # -- input ---------------------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Something happened that a loop which waits should look at."""
        self.woken = True

    def tell(self, notice: Notice) -> None:
        """A commit, at once with its admission."""
        self.feed.append(notice)
        self.woken = True

    def drain_feed(self) -> int:
        """Take in all notices; the head that the batch covers."""
        while self.feed:
            notice = self.feed.popleft()
            late = notice.seq <= self.input_head
            if late and (notice.seq <= self.scan_head or notice.seq in self._seen):
                continue
            self._seen.append(notice.seq)
            if not late:
                self.input_head = notice.seq
            if notice.own:
                continue
            if not late:
                self.coverage_head = notice.seq
            if notice.appends:
                self.scan_owed = True
                self.space.counters.appended += notice.appends
            if self.backstop is not None:
                self.scan_owed = True  # input re-arms early
        return self.coverage_head

    @property
    def has_work(self) -> bool:
        """Whether another cycle is due at once."""
        return bool(self.feed or self.scan_owed or (self.wave is not None and self.wave.contributions))

    @property
    def due(self) -> bool:
        """Whether a loop that waits goes on: it was woken, something was sealed meanwhile, or its tenure has ended."""
        return self.woken or self.has_work or not self.active

    # -- deferrals -----------------------------------------------------------------------------------------------

    def streak(self, key: str) -> None:
        """A pass was stopped by something before it was queued, once more in a row."""
        self.streaks[key] = count = self.streaks.get(key, 0) + 1
        if count == STUCK_AFTER:
            self.space.counters.pre_queue_deferral_stuck += 1

    def arm(self) -> None:
        """Arm the backstop, unless it is armed."""
        if self.backstop is not None or self.knobs.timer_ms is None:
            return
        if not self.active and not self.knobs.park_arms_timer:
            return
        clock = self.space.clock
        self.backstop = clock.at(clock.now + self.knobs.timer_ms, self._fire)
        self.space.counters.deferred_rescans_armed += 1
        self.note(Timer("arm"))

    def _fire(self) -> None:
        self.backstop = None
        if self.active:
            self.space.counters.deferred_rescans_fired += 1
            self.note(Timer("fire"))
            self.scan_owed = True
            self.woken = True

    def release_guard(self, event_id: str | None) -> None:
        """An event may be queued again."""
        self.in_flight.pop(event_id, None)

    # -- the end -------------------------------------------------------------------------------------------------

    def park(self) -> None:
        """What a park does before it waits for anything."""
        self.note(Park("begin"))
        self.active = False
        if self.backstop is not None:
            self.backstop.cancelled = True
            self.backstop = None
            self.note(Timer("clear"))
        self.woken = True
        self.in_flight.clear()
        if self.floor is not None:
            self.floor = None
            self.note(Floor(None))
        wave, self.wave = self.wave, None
        if wave is not None:
            self.view.release(wave)
        if self.knobs.park_drops_queued:
            self.queue.clear()

    def dispose(self) -> None:
        """The runtime is gone, and with it the view and its connection."""
        self.disposed = True
        self.queue.clear()
        self.transport.close()
        self.note(Park("end"))

    def idle_park(self) -> Alarm:
        """Park by itself after it was idle for long, unless something is pending then."""
        clock = self.space.clock
        return clock.at(clock.now + IDLE_PARK_MS, self._park_if_idle)

    def _park_if_idle(self) -> None:
        if self.active and not self.has_work and not self.space.engine.pending():
            self.space.park()
