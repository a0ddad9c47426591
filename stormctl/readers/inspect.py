"""What ``workflow inspect ... --json`` prints: events newest first, and lists of runs, steps, sleeps and hooks.

A listing of events is put into the store's order, and marked as partial where it may be: the command shows 20 unless it
is told otherwise. Listings of runs, steps, sleeps and hooks that lie beside it under the same naming
(``events.json``, ``runs.json``, ...) are read with it; alone, they give captures without events.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from stormctl.history import Capture, EventLog, Evidence, Facet
from stormctl.readers.beside import companions
from stormctl.readers.sdk_listing import read_listing
from stormctl.readers.unreadable import Unreadable

ORIGIN = "a listing of workflow inspect"
_ROLES = ("runs", "steps", "sleeps", "waits", "hooks")
_START = re.compile(rb"(?m)^\s*(?:\[\s*(?:\{|\])|\{\s*\"(?:data|events)\"\s*:\s*\[)")
_EMPTY = re.compile(rb"\s*(?:\[\s*\]\s*\Z|\{\s*\"(?:data|events)\"\s*:\s*\[\s*\])")
_EVENT_ID = re.compile(rb'"eventId"\s*:\s*"([0-9A-Za-z_]{1,64})"')
_ENTITY = re.compile(rb'"(?:stepId|hookId|waitId|streamId)"\s*:|"status"\s*:[^{}]*"workflowName"\s*:|"resumeAt"\s*:')


class InspectReader:
    """Reads the listings of the SDK's command line."""

    name = "workflow-inspect"
    summary = "what `workflow inspect --json` prints of events, runs, steps, sleeps and hooks"
    sign = "a JSON list of events with the newest first, or of runs, steps, sleeps or hooks; other lines may come first"

    def recognises(self, head: bytes, path: Path) -> bool:
        """Whether the file begins as a list of entities, as one of events that runs backwards, or is an empty list."""
        found = _START.search(head)
        if found is None:
            return False
        head = head[found.start() :]
        if _EMPTY.match(head) is not None:
            return True
        if b'"eventType"' not in head:
            return _ENTITY.search(head) is not None and b'"runId"' in head
        ids = _EVENT_ID.findall(head)
        return len(ids) > 1 and ids == sorted(ids, reverse=True) and ids[0] != ids[1]

    def read(self, path: Path) -> Iterator[Capture | Unreadable]:
        """One capture per run that the listing speaks of; one without a run for an empty list."""
        empty = True
        for one in read_listing(path, ORIGIN, backwards=True, beside=companions(path, _ROLES), empty=True):
            empty = False
            yield one
        if empty:
            note = "it is an empty list: there was nothing to show"
            evidence = Evidence(ORIGIN, missing=frozenset(Facet), truncated=True, notes=(note,))
            yield Capture(str(path), EventLog(()), evidence)


READER = InspectReader()
