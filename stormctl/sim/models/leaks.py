"""Models that are not deterministic, on purpose: what checks of determinism must catch, each in one way.

Two actors write a word each. What leaks into their turns is the order of a set, the clock, an address in memory or
random numbers of the process. ``sound`` leaks nothing, and ``alone`` has one actor, so that nothing was ever chosen.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from stormctl.sim.kernel import Body, Label, Problem, Run, Stage

_NAMES = ("amber", "birch", "cedar", "dogwood", "elder", "fir", "gorse", "hazel")


@dataclass
class Words:
    """What was written."""

    words: list[str] = field(default_factory=list)

    def judge(self, run: Run) -> Sequence[Problem]:
        """Nothing is ever wrong."""
        return ()


def _by_set(shared: Words) -> list[str]:
    return ["-".join({*_NAMES}), "birch"]


def _by_clock(shared: Words) -> list[str]:
    return [repr(time.time()), "birch"]


def _by_address(shared: Words) -> list[str]:
    return [f"{id(shared):x}", "birch"]


def _by_random(shared: Words) -> list[str]:
    return [repr(random.random()), "birch"]


#: what leaks: the words that the actors write
LEAKS: dict[str, Callable[[Words], list[str]]] = {
    "set order": _by_set,
    "time.time": _by_clock,
    "id()": _by_address,
    "random": _by_random,
    "sound": lambda shared: ["amber", "birch"],
    "alone": lambda shared: ["amber"],
}


@dataclass(frozen=True, slots=True)
class Leak:
    """A model in which something leaks, by the names of :data:`LEAKS`."""

    kind: str
    digest: str = "0123456789abcdef"

    @property
    def name(self) -> str:
        """Which of them."""
        return f"leak-{self.kind}"

    def start(self, stage: Stage) -> Words:
        """Spawn the actors."""
        shared = Words()
        for number, word in enumerate(LEAKS[self.kind](shared), 1):
            stage.spawn(f"W{number}", self._write(shared, word))
        return shared

    def _write(self, shared: Words, word: str) -> Body:
        yield Label("publish", "words", writes=True, detail=word)
        shared.words.append(word)
        yield Label("read", "words", detail="".join(shared.words))
