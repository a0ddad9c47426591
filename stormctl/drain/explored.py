"""Searching the schedules of a loop: small situations that between them cover every known failure.

Two streams, three events, one park; each await of the loop is a choice, and so is every turn of everybody else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stormctl.drain.explained import explained
from stormctl.drain.knobs import GENERATIONS, Knobs, preset
from stormctl.drain.model import DrainModel
from stormctl.drain.setup import Setup
from stormctl.errors import UsageError, suggest
from stormctl.sim.explore import Budget, Exploration, Violation, explore
from stormctl.sim.kernel import Problem
from stormctl.sweeps.drain.base import LEGAL, faults
from stormctl.sweeps.drain.records import DrainTrace

#: turns that one schedule may take
MOST_STEPS = 1_000
_AGAIN = (("a", "A"), ("b", "B"), ("a", "A"))
_THREE = (("a", "A"), ("b", "B"), ("a", "C"))

_PLAIN = Setup("", Knobs(), clients=_THREE)
#: the situations by name; each is explored under the loop that is asked for
SITUATIONS: dict[str, Setup] = {
    one.name: one
    for one in (
        replace(_PLAIN, name="plain"),
        replace(_PLAIN, name="again", clients=_AGAIN),
        replace(_PLAIN, name="faults", faults=("A1", "A2", "A3", "settle")),
        replace(_PLAIN, name="throw", faults=("queue",)),
        replace(_PLAIN, name="load-park", faults=("A4",)),
        replace(_PLAIN, name="park", actors=("park",), tenures=2),
        replace(_PLAIN, name="park-one", clients=(("a", "A"),), actors=("park",), tenures=2),
        replace(_PLAIN, name="park-throw", actors=("park",), tenures=2, faults=("queue",)),
        replace(_PLAIN, name="compact", actors=("compact",)),
        replace(_PLAIN, name="compact-again", clients=_AGAIN, actors=("compact",), patient=True),
        replace(_PLAIN, name="consequence", actors=("consequence",)),
        replace(_PLAIN, name="shadow", actors=("shadow",)),
        replace(_PLAIN, name="emits", emits=(("A", "b", "L"),), faults=("A1",)),
        replace(
            _PLAIN,
            name="all",
            clients=(("a", "A"), ("b", "B"), ("a", "A"), ("b", "C")),
            actors=("compact", "consequence", "shadow", "unrelated", "park"),
            tenures=2,
            faults=("A1", "A2", "A3", "A4", "queue", "settle"),
            emits=(("B", "a", "L"),),
        ),
    )
}

#: what each generation must be caught at, by sweep and class: the checker's own test
MUST_VIOLATE: dict[str, tuple[str, ...]] = {
    "G-1": ("drain-own-index/ghost", "drain-once/"),
    "G0": ("drain-arrival/", "drain-coverage/", "drain-tenure/"),
    "G1": ("drain-coverage/view", "drain-coverage/sync", "drain-barrier/other-seq", "drain-tenure/"),
    "G2": ("drain-coverage/residual-queue", "drain-tenure/queued-after-park", "drain-tenure/armed-after-park"),
    "G3": ("drain-tenure/queued-after-park",),
    "G4": ("drain-coverage/residual-queue",),
}


def judge(trace: DrainTrace) -> Sequence[Problem]:
    """Everything that the sweeps see in a trace, residuals among it; one problem of each class."""
    found: dict[str, Problem] = {}
    for name, fault in faults(trace):
        signature = f"{name}/{fault.kind}"
        if signature not in found:
            positions = tuple(trace.records[index].n for index in fault.at)
            found[signature] = Problem(name, signature, fault.message, positions)
    return tuple(found.values())


def residual(signature: str) -> bool:
    """Whether a class is known of the last generation, or no fault of the drain."""
    return signature.partition("/")[2].startswith(LEGAL)


def situation(name: str, knobs: Knobs, shown: str) -> DrainModel:
    """A situation under a loop. UsageError for one that there is not."""
    if name not in SITUATIONS:
        raise UsageError(f"there is no situation {name[:40]!r}", remedy=suggest(name, SITUATIONS))
    return DrainModel(replace(SITUATIONS[name].under(knobs), name=f"{shown}/{name}"), judge)


def model_named(text: str) -> DrainModel:
    """The model of a name as tokens have it: ``drain:G1/park``."""
    loop, slash, name = text.removeprefix("drain:").rpartition("/")
    if not slash:
        raise UsageError(f"{text[:60]!r} names no drain", remedy="Take a token that `stormctl drain explore` printed.")
    return situation(name, preset(loop), loop)


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search of one loop found. ``models`` are indexed by ``Violation.model``."""

    loop: str
    models: tuple[DrainModel, ...]
    exploration: Exploration

    @property
    def faults(self) -> list[Violation]:
        """What is wrong and is no residual, what was found first standing first."""
        return [one for one in self._all if not residual(one.signature)]

    @property
    def residuals(self) -> list[Violation]:
        """What is known of the last generation."""
        return [one for one in self._all if residual(one.signature)]

    def explanation(self, violation: Violation) -> str:
        """Which of the known failures a violation is; empty for one that nobody knows."""
        return explained(violation.signature, self.situation_of(violation), self.loop)

    def situation_of(self, violation: Violation) -> str:
        """The situation in which a violation was found."""
        return self.models[violation.model].setup.name.rpartition("/")[2]

    @property
    def unexplained(self) -> list[Violation]:
        """What is none of the known failures."""
        return [one for one in self._all if not self.explanation(one)]

    @property
    def _all(self) -> list[Violation]:
        return sorted(self.exploration.violations.values(), key=lambda one: one.run)

    @property
    def wanted(self) -> tuple[str, ...]:
        """What the loop must be caught at: a generation, in all situations together."""
        return MUST_VIOLATE.get(self.loop, ()) if len(self.models) == len(SITUATIONS) else ()

    def not_caught_at(self, classes: Sequence[str]) -> tuple[str, ...]:
        """Those of these classes, by the beginnings of their signatures, of which nothing was found."""
        found = self.exploration.violations
        return tuple(one for one in classes if not any(signature.startswith(one) for signature in found))


def search(
    loop: str,
    situations: Sequence[str] = (),
    *,
    budget: Budget,
    strategy: str = "random",
    seed: int = 0,
    jobs: int = 1,
) -> Searched:
    """Search the schedules of a loop (a preset, with knobs in brackets) in the situations of those names, or all."""
    knobs = preset(loop)
    models = tuple(situation(name, knobs, loop) for name in situations or SITUATIONS)
    found = explore(models, strategy, budget=budget, seed=seed, jobs=jobs, most_steps=MOST_STEPS)
    return Searched(loop, models, found)


__all__ = ["GENERATIONS", "MUST_VIOLATE", "SITUATIONS", "Searched", "judge", "model_named", "search", "situation"]
