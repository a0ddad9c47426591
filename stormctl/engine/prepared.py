"""A log made ready for many passes: what the walk asks of each event, looked up once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stormctl.history import Damaged, Event, kinds

#: event type -> the class under which a repeat of it is inert; a type that is missing here always counts
CLASS_OF = {
    kinds.STEP_CREATED: "created",
    kinds.HOOK_CREATED: "created",
    kinds.WAIT_CREATED: "created",
    kinds.STEP_STARTED: "started",
    kinds.STEP_COMPLETED: "step-terminal",
    kinds.STEP_FAILED: "step-terminal",
    kinds.WAIT_COMPLETED: "wait-completed",
    kinds.HOOK_DISPOSED: "disposed",
}

#: unclaimed events of these types are set aside until somebody asks for them; any other unclaimed event diverges
PARKABLE = frozenset({kinds.HOOK_RECEIVED, kinds.HOOK_CONFLICT, kinds.WAIT_COMPLETED, kinds.ATTR_SET})

#: the workflow's own attribute writes have an id of the run's sequence; others have none, or the run's
_DRAWN_ATTR = f"{kinds.ATTR}_"
_OF_THE_RUN = frozenset({kinds.RUN_CREATED, kinds.RUN_STARTED, kinds.NOOP}) | kinds.RUN_TERMINAL


def _written_by_a_step(event: Event) -> bool:
    writer = event.data.get("writer")
    return isinstance(writer, Mapping) and writer.get("type") == "step"


class Prepared:
    """One event as the walk sees it."""

    __slots__ = (
        "by_step",
        "correlation_id",
        "event",
        "inert_key",
        "name",
        "parkable",
        "structural",
        "time",
        "type",
        "unreadable",
    )

    def __init__(self, event: Event) -> None:
        event_type = event.type
        self.event = event
        self.type = event_type
        self.correlation_id = event.correlation_id or ""
        name = event.name
        self.name = event.short_name if name is not None and "//" in name else name
        inert_class = CLASS_OF.get(event_type)
        self.inert_key = None if inert_class is None else (self.correlation_id, inert_class)
        self.parkable = event_type in PARKABLE
        of_the_run = event_type in _OF_THE_RUN
        #: what the run's clock moves on to when the event is consumed; what opens and ends a run moves it nowhere
        self.time = 0 if of_the_run or event.created_at is None else event.created_at
        #: an attribute write that no replay asked for
        self.by_step = event_type == kinds.ATTR_SET and (
            not self.correlation_id.startswith(_DRAWN_ATTR) or _written_by_a_step(event)
        )
        #: claimed by the run itself rather than by something that was drawn
        self.structural = of_the_run or self.by_step
        #: why the payload cannot be read, if it cannot
        self.unreadable = event.payload.reason if isinstance(event.payload, Damaged) else None


#: stands in the place of an event that a replay is not to see, so that the others keep their index
HIDDEN = Prepared(Event(type=kinds.NOOP))


def prepare(events: Iterable[Event]) -> list[Prepared]:
    """Prepare the events of a log for any number of passes."""
    return [Prepared(event) for event in events]
