"""What a fault is: a line of a plan, told apart by what it does, to what, and how often."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from stormctl.errors import PlanError
from stormctl.storm.faults.fields import Fields
from stormctl.worlds.base import AppendRequest, Message, Queue
from stormctl.worlds.condition import Condition
from stormctl.worlds.delay import DelayShape
from stormctl.worlds.open import WorldKind

#: A place beside the points of an append where a fault can strike: a step's body has begun and lets time pass.
STEP_BODY = "step body"
WHEN_KEYS = ("every", "probability", "limit")


@dataclass(frozen=True, slots=True)
class When:
    """How often a fault strikes where it could: each ``every``-th time, or with a ``probability``, and at most
    ``limit`` times in the whole storm."""

    every: int | None = 1
    probability: float | None = None
    limit: int | None = None

    @classmethod
    def parse(cls, fields: Fields) -> When:
        """Without ``every`` and ``probability`` it strikes once, at the first chance."""
        every, probability, limit = fields.count("every"), fields.share("probability"), fields.count("limit")
        if every is not None and probability is not None:
            raise PlanError(f"{fields.where} has both every and probability", remedy="Keep one of them.")
        if every is None and probability is None:
            return cls(1, None, limit or 1)
        return cls(every, probability, limit)

    @property
    def text(self) -> str:
        """For people: ``one time in 12, at most 3 times``."""
        if self.probability is not None:
            often = f"with probability {self.probability:g}"
        else:
            often = "each time" if self.every == 1 else f"one time in {self.every}"
        return often + (f", at most {self.limit} times" if self.limit else "")

    def row(self) -> dict[str, Any]:
        """As a plan writes it."""
        return {key: value for key in WHEN_KEYS if (value := getattr(self, key)) is not None}


class Hands(Protocol):
    """What a fault can do to the worker that it strikes."""

    async def kill(self, reason: str) -> None:
        """End the worker as SIGKILL does. Does not return."""
        ...

    async def stop(self, ms: float) -> None:
        """Stop the worker as SIGSTOP does, and let it go on after so many wall milliseconds."""
        ...


class Fault:
    """One planned fault. A family overrides what it has to do with; the rest says that it has nothing to do there."""

    __slots__ = ()
    verb: ClassVar[str]
    keys: ClassVar[tuple[str, ...]]
    #: how often it strikes; None for one that is in force all the time
    when: When | None

    @property
    def object(self) -> str:
        """What it is done to."""
        raise NotImplementedError

    @property
    def at(self) -> str:
        """Where, in a word; empty when there is one place only."""
        return ""

    @property
    def label(self) -> str:
        """For people: ``kill worker at publish``."""
        return f"{self.verb} {self.object}" + (f" at {self.at}" if self.at else "")

    def row(self) -> dict[str, Any]:
        """As a plan writes it, nothing left to a default."""
        raise NotImplementedError

    def why_not(self, name: str, kind: WorldKind, condition: Condition) -> str | None:
        """Why it cannot be done to a world of this kind under this condition, or None when it can."""
        return None

    def looks_at(self, place: str, type: str | None) -> bool:
        """Whether it can strike at a point (or ``STEP_BODY``), for an append of this event type."""
        return False

    async def strike(self, hands: Hands) -> None:
        """Do it to the worker that came to such a place."""

    def matches(self, message: Message) -> bool:
        """Whether it can strike the sending of this message."""
        return False

    async def send(self, queue: Queue, message: Message, delay_ms: float, key: str | None) -> bool:
        """Send the message, as far as the fault lets it."""
        return await queue.send(message, delay_ms=delay_ms, key=key)

    def shape(self, shape: DelayShape) -> DelayShape:
        """The delay between mint and publication that it turns this one into."""
        return shape

    @property
    def period_ms(self) -> float | None:
        """How often the driver makes it strike, in wall milliseconds; None when the driver has no part in it."""
        return None

    async def press(self, world: Any) -> int:
        """Have the driver do it to one world. Replies how many were struck."""
        return 0


Record = Callable[..., None]
InBody = Callable[[str], Awaitable[None]]


def type_of(request: AppendRequest) -> str:
    """The event type that an append is for: a lazy start counts as the create that it carries."""
    return "step_created" if request.lazy else request.type
