"""Captures of the Workflow SDK as JSON: what its ``events.list`` returned, alone or with the run row.

Either an array of events (``{"eventType", "runId", "eventId", ...}``) or an object that holds one under ``events`` or
``data``, with the run row under ``run``. Bytes stand as ``{"$bytes": base64}`` or in any form that the SDK's stores
write. ``_committedAt`` on an event, where a capture from Postgres has it, is the time of its commit. The array is taken
as it stands: whoever captured it had the store's order.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stormctl.errors import UnreadableInput
from stormctl.history import Capture, Event
from stormctl.readers.fields import optional
from stormctl.readers.sdk_capture import Found, capture_of
from stormctl.readers.sdk_events import event_of
from stormctl.readers.text import damaged, parse, unreadable
from stormctl.times import us_of

MAX_FILE_BYTES = 256 << 20
_HEAD = re.compile(rb"\s*[\[{]")
_COMMITTED = "_committedAt"


class SdkJsonReader:
    """Reads such captures; a file may hold several runs."""

    name = "workflow-json"
    summary = "a JSON array of the Workflow SDK's events, or an object with run and events"

    def recognises(self, head: bytes, path: Path) -> bool:
        """Whether the file begins as one."""
        named = b'"eventType"' in head or (b'"runId"' in head and b'"workflowName"' in head)
        return named and _HEAD.match(head) is not None

    def read(self, path: Path) -> Iterator[Capture]:
        """One capture per run, in the order of their first events."""
        content = _load(path)
        row: Mapping[str, Any] = {}
        if isinstance(content, dict):
            row = optional(content, "run", dict, path.name) or {}
            rows = optional(content, "events", list, path.name) or optional(content, "data", list, path.name)
        else:
            rows = content
        if not isinstance(rows, list):
            raise damaged(path.name, "holds no list of events", remedy="Give what events.list returned.")
        runs: dict[str, list[Event]] = defaultdict(list)
        committed: dict[str, dict[str, int]] = defaultdict(dict)
        for number, body in enumerate(rows, 1):
            where = f"event {number} of {path.name}"
            if not isinstance(body, dict):
                raise damaged(where, "is not an object")
            event = event_of({key: value for key, value in body.items() if key != _COMMITTED}, where)
            runs[event.run_id].append(event)
            stamp = optional(body, _COMMITTED, str, where)
            if stamp is not None and event.event_id is not None:
                committed[event.run_id][event.event_id] = _us(stamp, where)
        if not runs:
            raise damaged(path.name, "holds no events", remedy="Capture the run again.")
        for run_id, events in runs.items():
            own = row if row.get("runId", run_id) == run_id else {}
            yield capture_of(
                Found(
                    source=str(path),
                    run_id=run_id,
                    events=events,
                    origin="Workflow SDK events as JSON",
                    row=own or None,
                    committed=committed[run_id],
                )
            )


def _us(stamp: str, where: str) -> int:
    try:
        return us_of(stamp)
    except (ValueError, TypeError):
        raise damaged(where, f"has no time in {_COMMITTED!r}") from None


def _load(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise unreadable(path, error) from error
    if len(content) > MAX_FILE_BYTES:
        raise damaged(path.name, f"is larger than {MAX_FILE_BYTES >> 20} MiB")
    try:
        return parse(content.decode("utf-8"), path.name)
    except UnicodeDecodeError:
        raise UnreadableInput(f"{path.name} is not UTF-8 text", remedy="Give a capture in UTF-8.") from None


READER = SdkJsonReader()
