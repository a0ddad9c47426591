"""The meta file of a log: ``<run>.meta.json``, schema ``stormctl.log/1``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from stormctl.errors import UnreadableInput
from stormctl.history import Capture, Event, Evidence, RunRow
from stormctl.readers import evidence as worth
from stormctl.readers.fields import optional, required, shown
from stormctl.readers.text import damaged, parse, refuse_hopeless, unreadable
from stormctl.readers.unpack import read_up_to

SCHEMA_NAME, SCHEMA_VERSION = "stormctl.log", 1
SCHEMA = f"{SCHEMA_NAME}/{SCHEMA_VERSION}"
MAX_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Meta:
    """What a meta file says. ``audit`` is None where no meta file says whether the log has an audit."""

    run_id: str
    run: RunRow | None = None
    evidence: Evidence | None = None
    events: int | None = None
    audit: bool | None = None
    data: Mapping[str, Any] = field(default_factory=dict)

    def evidence_for(self, events: Sequence[Event], *, has_audit: bool) -> Evidence:
        """The evidence of the log that was read: what the file declares, corrected by what is really there."""
        has_result = self.run is not None and (self.run.status != "completed" or self.run.output is not None)
        plain = worth.missing_from(events, has_rows=self.run is not None, has_audit=has_audit, has_result=has_result)
        if self.evidence is None:
            return Evidence("rows without a meta file", missing=plain)
        found = replace(self.evidence, missing=self.evidence.missing | plain)
        if self.events is not None and self.events != len(events):
            note = f"the log holds {len(events)} of the {self.events} events that were captured"
            found = replace(found, truncated=True, notes=(*found.notes, note))
        return found


def to_json(capture: Capture) -> dict[str, Any]:
    """The meta file of a capture."""
    run = capture.run
    return {
        "schema": SCHEMA,
        "run_id": capture.log.run_id,
        "events": len(capture.log),
        "run": None
        if run is None
        else {
            "status": run.status,
            "workload": run.workload,
            "input": dict(run.input),
            "output": run.output,
            "error_code": run.error_code,
            "error_message": run.error_message,
        },
        "evidence": worth.to_json(capture.evidence),
        "audit": capture.audit is not None,
        "data": dict(capture.data),
    }


def read(path: Path, stem: str) -> Meta:
    """The meta file at ``path``, or a bare one named by the log's file name where there is none."""
    if not path.exists():
        return Meta(stem)
    try:
        with path.open("rb") as file:
            content = read_up_to(file, MAX_BYTES + 1)
    except OSError as error:
        raise unreadable(path, error) from error
    if len(content) > MAX_BYTES:
        raise damaged(path.name, f"is larger than {MAX_BYTES >> 20} MiB")
    refuse_hopeless(content, path)
    return from_json(parse(content.decode("utf-8", "replace"), path.name), path.name, stem)


def from_json(row: Any, where: str, stem: str) -> Meta:
    """The inverse of :func:`to_json`. ``stem`` names the run where the row does not."""
    if not isinstance(row, dict):
        raise damaged(where, "is not a JSON object")
    check_schema(row.get("schema"), where)
    about = optional(row, "evidence", dict, where)
    return Meta(
        run_id=optional(row, "run_id", str, where) or stem,
        run=_run(optional(row, "run", dict, where), where),
        evidence=None if about is None else worth.from_json(about, where),
        events=optional(row, "events", int, where),
        audit=optional(row, "audit", bool, where) or False,
        data=optional(row, "data", dict, where) or {},
    )


def check_schema(found: Any, where: str) -> None:
    """Refuse what is no log of ours, and what a newer stormctl wrote."""
    name, _, version = found.partition("/") if isinstance(found, str) else ("", "", "")
    if name != SCHEMA_NAME or not version.isascii() or not version.isdigit():
        raise damaged(
            where,
            f"has the schema {shown(found)}, not {SCHEMA}",
            remedy="Remove it, or give the meta file that was captured with the log.",
        )
    if len(version) > 4 or int(version) > SCHEMA_VERSION:
        raise UnreadableInput(
            f"{where} has the schema {shown(found)}; this stormctl reads up to {SCHEMA}",
            remedy="Upgrade stormctl to read it.",
        )


def _run(row: Mapping[str, Any] | None, where: str) -> RunRow | None:
    if row is None:
        return None
    return RunRow(
        status=required(row, "status", str, where),
        workload=optional(row, "workload", str, where),
        input=optional(row, "input", dict, where) or {},
        output=row.get("output"),
        error_code=optional(row, "error_code", str, where),
        error_message=optional(row, "error_message", str, where),
    )
