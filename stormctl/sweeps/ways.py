"""The ways in which a prefix is replayed again: a seeded sequence, the plain perturbations first.

A plain one turns a single knob: 1 and 8 microtasks per payload, 1 and 10 ms per payload, the results of all events and
of the first half from the cache, timers with a grain of 16 ms, attribute writes of step bodies parked and dropped. Each
later one is a mixture of two or more knobs, drawn from the seed. The same seed gives the same sequence, and a longer
one begins with a shorter one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from random import Random
from typing import Any

from stormctl.engine.door import CALM, AttributeHandling, Perturbation

#: what may be turned; the seed belongs to the two jitters
KNOBS = ("hydration_hops", "hydration_ms", "jitter_ms", "jitter_hops", "warm", "timer_ms", "attributes")
JITTERS = frozenset({"jitter_ms", "jitter_hops"})

_DRAWN: dict[str, Callable[[Random, int], Any]] = {
    "hydration_hops": lambda random, _: random.choice((1, 2, 4, 5, 6, 8)),
    "hydration_ms": lambda random, _: random.choice((1.0, 2.0, 5.0, 10.0)),
    "jitter_ms": lambda random, _: random.choice((1, 2, 5, 20, 50)),
    "jitter_hops": lambda random, _: random.randint(1, 8),
    "warm": lambda random, length: random.randint(1, max(1, length)),
    "timer_ms": lambda random, _: random.choice((2.0, 4.0, 16.0)),
    "attributes": lambda random, _: random.choice((AttributeHandling.PARKED, AttributeHandling.DROPPED)),
}


def ways(count: int, seed: int, length: int) -> tuple[Perturbation, ...]:
    """The first ``count`` of the sequence for prefixes of up to ``length`` events."""
    return tuple(islice(_ways(seed, length), count))


def _ways(seed: int, length: int) -> Iterator[Perturbation]:
    for knobs in (
        {"hydration_hops": 1}, {"hydration_hops": 8}, {"hydration_ms": 1.0}, {"hydration_ms": 10.0},
        {"warm": max(1, length)}, {"warm": max(1, length // 2)}, {"timer_ms": 16.0},
        {"attributes": AttributeHandling.PARKED}, {"attributes": AttributeHandling.DROPPED},
    ):  # fmt: skip
        yield turned(knobs)
    random = Random(f"ways {seed}")
    while True:
        names = random.sample(KNOBS, random.randint(2, len(KNOBS)))
        yield turned({name: _DRAWN[name](random, length) for name in names}, seed=random.randrange(1, 1 << 16))


def turned(knobs: dict[str, Any], *, seed: int = 0) -> Perturbation:
    """Calm with these knobs turned. The seed is kept only where something is drawn from it."""
    return replace(CALM, **knobs, seed=seed if JITTERS & knobs.keys() else 0)


def away(perturbation: Perturbation) -> dict[str, Any]:
    """The knobs that are not where calm has them."""
    return {knob: getattr(perturbation, knob) for knob in KNOBS if getattr(perturbation, knob) != getattr(CALM, knob)}


def words(perturbation: Perturbation) -> str:
    """The turned knobs as a person writes them: ``jitter_hops=2 seed=5``."""
    told = {
        knob: f"{value:g}" if isinstance(value, float) else str(value) for knob, value in away(perturbation).items()
    }
    if JITTERS & told.keys():
        told["seed"] = str(perturbation.seed)
    return " ".join(f"{knob}={value}" for knob, value in told.items()) or "calm"
