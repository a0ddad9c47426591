"""The worlds of the simulator: a storage condition, and what the queue and the reads may do besides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from stormctl.errors import UsageError, suggest
from stormctl.worlds.condition import Condition, Guard, Point
from stormctl.worlds.conditions import condition_named
from stormctl.worlds.presets import GUARD, MAIN, SEQ_FINAL, SLOTS_LINK, SLOTS_RESERVE


class Unseen(StrEnum):
    """What becomes of an event that a read does not show: it is served around, or the read ends before it."""

    HOLE = "hole"
    CUT = "cut"


class Dedupe(StrEnum):
    """How long a queue key is taken: until its message is done with, or for ever."""

    IN_FLIGHT = "in-flight"
    FOR_EVER = "for-ever"


@dataclass(frozen=True, slots=True)
class SimWorld:
    """One world. ``condition`` is how events are stored.

    ``stale``: a read may leave out an event that is there, a pick, in the way of ``unseen``. ``serial``: one
    orchestrator delivery of a run at a time, as a lease makes it; else leases may overlap. ``duplicates``, ``drops``,
    ``delays``: what the queue may do with a message, each a pick. ``crash``: a delivery may die before any of its
    operations, a pick as well; its message is given again. ``atomic``: outsiders see a hook once its event is in the
    log, and not already by its row. ``hurry``: how often in a run time may move on while somebody could go on; more
    often than a log of slots with a hole is read again, else no writer is ever slow enough to be missed.
    """

    name: str
    condition: Condition
    unseen: Unseen = Unseen.CUT
    stale: bool = False
    serial: bool = True
    dedupe: Dedupe = Dedupe.IN_FLIGHT
    duplicates: bool = False
    drops: bool = False
    delays: bool = False
    crash: bool = False
    atomic: bool = True
    hurry: int = 8

    @property
    def early(self) -> bool:
        """Whether an event has its place in the order before it is readable."""
        return self.condition.mint_at is Point.MINT_EARLY


MINT_ULID = SimWorld("mint-ulid", replace(MAIN, guard=Guard.WATERMARK, name="mint-ulid"), Unseen.HOLE)
"""Ids in the order of minting, no lock, the watermark as its only guard: the state of August 2026."""

MINT_SLOTS = SimWorld("mint-slot", replace(SLOTS_RESERVE, guard=Guard.WATERMARK, name="mint-slot"), Unseen.HOLE)
"""Dense positions that are drawn at minting: a hole can be seen, and stays where its writer is slow."""

APPEND_ONLY = SimWorld("append-only", replace(SLOTS_LINK, guard=Guard.WATERMARK, name="append-only"), Unseen.CUT)
"""A position is had by publishing: the order of the log is that of the commits, and a read is a prefix."""

FENCED = SimWorld("fenced", SEQ_FINAL, Unseen.CUT)
"""Append-only under a lock, with the decision fence."""

UNGUARDED = SimWorld("unguarded", MAIN, Unseen.HOLE)
"""As mint-ulid, and nothing is refused."""

COUNTED = SimWorld("mint-ulid-counted", replace(GUARD, name="mint-ulid-counted"), Unseen.HOLE)
"""As mint-ulid, with the count beside the watermark."""

WORLDS: Mapping[str, SimWorld] = {
    one.name: one for one in (MINT_ULID, MINT_SLOTS, APPEND_ONLY, FENCED, UNGUARDED, COUNTED)
}

_SWITCHES: Mapping[str, Callable[[SimWorld], SimWorld]] = {
    "overlap": lambda world: replace(world, serial=False),
    "stale": lambda world: replace(world, stale=True),
    "duplicates": lambda world: replace(world, duplicates=True),
    "drops": lambda world: replace(world, drops=True),
    "delays": lambda world: replace(world, delays=True),
    "torn": lambda world: replace(world, atomic=False),
    "crash": lambda world: replace(world, crash=True),
}


def sim_world(name: str) -> SimWorld:
    """A world by its name, with switches in brackets: ``append-only[crash,overlap]``, or a storage condition of
    ``stormctl conditions``. UsageError with the likeliest name."""
    base, _, rest = name.partition("[")
    switches = [one.strip() for one in rest.rstrip("]").split(",") if one.strip()]
    found = WORLDS.get(base)
    if found is None:
        try:
            found = SimWorld(base, condition_named(base), Unseen.CUT)
        except UsageError:
            raise UsageError(f"there is no world {base!r}", remedy=suggest(base, WORLDS)) from None
    for switch in switches:
        if switch not in _SWITCHES:
            raise UsageError(f"{switch!r} is no switch of a world", remedy=suggest(switch, _SWITCHES))
        found = _SWITCHES[switch](found)
    return replace(found, name=name) if switches else found
