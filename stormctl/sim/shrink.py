"""Making a failing schedule small: fewest preemptions and faults, then fewest turns, then the lowest choices.

First parts of the tape are set to 0, taken out or lowered as long as it fails in the same way. Then every schedule with
fewer preemptions and faults is played (:mod:`stormctl.sim.certify`): what is found there is taken, and what is not
found is proved not to be there. A model that has smaller versions of itself (``smaller()``: fewer actors, fewer events,
fewer steps) is exchanged for one that fails in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, runtime_checkable

from stormctl.errors import UsageError
from stormctl.sim.certify import MOST_CHECKED, Certificate, certify
from stormctl.sim.explore import Budget, explore
from stormctl.sim.kernel import MOST_STEPS, Model, Run, TapeChooser, play

#: schedules that are played to make a tape small, and to look for the failure in a smaller model
MOST_TRIED, MOST_SMALLER = 3_000, 250


@runtime_checkable
class Shrinkable(Protocol):
    """A model that has smaller versions of itself, the most promising first."""

    def smaller(self) -> Iterator[Model]:
        """Models with fewer actors, events or steps, each of them smaller than this one."""
        ...


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The smallest failing schedule that was found, of the model that was left, and what is proved of it.

    ``tried`` counts the schedules that it took, those of the proof not among them.
    """

    model: Model
    tape: tuple[int, ...]
    signature: str
    preemptions: int
    faults: int
    steps: int
    tried: int
    certificate: Certificate


def shrink(
    model: Model,
    tape: Sequence[int],
    signature: str | None = None,
    *,
    most: int = MOST_TRIED,
    most_checked: int = MOST_CHECKED,
    most_steps: int = MOST_STEPS,
    models: bool = True,
) -> Shrunk:
    """Make a failing schedule as small as can be. ``signature`` is that of its first problem where none is given.

    ``models=False`` leaves the model as it is. UsageError for a tape that does not fail so.
    """
    search = _Search(model, signature, most, most_steps)
    best = search.start(tape)
    certificate = None
    while True:
        best = search.reduce(best)
        if models and (found := search.smaller(best)) is not None:
            best = found
            continue
        number = best.preemptions + best.faults
        certificate = certify(
            search.model, search.signature, fewer_than=number, most=most_checked, most_steps=most_steps
        )
        if certificate.simpler is None:
            break
        best = search.start(certificate.simpler)
    tape = _trimmed(best.tape)
    return Shrunk(
        search.model, tape, search.signature, best.preemptions, best.faults, best.steps, search.tried, certificate
    )


class _Search:
    """Playing tapes of a model, and keeping those that fail in the same way."""

    def __init__(self, model: Model, signature: str | None, most: int, most_steps: int) -> None:
        self.model = model
        self.signature = signature or ""
        self.tried = 0
        self._most, self._most_steps = most, most_steps
        self._known: dict[tuple[int, ...], Run | None] = {}

    def start(self, tape: Sequence[int]) -> Run:
        """The run of a tape that must fail."""
        run = play(self.model, TapeChooser(tape), most=self._most_steps)
        found = [problem.signature for problem in run.problems]
        if not found or (self.signature and self.signature not in found):
            raise UsageError(
                f"the schedule does not fail with {self.signature!r}" if found else "the schedule does not fail",
                remedy="Give a schedule of this very model that fails.",
            )
        self.signature = self.signature or found[0]
        return run

    def fails(self, tape: Sequence[int]) -> Run | None:
        """The run of a tape, if it fails in the same way and may be played."""
        key = _trimmed(tape)
        if key in self._known:
            return self._known[key]
        if self.tried >= self._most:
            return None
        self.tried += 1
        run = play(self.model, TapeChooser(key), most=self._most_steps)
        found: Run | None = run if any(one.signature == self.signature for one in run.problems) else None
        self._known[key] = found
        return found

    def reduce(self, best: Run) -> Run:
        """Try what could be left out, over and over, until nothing of it helps."""
        again = True
        while again:
            again = False
            for tape in _simpler(best):
                run = self.fails(tape)
                if run is not None and _weight(run) < _weight(best):
                    best, again = run, True
                    break
        return best

    def smaller(self, best: Run) -> Run | None:
        """A run of a smaller model that fails in the same way; the search is then about that model."""
        if not isinstance(self.model, Shrinkable):
            return None
        for model in self.model.smaller():
            tape = self._failing(model, best)
            if tape is not None:
                self.model, self._known = model, {}
                return self.start(tape)
        return None

    def _failing(self, model: Model, best: Run) -> tuple[int, ...] | None:
        """A tape that fails in a smaller model, by the same choices or by a short search."""
        run = play(model, TapeChooser(best.tape), most=self._most_steps)
        self.tried += 1
        if any(one.signature == self.signature for one in run.problems):
            return tuple(run.tape)
        for strategy in ("bounded", "urw"):
            found = explore(model, strategy, budget=Budget(runs=MOST_SMALLER), most_steps=self._most_steps)
            self.tried += found.runs
            if self.signature in found.violations:
                return found.violations[self.signature].tape
        return None


def _weight(run: Run) -> tuple[int, int, int, tuple[int, ...]]:
    """What is smaller comes first."""
    tape = _trimmed(run.tape)
    return run.preemptions + run.faults, run.steps, len(tape), tape


def _trimmed(tape: Sequence[int]) -> tuple[int, ...]:
    """A tape without the zeros at its end, which say nothing."""
    end = len(tape)
    while end and not tape[end - 1]:
        end -= 1
    return tuple(tape[:end])


def _simpler(run: Run) -> Iterable[tuple[int, ...]]:
    """Tapes that may be simpler, the boldest first: halves and ever smaller parts of the choices that are not 0 set to
    0; then stretches between two of them moved (the actor goes on for longer, or shorter); then choices lowered."""
    tape = _trimmed(run.tape)
    special = [at for at, choice in enumerate(tape) if choice]
    size = len(special)
    while size:
        for first in range(0, len(special), size):
            dropped = special[first : first + size]
            yield tuple(0 if at in dropped else choice for at, choice in enumerate(tape))
        size //= 2
    # one choice that is not 0 taken out together with a stretch behind it: the actors change places once less often
    for at, nxt in pairwise(special):
        yield (*tape[:at], *tape[nxt:])
        yield (*tape[:at], *tape[nxt + 1 :])
    for at in special:
        yield (*tape[:at], *tape[at + 1 :])
        for lower in range(1, tape[at]):
            yield (*tape[:at], lower, *tape[at + 1 :])
    for at in range(len(tape)):
        if not tape[at]:
            yield (*tape[:at], *tape[at + 1 :])
