"""What varies between the passes of a storm: how long each payload takes to be read.

A real engine reads payloads with cryptography and decompression, cold in one pass and from a cache in the next. The
order in which its promises settle varies with that, and an engine whose draws depend on it binds one prefix in two
ways. Under ``nets`` that leaves corrupted step-storms which no storage condition prevents (virtual time, seq-final, a
slow store: 5 of 12 runs with 1 ms, none of 8 without; under ``dispenser`` none of 20). Each pass draws a seed of its
own, which is written into the worker's journal, so that the pass can be made again.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from stormctl.engine.door import CALM, Perturbation

Perturb = Callable[[], Perturbation]

_SEED_BITS = 32


def calm() -> Perturbation:
    """No pass differs from another."""
    return CALM


def jitter(jitter_ms: int, seed: int | str) -> Perturb:
    """A seeded sequence of perturbations, one for each pass: up to so many virtual milliseconds per payload."""
    if jitter_ms == 0:
        return calm
    random = Random(f"perturbations {seed}")
    return lambda: Perturbation(jitter_ms=jitter_ms, seed=random.getrandbits(_SEED_BITS))
