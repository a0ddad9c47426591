"""The nearest schedule that goes well: one choice of a failing one made otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from stormctl.sim.kernel import Model, Run, TapeChooser, play
from stormctl.sim.show.race import split

#: schedules that are tried
MOST_TRIES = 500


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A run that passes, and the choice (0-based, in the failing tape) that was made otherwise. ``turn`` is how many
    turns both have in common."""

    run: Run
    choice: int
    turn: int


def nearest_passing(model: Model, failing: Run, *, tries: int = MOST_TRIES) -> Neighbour | None:
    """The passing neighbour that parts from the failing run the latest; None when none of those tried passes.

    First every choice that was not the ordinary one is made the ordinary one, the last first; then ordinary ones are
    made otherwise.
    """
    for tape, at in _neighbours(failing.tape, tries):
        run = play(model, TapeChooser(tape))
        if not run.problems and not run.cut:
            return Neighbour(run, at, split(failing.turns, run.turns))
    return None


def _neighbours(tape: Sequence[int], most: int) -> Iterator[tuple[list[int], int]]:
    deviations = [at for at, choice in enumerate(tape) if choice]
    others = [at for at, choice in enumerate(tape) if not choice]
    for at in islice((*reversed(deviations), *reversed(others)), most):
        yield [*tape[:at], 0 if tape[at] else 1, *tape[at + 1 :]], at
