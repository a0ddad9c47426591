"""How to explain a log: names only, and the limits of the work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stormctl.engine.generations import GENERATIONS
from stormctl.readers.reading import BY_CONTENT, Reading
from stormctl.sweeps.plan import Opener, SweepPlan, known_workload, open_own
from stormctl.sweeps.profiles import STRICT
from stormctl.workloads.base import Workload

#: replays of one log end after this many seconds of wall time
SECONDS = 120.0
#: logs with more events are not replayed: their sweeps are still told
MAX_EVENTS = 25_000


@dataclass(frozen=True, slots=True)
class ExplainPlan:
    """How to explain logs.

    ``workload`` is used for every log; None takes the one that each capture names. ``engines`` are names that ``open``
    turns into engines, none means all generations. ``seconds`` and ``max_events`` bound the replays of one log,
    ``jobs`` is how many processes an engine may use that can use several.
    """

    profile: str = STRICT.name
    workload: str | None = None
    engines: tuple[str, ...] = ()
    seconds: float = SECONDS
    max_events: int = MAX_EVENTS
    jobs: int = 1
    read_as: Reading = BY_CONTENT
    find: Callable[[str], Workload | None] = known_workload
    open: Opener = open_own

    def sweep(self) -> SweepPlan:
        """The sweeps that need no replay."""
        return SweepPlan(profile=self.profile, workload=self.workload, find=self.find, open=self.open)

    def names(self) -> tuple[str, ...]:
        """The engines to replay with, as a person named them, else every generation."""
        return self.engines or tuple(GENERATIONS)


def newest() -> str:
    """What today's engine does: the newest generation that is known."""
    return next(reversed(GENERATIONS))


def order_with(names: tuple[str, ...]) -> tuple[str, ...]:
    """All generations, oldest first, each followed by the changed forms of it among ``names``; then other engines."""
    order: list[str] = []
    for name in GENERATIONS:
        order.append(name)
        order.extend(one for one in names if one != name and one.partition("[")[0] == name)
    return tuple(dict.fromkeys((*order, *names)))
