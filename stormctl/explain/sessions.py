"""Retained sessions: a workflow that was kept alive between passes, where a cold replay tells nothing.

A delivery may keep its workflow and feed it what the log gained. A session meets the end of the log at other moments
than a cold replay does, and an engine that is not careful then delivers in another order (vercel/workflow #4017):
the log is sound, every cold replay reads it, and the run fails all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stormctl.engine.door import Draw, Engine, Pass
from stormctl.explain.hidden import FACTS
from stormctl.history import EventLog

#: how many places a session is cut at, the newest first; each costs a replay
MAX_CUTS = 32


@dataclass(frozen=True, slots=True)
class Kept:
    """A session that had read ``length`` events and then the rest, and drew otherwise than a cold replay.

    ``drew`` is what it drew under ``rank``, ``cold`` what the replay draws; None for nothing.
    """

    engine: str
    length: int
    rank: int
    drew: str | None
    cold: str | None


def kept_session(log: EventLog, engine: Engine) -> Kept | None:
    """The first cut, newest first, at which a session of the engine draws otherwise than a cold replay of the log."""
    cold = next(iter(engine.passes(log, (len(log),))), None)
    if cold is None or cold.divergence is not None:
        return None
    for length in cuts(log):
        kept = _fed(log, engine, length)
        rank = _parted(kept, cold)
        if rank is not None:
            return Kept(engine.name, length, rank, _label(kept, rank), _label(cold, rank))
    return None


def cuts(log: EventLog) -> Iterator[int]:
    """Where a delivery can have stopped to wait: before the first fact behind its own writes."""
    found = 0
    for length in range(len(log) - 1, 0, -1):
        if log[length].type in FACTS and log[length - 1].type not in FACTS:
            yield length
            found += 1
            if found == MAX_CUTS:
                return


def _fed(log: EventLog, engine: Engine, length: int) -> Pass:
    session = engine.open(log[:length])
    try:
        return session.extend(log.events[length:])
    finally:
        close = getattr(session, "close", None)
        if close is not None:
            close()


def _parted(kept: Pass, cold: Pass) -> int | None:
    """The first rank that is not bound alike."""
    for one, other in zip(kept.draws, cold.draws, strict=False):
        if (one.kind, one.name) != (other.kind, other.name):
            return one.rank
    if len(kept.draws) != len(cold.draws):
        return min(len(kept.draws), len(cold.draws))
    return None


def _label(replay: Pass, rank: int) -> str | None:
    drawn: Draw | None = next((draw for draw in replay.draws if draw.rank == rank), None)
    return None if drawn is None else drawn.label
