"""JSON read value by value, so that a file larger than memory can be read: arrays, pages, and documents in a row.

A file is a sequence of documents: arrays, objects that hold an array (``{"data": [...], "hasMore": true}``), or bare
objects one after the other (NDJSON, indented or not). The items of an array are given out as they are reached; what
stands beside the array in its object comes after them.
"""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, TypeVar

from stormctl.errors import UnreadableInput
from stormctl.readers.text import DECODER, MAX_ROW_BYTES, damaged, reason, shallow, unreadable
from stormctl.readers.unpack import open_plain

T = TypeVar("T")

_CHUNK = 1 << 16
_SPACE = " \t\r\n"
#: How far into a file its JSON may begin, behind lines that a tool printed before it.
_MAX_JUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Item:
    """One value: of an array, or a bare object. ``document`` counts the file's documents from 1, ``size`` is in
    characters."""

    where: str
    document: int
    value: Any
    size: int
    bare: bool = False


@dataclass(frozen=True, slots=True)
class Around:
    """What stood beside the array of a document, in its object; nothing for a document that is an array itself."""

    where: str
    document: int
    fields: Mapping[str, Any]


def documents(path: Path, lists: Collection[str], *, junk: bool = False) -> Iterator[Item | Around]:
    """The items of every document of a file, each document's ``Around`` behind its items.

    ``lists`` are the keys under which an object may hold the array. An object without one is an item itself, and has no
    ``Around``. ``junk`` passes over lines before the first document.
    """
    with _text(path) as file:
        yield from _guarded(_Documents(_Window(file, path.name), path.name, lists, junk=junk).read(), path)


def array_items(path: Path) -> Iterator[tuple[str, Any]]:
    """The items of a file that is one JSON array."""
    with _text(path) as file:
        yield from _guarded(_only_array(_Window(file, path.name), path.name), path)


def _text(path: Path) -> TextIO:
    try:
        return io.TextIOWrapper(open_plain(path), encoding="utf-8", newline="")
    except OSError as error:
        raise unreadable(path, error) from error


def _guarded(items: Iterator[T], path: Path) -> Iterator[T]:
    try:
        yield from items
    except UnicodeDecodeError:
        raise damaged(path.name, "is not UTF-8 text") from None
    except OSError as error:
        raise unreadable(path, error) from error


def _only_array(window: _Window, name: str) -> Iterator[tuple[str, Any]]:
    if window.next() != "[":
        raise damaged(name, "does not begin as a JSON array")
    for number, (value, _) in enumerate(window.array(f"of {name}"), 1):
        yield f"row {number} of {name}", value
    if window.next():
        raise damaged(name, "has text after the end of its array")


class _Documents:
    """The documents of one file."""

    def __init__(self, window: _Window, name: str, lists: Collection[str], *, junk: bool) -> None:
        self._window = window
        self._name = name
        self._lists = lists
        self._junk = junk
        self._row = 0

    def read(self) -> Iterator[Item | Around]:
        document = 0
        if self._junk:
            self._window.skip_junk()
        while char := self._window.next():
            document += 1
            if char == "[":
                yield from self._items(document)
                yield Around(f"document {document} of {self._name}", document, {})
            elif char == "{":
                yield from self._object(document)
            else:
                raise damaged(self._name, f"has {char!r} where an array or an object belongs")
            if self._window.next() == ",":  # rows that were cut out of an array
                self._window.take()

    def _items(self, document: int) -> Iterator[Item]:
        for value, size in self._window.array(f"of {self._name}", self._row):
            self._row += 1
            yield Item(f"row {self._row} of {self._name}", document, value, size)

    def _object(self, document: int) -> Iterator[Item | Around]:
        """An object, its array streamed where it holds one under a known key."""
        where = f"document {document} of {self._name}"
        if (found := self._window.at_hand(self._lists)) is not None:
            self._row += 1
            yield Item(f"row {self._row} of {self._name}", document, *found, bare=True)
            return
        fields: dict[str, Any] = {}
        size, listed = 0, False
        for key in self._window.keys(where):
            if key in fields or (listed and key in self._lists):
                raise damaged(where, f"is not JSON: the key {ascii(key)[:60]} stands twice in one object")
            if key in self._lists and self._window.next() == "[":
                listed = True
                yield from self._items(document)
            else:
                fields[key], taken = self._window.value(where)
                size += taken
                if size > MAX_ROW_BYTES:
                    raise damaged(where, f"is longer than {MAX_ROW_BYTES >> 20} MiB")
        if listed:
            yield Around(where, document, fields)
        else:
            self._row += 1
            yield Item(f"row {self._row} of {self._name}", document, fields, size, bare=True)


