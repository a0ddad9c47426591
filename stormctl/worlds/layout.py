"""Where a store keeps what: the folder layout of the Workflow SDK's local world, so that its tools read ours.

    version.txt                                    stormctl-local@1
    runs/<run>.json                                run rows
    events/<run>-<event id>.json                   one event per file, never changed
    steps/<run>-<step>.json, waits/<run>-<wait>.json, hooks/<hook>.json
    hooks/tokens/<sha256 of the token>.json        who holds a token
    .locks/<kind>s/<run>-<id>.<once>               permanent claims, empty
    .locks/runs/<run>.append.lock                  the run's append lock
    .locks/runs/<run>.seq.json                     the counter: end of the log as the fence sees it
    .locks/runs/<run>.journal                      one line per event about to be published (see below)
    .locks/runs/<run>.pending/<event id>.json      events staged under their slot's name (shared staging)
    .locks/runs/<run>.slots/<slot>                 slots that were reserved
    .locks/holders/                                lock bodies of processes, linked to where they are held
    audit/<pid>.ndjson                             the append audit
    queue/                                         the queue of the store's workers
    storm.lock                                     the driver that owns the folder

What lies in .locks/runs and below is ours. The *journal* is appended to just before an event's file is linked: a line
names the event, its seq and its fence mark. It tells readers where to look (a folder with thousands of events is not
listed for every read; an event counts only when its own file exists) and it is what a rescan restores fence and credit
from, also after a writer was killed between publication and counter.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from stormctl.worlds.rows import Kind
from stormctl.worlds.store_ops import Once

MARKER = "stormctl-local@"
VERSION = 1

FOLDERS = (
    "runs",
    "events",
    "steps",
    "waits",
    "hooks/tokens",
    ".locks/runs",
    ".locks/steps",
    ".locks/waits",
    ".locks/hooks",
    ".locks/attributes",
    ".locks/holders",
    "audit",
    "queue",
)

_CLAIMS = {Kind.STEP: "steps", Kind.WAIT: "waits", Kind.HOOK: "hooks", Kind.ATTR: "attributes", Kind.RUN: "runs"}


class Layout:
    """The paths of one store folder, as strings (they are built once per file call)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._root = str(folder)
        self.events = f"{self._root}/events"
        self.waits = f"{self._root}/waits"
        self.hooks = f"{self._root}/hooks"
        self.holders = f"{self._root}/.locks/holders"

    def run(self, run_id: str) -> str:
        return f"{self._root}/runs/{run_id}.json"

    def event(self, run_id: str, event_id: str) -> str:
        return f"{self.events}/{run_id}-{event_id}.json"

    def entity(self, kind: Kind, run_id: str, entity_id: str) -> str:
        if kind is Kind.HOOK:
            return f"{self.hooks}/{entity_id}.json"
        return f"{self._root}/{kind}s/{run_id}-{entity_id}.json"

    def token(self, token: str) -> str:
        return f"{self.hooks}/tokens/{hashlib.sha256(token.encode()).hexdigest()}.json"

    def claim(self, kind: Kind, run_id: str, entity_id: str, what: Once) -> str:
        name = entity_id if kind in (Kind.HOOK, Kind.RUN) else f"{run_id}-{entity_id}"
        return f"{self._root}/.locks/{_CLAIMS[kind]}/{name}.{what}"

    def lock(self, run_id: str) -> str:
        return f"{self._root}/.locks/runs/{run_id}.append.lock"

    def counter(self, run_id: str) -> str:
        return f"{self._root}/.locks/runs/{run_id}.seq.json"

    def journal(self, run_id: str) -> str:
        return f"{self._root}/.locks/runs/{run_id}.journal"

    def staged(self, run_id: str, event_id: str) -> str:
        """Where an event waits to be published, under a condition with shared staging."""
        return f"{self._root}/.locks/runs/{run_id}.pending/{event_id}.json"

    def reserved(self, run_id: str, slot: int) -> str:
        """The mark of a slot that was reserved, under a condition that reserves."""
        return f"{self._root}/.locks/runs/{run_id}.slots/{slot:026d}"

    def event_of(self, name: str, run_id: str) -> str | None:
        """The event id that a name in ``events/`` carries, when it is a published event of the run."""
        prefix = f"{run_id}-"
        if name.startswith(prefix) and name.endswith(".json"):
            return name[len(prefix) : -len(".json")]
        return None
