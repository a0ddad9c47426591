"""``{drop: message}``, ``{duplicate: message}``, ``{delay: message, by: 200ms}``: what happens to queue messages.

A queue is at-least-once, late and out of order: a runtime must live with duplicates and delays. A dropped message is
what no queue may do; a run that waits for one is stranded, and a sweep of its log finds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from stormctl.storm.faults.base import WHEN_KEYS, Fault, When
from stormctl.storm.faults.fields import Fields
from stormctl.storm.planfile import format_duration
from stormctl.worlds.base import Message, Queue

KINDS = ("any", "wake", "step")


@dataclass(frozen=True, slots=True)
class _MessageFault(Fault):
    """``kind`` is which messages: ``wake`` brings a run on, ``step`` runs a background step."""

    kind: str
    when: When

    object: ClassVar[str] = "message"

    def row(self) -> dict[str, Any]:
        return {self.verb: "message", "kind": self.kind, **self.when.row()}

    def matches(self, message: Message) -> bool:
        return self.kind == "any" or (self.kind == "step") == (message.step_id is not None)


@dataclass(frozen=True, slots=True)
class Drop(_MessageFault):
    """The sender is told that it was sent. Its idempotency key stays free."""

    verb: ClassVar[str] = "drop"
    keys: ClassVar[tuple[str, ...]] = ("kind", *WHEN_KEYS)

    @classmethod
    def parse(cls, fields: Fields, _object: str) -> Drop:
        """PlanError names the field that cannot be meant."""
        return cls(fields.name("kind", KINDS, "any"), When.parse(fields))

    async def send(self, queue: Queue, message: Message, delay_ms: float, key: str | None) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Duplicate(_MessageFault):
    """The second one has an id of its own and no key, as after a sender's retry. Both are due at the same time."""

    verb: ClassVar[str] = "duplicate"
    keys: ClassVar[tuple[str, ...]] = ("kind", *WHEN_KEYS)

    @classmethod
    def parse(cls, fields: Fields, _object: str) -> Duplicate:
        """PlanError names the field that cannot be meant."""
        return cls(fields.name("kind", KINDS, "any"), When.parse(fields))

    async def send(self, queue: Queue, message: Message, delay_ms: float, key: str | None) -> bool:
        sent = await queue.send(message, delay_ms=delay_ms, key=key)
        if sent:
            data = {**message.data, "duplicate": True}
            await queue.send(replace(message, data=data), delay_ms=delay_ms)
        return sent


@dataclass(frozen=True, slots=True)
class Late(_MessageFault):
    """The message is due ``by_ms`` wall milliseconds later."""

    by_ms: float

    verb: ClassVar[str] = "delay"
    keys: ClassVar[tuple[str, ...]] = ("kind", "by", *WHEN_KEYS)

    @classmethod
    def parse(cls, fields: Fields, _object: str) -> Late:
        """PlanError names the field that cannot be meant."""
        return cls(fields.name("kind", KINDS, "any"), When.parse(fields), fields.duration("by"))

    def row(self) -> dict[str, Any]:
        return {**_MessageFault.row(self), "by": format_duration(self.by_ms)}

    async def send(self, queue: Queue, message: Message, delay_ms: float, key: str | None) -> bool:
        return await queue.send(message, delay_ms=delay_ms + self.by_ms, key=key)
