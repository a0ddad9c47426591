"""Reading text that a stranger wrote: bounded, strict, and with errors that a person can act on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stormctl.errors import UnreadableInput

#: How much of a file a reader may look at to recognise it.
HEAD_BYTES = 4096
#: The longest row that is read, so that one hostile line cannot fill the memory.
MAX_ROW_BYTES = 64 << 20
_CHUNK = 1 << 16
_SPACE = " \t\r\n"


def damaged(where: str, what: str, *, remedy: str | None = None) -> UnreadableInput:
    """The error for a file that cannot be read: ``where`` names the file and place, ``what`` the fault."""
    return UnreadableInput(f"{where} {what}", remedy=remedy or "Capture or copy the file again.")


def head_of(path: Path) -> bytes:
    """The first bytes of a file; UnreadableInput where there is no such file or it may not be read."""
    if not path.exists():
        raise damaged(str(path), "does not exist", remedy="Check the path.")
    if not path.is_file():
        raise damaged(str(path), "is not a regular file", remedy="Give a log file, or a folder that holds logs.")
    try:
        with path.open("rb") as file:
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


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def parse(text: str, where: str) -> Any:
    """One JSON value, strictly: no NaN, no endless nesting, no endless numbers, nothing after it."""
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise damaged(where, "is nested too deeply to be an event log") from None
    except ValueError as error:
        raise damaged(where, f"is not JSON: {_reason(error)}") from None


def _reason(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg.lower()} at column {error.colno}"
    text = str(error)
    return "a number has too many digits" if "digits" in text else text


def rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of an NDJSON file, each with the words that name its place. Blank lines are skipped."""
    number = 0
    try:
        with path.open("rb") as file:
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


def _row(line: bytes, where: str) -> dict[str, Any]:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        raise damaged(where, "is not UTF-8 text") from None
    try:
        row = parse(text, where)
    except UnreadableInput:
        if not line.endswith(b"\n"):
            raise damaged(where, "is cut off", remedy="Copy the file again, or delete that last line.") from None
        raise
    if not isinstance(row, dict):
        raise damaged(where, "is not a JSON object")
    return row


def array_items(path: Path) -> Iterator[tuple[str, Any]]:
    """The items of a JSON array in a file, one at a time, so that a large file needs little memory."""
    try:
        with path.open("r", encoding="utf-8") as file:
            yield from _Array(file, path.name).items()
    except UnicodeDecodeError:
        raise damaged(path.name, "is not UTF-8 text") from None
    except OSError as error:
        raise unreadable(path, error) from error


class _Array:
    """A window over an array's text that slides forward as items are taken."""

    def __init__(self, file: Any, name: str) -> None:
        self._file = file
        self._name = name
        self._text = ""
        self._at = 0
        self._ended = False

    def items(self) -> Iterator[tuple[str, Any]]:
        if self._next() != "[":
            raise damaged(self._name, "does not begin as a JSON array")
        self._at += 1
        number = 0
        while (char := self._next()) != "]":
            if number:
                if not char:
                    raise self._cut_off(number)
                if char != ",":
                    raise damaged(f"{self._name}, after row {number},", f"has {char!r} where a comma belongs")
                self._at += 1
                self._next()
            number += 1
            yield f"row {number} of {self._name}", self._item(number)
        self._at += 1
        if self._next():
            raise damaged(self._name, "has text after the end of its array")

    def _more(self) -> bool:
        """Read on; False at the end of the file."""
        chunk = "" if self._ended else self._file.read(_CHUNK)
        self._ended = not chunk
        self._text = self._text[self._at :] + chunk
        self._at = 0
        return bool(chunk)

    def _next(self) -> str:
        """The next character that is no space, not consumed; empty at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _SPACE:
                    return self._text[self._at]
                self._at += 1
            if not self._more():
                return ""

    def _item(self, number: int) -> Any:
        where = f"row {number} of {self._name}"
        while True:
            try:
                start = self._at
                value, end = _DECODER.raw_decode(self._text, start)
                # a number at the edge of the window may go on behind it
                if end == len(self._text) and self._more():
                    continue
                self._at += end - start
                return value
            except RecursionError:
                raise damaged(where, "is nested too deeply to be an event log") from None
            except json.JSONDecodeError as error:
                if len(self._text) - self._at > MAX_ROW_BYTES:
                    raise damaged(where, f"is longer than {MAX_ROW_BYTES >> 20} MiB") from None
                # a fault that lies well inside the window will not be mended by reading on
                if error.pos < len(self._text) - 16 and "Unterminated" not in error.msg:
                    raise damaged(where, f"is not JSON: {_reason(error)}") from None
                if not self._more():
                    raise self._cut_off(number) from None
            except ValueError as error:
                raise damaged(where, f"is not JSON: {_reason(error)}") from None

    def _cut_off(self, number: int) -> UnreadableInput:
        return damaged(self._name, f"is cut off at row {number}", remedy="Copy the file again.")
