"""Driving a delivery by hand: every request is answered by a small in-memory log that a test can bend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

from stormctl.engine.door import CALM
from stormctl.engine.generations import DISPENSER
from stormctl.history import Event, Inline, ids, kinds
from stormctl.runtime import ops
from stormctl.runtime.delivery import Delivery, deliver
from stormctl.runtime.notes import tally
from stormctl.runtime.rules import Rules
from stormctl.workloads.base import Workload
from stormctl.worlds.base import NO_PAYLOAD, Appended, AppendRequest, Claimed, Message, Page, Refusal, Refused

RUN = "wrun_01KE0000000000000000000000"
Answer = Callable[[AppendRequest], Appended | Refused | None]
Bend = Callable[[Page], Page]


@dataclass
class Stage:
    """A log, a clock and a record of everything asked.

    ``answer`` may decide an append before the log does, and ``bend`` may spoil a page before it is read.

    The log is numbered by seq; with ``slots`` its ids are the slots. With ``in_band`` (the count so far) the store
    counts decisions and refuses one whose writer counts otherwise.
    """

    code: Workload
    input: dict[str, Any] = field(default_factory=dict)
    rules: Rules = field(default_factory=lambda: Rules(generation=DISPENSER))
    now: int = ids.ulid_ms(RUN) or 0
    answer: Answer = lambda request: None
    events: list[Event] = field(default_factory=list)
    asked: list[ops.Op] = field(default_factory=list)
    sent: list[ops.Enqueue] = field(default_factory=list)
    unread: int = 0
    bend: Bend = lambda page: page
    slots: bool = False
    in_band: int | None = None

    def __post_init__(self) -> None:
        self.land(
            AppendRequest(RUN, kinds.RUN_CREATED, "driver", payload=self.input, data={"workflowName": self.code.name})
        )

    def land(self, request: AppendRequest) -> Appended:
        """Put an event at the end of the log, a lazy start as two."""
        types = [kinds.STEP_CREATED, kinds.STEP_STARTED] if request.lazy else [request.type]
        made = []
        for type in types:
            position = len(self.events) + 1
            self.now += 1
            payload = None if request.payload is NO_PAYLOAD or type == kinds.STEP_STARTED else Inline(request.payload)
            event = Event(
                type,
                RUN,
                ids.slot_id(position) if self.slots else f"evnt_{ids.compose(self.now, position)}",
                request.correlation_id,
                position,
                self.now,
                request.name,
                request.token,
                request.resume_at,
                payload=payload,
                data=request.data,
            )
            self.events.append(event)
            made.append(event)
        return Appended(tuple(made))

    def message(self, **fields: Any) -> Claimed:
        """A message for the run."""
        return Claimed("msg_1", Message(RUN, **fields), 1)

    def deliver(self, **fields: Any) -> Delivery:
        """Deliver one message to its end."""
        return self.run(deliver(self.message(**fields), self.code, self.rules))

    def run(self, requests: Generator[ops.Op, Any, Any]) -> Any:
        """Answer every request until the generator returns."""
        reply: Any = None
        while True:
            try:
                op = requests.send(reply)
            except StopIteration as returned:
                return returned.value
            reply = self._reply(op)

    def _reply(self, op: ops.Op) -> Any:
        self.asked.append(op)
        match op:
            case ops.Append(request):
                return self._append(request)
            case ops.AppendBatch(requests):
                before, log = list(self.events), self.in_band
                replies = []
                for request in requests:
                    replies.append(self._append(request))
                    if isinstance(replies[-1], Refused) and replies[-1].refusal is Refusal.PRECONDITION:
                        self.events, self.in_band = before, log
                        return (replies[-1],) * len(requests)
                return tuple(replies)
            case ops.Load(_, after):
                visible = self.events[: len(self.events) - self.unread]
                start = int(after) if after else 0
                return self.bend(Page(tuple(visible[start:]), str(len(visible)), self.in_band))
            case ops.Now():
                return self.now
            case ops.Sleep(ms, _):
                self.now += round(ms)
            case ops.Enqueue(key=key):
                if key is None or all(sent.key != key for sent in self.sent):
                    self.sent.append(op)
            case ops.Draw("writer"):
                return "wrt_1"
            case ops.Draw(_):
                return CALM
            case ops.Together(parts):
                return [self.run(part) for part in parts]
        return None

    def _append(self, request: AppendRequest) -> Appended | Refused:
        decided = self.answer(request)
        if decided is not None:
            return decided
        told = None if request.snapshot is None else request.snapshot.in_band
        if self.in_band is not None and told is not None and kinds.is_decision(request.type, lazy_start=request.lazy):
            if told != self.in_band:
                return Refused(Refusal.PRECONDITION, f"the log holds {self.in_band} in-band events, not {told}")
            self.in_band += 2 if request.lazy else 1
        return self.land(request)

    def notes(self, what: str) -> list[Mapping[str, Any]]:
        """The fields of every note of that name."""
        return [op.data for op in self.asked if isinstance(op, ops.Note) and op.what == what]

    @property
    def counted(self) -> Counter[str]:
        """What a storm would sum of all notes."""
        total: Counter[str] = Counter()
        for op in self.asked:
            if isinstance(op, ops.Note):
                total.update(tally(op.what, op.data))
        return total

    @property
    def appended(self) -> list[AppendRequest]:
        """Every append that was asked for, in order."""
        found: list[AppendRequest] = []
        for op in self.asked:
            if isinstance(op, ops.Append):
                found.append(op.request)
            elif isinstance(op, ops.AppendBatch):
                found += op.requests
        return found

    @property
    def types(self) -> list[str]:
        """The types of the log."""
        return [event.type for event in self.events]
