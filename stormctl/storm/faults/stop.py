"""``{stop: holder, at: allocate, for: 2500ms}``: SIGSTOP a worker that holds a run's lock, past the age of a stale one.

The worker that goes on then finds that its lock was broken, or does not look.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from stormctl.storm.faults.base import WHEN_KEYS, Fault, Hands, When
from stormctl.storm.faults.fields import Fields
from stormctl.storm.planfile import format_duration
from stormctl.worlds.condition import Condition, Point
from stormctl.worlds.open import WorldKind

#: Where a lock is held: each point is passed before what it names happens.
HELD = tuple(
    str(point)
    for point in (
        Point.VALIDATE,
        Point.ADMIT,
        Point.EFFECTS,
        Point.ADMIT_LATE,
        Point.ALLOCATE,
        Point.PUBLISH,
        Point.COUNTER,
        Point.UNLOCK,
    )
)
LONGEST_MS = 600_000.0


@dataclass(frozen=True, slots=True)
class Stop(Fault):
    """The whole process stands still for ``for_ms`` wall milliseconds, which no time_scale touches, as none touches
    the age at which a lock is stale."""

    place: str
    for_ms: float
    type: str | None
    when: When

    verb: ClassVar[str] = "stop"
    object: ClassVar[str] = "holder"
    keys: ClassVar[tuple[str, ...]] = ("at", "for", "type", *WHEN_KEYS)

    @classmethod
    def parse(cls, fields: Fields, _object: str) -> Stop:
        """PlanError names the field that cannot be meant."""
        return cls(
            fields.name("at", HELD),
            fields.duration("for", most=LONGEST_MS),
            fields.event_type("type"),
            When.parse(fields),
        )

    @property
    def at(self) -> str:
        return self.place

    def row(self) -> dict[str, Any]:
        narrowed = {"type": self.type} if self.type else {}
        return {
            "stop": "holder",
            "at": self.place,
            "for": format_duration(self.for_ms),
            **narrowed,
            **self.when.row(),
        }

    def why_not(self, name: str, kind: WorldKind, condition: Condition) -> str | None:
        if kind.in_process:
            return f"the {name} world lives in the driver's process, which would stop with it"
        return None if condition.locks else f"{condition.name} takes no lock, so that nobody holds one"

    def looks_at(self, place: str, type: str | None) -> bool:
        return place == self.place and self.type in (None, type)

    async def strike(self, hands: Hands) -> None:
        await hands.stop(self.for_ms)
