"""Events as short strings: ``630 step_created rank 198 step:finalizeStep``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stormctl.history import Event, EventLog, kinds
from stormctl.history.log import MAX_RANK
from stormctl.sweeps.finding import MAX_WITNESS


def clean(text: str) -> str:
    """Text fit for a terminal and for JSON: what a stranger's log put into a name cannot move a cursor."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def label(event: Event) -> str:
    """What an event speaks of: ``step:finalizeStep``, ``wait``, ``hook``."""
    return f"{event.kind}:{event.short_name}" if event.short_name else event.kind


def ranked(log: EventLog, event: Event) -> str:
    """How a person names the event's entity: by its rank, or by its id where the id is not of the run's sequence."""
    rank = log.rank(event)
    if rank is not None and 0 <= rank <= MAX_RANK:
        return f"rank {rank}"
    return event.correlation_id or "no id"


def line(log: EventLog, index: int) -> str:
    """One event as a witness shows it."""
    event = log[index]
    place = f"{log.place(index)} {event.type}"
    if event.correlation_id is None or event.type in kinds.RUN_TERMINAL:
        return clean(place)
    return clean(f"{place} {ranked(log, event)} {label(event)}")


def witness(log: EventLog, items: Iterable[int | str]) -> tuple[str, ...]:
    """At most six lines: events by index, or sentences that are ready."""
    return tuple(_lines(log, items))[:MAX_WITNESS]


def _lines(log: EventLog, items: Iterable[int | str]) -> Iterator[str]:
    seen: set[int | str] = set()
    for item in items:
        if item not in seen:
            seen.add(item)
            yield item if isinstance(item, str) else line(log, item)
