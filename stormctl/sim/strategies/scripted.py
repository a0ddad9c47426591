"""What a script says, and a random rest where it leaves something open.

A script that says all there is to say is one schedule; ``times`` is for partial ones. A script that does not go with
the model is a :class:`~stormctl.sim.tape.ScriptMismatch`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stormctl.sim.kernel import Run
from stormctl.sim.strategies.base import Numbered, Outcome
from stormctl.sim.strategies.random import RandomChooser
from stormctl.sim.tape import ScriptChooser, Statement, parse


class FinishedScript(ScriptChooser):
    """A script that complains of what was never met."""

    def report(self, run: Run | None) -> None:
        """The end of the run."""
        if run is not None:
            self.finish(run)


@dataclass(frozen=True, slots=True)
class ScriptTask(Numbered):
    """A schedule by a script. Number 0 goes on in the ordinary way, the others at random."""

    script: tuple[Statement, ...] = ()

    def chooser(self) -> FinishedScript:
        """See :class:`~stormctl.sim.tape.ScriptChooser`."""
        return FinishedScript(self.script, RandomChooser(self.stream()) if self.number else None)


class Scripted:
    """See the module. ``scripts`` are texts or parsed; each is played ``times`` times."""

    name = "scripted"
    ended = "done"

    def __init__(self, scripts: Sequence[str | Sequence[Statement]], *, times: int = 1, seed: int = 0) -> None:
        parsed = [parse(script) if isinstance(script, str) else tuple(script) for script in scripts]
        self._tasks = [ScriptTask(self.name, seed, number, 0, script) for number in range(times) for script in parsed]

    def ask(self, most: int) -> Sequence[ScriptTask]:
        """The next of them."""
        asked, self._tasks = self._tasks[:most], self._tasks[most:]
        return asked

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """Nothing is learned."""
