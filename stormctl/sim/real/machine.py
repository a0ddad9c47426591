"""One simulated run: the real deliveries and the real appends, each visible operation a turn.

A turn goes from one operation that others could notice to just before the next one. What a writer does under the lock
of a run nobody else can see, so it is no turn of its own; a draw of an id is one only where ids are handed out in an
order that matters before the event is readable.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from random import Random
from typing import Any

from stormctl.engine.door import CALM, Pass
from stormctl.engine.engines import engine_for
from stormctl.errors import StoreFailure
from stormctl.history import Capture, Event, EventLog, Evidence, RunRow, kinds
from stormctl.runtime import ops
from stormctl.runtime.delivery import deliver
from stormctl.runtime.ops import Requests
from stormctl.sim.kernel import Body, Label, Pick, Problem, Run, Stage, Wait
from stormctl.sim.real.appends import RUN_ID, Appends, Died, Me, Turns, may_die, said
from stormctl.sim.real.passes import Passes
from stormctl.sim.real.record import Happened, Passed
from stormctl.sim.real.scenario import Cancelled, Scenario, Sent
from stormctl.sim.real.worlds import Dedupe, SimWorld, Unseen
from stormctl.workloads.base import StepBody
from stormctl.worlds.admission import counts_in_band
from stormctl.worlds.base import NO_PAYLOAD, Appended, AppendRequest, Claimed, Message, Page, Refused
from stormctl.worlds.memory_store import MemoryStore
from stormctl.worlds.mint import Minter
from stormctl.worlds.reads import page_of
from stormctl.worlds.store_ops import (
    Tail,
)

EPOCH_MS = 1_767_379_042_304
#: deliveries of one run after which it is taken to go on for ever
MOST_DELIVERIES = 200
#: how often a delivery, or a sender, tries again after its store has failed
MOST_ATTEMPTS = 3
#: how many of the events of a read may be left out, the latest ones
MOST_UNSEEN = 4
NOTHING = "nothing"

_ENDS = frozenset({"completed", "failed", "cancelled"})


@dataclass(eq=False, slots=True)
class _Sent:
    """A message in the queue."""

    number: int
    ready: int
    message: Message
    message_id: str
    attempt: int
    key: str | None
    taken: bool = False


class _InOrder(Minter):
    """Ids in the order of minting, also within one millisecond: real time does not stand still between two of them."""

    def mint(self, ms: int, *, monotonic: bool) -> str:
        """The next id."""
        return super().mint(ms, monotonic=True)


class Machine:
    """The state of one run. ``log`` is what is stored; ``happened`` and ``passes`` are what a trace is drawn from."""

    def __init__(self, stage: Stage, scenario: Scenario, world: SimWorld, passes: Passes) -> None:
        self.scenario = scenario
        self.world = world
        self.now = EPOCH_MS
        self.store = MemoryStore(world.condition, _InOrder(lambda: self.now, Random(0)))
        self.happened: list[Happened] = []
        self.passed: list[Passed] = []
        self.notes: list[tuple[str, str, dict[str, Any]]] = []
        self.refused: list[tuple[str, AppendRequest, Refused]] = []
        self.errors: list[str] = []
        self.deliveries = 0
        self.finished: Counter[str] = Counter()
        self.oracles: Callable[[Machine, Run], Sequence[Problem]] = lambda _machine, _run: ()
        self._stage = stage
        self._code = replace(scenario.workload, steps={name: self._counted(name) for name in scenario.workload.steps})
        self._input = self._code.parse_input(scenario.input)
        self._passes = passes
        self._rules = replace(scenario.rules, engines=self._engine, batch_atomic=world.condition.batch_atomic)
        self._queue: list[_Sent] = []
        self._keys: dict[str, None] = {}
        self._dues: list[int] = []
        self._flows = 0
        self._names: dict[str, int] = {}
        self._messages = 0
        self._acting = ""
        self._busy: dict[str, None] = {}
        self._appends = Appends(self)
        self._hurried = 0
        self._begin()

    # -- what is left ------------------------------------------------------------------------------------------------

    @property
    def events(self) -> tuple[Event, ...]:
        """The run's events, in the order of the log."""
        return self.store.log(RUN_ID).events()

    @property
    def log(self) -> EventLog:
        """The run's log."""
        return EventLog(self.events, RUN_ID)

    @property
    def row(self) -> RunRow | None:
        """The run's row."""
        row = self.store.runs.get(RUN_ID)
        return None if row is None else row.row()

    @property
    def ended(self) -> bool:
        """Whether the run has come to an end."""
        row = self.row
        return row is not None and row.status in _ENDS

    def capture(self) -> Capture:
        """The run as a capture: what sweeps take."""
        row = self.row
        if row is not None:
            row = replace(row, workload=self._code.name, input=dict(self.scenario.input))
        return Capture(
            source=self.scenario.name, log=self.log, evidence=Evidence(origin="simulated", live=not self.ended), run=row
        )

    def observed(self) -> str:
        """What the last turn has left, in words: for a chain of hashes (:mod:`stormctl.sim.chain`), whose links hold
        what was before. With each event its id, time and payload; at last the run's own row."""
        last = len(self._stage.run.turns) - 1
        new = list(takewhile(lambda one: one.turn == last, reversed(self.happened)))
        told = [f"{one.actor} {one.op} {one.text} {one.saw} {one.hidden} {_exact(one.event)}" for one in reversed(new)]
        return f"{self.now} {self.row if self.ended else ''} {'; '.join(told)}"

    def replay(self, length: int) -> Pass:
        """A replay of the first events of the log by a fresh engine, which nobody is told of: for the oracles."""
        return next(self.replays((length,)))

    def replays(self, lengths: Sequence[int]) -> Iterator[Pass]:
        """The same of several prefixes, shortest first, in one walk. Kept passes of the run are not asked: a fault in
        how they are told apart must show."""
        engine = engine_for(self.scenario.rules.generation.name, self.scenario.workload, self._input)
        return iter(engine.passes(self.log, lengths))

    def judge(self, run: Run) -> Sequence[Problem]:
        """What the oracles say of the run."""
        return self.oracles(self, run)

    # -- the beginning -----------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Create the run, which nobody can interleave with, and spawn whoever acts from outside, and the clock."""
        created = AppendRequest(
            RUN_ID,
            kinds.RUN_CREATED,
            "driver",
            payload=dict(self.scenario.input),
            data={"workflowName": self._code.name, "deploymentId": "stormctl"},
        )
        _at_once(self._appends.append((created,), Me("driver")))
        self._send(Message(RUN_ID), 0, None)
        for one in self.scenario.outside:
            self._spawn(one.actor, self._from_outside(one))
        self._stage.spawn("clock", self._clock(), last=True)

    def _spawn(self, name: str, body: Body) -> int:
        return self._stage.spawn(name, body)

    def _named(self, name: str) -> str:
        """A name that nobody has: ``S:settle``, then ``S:settle#2``."""
        count = self._names[name] = self._names.get(name, 0) + 1
        return name if count == 1 else f"{name}#{count}"

    # -- time --------------------------------------------------------------------------------------------------------

    def _clock(self) -> Body:
        """Time moves to when something is due, and only when its turn comes."""
        while True:
            yield Wait(Label("tick", "clock", writes=True), self._due, "")
            self._hurried += self._is_busy()
            self.now = self._dues[0]
            self.note("clock", "tick", f"+{self.now - EPOCH_MS} ms")

    def _due(self) -> bool:
        while self._dues and self._dues[0] <= self.now:
            heapq.heappop(self._dues)
        if not self._dues or self.ended:
            return False
        return self._hurried < self.world.hurry or not self._is_busy()

    def _is_busy(self) -> bool:
        """Whether somebody is in the middle of something, or a message could be taken."""
        return bool(self._busy) or any(not sent.taken and self._may_be_taken(sent) for sent in self._queue)

    def _until(self, due: int, reason: str, me: Me) -> Turns:
        """Wait for a time; whoever does is not busy."""
        self._at(due)
        self._busy.pop(me.name, None)
        yield Wait(Label("wake", "clock", detail=reason), lambda: self.now >= due, "")
        self._busy[me.name] = None

    def _at(self, due: int) -> None:
        if due > self.now:
            heapq.heappush(self._dues, due)

    # -- the queue ---------------------------------------------------------------------------------------------------

    def _send(self, message: Message, delay_ms: float, key: str | None) -> None:
        """Put a message into the queue. Its delivery is an actor of its own, which waits until it is due."""
        if key is not None:
            if key in self._keys:
                return
            self._keys[key] = None
        self._messages += 1
        self._put(_Sent(self._messages, self.now + round(delay_ms), message, f"msg_{self._messages}", 1, key))

    def _put(self, sent: _Sent) -> None:
        self._queue.append(sent)
        self._at(sent.ready)
        flow = sent.message.step_id is None
        name = f"O{self._count('O')}" if flow else self._named(f"S:{sent.message.step_name}")
        self._spawn(name, self._deliver(sent, Me(name, self.world.crash)))

    def _count(self, what: str) -> int:
        count = self._names[what] = self._names.get(what, 0) + 1
        return count

    def _may_be_taken(self, sent: _Sent) -> bool:
        """Whether a message is due, and for a delivery of the run, whether the lease is free and it is the oldest."""
        if sent.ready > self.now or self.deliveries >= MOST_DELIVERIES:
            return False
        if sent.message.step_id is not None:
            return True
        if not self.world.serial:
            return True
        if self._flows:
            return False
        before = (
            one
            for one in self._queue
            if not one.taken and one.message.step_id is None and (one.ready, one.number) < (sent.ready, sent.number)
        )
        return not any(one.ready <= self.now for one in before)

    def _deliver(self, sent: _Sent, me: Me) -> Body:
        what = "run" if sent.message.step_id is None else f"step {sent.message.step_name}"
        missing = f"the delivery of message {sent.number}" if sent.ready <= self.now else ""
        yield Wait(Label("take", "queue", writes=True, detail=what), lambda: self._may_be_taken(sent), missing)
        sent.taken = True
        flow = sent.message.step_id is None
        self._flows += flow
        self.deliveries += 1
        self._busy[me.name] = None
        self.note(me.name, "take", f"takes {what}")
        claimed = Claimed(sent.message_id, sent.message, sent.attempt)
        try:
            yield from self._drive(deliver(claimed, self._code, self._rules), me)
        except Died:
            self.note(me.name, "died", "dies")
            self._put(replace(sent, ready=self.now, attempt=sent.attempt + 1, taken=False))
        except StoreFailure as failure:
            self.note(me.name, "failed", f"fails: {failure}")
            if sent.attempt >= MOST_ATTEMPTS:
                self.errors.append(f"{me.name}: {failure}")
            else:
                self._put(replace(sent, ready=self.now + 50, attempt=sent.attempt + 1, taken=False))
        else:
            if sent.key is not None and self.world.dedupe is Dedupe.IN_FLIGHT:
                self._keys.pop(sent.key, None)
        finally:
            self._busy.pop(me.name, None)
            self._flows -= flow
            self._queue.remove(sent)

    # -- what a delivery asks for ------------------------------------------------------------------------------------

    def _drive(self, requests: Requests, me: Me, first: ops.Op | None = None) -> Turns:
        """Answer a delivery's requests to its end; what it returned. ``first`` is one that was asked for already."""
        reply: Any = None
        while True:
            if first is not None:
                op, first = first, None
            else:
                self._acting = me.name
                try:
                    op = requests.send(reply)
                except StopIteration as returned:
                    return returned.value
            try:
                reply = yield from self._answer(op, me)
            except Died:
                requests.close()
                raise

    def _answer(self, op: ops.Op, me: Me) -> Turns:
        match op:
            case ops.Append(request):
                return (yield from self._appends.append((request,), me))[0]
            case ops.AppendBatch(requests):
                return (yield from self._appends.batch(requests, me))
            case ops.Load(run_id, after):
                return (yield from self._load(run_id, after, me))
            case ops.Enqueue(message, delay_ms, key):
                yield from self._enqueue(message, delay_ms, key, me)
            case ops.Sleep(ms, reason):
                if ms > 0 and reason != "pass":  # a pass takes no virtual time: whoever wants may go in between
                    yield from self._until(self.now + round(ms), reason, me)
                elif reason == "step body":
                    yield Label("body", "")
            case ops.Now():
                return self.now
            case ops.Draw("writer"):
                return f"wrt_{me.name}"
            case ops.Draw(_):
                return CALM
            case ops.Note(what, data):
                self.notes.append((me.name, what, dict(data)))
            case ops.Kill(_):
                raise Died
            case ops.Together(parts):
                return (yield from self._together(parts, me))
        return None

    def _enqueue(self, message: Message, delay_ms: float, key: str | None, me: Me) -> Turns:
        what = "run" if message.step_id is None else f"step {message.step_name}"
        yield Label("send", "queue", writes=True, detail=what)
        if self.world.drops and (yield Pick("queue", ("kept", "lost"))) == 1:
            self.note(me.name, "send", f"sends {what}, and the queue loses it")
            if key is not None:
                self._keys[key] = None
            return
        if self.world.delays and (yield Pick("delay", ("none", "a second"))) == 1:
            delay_ms += 1000
        self._send(message, delay_ms, key)
        if self.world.duplicates and (yield Pick("deliver", ("once", "twice"))) == 1:
            self._messages += 1
            twin = _Sent(self._messages, self.now + round(delay_ms), message, f"msg_{self._messages - 1}", 2, None)
            self._put(twin)

    def _together(self, parts: Sequence[Requests], me: Me) -> Turns:
        """Run the parts side by side, each an actor named by the step that it runs."""
        results: dict[int, Any] = {}
        for number, part in enumerate(parts):
            try:
                first = next(part)
            except StopIteration as returned:
                results[number] = returned.value
                continue
            child = self._child(first, me)
            self._spawn(child, self._part(part, first, number, results, child))
        wanted = len(parts)
        self._busy.pop(me.name, None)
        yield Wait(Label("join"), lambda: len(results) == wanted, "")
        self._busy[me.name] = None
        for number in range(wanted):
            if isinstance(results[number], StoreFailure):
                raise results[number]
        return [results[number] for number in range(wanted)]

    def _child(self, first: ops.Op, me: Me) -> str:
        """What a part is called: by the step that it runs, else by its parent."""
        if isinstance(first, ops.Append) and first.request.type == kinds.STEP_STARTED:
            return self._named(f"S:{first.request.name}")
        return f"{me.name}.{self._count(me.name)}"

    def _part(self, part: Requests, first: ops.Op, number: int, results: dict[int, Any], name: str) -> Body:
        self._busy[name] = None
        try:
            results[number] = yield from self._drive(part, Me(name), first)
        except StoreFailure as failure:
            results[number] = failure  # for the parent, when all its parts have ended
        self._busy.pop(name, None)

    # -- reads -------------------------------------------------------------------------------------------------------

    def _load(self, run_id: str, after: str | None, me: Me) -> Turns:
        yield from may_die(me)
        yield Label("read", f"log {run_id}")
        counted = self.store.tails.get(run_id, Tail()).in_band if counts_in_band(self.world.condition) else None
        page = page_of(self.world.condition, self.store.log(run_id), after, self.now, counted)
        hidden: tuple[Event, ...] = ()
        if self.world.stale and page.events:
            latest = page.events[-MOST_UNSEEN:][::-1]
            chosen = yield Pick("unseen", (NOTHING, *(said(event) for event in latest)))
            if chosen:
                page, hidden = self._without(page, latest[chosen - 1], after)
        saw = tuple(event.event_id or "" for event in page.events)
        text = "reads on" if after is not None else "reads the log"
        self.note(me.name, "read", text, saw=saw, hidden=tuple(event.event_id or "" for event in hidden))
        return page

    def _without(self, page: Page, event: Event, after: str | None) -> tuple[Page, tuple[Event, ...]]:
        at = page.events.index(event)
        if self.world.unseen is Unseen.HOLE:
            return Page(page.events[:at] + page.events[at + 1 :], page.cursor, page.in_band), (event,)
        shown = page.events[:at]
        cursor = self.store.log(RUN_ID).cursor_of(shown[-1]) if shown else after
        return Page(shown, cursor, page.in_band), page.events[at:]

    # -- from outside ------------------------------------------------------------------------------------------------

    def _from_outside(self, one: Sent | Cancelled) -> Body:
        me = Me(one.actor)
        if one.at_ms:
            yield from self._until(EPOCH_MS + one.at_ms, "outside", me)
            self._busy.pop(me.name, None)
        if isinstance(one, Cancelled):
            yield Label("cancel", "")
            request = AppendRequest(RUN_ID, kinds.RUN_CANCELLED, one.actor, data={"cancelReason": "asked for"})
            yield from self._appends.append((request,), me)
            return
        missing = f"a live hook with the token {one.token!r}"
        there = Label("resume", f"log {RUN_ID}", detail=one.token)
        yield Wait(there, lambda: self._is_live(one.token), missing)
        row = self.store.find_hook(one.token)
        if row is None:
            return
        request = AppendRequest(
            row.run_id,
            kinds.HOOK_RECEIVED,
            one.actor,
            correlation_id=row.correlation_id,
            token=one.token,
            payload=one.payload if one.payload is not None else NO_PAYLOAD,
        )
        self._busy[me.name] = None
        answers: Sequence[Appended | Refused] = ()
        for _ in range(MOST_ATTEMPTS):
            try:
                answers = yield from self._appends.append((request,), me)
                break
            except StoreFailure as failure:
                self.note(me.name, "failed", f"fails: {failure}")
        if answers and isinstance(answers[0], Appended):
            yield Label("send", "queue", writes=True, detail="run")
            self._send(Message(row.run_id), 0, None)
        self._busy.pop(me.name, None)

    def _is_live(self, token: str) -> bool:
        """Whether somebody outside can send to a hook."""
        row = self.store.find_hook(token)
        if row is None or not self.world.atomic:
            return row is not None
        return any(event.type == kinds.HOOK_CREATED and event.token == token for event in self.events)

    # -- small -------------------------------------------------------------------------------------------------------

    def _counted(self, name: str) -> StepBody:
        """A step's body that is counted when it has run to its end."""
        body = self.scenario.workload.steps[name]

        def counted(*arguments: Any) -> Generator[Any, Any, Any]:
            result = yield from body(*arguments)
            self.finished[name] += 1
            return result

        return counted

    def _engine(self, generation: str, code: Any, input: Any) -> Any:
        return self._passes.engine(generation, code, input, self._tell)

    def _tell(self, log: EventLog, result: Pass) -> None:
        events = tuple(event.event_id or "" for event in log)
        turn = len(self._stage.run.turns) - 1
        self.passed.append(Passed(turn, self.now, self._acting, events, result))
        self.note(self._acting, "pass", f"replays {result.prefix} events: {result.outcome}")

    def note(
        self,
        actor: str,
        op: str,
        text: str,
        event: Event | None = None,
        saw: tuple[str, ...] = (),
        hidden: tuple[str, ...] = (),
    ) -> None:
        turn = len(self._stage.run.turns) - 1
        self.happened.append(Happened(turn, self.now - EPOCH_MS, actor, op, text, event, saw, hidden))


def _exact(event: Event | None) -> str:
    """All of an event."""
    if event is None:
        return ""
    payload = "" if event.payload is None else event.payload.digest
    return f"{event.position} {event.event_id} {event.created_at} {event.correlation_id} {dict(event.data)} {payload}"


def _at_once(turns: Turns) -> Any:
    """Take all turns of something that nobody can interleave with; what it returned."""
    try:
        while True:
            next(turns)
    except StopIteration as returned:
        return returned.value
