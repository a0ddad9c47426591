"""Steps, waits and attributes: what each draws, which events it consumes, and what it hands to user code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stormctl.engine import divergence
from stormctl.engine.context import Item, Unreadable
from stormctl.engine.delivery import Delivery
from stormctl.engine.prepared import Prepared
from stormctl.engine.promise import FULFILLED, REJECTED, Promise
from stormctl.history import Sealed
from stormctl.history.kinds import (
    ATTR,
    ATTR_SET,
    STEP,
    STEP_COMPLETED,
    STEP_CREATED,
    STEP_RETRYING,
    STEP_STARTED,
    STEP_TERMINAL,
    WAIT,
    WAIT_COMPLETED,
    WAIT_CREATED,
)

if TYPE_CHECKING:
    from stormctl.engine.context import Context


class StepFailed(Exception):
    """A step failed for good; its message is the recorded error."""


def payload_of(event: Prepared) -> Any:
    """The value that an event carries; None where only its digest, or nothing, was captured. Raises Unreadable."""
    payload = event.event.payload
    if event.unreadable is not None:
        raise Unreadable(event.unreadable)
    if payload is None or isinstance(payload, Sealed):
        return None
    return payload.load()


class Step:
    """One call of a step."""

    __slots__ = ("_context", "item", "result", "suspends")

    def __init__(self, context: Context, name: str, arguments: tuple[Any, ...]) -> None:
        self._context = context
        self.item = context.draw(STEP, name, arguments)
        self.result = Promise(context.loop)
        self.suspends = True
        context.subscribe(self)

    def offer(self, event: Prepared, index: int) -> bool:
        item = self.item
        if event.name is not None and event.name != item.name and event.event.name != item.name:
            self._finish()
            self._context.diverge_in_turn(divergence.name(self._context, event, index, item))
            return True
        kind = event.type
        if kind == STEP_STARTED:
            item.attempts += 1
            item.retry_at = None
            item.started_at = event.event.created_at
            item.owner = event.event.data.get("ownerMessageId")
        elif kind == STEP_CREATED:
            item.created = True
        elif kind in STEP_TERMINAL:
            self._settle(event, index)
        elif kind == STEP_RETRYING:
            item.owner = None
            again = event.event.data.get("retryAfter")
            item.retry_at = again if isinstance(again, int) else 0
        else:
            self._finish()
            self._context.diverge_in_turn(divergence.wrong_type(self._context, event, index, item))
        return True

    def _finish(self) -> None:
        self.suspends = False
        self._context.consumers.pop(self.item.correlation_id, None)

    def _settle(self, event: Prepared, index: int) -> None:
        context = self._context
        self._finish()
        context.items.pop(self.item.correlation_id, None)
        Delivery(context, event, index, STEP).after_reading(lambda: self._hand(event))

    def _hand(self, event: Prepared) -> None:
        try:
            value = payload_of(event)
        except Unreadable as error:  # the outcome of reading is captured, so the queue goes on
            self.result.settle(REJECTED, error)
            return
        if event.type == STEP_COMPLETED:
            self.result.settle(FULFILLED, value)
        else:
            self.result.settle(REJECTED, StepFailed(str(value or "step failed")))


def resume_at(clock: int, ms: float) -> int:
    """When a sleep of ``ms`` that is asked for at ``clock`` is to end, in epoch ms."""
    return round(clock + ms)


class Wait:
    """One durable sleep of ``ms`` milliseconds."""

    __slots__ = ("_context", "item", "result", "suspends")

    def __init__(self, context: Context, ms: float) -> None:
        self._context = context
        self.item = context.draw(WAIT, None, ms)
        self.item.resume_at = resume_at(context.clock, ms)
        self.result = Promise(context.loop)
        self.suspends = True
        context.subscribe(self)

    def offer(self, event: Prepared, index: int) -> bool:
        context, item = self._context, self.item
        recorded = event.event.resume_at
        if event.type == WAIT_CREATED:
            item.created = True
            if recorded is not None:
                item.resume_at = recorded
            return True
        self.suspends = False
        context.consumers.pop(item.correlation_id, None)
        if event.type != WAIT_COMPLETED:
            context.diverge_in_turn(divergence.wrong_type(context, event, index, item))
            return True
        if recorded is not None and recorded != item.resume_at:
            context.diverge_in_turn(divergence.resume_at(context, event, index, item))
            return True
        context.items.pop(item.correlation_id, None)
        context.walk.consumed_waits.add(item.correlation_id)
        Delivery(context, event, index, WAIT).after_its_turn(self._hand)
        return True

    def _hand(self) -> None:
        self.result.settle(FULFILLED, None)


class Attributes:
    """One attribute write by the workflow itself. It decides no branch, so it registers no barrier."""

    __slots__ = ("_context", "item", "result", "suspends")

    def __init__(self, context: Context, changes: dict[str, str | None]) -> None:
        self._context = context
        self.item: Item = context.draw(ATTR, None, dict(changes))
        self.result = Promise(context.loop)
        self.suspends = True
        context.subscribe(self)

    def offer(self, event: Prepared, index: int) -> bool:
        context = self._context
        self.suspends = False
        context.consumers.pop(self.item.correlation_id, None)
        recorded = event.event.data.get("changes")
        if event.type != ATTR_SET or (recorded is not None and _as_changes(recorded) != self.item.arguments):
            context.diverge_in_turn(divergence.attributes(context, event, index, self.item))
            return True
        context.items.pop(self.item.correlation_id, None)
        context.hydrate(index, event, lambda: self.result.settle(FULFILLED, None))
        return True


def _as_changes(recorded: Any) -> dict[str, str | None] | None:
    """Recorded changes, a list of ``{key, value}`` or a mapping, as the mapping that a workflow gives.

    None for anything else: a log may hold what no workflow writes.
    """
    if isinstance(recorded, Mapping):
        return dict(recorded)
    if isinstance(recorded, Sequence) and all(isinstance(change, Mapping) and "key" in change for change in recorded):
        return {str(change["key"]): change.get("value") for change in recorded}
    return None
