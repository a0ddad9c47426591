"""From a generation's name to an engine."""

from __future__ import annotations

from typing import Any, Protocol

from stormctl.engine.generations import generation
from stormctl.engine.replay import Body, ReplayEngine


class Replayable(Protocol):
    """Anything with a name and a workflow body: a scenario, or a user's own."""

    @property
    def name(self) -> str: ...

    @property
    def body(self) -> Body: ...


def engine_for(name: str, workload: Replayable, input: Any) -> ReplayEngine:
    """The engine that replays a workload with an input under the named generation; UsageError lists the known names."""
    return ReplayEngine(workload.body, input, generation(name), workload=workload.name)
