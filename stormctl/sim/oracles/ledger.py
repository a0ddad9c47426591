"""The ledger of passes: what one replay of a run asked for, every longer one asks for too.

If a prefix makes the workflow ask for something, no extension of it may take that back: an ordinal keeps its call, and
a wait that was asked for until one time is not asked for until another. The log shows only what was written; passes
whose decisions were overwritten, or never written, are told apart here alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from stormctl.sim.kernel import Problem, Run
from stormctl.sim.real.machine import Machine
from stormctl.sim.real.record import Passed


def ledger(machine: Machine, run: Run) -> Iterator[Problem]:
    """Do any two passes of the run agree on what they share?"""
    told: dict[str, None] = {}
    passes = machine.passed
    for number, later in enumerate(passes):
        for earlier in passes[:number]:
            if earlier.result is later.result:
                continue
            for problem in _apart(earlier, later):
                if problem.signature not in told:
                    told[problem.signature] = None
                    yield problem


def _apart(one: Passed, other: Passed) -> Iterator[Problem]:
    """Where two passes contradict each other, of which one saw no more than the other did."""
    shorter, longer = (one, other) if len(one.events) <= len(other.events) else (other, one)
    if longer.events[: len(shorter.events)] != shorter.events:
        return
    names = {draw.rank: draw.label for draw in longer.result.draws or ()}
    for draw in shorter.result.draws or ():
        now = names.get(draw.rank)
        if now is not None and now != draw.label:
            text = f"rank {draw.rank} was {draw.label} to {shorter.actor}, which had read {len(shorter.events)} events"
            text += f", and is {now} to {longer.actor}, which had read {len(longer.events)}"
            yield Problem("ledger", f"ledger/rebound/{draw.label}/{now}", text)
    until = {item.rank: item.resume_at for item in longer.result.pending if item.resume_at is not None}
    for item in shorter.result.pending:
        later = until.get(item.rank)
        if item.resume_at is not None and later is not None and later != item.resume_at:
            by = later - item.resume_at
            text = f"the wait of rank {item.rank} was asked for until one time by {shorter.actor}, "
            text += f"and until {by:+d} ms by {longer.actor}"
            yield Problem("ledger", "ledger/moved-wait", text)
