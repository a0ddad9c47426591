"""Our own log format: ``logs/<run>.ndjson`` with ``logs/<run>.meta.json`` beside it, and ``audit/<run>.ndjson``.

The log is one flat row per event in canonical order (see ``rows``). The meta file says what the log is worth: schema,
run row, evidence. Hook tokens are kept in both, for without them a replay cannot be compared; they are bearer secrets,
and reports show digests. The run row is written as the capture holds it: whoever captures a run whose values must not
be kept leaves them out of the capture.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from stormctl.errors import StoreFailure, UnreadableInput
from stormctl.history import AuditRecord, Capture, Event, EventLog, ReadRecord
from stormctl.readers import meta
from stormctl.readers.rows import event_of_row, row_of_audit, row_of_event, trail_of_row
from stormctl.readers.text import at_most, rows, unreadable
from stormctl.readers.unpack import bare_name

LOGS, AUDIT = "logs", "audit"
#: Where an artefact keeps the captures of the same runs that were made before.
EARLIER = "earlier"
SUFFIX, META_SUFFIX = ".ndjson", ".meta.json"
#: A log from this size on is worth the import of a faster decoder; where that is there already, any log is.
WHOLE_BYTES = 64 << 10
_PLAIN = "stormctl.readers.plain_rows"
_HEAD = re.compile(rb'\s*\{\s*"(?:position|type|event_id|correlation_id)"\s*:')
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")


class NdjsonReader:
    """Reads the logs that stormctl writes. A log without its meta file is judged by its rows alone."""

    name = "stormctl"
    summary = "a stormctl log (.ndjson, one event per line)"
    sign = 'a first row that begins with "position", "type", "event_id" or "correlation_id", or a meta file beside it'

    def recognises(self, head: bytes, path: Path) -> bool:
        """Whether the file begins with such a row, or says so in a meta file beside it."""
        return _HEAD.match(head) is not None or (bare_name(path).endswith(SUFFIX) and meta_path(path).exists())

    def read(self, path: Path) -> Iterator[Capture]:
        """The one capture of the file, and beside it the one that was made before where its artefact holds both."""
        capture = self._read(path)
        before = earlier_path(path)
        if before is not None:
            capture = self._with_earlier(capture, before)
        yield capture

    def _with_earlier(self, capture: Capture, before: Path) -> Capture:
        try:
            earlier = self._read(before)
        except UnreadableInput as error:  # it must not hide the later one
            notes = (*capture.evidence.notes, f"its earlier capture is unreadable: {error}")
            return replace(capture, evidence=replace(capture.evidence, notes=notes))
        if earlier.log.run_id != capture.log.run_id:
            return capture
        return replace(capture, earlier=replace(earlier, audit=None, reads=None))

    def _read(self, path: Path) -> Capture:
        about = meta.read(meta_path(path), bare_name(path).removesuffix(SUFFIX))
        events = events_of(path, about.run_id)
        audit, reads = _read_audit(path) if about.audit is not False else (None, None)
        evidence = about.evidence_for(events, has_audit=audit is not None)
        if about.audit and audit is None:
            evidence = replace(evidence, notes=(*evidence.notes, "its audit file is not beside it"))
        return Capture(str(path), EventLog(events, about.run_id), evidence, about.run, audit, reads, about.data)


def events_of(log: Path, run_id: str) -> list[Event]:
    """The events of a log file: as a whole where it is just what stormctl writes, else line by line."""
    try:
        if log.stat().st_size < WHOLE_BYTES and _PLAIN not in sys.modules:
            return events_by_line(log, run_id)
        from stormctl.readers.plain_rows import plain_events, plain_rows

        plain = plain_rows(log)
    except OSError as error:
        raise unreadable(log, error) from error
    except UnreadableInput:
        plain = None  # said with the line at which it happens
    events = None if plain is None else plain_events(plain, run_id)
    return events if events is not None else events_by_line(log, run_id)


def events_by_line(log: Path, run_id: str) -> list[Event]:
    """The same, each line by itself. UnreadableInput names the line that is broken."""
    return [event_of_row(row, run_id, where) for where, row in at_most(rows(log), log.name)]


def meta_path(log: Path) -> Path:
    """The meta file of a log file."""
    return log.with_name(bare_name(log).removesuffix(SUFFIX) + META_SUFFIX)


def earlier_path(log: Path) -> Path | None:
    """Where the capture lies that was made of a log's run before, in an artefact that holds both."""
    before = log.parent.parent / EARLIER / LOGS / log.name
    return before if log.parent.name == LOGS and before.is_file() and not before.is_symlink() else None


def audit_path(log: Path) -> Path:
    """Where the audit of a log lies: in ``audit/`` beside the folder that holds the log."""
    return log.parent.parent / AUDIT / bare_name(log)


def _read_audit(log: Path) -> tuple[tuple[AuditRecord, ...] | None, tuple[ReadRecord, ...] | None]:
    """The appends and the reads that the audit file holds; None where there are none."""
    path = audit_path(log)
    if not path.is_file():
        return None, None
    trail = [trail_of_row(row, where) for where, row in rows(path)]
    reads = tuple(record for record in trail if isinstance(record, ReadRecord))
    return tuple(record for record in trail if isinstance(record, AuditRecord)), reads or None


def write_capture(capture: Capture, folder: Path, *, with_payloads: bool = False, stem: str | None = None) -> Path:
    """Write a capture into an artefact folder and return the path of its log.

    The files are ``logs/<run>.ndjson``, ``logs/<run>.meta.json`` and, where the capture holds an audit,
    ``audit/<run>.ndjson``; ``stem`` names them otherwise than the run's id does. Each appears whole or not
    at all, the log last. StoreFailure when the disk refuses.
    """
    stem = stem or _UNSAFE.sub("-", capture.log.run_id) or "run"
    log = folder / LOGS / f"{stem}{SUFFIX}"
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        if capture.audit is not None:
            audit_path(log).parent.mkdir(exist_ok=True)
            trail: list[AuditRecord | ReadRecord] = [*capture.audit, *(capture.reads or ())]
            _write(audit_path(log), (row_of_audit(record) for record in trail))
        _write(meta_path(log), [meta.to_json(capture)], indent=2)
        _write(log, (row_of_event(event, with_payloads=with_payloads) for event in capture.log))
    except OSError as error:
        raise StoreFailure(
            f"the log of run {capture.log.run_id} cannot be written to {folder}: {error.strerror or error}",
            remedy="Free some space or choose another folder with --out.",
        ) from error
    return log


def _write(path: Path, values: Iterable[Mapping[str, Any]], indent: int | None = None) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    separators = (",", ":") if indent is None else None
    try:
        with part.open("w", encoding="utf-8", newline="\n") as file:
            for value in values:
                json.dump(value, file, indent=indent, separators=separators, ensure_ascii=True, default=str)
                file.write("\n")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


READER = NdjsonReader()

__all__ = ["READER", "NdjsonReader", "audit_path", "meta_path", "write_capture"]
