"""The strategies by name: ``random``, ``pct:4``, ``bounded:2``, ``swarm:pos``."""

from __future__ import annotations

from collections.abc import Callable

from stormctl.errors import UsageError, suggest
from stormctl.sim.strategies.base import Strategy
from stormctl.sim.strategies.bounded import Bounded
from stormctl.sim.strategies.dpor import Dpor
from stormctl.sim.strategies.pct import Pct
from stormctl.sim.strategies.portfolio import Portfolio
from stormctl.sim.strategies.pos import Pos
from stormctl.sim.strategies.random import Random
from stormctl.sim.strategies.swarm import Swarm
from stormctl.sim.strategies.urw import Urw

MOST = 1_000
#: what a scenario is searched by: it missed none of 400 searches for the in-flight hole, in mint-ulid and in mint-slot,
#: and needed 28 and 34 schedules on the median; of 30 to 40 searches by each of the others, pct:2 and pct:4 came near
SOONEST = "pct:3"

#: name: what it does, and how it is made from a seed, what stands behind the colon, and the number of models
STRATEGIES: dict[str, tuple[str, Callable[[int, str, int], Strategy]]] = {
    "random": ("any option at every choice", lambda seed, text, models: Random(_none("random", text, seed))),
    "urw": ("a walk weighted by remaining work", lambda seed, text, models: Urw(_none("urw", text, seed))),
    "pos": ("partial-order sampling", lambda seed, text, models: Pos(_none("pos", text, seed))),
    "pct": ("priorities with d - 1 changes (pct:3)", lambda seed, text, models: Pct(seed, _number(text, 1) or 3)),
    "bounded": (
        "every schedule, fewest preemptions and faults first (bounded:2)",
        lambda seed, text, models: Bounded(_number(text, 0)),
    ),
    "dpor": ("one schedule of each class", lambda seed, text, models: _first(Dpor(), _none("dpor", text, seed))),
    "swarm": (
        "a strategy on each of several worlds by turns (swarm:random)",
        lambda seed, text, models: Swarm(lambda own: strategy_for(text or "random", seed=own), models, seed),
    ),
    "portfolio": (
        "several by turns, dropping those that bring nothing new (portfolio:random+pos)",
        lambda seed, text, models: Portfolio(
            [strategy_for(name, seed=seed) for name in (text or "random+urw+pos+pct:3+bounded").split("+")]
        ),
    ),
}


def strategy_for(text: str, *, seed: int = 0, models: int = 1) -> Strategy:
    """The strategy of a name. UsageError for a name that is none, or a number that it cannot use."""
    name, _, rest = text.partition(":")
    if name not in STRATEGIES:
        raise UsageError(f"there is no strategy {name[:40]!r}", remedy=suggest(name, STRATEGIES))
    if models > 1 and name != "swarm":
        return Swarm(lambda own: strategy_for(text, seed=own), models, seed)
    return STRATEGIES[name][1](seed, rest, models)


def _none(name: str, text: str, seed: int) -> int:
    if text:
        raise UsageError(f"{name}:{text[:40]} says too much", remedy=f"Write `{name}`.")
    return seed


def _first(strategy: Strategy, _: int) -> Strategy:
    return strategy


def _number(text: str, least: int) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 6 and least <= int(text) <= MOST):
        raise UsageError(f"{text[:40]!r} is no number of {least} to {MOST}", remedy="Write one behind the colon.")
    return int(text)
