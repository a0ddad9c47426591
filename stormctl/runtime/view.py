"""What one delivery has read of a run's log, and the questions that it asks of it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from stormctl.history import Event, EventLog, kinds
from stormctl.worlds.base import Page, Snapshot


@dataclass(frozen=True, slots=True)
class View:
    """The events read so far, in the order read, and the cursor behind which more will be asked for."""

    run_id: str
    events: tuple[Event, ...]
    cursor: str | None

    @classmethod
    def of(cls, run_id: str, page: Page) -> View:
        """The view of a full read."""
        return cls(run_id, page.events, page.cursor)

    def plus(self, page: Page) -> View:
        """The view after an incremental read: appended where they are new, never sorted again."""
        known = {event.event_id for event in self.events}
        fresh = tuple(event for event in page.events if event.event_id not in known)
        return View(self.run_id, self.events + fresh, page.cursor)

    def snapshot(self, writer: str) -> Snapshot:
        """What a write derived from this view tells the store."""
        return Snapshot(len(self.events), self.cursor, writer)

    @property
    def log(self) -> EventLog:
        return EventLog(self.events, self.run_id)

    @property
    def ended(self) -> bool:
        return any(event.type in kinds.RUN_TERMINAL for event in self.events)

    def elapsed_waits(self, now: int) -> list[Event]:
        """The creates of waits that are due and not completed, the latest create of each wait."""
        open_waits: dict[str, Event] = {}
        for event in self.events:
            if event.correlation_id is None:
                continue
            if event.type == kinds.WAIT_CREATED:
                open_waits[event.correlation_id] = event
            elif event.type == kinds.WAIT_COMPLETED:
                open_waits.pop(event.correlation_id, None)
        return [event for event in open_waits.values() if event.resume_at is not None and event.resume_at <= now]

    def completed_waits(self) -> set[str | None]:
        return {event.correlation_id for event in self.events if event.type == kinds.WAIT_COMPLETED}

    def unfinished_steps(self) -> set[str]:
        """The ids of steps that were created and have no outcome."""
        steps: set[str] = set()
        for event in self.events:
            if event.correlation_id is None:
                continue
            if event.type == kinds.STEP_CREATED:
                steps.add(event.correlation_id)
            elif event.type in kinds.STEP_TERMINAL:
                steps.discard(event.correlation_id)
        return steps

    def contract_problem(self) -> str | None:
        """Why the log cannot be what a dense store holds (``36 followed by 36``), or None. Needs positions."""
        positions = [event.position for event in self.events if event.position is not None]
        if len(positions) != len(self.events):
            return None  # a store without positions promises nothing
        if positions and positions[0] != 1:
            return f"the log starts at {positions[0]}"
        for before, after in pairwise(positions):
            if after != before + 1:
                return f"{before} followed by {after}"
        return None
