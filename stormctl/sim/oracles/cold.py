"""Cold replay, the answer withheld: a fresh engine that is given all of the log but the run's end comes to that end.

It is what every later delivery does, and what anyone does who reads the log in two years. A log that leads somewhere
else than the run went is corrupted, whatever the run said.
"""

from __future__ import annotations

from collections.abc import Iterator

from stormctl.engine.door import Outcome
from stormctl.history import digest_value
from stormctl.sim.kernel import Problem, Run
from stormctl.sim.real.machine import Machine


def cold(machine: Machine, run: Run) -> Iterator[Problem]:
    """Does a replay of the log come to the end that the run came to?"""
    row = machine.row
    log = machine.log
    ends = log.ends
    if row is None or row.status != "completed" or not ends:
        return
    first = ends[0]
    result = machine.replay(first)
    place = (log.place(first - 1),) if first else ()
    if result.divergence is not None:
        lost = result.divergence
        at = (log.place(lost.index),)
        text = f"the log of a completed run cannot be followed: {lost.text}"
        yield Problem("cold", "cold/diverged", text, at)
    elif result.outcome is Outcome.SUSPENDED:
        wanted = ", ".join(item.name or item.kind for item in result.pending if item.create is not None)
        yield Problem(
            "cold", "cold/suspended", f"a replay of the whole log still waits ({wanted or 'for nothing new'})", place
        )
    elif result.outcome is Outcome.FAILED:
        yield Problem("cold", "cold/failed", f"a replay fails: {result.error}", place)
    elif digest_value(result.value) != digest_value(row.output):
        text = f"the run returned {row.output!r} and a replay of its log {result.value!r}"
        yield Problem("cold", "cold/other-answer", text, place)
