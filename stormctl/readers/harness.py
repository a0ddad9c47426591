"""The results file of upstream's storm harness, ``event-log-race-repro-results.json``: how each attempt ended.

It holds no events. Where the store of the runs lies beside it (a ``.workflow-data`` folder, or a folder of its shape),
each attempt that names its run is read together with that run's log; elsewhere it gives captures without events, which
say what the harness saw of the run. Tokens of hooks are bearer secrets and are not kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from stormctl.errors import StormctlError
from stormctl.history import Capture, EventLog, Evidence, Facet, RunRow
from stormctl.readers.broken import Broken
from stormctl.readers.fields import optional, required, shown
from stormctl.readers.json_stream import Around, documents
from stormctl.readers.text import damaged
from stormctl.readers.unreadable import Unreadable
from stormctl.readers.worldlocal import Store, store_at

ORIGIN = "the results of the event-log-race-repro harness"
#: More attempts than any storm of it makes; the rest is said to have been left out.
MAX_ATTEMPTS = 100_000
#: What of an attempt is kept. Its token is not, nor the address of its dashboard.
_KEPT = ("attempt", "scenario", "outcome", "durationMs", "pressure", "progress")
_STATUS = {"completed": "completed", "stuck": "running", "dormant": "running", "slow": "running"}


class HarnessReader:
    """Reads such a file: one capture per attempt that names its run."""

    name = "workflow-harness"
    summary = "the results file of upstream's harness (event-log-race-repro-results.json)"
    sign = 'a JSON object with "plannedAttempts" or "scenarioDistribution"'

    def recognises(self, head: bytes, path: Path) -> bool:
        """Whether the file begins as one."""
        begins = head.lstrip().startswith(b"{")
        return begins and (b'"plannedAttempts"' in head or b'"scenarioDistribution"' in head)

    def read(self, path: Path) -> Iterator[Capture | Unreadable]:
        """The attempts in their order; an attempt that has no run is counted in the notes of the others."""
        attempts: list[tuple[str, Mapping[str, Any]]] = []
        broken = Broken(str(path))
        around: Mapping[str, Any] = {}
        for piece in documents(path, ("results",)):
            if isinstance(piece, Around):
                around = piece.fields
            elif len(attempts) >= MAX_ATTEMPTS:
                raise damaged(path.name, f"holds more than {MAX_ATTEMPTS} attempts")
            elif isinstance(piece.value, dict) and not piece.bare:
                attempts.append((piece.where, piece.value))
            else:
                what = "has no results" if piece.bare else f"is {shown(piece.value)}, not an attempt"
                broken.add(damaged(piece.where, what))
        yield from self._captures(path, attempts, around, broken)

    def _captures(
        self,
        path: Path,
        attempts: list[tuple[str, Mapping[str, Any]]],
        around: Mapping[str, Any],
        broken: Broken,
    ) -> Iterator[Capture | Unreadable]:
        folder = store_at(path.parent)
        store = None if folder is None else Store(folder)
        stored = frozenset() if store is None else frozenset(store.runs())
        nameless = sum(1 for _, attempt in attempts if not attempt.get("runId"))
        notes = [f"{nameless} of its {len(attempts)} attempts name no run"] if nameless else []
        if around.get("partial") is True or around.get("budgetExhausted") is True:
            notes.append("the harness stopped before its last attempt")
        if len(attempts) == nameless and not broken:
            raise damaged(path.name, "names no run", remedy="Give the logs of its runs.")
        for where, attempt in attempts:
            if not attempt.get("runId"):
                continue
            try:
                # a run's id is a stranger's text: a path is made only of those that the store itself lists
                found = store.read(attempt["runId"])[0] if store and attempt["runId"] in stored else None
                yield _capture(path, attempt, where, found, notes)
            except StormctlError as error:
                broken.add(error)
        yield from broken.told()


def _capture(path: Path, attempt: Mapping[str, Any], where: str, found: Capture | None, notes: list[str]) -> Capture:
    run_id = required(attempt, "runId", str, where)
    outcome = optional(attempt, "outcome", str, where) or "unknown"
    row = RunRow(
        status=optional(attempt, "status", str, where) or _STATUS.get(outcome, "failed"),
        workload=optional(attempt, "scenario", str, where),
        error_code=optional(attempt, "errorCode", str, where),
        error_message=optional(attempt, "errorMessage", str, where),
    )
    told = {key: attempt[key] for key in _KEPT if key in attempt}
    if found is not None:
        seen = replace(found.evidence, notes=(*found.evidence.notes, *notes, f"the harness saw it {outcome}"))
        run = found.run
        if run is not None and run.error_code is None and run.status == "failed":
            run = replace(run, error_code=row.error_code, error_message=run.error_message or row.error_message)
        return replace(found, evidence=seen, run=run or row, data={**found.data, "attempt": told})
    missing = frozenset(Facet) - {Facet.ROWS}
    said = (*notes, f"the harness saw it {outcome}; its events were not captured")
    evidence = Evidence(ORIGIN, missing=missing, truncated=True, live=row.status == "running", notes=said)
    return Capture(str(path), EventLog((), run_id), evidence, row, data={"attempt": told})


READER = HarnessReader()
