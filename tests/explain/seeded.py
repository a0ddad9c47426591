"""Corrupted logs of every engine class, made as they come about: one sound log, and two writers around a flip.

A store that keeps every rule writes the log of a busy workflow. Where a generation flips a rank from one prefix to the
next, one writer decides on either side, and both write.
"""

from __future__ import annotations

import random
from typing import Any

from stormctl.engine.generations import generation
from stormctl.engine.replay import ReplayEngine
from stormctl.history import EventLog
from stormctl.sweeps.rebinding import Flip, flips
from stormctl.testing import LogBuilder
from tests.engine.writing import Writer
from tests.explain.overlap import Overlap


async def busy(wf: Any, _input: Any) -> None:
    """Waits, steps, hooks that are read late and one that nobody reads, side by side."""
    wf.hook("poke")

    async def waiting(index: int) -> None:
        await wf.sleep(1000 + index)
        await wf.step("w", index)
        await wf.step("w2", index)

    async def working(index: int) -> None:
        await wf.step("s", index)
        await wf.step("s2", index)

    async def reading(index: int) -> None:
        hook = wf.hook(f"h{index}")
        await wf.step("pre", index)
        await wf.race(hook.next(), wf.sleep(5000))
        await wf.step("r", index)

    async def late(index: int) -> None:
        hook = wf.hook(f"l{index}")
        await wf.sleep(100)
        await hook.next()
        await wf.step("l", index)

    await wf.all(
        [waiting(0), working(0), reading(0), waiting(1), working(1), late(0), reading(1), late(1)],
    )


def quiet_log(seed: int, name: str) -> EventLog:
    """The log of ``busy`` that one writer of this generation makes, always from all of it."""
    return Writer(busy, random.Random(seed), payloads=4, longest=60, generation_name=name).write()


def first_flip(log: EventLog, name: str) -> Flip | None:
    """The first flip that the generation makes, before it diverges."""
    engine = ReplayEngine(busy, None, generation(name), workload="small")
    before = None
    for replay in engine.passes(log, range(3, len(log) + 1)):
        if replay.divergence is not None:
            return None
        if before is not None:
            found = flips(before, replay, (before.prefix, replay.prefix))
            if found:
                return found[0]
        before = replay
    return None


def around_the_flip(seed: int, name: str, *, written_by: str | None = None, stale_first: bool = False) -> Overlap:
    """The log up to the flip of the generation, and what two writers on either side of it write.

    ``written_by`` puts other writers there.
    """
    log = quiet_log(seed, name)
    flip = first_flip(log, name)
    assert flip is not None
    builder = LogBuilder().edited(lambda events: events.extend(log.events[: flip.after]))
    builder._names = {log.rank(event): event.name for event in log if event.name is not None}  # type: ignore[misc]
    made = Overlap(busy, builder, written_by or name)
    stale, fresh = made.read(flip.before), made.read(flip.after)
    for replay, writer in ((stale, "A"), (fresh, "B")) if stale_first else ((fresh, "B"), (stale, "A")):
        made.write(replay, writer=writer)
    return made