class _Window:
    """A window over a text that slides forward as values are taken."""

    def __init__(self, file: TextIO, name: str) -> None:
        self._file = file
        self._name = name
        self._text = ""
        self._at = 0
        self._ended = False

    def next(self) -> str:
        """The next character that is no space, not consumed; empty at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _SPACE:
                    return self._text[self._at]
                self._at += 1
            if not self._more():
                return ""

    def take(self) -> None:
        """Consume the character that :meth:`next` showed."""
        self._at += 1

    def skip_junk(self) -> None:
        """Go to the first line that begins a document, where there is one near."""
        while len(self._text) < _MAX_JUNK and self._more():
            pass
        at = 0
        while at < len(self._text):
            line = self._text[at : self._text.find("\n", at) + 1 or len(self._text)]
            bare = line.strip()
            if bare in ("[", "{", "[]", "{}") or bare.startswith(("[{", '{"', "[]")):
                self._at = at
                return
            at += len(line)

    def array(self, name: str, before: int = 0) -> Iterator[tuple[Any, int]]:
        """The items of the array that begins here, each with its length in characters; its end is consumed."""
        self.take()
        number = before
        while (char := self.next()) != "]":
            if number > before:
                if not char:
                    raise self._cut_off(number)
                if char != ",":
                    raise damaged(f"{self._name}, after row {number},", f"has {char!r} where a comma belongs")
                self.take()
                self.next()
            number += 1
            yield self.value(f"row {number} {name}", number)
        self.take()

    def keys(self, where: str) -> Iterator[str]:
        """The keys of the object that begins here; whoever takes one must consume its value before the next."""
        self.take()
        first = True
        while (char := self.next()) != "}":
            if not first:
                if char and char != ",":
                    raise damaged(where, f"is not JSON: {char!r} where a comma belongs")
                self.take()
                char = self.next()
            first = False
            if char != '"':
                raise damaged(where, "is not JSON: a key has no quotes") if char else self._cut_off_in(where)
            key, _ = self.value(where)
            if self.next() != ":":
                raise damaged(where, "is not JSON: a key has no value") if self.next() else self._cut_off_in(where)
            self.take()
            self.next()
            yield key
        self.take()

    def at_hand(self, lists: Collection[str]) -> tuple[dict[str, Any], int] | None:
        """The object that begins here and its length, consumed, if all of it is in the window and no list is under one
        of those keys; else nothing happens. It spares short objects the way key by key."""
        try:
            value, end = DECODER.raw_decode(self._text, self._at)
        except (ValueError, RecursionError):
            return None  # it goes on, or is broken: whoever reads it key by key will see
        if any(isinstance(value.get(key), list) for key in lists):
            return None
        try:
            shallow(value, self._text[self._at : end])
        except RecursionError:
            return None
        size, self._at = end - self._at, end
        return value, size

    def value(self, where: str, number: int | None = None) -> tuple[Any, int]:
        """The value that begins here, consumed, and its length in characters."""
        while True:
            try:
                start = self._at
                value, end = DECODER.raw_decode(self._text, start)
                # a number at the edge of the window may go on behind it: 1, 1. and 1e- all begin one
                if isinstance(value, (int, float)) and end > len(self._text) - 4 and self._more():
                    continue
                self._at += end - start
                return shallow(value, self._text[start:end]), end - start
            except RecursionError:
                raise damaged(where, "is nested too deeply to be an event log") from None
            except json.JSONDecodeError as error:
                if len(self._text) - self._at > MAX_ROW_BYTES:
                    raise damaged(where, f"is longer than {MAX_ROW_BYTES >> 20} MiB") from None
                # a fault that lies well inside the window will not be mended by reading on
                if error.pos < len(self._text) - 16 and "Unterminated" not in error.msg:
                    raise damaged(where, f"is not JSON: {_without_place(error)}") from None
                if not self._more():
                    raise (self._cut_off_in(where) if number is None else self._cut_off(number)) from None
            except ValueError as error:
                raise damaged(where, f"is not JSON: {reason(error)}") from None

    def _more(self) -> bool:
        """Read on; False at the end of the file. It reads as much again as there is, so that a value that needs many
        windows is not begun anew for each."""
        left = self._text[self._at :]
        chunk = "" if self._ended else self._file.read(max(_CHUNK, len(left)))
        self._ended = not chunk
        self._text = left + chunk
        self._at = 0
        return bool(chunk)

    def _cut_off(self, number: int) -> UnreadableInput:
        return damaged(self._name, f"is cut off at row {number}", remedy="Copy the file again.")

    def _cut_off_in(self, where: str) -> UnreadableInput:
        return damaged(where, "is cut off", remedy="Copy the file again.")


def _without_place(error: json.JSONDecodeError) -> str:
    """The fault in words; a column inside a window says nothing."""
    return error.msg.lower()


__all__ = ["Around", "Item", "array_items", "documents"]
