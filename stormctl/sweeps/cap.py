"""Cap: a log that has grown beyond what its engine replays by default."""

from __future__ import annotations

from collections.abc import Iterator

from stormctl.history import Capture
from stormctl.sweeps.base import sweep
from stormctl.sweeps.finding import Fault, Item

#: How many events a run may have by default in every release (``WORKFLOW_MAX_EVENTS`` changes it).
MAX_EVENTS = 25_000


@sweep("cap", kinds=("over-cap",))
def cap(capture: Capture) -> Iterator[Item]:
    """Does the log hold no more events than an engine replays by default?"""
    count = len(capture.log)
    if count > MAX_EVENTS:
        text = f"the log holds {count} events, and an engine replays {MAX_EVENTS} by default"
        yield Fault("over-cap", text, (MAX_EVENTS,), capture.log.run_id)
