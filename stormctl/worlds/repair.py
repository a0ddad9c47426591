"""Make the rows of one entity agree with the log again, after a writer died or failed between the two.

The log is the truth: an event that was published counts, a row or claim without its event does not. What can be wrong
is only what the broken append could have touched, and its intent names that.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from stormctl.history import Event, kinds
from stormctl.worlds.rows import Entity, Kind, fold, fold_run
from stormctl.worlds.store_ops import (
    ClaimOnce,
    ClaimToken,
    DropClaim,
    DropEntities,
    DropEntity,
    DropRun,
    Intent,
    Once,
    PutEntity,
    PutRun,
    ReadEntity,
    ReadLog,
    ReleaseToken,
    StoreOp,
    TokenOwner,
)

Steps = Generator[StoreOp, Any, None]

_CLAIMS = {
    Kind.STEP: {
        Once.CREATED: frozenset({kinds.STEP_CREATED}),
        Once.TERMINAL: kinds.STEP_TERMINAL,
    },
    Kind.WAIT: {
        Once.CREATED: frozenset({kinds.WAIT_CREATED}),
        Once.COMPLETED: frozenset({kinds.WAIT_COMPLETED}),
    },
    Kind.HOOK: {Once.DISPOSED: frozenset({kinds.HOOK_DISPOSED})},
    Kind.ATTR: {Once.CREATED: frozenset({kinds.ATTR_SET})},
}


def repair(run_id: str, intent: Intent) -> Steps:
    """Put right what an append of this intent may have left half done. Doing it twice does no harm."""
    events: tuple[Event, ...] = yield ReadLog(run_id)
    for one in (intent, *intent.also):
        yield from _repair_one(run_id, one, events)


def _repair_one(run_id: str, intent: Intent, events: tuple[Event, ...]) -> Steps:
    kind = kinds.kind_of_type(intent.type)
    if kind in (kinds.RUN, kinds.ATTR):
        run = fold_run(events)
        yield DropRun(run_id) if run is None else PutRun(run)
    if any(event.is_terminal for event in events):
        yield DropEntities(run_id)
        if kind == kinds.RUN and not any(event.is_terminal for event in events):
            yield DropClaim(Kind.RUN, run_id, run_id, Once.TERMINAL)
    if intent.correlation_id is None or kind == kinds.RUN:
        return
    entity_kind = Kind(kind)
    seen = {event.type for event in events if event.correlation_id == intent.correlation_id}
    for what, types in _CLAIMS[entity_kind].items():
        if seen.isdisjoint(types):
            yield DropClaim(entity_kind, run_id, intent.correlation_id, what)
        else:
            yield ClaimOnce(entity_kind, run_id, intent.correlation_id, what)
    if entity_kind is Kind.ATTR:
        return
    row = fold(events, intent.correlation_id)
    if row is not None and entity_kind in (Kind.WAIT, Kind.HOOK) and any(event.is_terminal for event in events):
        row = None
    if entity_kind is Kind.HOOK:
        yield from _token(run_id, intent, row)
    yield DropEntity(entity_kind, run_id, intent.correlation_id) if row is None else PutEntity(row)


def _token(run_id: str, intent: Intent, live: Entity | None) -> Steps:
    """A live hook holds its token, any other does not."""
    hook_id = intent.correlation_id or ""
    left: Entity | None = yield ReadEntity(Kind.HOOK, run_id, hook_id)
    token = intent.token or (left.token if left is not None else None) or (live.token if live is not None else None)
    if token is None:
        return
    if live is not None:
        yield ClaimToken(token, TokenOwner(run_id, hook_id))
    else:
        yield ReleaseToken(token, TokenOwner(run_id, hook_id))
