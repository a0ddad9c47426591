"""Our own logs as Parquet: many runs in one file, for large captures and for pandas, DuckDB and Arrow.

Schema ``stormctl.parquet/1``, one row per event, the events of a run together and in their canonical order:

    run_id          string (dictionary)       never null
    position        int64                     the store's place number, from 1; null where the store has none
    type            string (dictionary)       never null
    event_id        string
    correlation_id  string
    created_at      timestamp[ms, UTC]
    name            string (dictionary)       the step's name as stored
    token           string                    a hook's; a bearer secret
    resume_at       timestamp[ms, UTC]
    spec            int64
    digest          string                    of the payload
    payload         string                    as JSON text; only where the writer was asked for payloads
    bytes           string                    the payload's bytes as base64, where its store encodes them; as payload
    data            string                    whatever else the store held, as JSON text

The file's own metadata holds ``stormctl.schema`` and ``stormctl.runs``: what ``<run>.meta.json`` says beside an NDJSON
log (run row and evidence), by run id. An append audit is not kept, and the evidence then says so.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, count
from pathlib import Path
from typing import Any

from stormctl.errors import StoreFailure, UnreadableInput
from stormctl.history import Capture, Event, EventLog
from stormctl.readers import meta
from stormctl.readers.fields import shown
from stormctl.readers.rows import event_of_row, row_of_event
from stormctl.readers.tables.parquet_rows import batches, open_parquet, reading
from stormctl.readers.tables.sources import PARQUET
from stormctl.readers.text import MAX_ROW_BYTES, damaged, parse

SCHEMA_NAME, SCHEMA_VERSION = "stormctl.parquet", 1
SCHEMA = f"{SCHEMA_NAME}/{SCHEMA_VERSION}"
SUFFIX = ".parquet"
#: Rows of a row group: small enough that a reader needs little memory, large enough to pack well.
GROUP_ROWS = 100_000
_SCHEMA_KEY, RUNS_KEY = b"stormctl.schema", b"stormctl.runs"
_TIMES, _JSON = ("created_at", "resume_at"), ("payload", "data")
_WITHOUT_AUDIT = "its append audit was not written to Parquet"


class ParquetReader:
    """Reads the Parquet files that stormctl writes, a run at a time."""

    name = "stormctl-parquet"
    summary = "stormctl logs in a Parquet file"
    sign = f"the schema {SCHEMA} in the file's metadata"

    def recognises(self, head: bytes, path: Path) -> bool:
        """Whether it is such a file. A damaged one, and one of another writer, is not."""
        if not head.startswith(PARQUET):
            return False
        with suppress(UnreadableInput), reading(path):
            return _SCHEMA_KEY in (open_parquet(path).schema_arrow.metadata or {})
        return False

    def read(self, path: Path) -> Iterator[Capture]:
        """One capture per run, in the file's order."""
        yield from self.read_ranges(path)

    def read_ranges(self, path: Path, ranges: Sequence[tuple[int, int]] | None = None) -> Iterator[Capture]:
        """The captures of the runs that lie in some ranges of rows, in whole runs: first row, from 0, and the one
        behind the last. None stands for the whole file."""
        with reading(path):
            about = metas(path)
            ended: set[str] = set()
            run, events = None, list[Event]()
            for row, where in _rows(path, ranges):
                found = _run_of(row, where)
                if found != run:
                    if run is not None:
                        ended.add(run)
                        yield _capture(path, run, events, about)
                    if found in ended:
                        raise damaged(where, f"is of run {found}, which ended before it", remedy="Sort it by run.")
                    run, events = found, []
                events.append(event_of_row(row, found, where))
            if run is None:
                raise damaged(path.name, "holds no events", remedy="Capture the runs again.")
            yield _capture(path, run, events, about)


