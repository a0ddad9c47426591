"""Appends under the scheduler: the one append pipeline, store operation by store operation."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from stormctl.errors import StoreFailure
from stormctl.history import Event
from stormctl.sim.kernel import Label, Pick, Wait
from stormctl.sim.real.worlds import SimWorld
from stormctl.worlds.base import Appended, AppendRequest, Refused
from stormctl.worlds.condition import Breaking, Point
from stormctl.worlds.memory_store import MemoryStore
from stormctl.worlds.pipeline import append_batch
from stormctl.worlds.store_ops import (
    AbandonLock,
    ClaimOnce,
    ClaimToken,
    Clock,
    ConfirmLock,
    Mint,
    Publish,
    PutEntity,
    PutRun,
    ReadGuard,
    ReleaseLock,
    ReserveSlots,
    StoreOp,
    TakeLock,
)

RUN_ID = "wrun_01KE0000000000000000000000"
Turns = Generator[Label | Wait | Pick, Any, Any]


class Died(Exception):
    """The process of a delivery is gone."""


@dataclass(eq=False, slots=True)
class Me:
    """An actor as its own code knows it. ``mortal``: its process may die before each of its operations."""

    name: str
    mortal: bool = False


class Stored(Protocol):
    """What an append needs of the run that it is made in."""

    store: MemoryStore
    world: SimWorld
    now: int
    refused: list[tuple[str, AppendRequest, Refused]]

    def note(self, actor: str, op: str, text: str, event: Event | None = None) -> None:
        """Write down what happened."""
        ...


def may_die(me: Me) -> Turns:
    """Where a process may end."""
    if me.mortal and (yield Pick("crash", ("goes on", "dies"))) == 1:
        raise Died


def wanted(request: AppendRequest) -> str:
    """A request for a reader: its type and whose it is."""
    return f"{request.type} {request.name}" if request.name else request.type


def said(event: Event) -> str:
    """An event for a reader: its type and whose it is."""
    return f"{event.type} {event.short_name}" if event.short_name else event.type


class Appends:
    """The appends of one run."""

    def __init__(self, machine: Stored) -> None:
        self._machine = machine

    def batch(self, requests: Sequence[AppendRequest], me: Me) -> Turns:
        condition = self._machine.world.condition
        if condition.batch_atomic and condition.locks:
            return tuple((yield from self.append(requests, me)))
        replies = []
        for request in requests:
            replies.append((yield from self.append((request,), me))[0])
        return tuple(replies)

    def append(self, requests: Sequence[AppendRequest], me: Me) -> Turns:
        """One append, operation by operation; the answers."""
        detail = wanted(requests[0])
        generator = append_batch(requests, self._machine.world.condition)
        held: TakeLock | None = None
        try:
            op = next(generator)
            while True:
                try:
                    if isinstance(op, TakeLock):
                        yield from may_die(me)
                        yield self._lock(op, detail)
                    elif (label := self._label(op, detail)) is not None:
                        yield from may_die(me)
                        yield label
                    reply = self._machine.store.perform(op)
                except StoreFailure as problem:
                    op = generator.throw(problem)
                    continue
                if isinstance(op, TakeLock):
                    held = op
                elif isinstance(op, (ReleaseLock, AbandonLock)):
                    held = None
                self._did(op, reply, me)
                op = generator.send(reply)
        except Died:
            generator.close()
            if held is not None:
                self._machine.store.perform(AbandonLock(held.run_id, held.intent))
            raise
        except StopIteration as stop:
            answers: list[Appended | Refused] = stop.value
            for request, answer in zip(requests, answers, strict=True):
                if isinstance(answer, Refused):
                    self._machine.refused.append((me.name, request, answer))
                    self._machine.note(me.name, "refused", f"{wanted(request)} refused: {answer.refusal}")
            return answers

    def _lock(self, op: TakeLock, detail: str) -> Wait:
        def free() -> bool:
            held = self._machine.store.held.get(op.run_id)
            return held is None or self._machine.now - held.since > self._machine.world.condition.stale_ms

        return Wait(Label("lock", f"lock {op.run_id}", writes=True, detail=detail), free, "the lock of the run")

    def _label(self, op: StoreOp, detail: str) -> Label | None:
        """What others could notice of an operation, if anything."""
        condition = self._machine.world.condition
        match op:
            case ConfirmLock():
                return Label("publish", f"log {RUN_ID}", writes=True, detail=detail)
            case Publish(events, _) if not (condition.locks and condition.breaking is Breaking.CAREFUL):
                return Label("publish", f"log {RUN_ID}", writes=True, detail=said(events[-1]))
            case ReserveSlots():
                return Label("mint", f"mint {RUN_ID}", writes=True, detail=detail)
            case Clock() if condition.mint_at is Point.MINT_EARLY:  # the id is of this very time
                return Label("mint", f"mint {RUN_ID}", writes=True, detail=detail)
            case ReadGuard():
                return Label("guard", f"log {RUN_ID}", detail=detail)
            case ClaimOnce() | ClaimToken() | PutEntity() | PutRun() if not condition.locks:
                return Label("row", f"rows {RUN_ID}", writes=True, detail=detail)
        return None

    def _did(self, op: StoreOp, reply: Any, me: Me) -> None:
        if isinstance(op, Publish) and reply:
            for event in op.events:
                self._machine.note(me.name, "publish", said(event), event)
        elif isinstance(op, (Mint, ReserveSlots)) and self._machine.world.early:
            self._machine.note(
                me.name, "mint", f"draws {reply if isinstance(reply, str) else ', '.join(map(str, reply))}"
            )
