"""Captures of the Workflow SDK as JSON: what its ``events.list`` returned, alone or with the run row.

Bytes stand as ``{"$bytes": base64}`` or in any form that the SDK's stores write. ``_committedAt`` on an event, where a
capture from Postgres has it, is the time of its commit. :mod:`stormctl.readers.sdk_listing` says which forms there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from stormctl.history import Capture
from stormctl.readers.sdk_listing import read_listing
from stormctl.readers.unreadable import Unreadable

_HEAD = re.compile(rb"\s*[\[{]")


class SdkJsonReader:
    """Reads such captures; a file may hold several runs."""

    name = "workflow-json"
    summary = "the Workflow SDK's events as JSON: arrays, pages, one event per line, or an object with run and events"
    sign = 'JSON with an "eventType", or with a "runId" and a "workflowName"'

    def recognises(self, head: bytes, path: Path) -> bool:
        """Whether the file begins as one."""
        named = b'"eventType"' in head or (b'"runId"' in head and b'"workflowName"' in head)
        return named and _HEAD.match(head) is not None

    def read(self, path: Path) -> Iterator[Capture | Unreadable]:
        """One capture per run, in the order of their first events."""
        yield from read_listing(path, "Workflow SDK events as JSON")


READER = SdkJsonReader()
