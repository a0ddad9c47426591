"""``{kill: worker, at: publish}``: SIGKILL a worker when one of its appends reaches a named point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from stormctl.errors import PlanError
from stormctl.storm.faults.base import STEP_BODY, WHEN_KEYS, Fault, Hands, When
from stormctl.storm.faults.fields import Fields
from stormctl.worlds.condition import Point

PLACES = (*(str(point) for point in Point), STEP_BODY)


@dataclass(frozen=True, slots=True)
class Kill(Fault):
    """Nothing is flushed, acknowledged or given back: whatever the worker had in hand is as it stands at that point.
    ``type`` narrows it to appends of one event type."""

    place: str
    type: str | None
    when: When

    verb: ClassVar[str] = "kill"
    object: ClassVar[str] = "worker"
    keys: ClassVar[tuple[str, ...]] = ("at", "type", *WHEN_KEYS)

    @classmethod
    def parse(cls, fields: Fields, _object: str) -> Kill:
        """PlanError names the field that cannot be meant."""
        place, type = fields.name("at", PLACES), fields.event_type("type")
        if place == STEP_BODY and type is not None:
            raise PlanError(f"{fields.where}.type says nothing at a step body", remedy="Leave `type` out.")
        return cls(place, type, When.parse(fields))

    @property
    def at(self) -> str:
        return self.place

    def row(self) -> dict[str, Any]:
        narrowed = {"type": self.type} if self.type else {}
        return {"kill": "worker", "at": self.place, **narrowed, **self.when.row()}

    def looks_at(self, place: str, type: str | None) -> bool:
        return place == self.place and self.type in (None, type)

    async def strike(self, hands: Hands) -> None:
        await hands.kill(self.label)
