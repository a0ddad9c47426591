"""Which profile a log is read by: the one that was named, or the one that the log asks for.

A log of the Workflow SDK says which release wrote it (``workflowCoreVersion`` in the event that creates the run), or at
least which version of the format (``specVersion``); its ids tell the store. Where nothing tells, the strictest reading
is taken, and the report says so. Logs of our own worlds are read so: they are written by no release.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from stormctl.history import Capture, ids, kinds
from stormctl.sweeps.profiles import AUTO, LOCAL, POSTGRES, PROFILES, STRICT, Profile, profile_named
from stormctl.sweeps.witness import clean

#: The deployment under which our own worlds create their runs.
OWN = "stormctl"
#: From which spec version on a run of 5.x has slot ids, and from which it is 5.x at all.
_SPEC_OF_FIVE = 4
_SPEC_OF_FOUR = (2, 3)
_VERSION = re.compile(r"([0-9]{1,3})\.([0-9]{1,4})\.")
#: Words by which a capture says what kind of store its log is from. Ids tell no more than local or Postgres.
_WORLDS = (
    "local", "postgres", "memory", "temporal", "dbos", "restate", "azure-durable-task", "dapr-durable-task", "inngest",
    "table",
)  # fmt: skip
UNKNOWN_WORLD = "unknown"
#: The first minor release of 4.x that is read as 4.8.
_LATER_FOUR = 7


class From(StrEnum):
    """Where a profile came from."""

    NAMED = "named"
    LOG = "log"
    STRICTEST = "strictest"


@dataclass(frozen=True, slots=True)
class Reading:
    """The profile that a log is read by, where it came from, and what the log said."""

    profile: Profile
    source: From
    told: str = ""


def reading_of(capture: Capture, name: str) -> Reading:
    """The profile of that name, or for ``auto`` the one that the log asks for. UsageError for one that there is not."""
    if name != AUTO:
        return Reading(profile_named(name), From.NAMED)
    version = core_version(capture)
    spec = next((event.spec for event in capture.log.events if event.spec is not None), None)
    line = _line(capture, version, spec)
    if line is None:
        return Reading(STRICT, From.STRICTEST)
    world = _world(capture)
    told = clean(version) if version is not None else f"spec version {spec}"
    return Reading(PROFILES[line if world is None else f"{line}-{world}"], From.LOG, told)


def kind_of_world(capture: Capture) -> str:
    """The kind of store that a log is from, in one word: of a storm the world that it ran on, of the SDK's logs the
    store as its ids tell it, of another engine's tables the map or the format; ``unknown`` where nothing tells."""
    for said in (capture.data.get("world"), capture.evidence.origin):
        if isinstance(said, str):
            found = next((word for word in _WORLDS if word in said.lower()), None)
            if found is not None:
                return found
    return _world(capture) or UNKNOWN_WORLD


def core_version(capture: Capture) -> str | None:
    """The release that created the run, as the log or the run's row says; None where neither does."""
    created = next((event for event in capture.log.events if event.type == kinds.RUN_CREATED), None)
    for data in (created.data if created is not None else {}, capture.data):
        context = data.get("executionContext")
        for found in (context.get("workflowCoreVersion") if isinstance(context, Mapping) else None,
                      data.get("workflowCoreVersion")):  # fmt: skip
            if isinstance(found, str) and _VERSION.match(found):
                return found
    return None


def _line(capture: Capture, version: str | None, spec: int | None) -> str | None:
    """The line of releases; None where the log does not tell."""
    slots = any(event.event_id and ids.slot_of(event.event_id) is not None for event in capture.log.events[:2])
    if capture.log.has_positions and not slots:
        # only a store that counts beside its ids has both; no release does, so the version alone is no telling
        return "workflow@seq" if version is not None else None
    if version is not None:
        found = _VERSION.match(version)
        major, minor = (int(part) for part in found.groups()) if found is not None else (0, 0)
        if major == 4:
            return "workflow@4.8" if minor >= _LATER_FOUR else "workflow@4.6"
        return ("workflow@5" if slots else "workflow@5-ulid") if major == 5 else None
    if spec is None or _own(capture):
        return None
    if spec in _SPEC_OF_FOUR:
        return "workflow@4.8"
    if spec >= _SPEC_OF_FIVE:
        return "workflow@5" if slots else "workflow@5-ulid"
    return None


def _own(capture: Capture) -> bool:
    """Whether one of our own worlds wrote the run: in the SDK's format, and by the rules of its condition."""
    return any(event.data.get("deploymentId") == OWN for event in capture.log.events if event.type == kinds.RUN_CREATED)


def _world(capture: Capture) -> str | None:
    """The kind of store, as its ids or the capture tell; None where they do not."""
    first = next((event.event_id for event in capture.log.events if event.event_id), "")
    said = f"{capture.data.get('world', '')} {capture.evidence.origin}".lower()
    if first.startswith("wevt_") or "postgres" in said:
        return POSTGRES
    if ids.ulid_ms(first) is not None or "local" in said:
        return LOCAL  # of the released stores only world-local has ULIDs under evnt_
    return None
