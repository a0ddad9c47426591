"""A create that exists already: whether whoever wrote it meant the same.

Upstream passes over it ("already exists, continuing"). But two writers whose views differ give one id to different
things, and then the loser goes on with a name and an input that are not in the log.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from stormctl.history import Event, digest_value, kinds
from stormctl.runtime import notes, ops
from stormctl.runtime.ops import Op
from stormctl.runtime.rules import OnConflict
from stormctl.runtime.view import View
from stormctl.worlds.base import NO_PAYLOAD, AppendRequest


@dataclass(frozen=True, slots=True)
class Clash:
    """A create that is a divergence: the event it clashes with (or its id), and the disagreement in words."""

    at: str
    text: str


@dataclass(frozen=True, slots=True)
class Over:
    """The creates were refused because the run has ended."""


def look(existed: Sequence[AppendRequest], run_id: str, policy: OnConflict) -> Generator[Op, Any, Clash | Over | None]:
    """What becomes of creates that were refused as existing: None to go on as if they had landed.

    The log is read once for all of them. A create that was claimed and is not in the log (its writer is slow, or dead)
    can be compared with nothing and is passed over.
    """
    if not existed or policy is OnConflict.SWALLOW:
        return None
    view = View.of(run_id, (yield ops.Load(run_id)))
    if view.ended:
        yield notes.conflict("ended", existed[0].correlation_id)
        return Over()
    for request in existed:
        written = _create_of(view.events, request.correlation_id)
        difference = "it exists already" if policy is OnConflict.DIVERGE else _difference(request, written)
        verdict = "refused" if policy is OnConflict.DIVERGE else _verdict(written, difference)
        yield notes.conflict(verdict, request.correlation_id)
        if difference is not None:
            at = None if written is None else written.event_id
            return Clash(
                at or request.correlation_id or request.type,
                f"{_type_of(request)} of {request.correlation_id}: {difference}",
            )
    return None


def _verdict(written: Event | None, difference: str | None) -> str:
    return "unseen" if written is None else "same" if difference is None else "different"


def _create_of(events: Sequence[Event], correlation_id: str | None) -> Event | None:
    """The first create of an entity, whatever its type."""
    creates = kinds.CREATES | {kinds.HOOK_CONFLICT, kinds.ATTR_SET}
    return next((event for event in events if event.correlation_id == correlation_id and event.type in creates), None)


def _type_of(request: AppendRequest) -> str:
    return kinds.STEP_CREATED if request.lazy else request.type


def _difference(request: AppendRequest, written: Event | None) -> str | None:
    """Where the create that was wanted and the one in the log disagree, in words, or None."""
    if written is None:
        return None
    if written.type not in (_type_of(request), kinds.HOOK_CONFLICT if request.type == kinds.HOOK_CREATED else None):
        return f"the log holds a {written.type} with that id"
    if written.name != request.name:
        return f"the log calls {written.name}, and the workflow calls {request.name}"
    if request.type == kinds.HOOK_CREATED and written.token != request.token:
        return "the log's hook has another token"
    if request.type == kinds.ATTR_SET and written.data.get("changes") != request.data.get("changes"):
        return "the log sets other attributes"
    if request.payload is NO_PAYLOAD or written.payload is None:
        return None
    same = written.payload.digest == digest_value(request.payload)
    return None if same else f"the log's {written.name} has another input"
