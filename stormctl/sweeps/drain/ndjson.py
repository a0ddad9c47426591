"""A trace as NDJSON, schema ``stormctl.drain-trace/1``: a head that names it, then one record a line.

    {"schema": "stormctl.drain-trace/1", "name": "G2"}
    {"n": 1, "t": 0, "tenure": 1, "kind": "activate", "pending": [], "w": 1}
    {"n": 6, "t": 0, "tenure": 1, "kind": "flush.begin"}

Keys are the fields of :mod:`stormctl.sweeps.drain.records`; what has phases has them in its kind.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from stormctl.errors import UnreadableInput
from stormctl.sweeps.drain.records import KINDS, NAMES, DrainTrace, Flush, Park, Pull, Record, Timer, What

SCHEMA = "stormctl.drain-trace/1"
_SCHEMA_FAMILY = "stormctl.drain-trace/"
#: bytes of a file that are looked at to tell whether it is a trace; records of one; characters of one line
_PEEK, MOST_RECORDS, MOST_LINE = 300, 2_000_000, 4_000_000
_PHASES: dict[type[What], tuple[str, ...]] = {
    Flush: ("begin", "end", "fail"),
    Pull: ("begin", "end", "fail"),
    Timer: ("arm", "fire", "clear"),
    Park: ("begin", "end"),
}
_HINTS: dict[type[What], dict[str, Any]] = {}
_WRITE_AGAIN = "Write the trace again with `stormctl drain run --trace FILE`."


def lines(trace: DrainTrace) -> Iterator[str]:
    """The lines of a trace."""
    yield json.dumps({"schema": SCHEMA, "name": trace.name})
    for record in trace.records:
        yield json.dumps(_row(record))


def write(trace: DrainTrace, path: Path) -> None:
    """Write a trace. UnreadableInput where the file cannot be written."""
    try:
        path.write_text("\n".join(lines(trace)) + "\n", encoding="utf-8")
    except OSError as error:
        raise UnreadableInput(
            f"{path} cannot be written: {error.strerror}", remedy="Name a file in a folder that is there."
        ) from None


def _row(record: Record) -> dict[str, Any]:
    what = record.what
    kind = NAMES[type(what)]
    fields = what._asdict()
    if type(what) in _PHASES:
        kind = f"{kind}.{fields.pop('phase')}"
    return {"n": record.n, "t": record.t, "tenure": record.tenure, "kind": kind, **fields}


def is_trace(path: Path) -> bool:
    """Whether a file begins as a trace does, of whatever version."""
    try:
        with path.open("rb") as file:
            head = file.read(_PEEK)
    except OSError:
        return False
    return head.lstrip().startswith(b"{") and _SCHEMA_FAMILY.encode() in head.split(b"\n", 1)[0]


def read(path: Path) -> DrainTrace:
    """Read a trace. UnreadableInput names the line that is none."""
    try:
        with path.open(encoding="utf-8") as file:
            return parse(_limited(file, path), path)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise UnreadableInput(f"{path.name} cannot be read: {reason}", remedy=_WRITE_AGAIN) from None


def _limited(file: Any, path: Path) -> Iterator[str]:
    while line := file.readline(MOST_LINE):
        if len(line) >= MOST_LINE:
            raise UnreadableInput(f"{path.name} has a line of {MOST_LINE} characters", remedy=_WRITE_AGAIN)
        yield line


def parse(found: Iterable[str], path: Path) -> DrainTrace:
    """A trace from its lines."""
    rows = iter(found)
    head = _object(next(rows, ""), 1, path)
    if head.get("schema") != SCHEMA:
        raise UnreadableInput(
            f"{path.name} has the schema {str(head.get('schema'))[:60]!r}, and this stormctl reads {SCHEMA}",
            remedy="Use the stormctl that wrote it.",
        )
    records: list[Record] = []
    for number, line in enumerate(rows, 2):
        if not line.strip():
            continue
        if len(records) >= MOST_RECORDS:
            raise UnreadableInput(f"{path.name} has over {MOST_RECORDS} records", remedy="Cut it into shorter traces.")
        records.append(_record(_object(line, number, path), number, path))
    return DrainTrace(str(head.get("name", path.stem)), tuple(records), str(path))


def _object(line: str, number: int, path: Path) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise UnreadableInput(f"line {number} of {path.name} is no JSON object", remedy=_WRITE_AGAIN)
    return found


def _record(row: dict[str, Any], number: int, path: Path) -> Record:
    kind = row.pop("kind", None)
    base, _, phase = kind.rpartition(".") if isinstance(kind, str) else ("", "", "")
    known = KINDS.get(kind) if isinstance(kind, str) else None
    if known is None or known in _PHASES:
        known = KINDS.get(base)
        if known is None or phase not in _PHASES.get(known, ()):
            raise UnreadableInput(f"line {number} of {path.name} has the kind {str(kind)[:40]!r}", remedy=_WRITE_AGAIN)
        row["phase"] = phase
    hints = _HINTS.setdefault(known, get_type_hints(known))
    try:
        n, t, tenure = (_value(row.pop(name), int) for name in ("n", "t", "tenure"))
        fields = {name: _value(row[name], hint) for name, hint in hints.items()}
    except (KeyError, TypeError) as error:
        said = f"lacks {error}" if isinstance(error, KeyError) else str(error)
        raise UnreadableInput(f"line {number} of {path.name}, a {kind}, {said}", remedy=_WRITE_AGAIN) from None
    return Record(n, t, tenure, known(**fields))


def _value(value: Any, hint: Any) -> Any:
    """A JSON value as a field's type has it. TypeError for one that does not fit."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is UnionType:
        if value is None and NoneType in parts:
            return None
        return _value(value, next(part for part in parts if part is not NoneType))
    if origin is tuple:
        if not isinstance(value, list):
            raise TypeError(f"has {str(value)[:30]!r} where a list belongs")
        if len(parts) == 2 and parts[1] is Ellipsis:
            return tuple(_value(one, parts[0]) for one in value)
        if len(value) != len(parts):
            raise TypeError(f"has a list of {len(value)} where {len(parts)} belong")
        return tuple(_value(one, part) for one, part in zip(value, parts, strict=True))
    if type(value) is not hint:
        raise TypeError(f"has {str(value)[:30]!r} where {hint.__name__} belongs")
    return value
