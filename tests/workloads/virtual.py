"""A whole run in virtual time: one writer, an obedient store, and the scenario's own driver and step bodies.

Nothing sleeps. A decision is in the log before the next event happens, so that the run completes whatever its timing;
what the timing decides is who wins each race.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Any

from stormctl.engine.door import Create, Outcome, Pass
from stormctl.engine.engines import engine_for
from stormctl.history import Event, EventLog, Inline, ids, kinds
from stormctl.workloads import base as acts
from stormctl.workloads.base import Pressure, Workload

RUN_ID = "wrun_01KE0000000000000000000000"
BEGAN = ids.ulid_ms(RUN_ID) or 0


class Run:
    """One run of a scenario. ``latency`` is what a step waits before its body begins, in ms."""

    def __init__(
        self,
        code: Workload,
        input: Any,
        *,
        generation: str = "dispenser",
        seed: int = 0,
        latency: Callable[[str, tuple[Any, ...]], float] = lambda _name, _arguments: 5.0,
    ) -> None:
        self.code = code
        self.input = input
        self.now = float(BEGAN)
        self.pressure = Pressure()
        #: (ms since the run began, what) of everything that the driver sent
        self.sent: list[tuple[float, str]] = []
        self._latency = latency
        self._random = random.Random(seed)
        self._engine = engine_for(generation, code, input)
        self._events: list[Event] = []
        self._offered = 0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._known: set[str] = set()
        self._hooks: dict[str, str] = {}
        self._watchers: list[tuple[Callable[[], Any], Callable[[Any], None]]] = []
        self.ended = False
        self.last: Pass | None = None

    @property
    def log(self) -> EventLog:
        return EventLog(self._events, RUN_ID)

    def to_the_end(self) -> Any:
        """Run until the workflow has returned; its value."""
        self._append(kinds.RUN_CREATED)
        self._append(kinds.RUN_STARTED)
        session = self._engine.open(self.log)
        self.last, self._offered = session.first, len(self._events)
        self._drive(self.code.driver(self.input, self.pressure), lambda: None)
        while True:
            self._write()
            if self.ended or len(self._events) > self._offered:
                fresh = self._events[self._offered :]
                self._offered = len(self._events)
                if self.ended:
                    break
                self.last = session.extend(fresh)
                assert self.last.divergence is None, self.last.divergence
                assert self.last.outcome is not Outcome.FAILED, self.last.error
                continue
            assert self._due, "the run is stuck"
            self.now, _, action = heappop(self._due)
            action()
            self._watch()
        session.close()
        while self._due:  # what was under way when the run ended
            self.now, _, action = heappop(self._due)
            action()
        return self.last.value

    # -- the writer --------------------------------------------------------------------------------------------------

    def _write(self) -> None:
        last = self.last
        assert last is not None
        for item in last.pending:
            id = item.correlation_id
            if item.create is Create.HOOK and id not in self._known:
                self._known.add(id)
                self._hooks[item.token or ""] = id
                self._append(kinds.HOOK_CREATED, id, token=item.token)
            if item.disposed and self._hooks.get(item.token or "") == id:
                del self._hooks[item.token or ""]
                self._append(kinds.HOOK_DISPOSED, id)
        for item in last.pending:
            id = item.correlation_id
            if id in self._known or item.create in (None, Create.HOOK):
                continue
            self._known.add(id)
            if item.create is Create.WAIT:
                due = item.resume_at or 0
                self._append(kinds.WAIT_CREATED, id, resume_at=due)
                self._at(due, lambda id=id, due=due: self._append(kinds.WAIT_COMPLETED, id, resume_at=due))
            else:
                assert item.name is not None
                name, arguments = item.name, tuple(item.arguments)
                self._append(kinds.STEP_CREATED, id, name=name, payload=Inline(list(arguments)))
                self._append(kinds.STEP_STARTED, id, name=name)
                self._in(self._latency(name, arguments), lambda n=name, a=arguments, i=id: self._step(n, a, i))
        if last.outcome is Outcome.COMPLETED:
            self.ended = True
            self._append(kinds.RUN_COMPLETED, payload=Inline(last.value))
        self._watch()

    def _step(self, name: str, arguments: tuple[Any, ...], id: str) -> None:
        body = self.code.steps[name](*arguments)

        def go_on() -> None:
            self._act(body, None, id, name, go_on)

        go_on()

    def _act(self, body: Any, reply: Any, id: str, name: str, go_on: Callable[[], None]) -> None:
        while True:
            try:
                act = body.send(reply)
            except StopIteration as returned:
                self._append(kinds.STEP_COMPLETED, id, name=name, payload=Inline(returned.value))
                return
            reply = None
            match act:
                case acts.Sleep(ms):
                    self._in(ms, go_on)
                    return
                case acts.SetAttributes(changes):
                    writer = {"writer": {"type": "step"}}
                    self._append(kinds.ATTR_SET, data={"changes": dict(changes), **writer})
                case acts.StepAttempt():
                    reply = 1
                case acts.Now():
                    reply = round(self.now)
                case _:
                    raise AssertionError(f"a step body cannot {act}")

    def _append(self, event_type: str, id: str | None = None, **fields: Any) -> None:
        place = len(self._events) + 1
        time = round(self.now)
        self._events.append(
            Event(
                type=event_type,
                run_id=RUN_ID,
                event_id=f"evnt_{ids.compose(time, place)}",
                correlation_id=id,
                position=place,
                created_at=time,
                **fields,
            )
        )

    # -- the driver ---------------------------------------------------------------------------------------------------

    def _drive(self, driver: acts.Driver, done: Callable[[], None], reply: Any = None) -> None:
        while True:
            try:
                act = driver.send(reply)
            except StopIteration:
                done()
                return
            match act:
                case acts.RunEnded():
                    reply = self.ended
                case acts.Now():
                    reply = round(self.now)
                case acts.Uniform():
                    reply = self._random.random()
                case acts.Resume(token, payload):
                    reply = self._resume(token, payload)
                case acts.Sleep(ms):
                    self._in(ms, lambda: self._drive(driver, done))
                    return
                case acts.Together(drivers):
                    left = len(drivers)

                    def one_done() -> None:
                        nonlocal left
                        left -= 1
                        if not left:
                            self._drive(driver, done)

                    for one in drivers:
                        self._drive(one, one_done)
                    return
                case acts.WaitForHook(token, timeout):
                    self._until(lambda: self._hooks.get(token), timeout, driver, done)
                    return
                case acts.LastWait(timeout):
                    self._until(self._last_wait, timeout, driver, done)
                    return
                case _:
                    raise AssertionError(f"a driver cannot {act}")

    def _resume(self, token: str, payload: Any) -> bool:
        self.sent.append((self.now - BEGAN, token))
        id = self._hooks.get(token)
        if id is None or self.ended:
            return False
        self._append(kinds.HOOK_RECEIVED, id, token=token, payload=Inline(payload))
        return True

    def _last_wait(self) -> int | None:
        ended = {event.correlation_id for event in self._events if event.type == kinds.WAIT_COMPLETED}
        pending = [
            event.resume_at
            for event in self._events
            if event.type == kinds.WAIT_CREATED and event.correlation_id not in ended
        ]
        return pending[-1] if pending else None

    def _until(self, look: Callable[[], Any], timeout: float, driver: acts.Driver, done: Callable[[], None]) -> None:
        answered = False

        def answer(value: Any) -> None:
            nonlocal answered
            if not answered:
                answered = True
                self._drive(driver, done, value)

        self._watchers.append((look, answer))
        self._in(timeout, lambda: answer(None))
        self._watch()

    def _watch(self) -> None:
        for watcher in list(self._watchers):
            look, answer = watcher
            seen = None if self.ended else look()
            if (seen is not None or self.ended) and watcher in self._watchers:
                self._watchers.remove(watcher)
                answer(seen)

    # -- time ---------------------------------------------------------------------------------------------------------

    def _in(self, ms: float, action: Callable[[], None]) -> None:
        self._at(self.now + max(0.0, ms), action)

    def _at(self, time: float, action: Callable[[], None]) -> None:
        heappush(self._due, (max(time, self.now), next(self._order), action))
