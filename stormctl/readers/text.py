"""Reading text that a stranger wrote: bounded, strict, and with errors that a person can act on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from stormctl.errors import UnreadableInput
from stormctl.readers.unpack import open_plain

T = TypeVar("T")

#: How much of a file a reader may look at to recognise it.
HEAD_BYTES = 4096
#: The longest row that is read, so that one hostile line cannot fill the memory.
MAX_ROW_BYTES = 64 << 20
#: More events of one run than any engine replays. Where a file is one log, more of them are refused.
MAX_EVENTS = 200_000
#: How deep the values of a row may nest. What writes them again does so recursively, so this stays far below Python's
#: own limit, which depends on where it is met.
MAX_DEPTH = 200


def damaged(where: str, what: str, *, remedy: str | None = None) -> UnreadableInput:
    """The error for a file that cannot be read: ``where`` names the file and place, ``what`` the fault."""
    return UnreadableInput(f"{where} {what}", remedy=remedy or "Capture or copy the file again.")


def head_of(path: Path) -> bytes:
    """The first bytes of a file, unpacked; UnreadableInput where there is no such file or it may not be read."""
    if not path.exists():
        raise damaged(str(path), "does not exist", remedy="Check the path.")
    if not path.is_file():
        raise damaged(str(path), "is not a regular file", remedy="Give a log file, or a folder that holds logs.")
    try:
        with open_plain(path) as file:
            return file.read(HEAD_BYTES)
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError) -> UnreadableInput:
    """The error for a file that the system does not give."""
    reason = error.strerror or type(error).__name__
    return damaged(str(path), f"cannot be read: {reason.lower()}", remedy="Check the file's permissions and the disk.")


def refuse_hopeless(head: bytes, path: Path) -> None:
    """Refuse what no text reader can read: an empty file, or a binary one."""
    if not head.strip():
        raise damaged(path.name, "is empty", remedy="Capture the run again.")
    if b"\0" in head:
        remedy = "Give a log of JSON rows; unpack archives first."
        raise damaged(path.name, "is binary, not an event log", remedy=remedy)
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4 or len(head) < HEAD_BYTES:
            raise damaged(path.name, "is not UTF-8 text", remedy="Give a log of JSON rows in UTF-8.") from None


def _refuse_constant(token: str) -> Any:
    raise ValueError(f"{token} is not JSON")


def _float(token: str) -> float:
    value = float(token)
    if value - value:
        raise ValueError("a number is too large")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {ascii(twice)[:60]} stands twice in one object")
    return found


#: Strict: no NaN, no number beyond a float, no key twice in an object (two readers would see two different events).
DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_float, object_pairs_hook=_object)


def parse(text: str, where: str) -> Any:
    """One JSON value, strictly: no NaN, no endless nesting, no endless numbers, no key twice, nothing after it."""
    try:
        return shallow(DECODER.decode(text), text)
    except RecursionError:
        raise damaged(where, "is nested too deeply to be an event log") from None
    except ValueError as error:
        raise damaged(where, f"is not JSON: {reason(error)}") from None


def shallow(value: Any, text: str) -> Any:
    """A value that nests no deeper than :data:`MAX_DEPTH`; RecursionError for one that does. ``text`` is its JSON."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return value
    layer: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        layer = [
            part
            for one in layer
            if isinstance(one, (dict, list))
            for part in (one.values() if isinstance(one, dict) else one)
        ]
        if not layer:
            return value
    raise RecursionError


def reason(error: ValueError) -> str:
    """What is wrong with a text that is no JSON, in some words."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg.lower()} at column {error.colno}"
    text = str(error)
    return "a number has too many digits" if "digits" in text else text


def rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of an NDJSON file, each with the words that name its place. Blank lines are skipped."""
    number = 0
    try:
        with open_plain(path) as file:
            while line := file.readline(MAX_ROW_BYTES + 1):
                number += 1
                where = f"line {number} of {path.name}"
                if len(line) > MAX_ROW_BYTES:
                    raise damaged(where, f"is longer than {MAX_ROW_BYTES >> 20} MiB")
                if not line.strip():
                    continue
                yield where, _row(line, where)
    except OSError as error:
        raise unreadable(path, error) from error


def at_most(items: Iterable[T], name: str) -> Iterator[T]:
    """The items; UnreadableInput when there are more than :data:`MAX_EVENTS`, for one log is held in memory."""
    for number, item in enumerate(items, 1):
        if number > MAX_EVENTS:
            raise damaged(name, f"holds more than {MAX_EVENTS} events of one run", remedy="Cut it into smaller logs.")
        yield item


def _row(line: bytes, where: str) -> dict[str, Any]:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        raise damaged(where, "is not UTF-8 text") from None
    try:
        row = parse(text, where)
    except UnreadableInput as error:
        if not line.endswith(b"\n") and isinstance(error.__context__, json.JSONDecodeError):
            raise damaged(where, "is cut off", remedy="Copy the file again, or delete that last line.") from None
        raise
    if not isinstance(row, dict):
        raise damaged(where, "is not a JSON object")
    return row
