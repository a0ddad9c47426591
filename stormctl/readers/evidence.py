"""What a capture is worth, as JSON, and what can be told of it from the events alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stormctl.history import Event, Evidence, Facet, kinds
from stormctl.readers.fields import optional

_BY_WORD = {facet.name.lower(): facet for facet in Facet}


def missing_from(events: Sequence[Event], *, has_rows: bool, has_audit: bool, has_result: bool) -> frozenset[Facet]:
    """The facets that a list of events plainly lacks. A facet that only some events lack is not missing."""
    drawn = [event for event in events if event.type in kinds.DRAWN_TYPES]
    steps = [event for event in events if event.type == kinds.STEP_CREATED]
    held = {
        Facet.POSITIONS: any(event.position is not None for event in events),
        Facet.EVENT_IDS: any(event.event_id for event in events),
        Facet.TIMES: any(event.created_at is not None for event in events),
        Facet.CORRELATION_IDS: not drawn or any(event.correlation_id for event in drawn),
        Facet.NAMES: not steps or any(event.name for event in steps),
        Facet.INPUTS: not steps or any(event.payload is not None for event in steps),
        Facet.RUN_BOUNDS: any(event.type in (kinds.RUN_CREATED, kinds.RUN_STARTED) for event in events),
        Facet.COMMIT_STAMPS: False,
        Facet.RESULT: has_result,
        Facet.ROWS: has_rows,
        Facet.AUDIT: has_audit,
    }
    return frozenset(facet for facet, present in held.items() if not present)


def to_json(evidence: Evidence) -> dict[str, Any]:
    """The evidence as ``meta.json`` holds it. Facets are written by their stable words, in their declared order."""
    return {
        "origin": evidence.origin,
        "missing": [facet.name.lower() for facet in Facet if facet in evidence.missing],
        "omitted": list(evidence.omitted),
        "truncated": evidence.truncated,
        "live": evidence.live,
        "notes": list(evidence.notes),
    }


def from_json(row: Mapping[str, Any], where: str) -> Evidence:
    """The inverse of :func:`to_json`. Facets that this version does not know are kept as a note."""
    words = _texts(row, "missing", where)
    unknown = [word for word in words if word not in _BY_WORD]
    notes = [*_texts(row, "notes", where), *(f"lacks {word}, which this stormctl does not know" for word in unknown)]
    omitted = optional(row, "omitted", list, where) or []
    return Evidence(
        origin=optional(row, "origin", str, where) or "unknown",
        missing=frozenset(_BY_WORD[word] for word in words if word in _BY_WORD),
        omitted=tuple(position for position in omitted if isinstance(position, int)),
        truncated=optional(row, "truncated", bool, where) or False,
        live=optional(row, "live", bool, where) or False,
        notes=tuple(notes),
    )


def _texts(row: Mapping[str, Any], key: str, where: str) -> list[str]:
    values: Iterable[Any] = optional(row, key, list, where) or []
    return [value for value in values if isinstance(value, str)]
