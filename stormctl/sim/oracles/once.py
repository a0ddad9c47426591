"""At least once, and no more: no step's body runs to its end more often than the log says that it was started."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from stormctl.history import kinds
from stormctl.sim.kernel import Problem, Run
from stormctl.sim.real.machine import Machine


def once(machine: Machine, run: Run) -> Iterator[Problem]:
    """Did each effect happen once?"""
    names = {
        event.correlation_id: event.short_name or "" for event in machine.events if event.type == kinds.STEP_CREATED
    }
    started = Counter(
        names.get(event.correlation_id, "") for event in machine.events if event.type == kinds.STEP_STARTED
    )
    for name, count in machine.finished.items():
        if count > started[name]:
            text = f"{name} ran to its end {count} times, and the log starts it {started[name]} times"
            yield Problem("once", f"once/{name}", text)
