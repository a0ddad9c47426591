"""All prefixes: the run's engine is given each prefix of the log by itself, and no longer one takes back what a shorter
one asked for.

The ledger compares the passes that the run made. Most prefixes no delivery of this run has ever read alone; one of the
next run may, and finds there what a crash at that point would have made of it (vercel/workflow #3479).
"""

from __future__ import annotations

from collections.abc import Iterator

from stormctl.sim.kernel import Problem, Run
from stormctl.sim.real.machine import Machine


def prefixes(machine: Machine, run: Run) -> Iterator[Problem]:
    """Does each prefix bind each ordinal, and end each wait, as the shorter ones do?"""
    log = machine.log
    most = log.ends[0] if log.ends else len(log)
    bound: dict[int, tuple[str, int]] = {}
    until: dict[int, tuple[int, int]] = {}
    lengths = range(1, most + 1)
    for length, result in zip(lengths, machine.replays(lengths), strict=True):
        if result.divergence is not None:
            return  # what a replay makes of such a log is for the cold one to say
        place = (log.place(length - 1),)
        for draw in result.draws:
            label, since = bound.setdefault(draw.rank, (draw.label, length))
            if label != draw.label:
                text = f"rank {draw.rank} is {label} on {since} events, and {draw.label} on {length}"
                yield Problem("prefixes", f"prefixes/rebound/{label}/{draw.label}", text, place)
                return
        for item in result.pending:
            if item.resume_at is None:
                continue
            resume_at, since = until.setdefault(item.rank, (item.resume_at, length))
            if resume_at != item.resume_at:
                by = item.resume_at - resume_at
                text = f"the wait of rank {item.rank} ends at one time on {since} events, and {by:+d} ms on {length}"
                yield Problem("prefixes", "prefixes/moved-wait", text, place)
                return
