"""The end: a run comes to one, and not to that of a log which its own engine cannot follow.

Nobody can go on any more when this is asked, time included. So a run that has not ended by then never will: that is a
lost wake, unless it waits for a hook that nobody answers and the scenario says that it may. A message that was given up
since its store failed too often is told then as well; where the run has ended, nobody waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from stormctl.engine.door import Outcome
from stormctl.history import kinds
from stormctl.sim.kernel import Problem, Run
from stormctl.sim.real.machine import MOST_DELIVERIES, Machine

#: what a workflow brings on itself
OWN = frozenset({"USER_ERROR"})


def waits_for(machine: Machine) -> tuple[list[str], list[str]]:
    """What a replay of the log as it is waits for: what others owe the run (steps, waits, its very next move), and the
    tokens of hooks, which nobody owes it."""
    result = machine.replay(len(machine.events))
    if result.outcome is not Outcome.SUSPENDED:
        return [f"the run, which a replay finds {result.outcome}"], []
    owed = [item.name or item.kind for item in result.pending if item.kind in (kinds.STEP, kinds.WAIT)]
    return owed, [item.token or "" for item in result.pending if item.kind == kinds.HOOK and not item.disposed]


def end(machine: Machine, run: Run) -> Iterator[Problem]:
    """Did the run end as it should?"""
    row = machine.row
    if row is not None and row.status == "failed" and row.error_code not in OWN:
        code = row.error_code or "failed"
        yield Problem("end", f"end/{code}", f"the run failed with {code}: {row.error_message or ''}".rstrip(": "))
    elif not machine.ended and not run.cut:
        if machine.deliveries >= MOST_DELIVERIES:
            yield Problem("end", "end/livelock", f"the run goes on after {MOST_DELIVERIES} deliveries")
            return
        owed, tokens = waits_for(machine)
        if owed:
            text = f"nobody can go on, and nothing is on its way that would bring {', '.join(owed)} to an end"
            yield Problem("end", "end/dormant", text)
        elif not machine.scenario.rests:
            missing = [f"a payload for the hook {token!r}" for token in tokens] or [one for one in run.missing if one]
            text = f"nobody can go on: {'; '.join(missing) or 'what the run waits for'} is missing"
            yield Problem("end", "end/stalled", text)
        for error in machine.errors:
            yield Problem("end", "end/store", error)