def write_parquet(captures: Iterable[Capture], path: Path, *, with_payloads: bool = False) -> int:
    """Write captures to one Parquet file, each run once, and return how many there were.

    The file appears whole or not at all. Runs are written as they come, so that any number of them fits; what is held
    is a row group, and the meta of each run. StoreFailure when the disk refuses, or for a run that comes twice.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    columns = schema(pa)
    about: dict[str, Any] = {}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with pq.ParquetWriter(part, columns, compression="zstd") as writer:
            held: list[dict[str, Any]] = []
            for capture in captures:
                run = capture.log.run_id
                if run in about:
                    raise StoreFailure(f"run {run} was given twice", remedy="Give each run once.")
                about[run] = _meta(capture)
                for event in capture.log:
                    held.append(_row(event, run, with_payloads=with_payloads))
                    if len(held) >= GROUP_ROWS:
                        writer.write_table(pa.Table.from_pylist(held, schema=columns))
                        held.clear()
            if held:
                writer.write_table(pa.Table.from_pylist(held, schema=columns))
            writer.add_key_value_metadata({RUNS_KEY: json.dumps(about, default=str).encode()})
        part.replace(path)
    except OSError as error:
        reason = (error.strerror or str(error) or type(error).__name__).lower()
        remedy = "Free some space or choose another file."
        raise StoreFailure(f"the logs cannot be written to {path}: {reason}", remedy=remedy) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return len(about)


def schema(pa: Any) -> Any:
    """The columns of a file, with what tells it from other tables. ``pa`` is the module ``pyarrow``."""
    word, text, time = pa.dictionary(pa.int32(), pa.string()), pa.string(), pa.timestamp("ms", tz="UTC")
    fields = {
        "run_id": word, "position": pa.int64(), "type": word, "event_id": text, "correlation_id": text,
        "created_at": time, "name": word, "token": text, "resume_at": time, "spec": pa.int64(), "digest": text,
        "payload": text, "bytes": text, "data": text,
    }  # fmt: skip
    listed = [pa.field(key, kind, nullable=key not in ("run_id", "type")) for key, kind in fields.items()]
    return pa.schema(listed, metadata={_SCHEMA_KEY: SCHEMA.encode()})


def _row(event: Event, run: str, *, with_payloads: bool) -> dict[str, Any]:
    row = row_of_event(event, with_payloads=with_payloads)
    for key in _JSON:
        if key in row:
            row[key] = json.dumps(row[key], default=str)
    return {**row, "run_id": run, "created_at": event.created_at, "resume_at": event.resume_at}


def _meta(capture: Capture) -> dict[str, Any]:
    about = meta.to_json(capture)
    if about["audit"]:
        about["audit"] = False
        about["evidence"]["notes"] = [*about["evidence"]["notes"], _WITHOUT_AUDIT]
    return about


def metas(path: Path) -> Mapping[str, Any]:
    """The meta of each run, from the file's own metadata. UnreadableInput for a file that is none of ours."""
    file = open_parquet(path)
    own = file.metadata.metadata or {}
    _check_schema((file.schema_arrow.metadata or {}).get(_SCHEMA_KEY, b""), path.name)
    raw = own.get(RUNS_KEY, b"{}")
    if len(raw) > MAX_ROW_BYTES:
        raise damaged(path.name, f"has metadata of more than {MAX_ROW_BYTES >> 20} MiB")
    about = parse(raw.decode("utf-8", "replace"), f"the metadata of {path.name}")
    if not isinstance(about, dict):
        raise damaged(path.name, "has metadata that is no JSON object")
    return about


def _check_schema(found: bytes, name: str) -> None:
    word, _, version = found.decode("ascii", "replace").partition("/")
    if word != SCHEMA_NAME or not version.isascii() or not version.isdigit() or len(version) > 4:
        raise damaged(name, f"has the schema {shown(found)}, not {SCHEMA}")
    if int(version) > SCHEMA_VERSION:
        raise UnreadableInput(
            f"{name} has the schema {word}/{version}; this stormctl reads up to {SCHEMA}",
            remedy="Upgrade stormctl to read it.",
        )


def _rows(path: Path, ranges: Sequence[tuple[int, int]] | None) -> Iterator[tuple[dict[str, Any], str]]:
    """The rows in the ranges, each with the words that name its place."""
    numbers = count() if ranges is None else chain.from_iterable(range(first, end) for first, end in ranges)
    for names, columns in batches(path, ranges=ranges):
        for cells in zip(*columns, strict=True):
            where = f"row {next(numbers) + 1} of {path.name}"
            row = {name: cell for name, cell in zip(names, cells, strict=True) if cell is not None}
            yield _opened(row, where), where


def _opened(row: dict[str, Any], where: str) -> dict[str, Any]:
    for key in _JSON:
        text = row.get(key)
        if isinstance(text, str):
            row[key] = parse(text, where)
    for key in _TIMES:
        if key in row and not isinstance(row[key], str):
            row[key] = int(row[key])
    return row


def _run_of(row: dict[str, Any], where: str) -> str:
    run = row.pop("run_id", None)
    if not isinstance(run, str):
        raise damaged(where, "names no run")
    return run


def _capture(path: Path, run: str, events: list[Event], about: Mapping[str, Any]) -> Capture:
    given = about.get(run)
    found = meta.from_json(given, f"the metadata of {path.name}", run) if given is not None else meta.Meta(run)
    evidence = found.evidence_for(events, has_audit=False)
    return Capture(str(path), EventLog(events, run), evidence, found.run, data=found.data)


READER = ParquetReader()

__all__ = ["READER", "SCHEMA", "ParquetReader", "write_parquet"]
