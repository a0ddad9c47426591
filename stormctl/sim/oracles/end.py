"""The end: a run comes to one, and not to that of a log which its own engine cannot follow.

Nobody can go on any more when this is asked, time included. So a run that has not ended by then never will: that is a
lost wake, unless it waits for a hook that nobody answers and the scenario says that it may.
"""

from __future__ import annotations

from collections.abc import Iterator

from stormctl.sim.kernel import Problem, Run
from stormctl.sim.real.machine import MOST_DELIVERIES, Machine

#: what a workflow brings on itself
OWN = frozenset({"USER_ERROR"})


def end(machine: Machine, run: Run) -> Iterator[Problem]:
    """Did the run end as it should?"""
    row = machine.row
    if row is not None and row.status == "failed" and row.error_code not in OWN:
        code = row.error_code or "failed"
        yield Problem("end", f"end/{code}", f"the run failed with {code}: {row.error_message or ''}".rstrip(": "))
    elif not machine.ended and not run.cut:
        missing = [one for one in run.missing if one]
        if machine.deliveries >= MOST_DELIVERIES:
            yield Problem("end", "end/livelock", f"the run goes on after {MOST_DELIVERIES} deliveries")
        elif missing and not machine.scenario.rests:
            yield Problem("end", "end/stalled", f"nobody can go on: {'; '.join(missing)} is missing")
        elif not missing:
            yield Problem(
                "end", "end/dormant", "nobody can go on, and nothing is on its way that would bring the run on"
            )
    for error in machine.errors:
        yield Problem("end", "end/store", error)
