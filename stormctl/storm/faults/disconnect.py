"""``{disconnect: WORLD, every: 5s}``: the server ends the connections of the workers, in whatever they are doing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from stormctl.storm.faults.base import Fault, When
from stormctl.storm.faults.fields import Fields
from stormctl.storm.planfile import format_duration
from stormctl.worlds.condition import Condition
from stormctl.worlds.open import WorldKind


class Disconnects(Protocol):
    """A world that lies in a database can do this."""

    async def disconnect_others(self) -> int:
        """End the connections of everybody else in this world's space. Replies how many."""
        ...


@dataclass(frozen=True, slots=True)
class Disconnect(Fault):
    """Done by the driver to the workers, every ``every_ms`` wall milliseconds; its own connections stay."""

    world: str
    every_ms: float
    when: When

    verb: ClassVar[str] = "disconnect"
    keys: ClassVar[tuple[str, ...]] = ("every", "limit")

    @classmethod
    def parse(cls, fields: Fields, object: str) -> Disconnect:
        """PlanError names the field that cannot be meant."""
        return cls(object, fields.duration("every"), When(1, None, fields.count("limit")))

    @property
    def object(self) -> str:
        return self.world

    def row(self) -> dict[str, Any]:
        limit = {"limit": self.when.limit} if self.when.limit else {}
        return {"disconnect": self.world, "every": format_duration(self.every_ms), **limit}

    def why_not(self, name: str, kind: WorldKind, condition: Condition) -> str | None:
        return None if name == self.world else f"the {name} world has no connection to {self.world}"

    @property
    def period_ms(self) -> float | None:
        return self.every_ms

    async def press(self, world: Disconnects) -> int:
        return await world.disconnect_others()
