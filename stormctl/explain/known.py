"""Writers that are known for certain: what the append audit of a storm tells of each create.

The audit says who wrote an event and how many events that writer had read. Where the store gives out dense positions
these were a prefix. Where ids are minted before the write they were the events published by then, which may be a
prefix with holes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stormctl.explain.creates import Created, creates_of
from stormctl.history import AuditRecord, Capture
from stormctl.sweeps.commit_order import publication_times


@dataclass(frozen=True, slots=True)
class KnownWriter:
    """Who wrote a create. ``snapshot`` is how many events it had read, None where it did not say.

    Its view was the first ``length`` events of the log without the ``hidden`` ones, None where that cannot be told.
    """

    create: Created
    writer: str
    snapshot: int | None
    length: int | None
    hidden: tuple[int, ...]


def known_writers(capture: Capture) -> dict[int, KnownWriter]:
    """The writer of every create that the audit knows, by 0-based index."""
    if not capture.audit:
        return {}
    by_event: dict[str, AuditRecord] = {}
    by_place: dict[int, AuditRecord] = {}
    for record in capture.audit:
        if not record.admitted:
            continue
        if record.event_id is not None:
            by_event.setdefault(record.event_id, record)
        if record.position is not None:
            by_place.setdefault(record.position, record)
    log = capture.log
    order = _published(capture)
    found: dict[int, KnownWriter] = {}
    for create in creates_of(log):
        # the store itself writes the first half of a lazy start, and its record is that of the start
        for index in (create.index, create.index + 1) if create.is_pair else (create.index,):
            event = log[index]
            told = by_event.get(event.event_id or "") or by_place.get(event.position or -1)
            if told is not None and told.correlation_id == create.correlation_id:
                found[create.index] = _known(create, told, order, dense=log.has_positions)
                break
    return found


def _known(create: Created, record: AuditRecord, order: list[int] | None, *, dense: bool) -> KnownWriter:
    count = record.snapshot
    if count is None or (order is None and not dense):
        return KnownWriter(create, record.writer, count, None, ())
    if dense or order is None:
        return KnownWriter(create, record.writer, count, min(count, create.index), ())
    seen = set(order[:count])
    length = max(seen, default=-1) + 1
    hidden = tuple(index for index in range(length) if index not in seen)
    return KnownWriter(create, record.writer, count, length, hidden)


def _published(capture: Capture) -> list[int] | None:
    """The indices of the log in the order of publication; None where too little of it is known."""
    times = publication_times(capture)
    if not any(time is not None for time in times):
        return None
    filled: list[tuple[int, int]] = []
    for index, time in enumerate(times):
        if time is None:  # published with the event that follows: the first half of a lazy start
            time = next((later for later in times[index + 1 :] if later is not None), 0)
        filled.append((time, index))
    return [index for _, index in sorted(filled)]


def snapshots_shared(known: Iterable[KnownWriter]) -> dict[int, set[str]]:
    """Snapshots from which more than one writer wrote a create, with the writers."""
    found: dict[int, set[str]] = {}
    for one in known:
        if one.snapshot is not None:
            found.setdefault(one.snapshot, set()).add(one.writer)
    return {snapshot: writers for snapshot, writers in found.items() if len(writers) > 1}
