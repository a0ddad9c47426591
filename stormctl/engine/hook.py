"""Hooks: named mailboxes that the outside world sends payloads to, read with an iterator.

A payload that arrives while somebody reads is delivered like a step's result. One that arrives while nobody reads is
kept; its barrier is unarmed until a read claims it, because only then does it reach user code.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from stormctl.engine import divergence
from stormctl.engine.context import Unreadable
from stormctl.engine.delivery import Delivery
from stormctl.engine.prepared import Prepared
from stormctl.engine.primitives import payload_of
from stormctl.engine.promise import FULFILLED, REJECTED, Promise
from stormctl.engine.strategies import Registration
from stormctl.history import kinds
from stormctl.history.kinds import HOOK
from stormctl.history.tokens import same_token

if TYPE_CHECKING:
    from stormctl.engine.context import Context


class HookConflict(Exception):
    """The hook's token belongs to another run; the message names it."""


class _Payload:
    """One payload on its way to a read, or kept until one claims it."""

    __slots__ = ("_context", "_delivery", "_event", "_read")

    def __init__(self, context: Context, event: Prepared, index: int, *, armed: bool) -> None:
        self._context = context
        self._event = event
        self._delivery = Delivery(context, event, index, HOOK, armed=armed)
        self._read = Promise(context.loop)
        context.reading += 1
        context.hydrate(index, event, self._was_read)

    def to(self, target: Promise) -> None:
        """Deliver to a read."""
        self._delivery.claimed(self._read, lambda: self._hand(target))

    def _was_read(self) -> Unreadable | None:
        self._context.reading -= 1
        self._delivery.note_read()
        self._read.settle(FULFILLED, None)
        return None if self._event.unreadable is None else Unreadable(self._event.unreadable)

    def _hand(self, target: Promise) -> None:
        try:
            target.settle(FULFILLED, payload_of(self._event))
        except Unreadable as error:
            target.settle(REJECTED, error)


class Hook:
    """One hook. ``token`` is what the outside world addresses it by."""

    __slots__ = (
        "_awaiter",
        "_context",
        "_kept",
        "_last",
        "_outcome",
        "_refused",
        "_registered",
        "_seen",
        "item",
        "suspends",
        "token",
    )

    def __init__(self, context: Context, token: str) -> None:
        self._context = context
        self.token = token
        self.item = context.draw(HOOK, None, token)
        self.item.token = token
        self.suspends = False
        self._awaiter: Promise | None = None
        self._last: Promise | None = None
        self._registered: Promise | None = None
        self._refused: HookConflict | None = None
        #: what the store said to the registration, once it may be told
        self._outcome: tuple[int, HookConflict | None] | None = None
        self._kept: deque[_Payload] = deque()
        self._seen: set[str] = set()
        context.subscribe(self)

    # -- what a workflow calls -----------------------------------------------------------------------------------

    def next(self) -> Promise:
        """The promise of the next payload, as of one async iterator: reads take turns, in the order they were begun.

        So a read that lost a race stays, and the payload is its, not the next read's: carry the promise over instead
        of reading again. Rejects with HookConflict when the store has refused the token.
        """
        before = self._last
        self._last = target = Promise(self._context.loop)
        if before is None or before.state:
            self._read(target)
        else:
            before.react(lambda _state, _value: self._read(target))
        # an async generator's next(): one hop to await the hook, one to yield the value
        return target.then(lambda value: value).then(lambda value: value)

    def __aiter__(self) -> Hook:
        return self

    async def __anext__(self) -> Any:
        return await self.next()

    def registered(self) -> Promise:
        """The promise that settles when the store has registered the hook, or rejects with HookConflict."""
        if self._registered is None:
            self._registered = Promise(self._context.loop)
            if self._outcome is not None:
                self._registered.settle(*self._outcome)
            elif not self.item.created and self._refused is None:
                self.item.awaited = True
                self._wait_for_the_log()
        return self._registered

    def conflict(self) -> Promise:
        """The promise of None when the store has registered the hook, or of the id of the run that owns its token."""
        asked = Promise(self._context.loop)

        def answer(state: int, value: Any) -> None:
            asked.settle(FULFILLED, None if state == FULFILLED else str(value))

        self.registered().react(answer)
        return asked

    def dispose(self) -> None:
        """Give the hook up: its token is free again, and nothing sent to it arrives any more."""
        self.item.disposed = True
        if self._awaiter is not None:
            self._awaiter = None
            self.suspends = self._waiting()
            self._context.suspend_when_idle()

    def _read(self, target: Promise) -> None:
        if self._kept:
            self._kept.popleft().to(target)
        elif self._refused is not None:
            target.settle(REJECTED, self._refused)
        else:
            self._awaiter = target
            self._wait_for_the_log()

    # -- what the walk calls -------------------------------------------------------------------------------------

    def offer(self, event: Prepared, index: int) -> bool:
        context = self._context
        token = event.event.token
        if token is not None and token != self.token and not same_token(token, self.token):
            self._leave()
            context.diverge_in_turn(divergence.token(context, event, index, self.item))
            return True
        kind = event.type
        if kind == kinds.HOOK_RECEIVED:
            self._receive(event, index)
        elif kind == kinds.HOOK_CREATED:
            self.item.created = True
            self._register(event, index, FULFILLED, None)
        elif kind == kinds.HOOK_CONFLICT:
            self._conflict(event, index)
        elif kind == kinds.HOOK_DISPOSED:
            self._leave()
            context.items.pop(self.item.correlation_id, None)
        else:
            self._leave()
            context.diverge_in_turn(divergence.wrong_type(context, event, index, self.item))
        return True

    def _receive(self, event: Prepared, index: int) -> None:
        resume = event.event.data.get("resumeId")
        if isinstance(resume, str):
            if resume in self._seen:
                return
            self._seen.add(resume)
        awaiter = self._awaiter
        delivery = _Payload(self._context, event, index, armed=awaiter is not None)
        if awaiter is None:
            self._kept.append(delivery)
            return
        self._awaiter = None
        self.suspends = self._waiting()
        delivery.to(awaiter)

    def _conflict(self, event: Prepared, index: int) -> None:
        self._leave()
        self._context.items.pop(self.item.correlation_id, None)
        self._refused = error = HookConflict(str(event.event.data.get("conflictingRunId", "")))
        self._register(event, index, REJECTED, error)
        if self._awaiter is not None:
            self._awaiter.settle(REJECTED, error)
            self._awaiter = None

    def _register(self, event: Prepared, index: int, state: int, value: HookConflict | None) -> None:
        """The store's answer was read: tell whoever waits for it, in the way of this generation."""
        context = self._context
        self.item.awaited = False
        if context.generation.registration is Registration.BARRIER:
            Delivery(context, event, index, HOOK).after_its_turn(lambda: self._tell(state, value))
        elif self._registered is None:
            self._outcome = (state, value)
            return
        else:
            self._outcome = (state, value)
            context.queue.react(lambda _state, _value: self._tell(state, value))
        self.suspends = self._awaiter is not None

    def _tell(self, state: int, value: HookConflict | None) -> None:
        self._outcome = (state, value)
        if self._registered is not None:
            self._registered.settle(state, value)

    def _wait_for_the_log(self) -> None:
        self.suspends = True
        walk = self._context.walk
        if walk.index >= len(walk.events):
            self._context.suspend_when_idle()

    def _waiting(self) -> bool:
        return self._awaiter is not None or self.item.awaited

    def _leave(self) -> None:
        self.suspends = False
        self._context.consumers.pop(self.item.correlation_id, None)
