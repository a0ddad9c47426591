"""A scenario in a world as a model of the kernel."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from stormctl import __version__
from stormctl.errors import UsageError
from stormctl.sim.kernel import Problem, Run, Stage
from stormctl.sim.real.machine import Machine
from stormctl.sim.real.passes import Passes
from stormctl.sim.real.scenario import Scenario
from stormctl.sim.real.worlds import SimWorld

Judge = Callable[[Machine, Run], Sequence[Problem]]


def _nothing(_machine: Machine, _run: Run) -> Sequence[Problem]:
    return ()


@dataclass(frozen=True, eq=False)
class System:
    """The real runtime on a real store, for one scenario and one world. ``judge`` is what the oracles say of a run,
    ``made_by`` a function and its arguments that make the same model in another process.

    Example::

        run = play(System(scenario, sim_world("mint-slot")), TapeChooser())
        run.instance.row.status
    """

    scenario: Scenario
    world: SimWorld
    judge: Judge = _nothing
    passes: Passes = field(default_factory=Passes, compare=False)
    made_by: tuple[Callable[..., System], tuple[Any, ...]] | None = None

    @property
    def name(self) -> str:
        """How tokens call it."""
        return f"{self.scenario.name}@{self.world.name}/{self.scenario.rules.generation.name}"

    @property
    def digest(self) -> str:
        """Of what decides which schedule a tape stands for."""
        parts = (
            __version__,
            self.name,
            repr(self.world),
            self.scenario.rules.generation.name,
            repr(self.scenario.outside),
        )
        return hashlib.blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()

    def __reduce__(self) -> Any:
        """A model goes to another process by how it was made: bodies and rules are code, and do not."""
        if self.made_by is None:
            raise UsageError(f"{self.name} cannot be sent to another process", remedy="Give --jobs 1.")
        return self.made_by

    def start(self, stage: Stage) -> Machine:
        """Begin a run."""
        machine = Machine(stage, self.scenario, self.world, self.passes)
        machine.oracles = self.judge
        return machine
