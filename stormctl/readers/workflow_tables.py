"""Tables of a Postgres world of the Workflow SDK, as rows of text: whatever dumped them, rows become captures here.

The order of a log is that of the ids byte by byte, as the world lists it; before it goes the ``seq`` of a store that
has one. When an event was committed is known where the dump has a column for it (``committed_at``); ``xmin`` and
``ctid`` are kept where it has those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from stormctl.history import Event
from stormctl.readers.assemble import ENTITY, EVENT, RUN, Assembly, Parts
from stormctl.readers.fields import shown
from stormctl.readers.sdk_events import placed
from stormctl.readers.text import damaged
from stormctl.readers.workflow_rows import ENTITY_FIELDS, entity_of_row, event_of_row, run_of_row

ORIGIN = "a dump of a Postgres world"
#: The columns by which a table is told, and the table's name in the SDK's schema.
TABLES: Mapping[str, frozenset[str]] = {
    "workflow_events": frozenset({"id", "type", "run_id", "correlation_id", "created_at"}),
    "workflow_runs": frozenset({"id", "status", "name", "deployment_id"}),
    "workflow_steps": frozenset({"run_id", "step_id", "step_name", "status"}),
    "workflow_waits": frozenset({"run_id", "wait_id", "resume_at"}),
    "workflow_hooks": frozenset({"run_id", "hook_id", "token"}),
}
_ENTITY_KEYS = {"workflow_steps": "step_id", "workflow_waits": "wait_id", "workflow_hooks": "hook_id"}
_COMMITTED = ("committed_at", "commit_timestamp", "pg_xact_commit_timestamp")
_SYSTEM = {"xmin": "_xmin", "ctid": "_ctid"}
_EVENT_PAYLOADS = frozenset({"payload", "payload_cbor"})


def table_of(columns: Sequence[str]) -> str | None:
    """The table that has such columns; None when it is none of the SDK's."""
    there = set(columns)
    for table, needed in TABLES.items():
        if needed <= there and (table != "workflow_events" or there & _EVENT_PAYLOADS):
            return table
    return None


def add_row(assembly: Assembly, table: str, row: Mapping[str, str], where: str) -> None:
    """Put a row where it belongs; UnreadableInput when it names no run."""
    key = "id" if table == "workflow_runs" else "run_id"
    run_id = row.get(key)
    if not run_id:
        raise damaged(where, f"names no run in {key!r}")
    size = sum(map(len, row.values()))
    if table == "workflow_events":
        assembly.add(EVENT, run_id, {name: cell for name, cell in row.items() if cell}, size, where=where)
    elif table == "workflow_runs":
        assembly.add(RUN, run_id, run_of_row(row), size, where=where)
    else:
        entity = row.get(_ENTITY_KEYS[table], "").removeprefix(f"{run_id}-")
        kept = {name: cell for name, cell in row.items() if name in ENTITY_FIELDS and cell}
        assembly.add(ENTITY, run_id, [entity, kept], size, where=where)


def event_of(row: Mapping[str, str], where: str, parts: Parts) -> Event:
    """The event of a row of ``workflow_events``; its commit time goes into the parts."""
    given: dict[str, Any] = {_SYSTEM.get(name, name): cell for name, cell in row.items() if name not in _COMMITTED}
    event = event_of_row(given)
    stamp = next((row[name] for name in _COMMITTED if row.get(name)), None)
    if stamp is not None and event.event_id is not None:
        parts.committed[event.event_id] = _us(stamp, where)
    return event


def entity_of(body: Any) -> tuple[str, Any]:
    """An entity and how it stands."""
    entity, row = body
    return entity, entity_of_row(row)


def ordered(parts: Parts) -> Sequence[Event]:
    """The events as the world lists them."""
    return placed(sorted(parts.events, key=_place))


def _place(event: Event) -> tuple[bool, int, str]:
    return (event.position is not None, event.position or 0, event.event_id or "")


def _us(stamp: str, where: str) -> int:
    try:
        found = datetime.fromisoformat(stamp)
    except ValueError:
        raise damaged(where, f"has no time in {shown(stamp)}") from None
    moment = found if found.tzinfo else found.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1_000_000)
