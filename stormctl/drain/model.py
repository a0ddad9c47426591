"""A run of a loop as a model of the simulator: loop, handlers, view, clients, others and the clock are its actors."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stormctl.drain.drain import SPACE, PassCrashed
from stormctl.drain.loop import handle, serve
from stormctl.drain.setup import Setup
from stormctl.drain.space import SHADOW, Space
from stormctl.drain.tenure import Tenure
from stormctl.sim.kernel import Body, Label, Problem, Run, Stage, Wait
from stormctl.sweeps.drain.records import Counters, DrainTrace

#: changes whenever a tape would mean another schedule than before
VERSION = 1
#: virtual time that is given, behind the last thing that others do, for everything to come to rest
REST_MS = 4_000
#: what a loop waits for in the middle of a cycle: where it never comes, it waits for ever
DEADLOCKS = ("its own sealed writes", "an ordered response", "handlers and frames")
Judge = Callable[[DrainTrace], Sequence[Problem]]


def _write(name: str) -> Label:
    return Label(name, SPACE, writes=True)


class Play:
    """One run: the space, and who takes turns in it."""

    def __init__(self, setup: Setup, judge: Judge | None) -> None:
        self.setup = setup
        self.space = Space(setup)
        self.crashed = ""
        self._judge = judge
        self._left = len(setup.clients) + len(setup.actors) * setup.times
        self._tenures = 0
        self._looked = 0

    def begin(self, stage: Stage) -> None:
        """Preset the watermark by the first commit, activate the first tenure and spawn everybody."""
        space = self.space
        space.engine.watermark = space.engine.commit()
        space.parking = lambda tenure: self._spawn_park(stage, tenure)
        self._activate()
        space.start()
        if self.setup.clients:
            stage.spawn("C", self._client())
        self._spawn_runtime(stage)
        for name in self.setup.actors:
            stage.spawn(name.capitalize(), self._other(name), last=True)
        stage.spawn("Clock", self._clock(stage), last=True)
        if not self._left:
            self._ended(0)

    def judge(self, run: Run) -> Sequence[Problem]:
        """What the sweeps of this room say of the trace."""
        if self._judge is None:
            return ()
        problems = list(self._judge(self.trace()))
        tenure = self.space.tenure
        if tenure is not None and tenure.active and not run.cut:
            for missing in dict.fromkeys(one for one in run.missing if one in DEADLOCKS):
                problems.append(Problem("deadlock", f"deadlock/{missing}", f"the loop waits for {missing} for ever"))
        return problems

    def observed(self) -> str:
        """What is new since the last look: what must be the same each time a schedule is played."""
        records = self.space.recorder.records
        fresh, self._looked = records[self._looked :], len(records)
        return "; ".join(map(str, fresh))

    def trace(self) -> DrainTrace:
        """What happened, with the counters at the end."""
        found = self.space.recorder.trace(self.setup.name)
        if not found.records or not isinstance(found.records[-1].what, Counters):
            self.space.note(Counters(self.space.counters.reported()), self._tenures)
            found = self.space.recorder.trace(self.setup.name)
        return found

    # -- actors --------------------------------------------------------------------------------------------------

    def _activate(self) -> None:
        self._tenures += 1
        self.space.tenure = Tenure(self.space, self._tenures)

    def _spawn_runtime(self, stage: Stage) -> None:
        tenure = self.space.tenure
        assert tenure is not None
        number = "" if tenure.number == 1 else str(tenure.number)
        stage.spawn(f"L{number}", self._loop(tenure))
        stage.spawn(f"V{number}", self._view(tenure))
        stage.spawn(f"H{number}", handle(tenure))

    def _loop(self, tenure: Tenure) -> Body:
        try:
            yield from serve(tenure)
        except PassCrashed as crash:
            self.crashed = str(crash)
            self.space.park()

    def _view(self, tenure: Tenure) -> Body:
        while True:
            yield Wait(_write("apply"), lambda: bool(tenure.transport.wire), "a frame")
            self.space.receive(tenure)

    def _clock(self, stage: Stage) -> Body:
        """One alarm, and another clock for the next: who had the last turn goes on first, and time comes last."""
        clock = self.space.clock
        yield Wait(_write("timer"), lambda: clock.due is not None, "a timer")
        clock.fire()
        stage.spawn("Clock", self._clock(stage), last=True)

    def _client(self) -> Body:
        for doc, event_id in self.setup.clients:
            if self.setup.patient:
                yield Wait(_write("admit"), self._is_new(doc, event_id), "an event that is no duplicate")
            else:
                yield _write("admit")
            self.space.admit(doc, event_id, told=True)
            self._ended()

    def _is_new(self, doc: str, event_id: str) -> Callable[[], bool]:
        return lambda: not self.space.engine.duplicate(doc, event_id)

    def _spawn_park(self, stage: Stage, tenure: Tenure) -> None:
        stage.spawn(f"Park{'' if tenure.number == 1 else tenure.number}", self._park(stage, tenure))

    def _park(self, stage: Stage, tenure: Tenure) -> Body:
        """What a park waits for: the seals, then the scheduler; then the lease goes to the next tenure."""
        yield _write("abandon")
        yield Wait(_write("dispose"), lambda: not tenure.queue, "the scheduler")
        tenure.dispose()
        if self._tenures < self.setup.tenures:
            yield _write("activate")
            self._activate()
            self._spawn_runtime(stage)

    def _other(self, name: str) -> Body:
        """Somebody else, who acts so many times, whenever they are let and can."""
        space, docs = self.space, sorted({doc for doc, _ in self.setup.clients})
        acting: dict[str, Callable[[], object]] = {
            "unrelated": space.unrelated,
            "park": space.park,
            "compact": self._compact,
            "consequence": self._consequence,
        }
        for number in range(self.setup.times):
            if name == "shadow":
                yield from self._shadow(docs[number % len(docs)])
            else:
                yield Wait(_write(name), self._can(name, docs), "somebody to act upon")
                acting[name]()
            self._ended()

    def _can(self, name: str, docs: Sequence[str]) -> Callable[[], bool]:
        space = self.space
        if name == "consequence":
            return lambda: bool(space.engine.pending())
        if name == "park":
            return lambda: space.tenure is not None and space.tenure.active
        if name == "compact":
            return lambda: any(
                one.consequenced and one.seq is not None and one.seq <= space.engine.frontier.get(doc, 0)
                for doc in docs
                for one in space.engine.entries(doc)
            )
        return lambda: True

    def _compact(self) -> None:
        for doc in sorted({doc for doc, _ in self.setup.clients}):
            self.space.compact(doc)

    def _consequence(self) -> None:
        pending = self.space.engine.pending()
        doc, entry = min(pending, key=lambda one: (one[1].seq or 0, one[0]))
        self.space.consequence(doc, entry.event_id or "")

    def _shadow(self, doc: str) -> Body:
        """A sealed write over a sidecar, and its withdrawal. It is the loop's own, so it is not sealed between the
        moment at which an entry of the sidecar is seen and that at which its mark has its outcome."""
        space = self.space

        def free() -> bool:
            tenure = space.tenure
            if tenure is None or not tenure.active or tenure.aiming == doc or tenure.in_flight:
                return False
            return not tenure.queue and (tenure.wave is None or not tenure.wave.contributions)

        yield Wait(_write("shadow"), free, "a quiet loop")
        space.shadow(doc, "absent")
        tenure = space.tenure
        yield _write("release")
        if tenure is not None:
            tenure.view.release(SHADOW)

    def _ended(self, count: int = 1) -> None:
        """One thing less that others will do; behind the last, timers go off for a while and no longer."""
        self._left -= count
        if self._left <= 0 and self.setup.until is None and self.space.clock.until is None:
            self.space.clock.until = self.space.clock.now + REST_MS


@dataclass(frozen=True, slots=True)
class DrainModel:
    """A setup, to be scheduled; ``judge`` says what is wrong with a trace."""

    setup: Setup
    judge: Judge | None = None

    @property
    def name(self) -> str:
        """The setup's."""
        return f"drain:{self.setup.name}"

    @property
    def digest(self) -> str:
        """Of the setup and of this code's version."""
        return hashlib.blake2b(f"{VERSION} {self.setup!r}".encode(), digest_size=8).hexdigest()

    def start(self, stage: Stage) -> Play:
        """Begin anew."""
        play = Play(self.setup, self.judge)
        play.begin(stage)
        return play
