"""Maps: which column of a table means what, and which of its words stands for which of our event types.

A map is a YAML file, documented key by key in ``docs/maps.md``. Nothing in it is executed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from stormctl.errors import StormctlError, UsageError, suggest
from stormctl.history import kinds
from stormctl.readers.tables.paths import Column
from stormctl.readers.tables.values import UNITS

SCHEMA = "stormctl.map/1"
#: Everything of an event that a column may be named for.
FIELDS = (
    "run", "position", "serial", "id", "type", "status", "entity", "name", "time", "end_time", "committed", "token",
    "resume_at", "resume_in", "attempt", "payload", "error", "generation",
)  # fmt: skip
KEYS = (
    "schema", "name", "about", "source", "signature", "rows", "columns", "types", "prefix", "base", "digits", "dense",
    "starts", "unit", "order", "absent", "defaults", "skip", "ulids",
)  # fmt: skip
#: What a word's own entry may say besides the columns that it takes other values from.
OWN, ANY = "other", "*"
ORDERS = ("position", "time", "row")
_WORD_FIELDS = ("entity", "name", "time", "end_time", "token", "resume_at", "resume_in", "attempt", "payload", "error")
_FAILURES = MappingProxyType({kinds.STEP_COMPLETED: kinds.STEP_FAILED, kinds.RUN_COMPLETED: kinds.RUN_FAILED})
_NOTHING: Mapping[str, Any] = MappingProxyType({})

Columns = Mapping[str, tuple[Column, ...]]


class MapError(UsageError):
    """A map with a key, a column or a word that means nothing."""


@dataclass(frozen=True, slots=True)
class Word:
    """What one type word stands for: event types of ours, in order; with none the event keeps its own type.

    ``columns`` are those that it takes from other places than the map's own.
    """

    types: tuple[str, ...] = ()
    columns: Columns = field(default_factory=lambda: _NOTHING)


@dataclass(frozen=True, slots=True)
class TableMap:
    """One map, checked. See ``docs/maps.md`` for what each part means."""

    name: str
    columns: Columns
    types: Mapping[str, Word]
    about: str = ""
    source: str = ""
    signature: tuple[str, ...] = ()
    rows: str | None = None
    prefix: str = ""
    base: int | None = 1
    digits: int = 10
    dense: bool = True
    starts: bool = True
    unit: str = "ms"
    order: str = "position"
    absent: frozenset[str] = frozenset({""})
    defaults: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    skip: Mapping[str, frozenset[str]] = field(default_factory=lambda: _NOTHING)
    ulids: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, content: Any, where: str) -> TableMap:
        """The map of a YAML file's content; MapError, in one sentence, for what it cannot mean."""
        return _Parser(where).read(content)

    def word(self, text: str, status: str | None = None) -> Word | None:
        """What a type word stands for, with the row's status where the map names one; None when it is not mapped."""
        if status is not None and (found := self.types.get(f"{text}/{status}")) is not None:
            return found
        found = self.types.get(text)
        return self.types.get(ANY) if found is None else found

    @property
    def ends(self) -> bool:
        """Whether a run's end would be in the table."""
        return any(one in kinds.RUN_TERMINAL for word in self.types.values() for one in word.types)

    def unmapped(self, text: str, where: str) -> StormctlError:
        """The error for a type word that the map does not name."""
        from stormctl.readers.fields import shown
        from stormctl.readers.text import damaged

        known = [word for word in self.types if word != ANY]
        hint = suggest(text, known)
        if hint.startswith("Known"):
            hint = f"Map it under types, or as {OWN!r} to keep it as it is. {hint}"
        return damaged(where, f"has the type {shown(text)}, which the map {self.name} does not name", remedy=hint)


def failed(event_type: str) -> str:
    """The type of the same end when it is a failure."""
    return _FAILURES.get(event_type, event_type)


class _Parser:
    """Reads one map."""

    def __init__(self, where: str) -> None:
        self._where = where

    def read(self, content: Any) -> TableMap:
        given = self._mapping(content, "the map")
        self._known(given, KEYS, "key")
        schema = given.get("schema")
        if schema != SCHEMA:
            raise self._error(f"has the schema {ascii(schema)[:40]}", f"This stormctl reads maps of schema {SCHEMA}.")
        columns = self._columns(given.get("columns"), FIELDS, "columns")
        types = dict(self._words(given.get("types")))
        if not types:
            raise self._error("maps no type words", "Name them under types, each with an event type of stormctl.")
        dense = self._flag(given, "dense", default="position" in columns)
        if dense and "position" not in columns:
            raise self._error("says dense and names no column for position", "Name it under columns, or say dense: no.")
        order = self._choice(given, "order", ORDERS, "position" if "position" in columns else "row")
        several = next((word for word, one in types.items() if len(one.types) > 1), None)
        if dense and several is not None:
            raise self._error(
                f"turns {several!r} into several events, which cannot share one position", "Say dense: no."
            )
        for needed, name in (("position", "position"), ("time", "time")):
            if order == name and needed not in columns:
                raise self._error(f"orders by {name} and names no column for it", "Name it under columns.")
        return TableMap(
            name=self._text(given, "name"),
            columns=MappingProxyType(columns),
            types=MappingProxyType(types),
            about=self._text(given, "about", ""),
            source=self._text(given, "source", ""),
            signature=tuple(self._texts(given.get("signature", ()), "signature")),
            rows=self._text(given, "rows", "") or None,
            prefix=self._text(given, "prefix", "") or self._text(given, "name"),
            base=self._base(given.get("base", 1)),
            digits=16 if self._choice(given, "digits", ("decimal", "hex"), "decimal") == "hex" else 10,
            dense=dense,
            starts=self._flag(given, "starts", default=True),
            unit=self._choice(given, "unit", tuple(UNITS), "ms"),
            order=order,
            absent=frozenset({"", *self._texts(given.get("absent", ()), "absent")}),
            defaults=MappingProxyType(self._defaults(given.get("defaults"))),
            skip=MappingProxyType(self._skip(given.get("skip"))),
            ulids=frozenset(self._listed(given.get("ulids", ()), ("run", "id"), "ulids")),
        )

    def _columns(self, content: Any, known: Sequence[str], what: str) -> dict[str, tuple[Column, ...]]:
        given = self._mapping(content, what)
        self._known(given, known, "column")
        return {key: self._paths(value, key) for key, value in given.items()}

    def _paths(self, value: Any, key: str) -> tuple[Column, ...]:
        texts = self._texts(value, key)
        if not texts:
            raise self._error(f"names no column for {key!r}", "Give a column's name, or several to try in turn.")
        try:
            return tuple(Column.parse(text) for text in texts)
        except ValueError as error:
            remedy = "See docs/maps.md for how one is written."
            raise self._error(f"names no column for {key!r}: {error}", remedy) from None

    def _words(self, content: Any) -> Iterator[tuple[str, Word]]:
        for text, value in self._mapping(content, "types").items():
            if not isinstance(value, Mapping):
                yield str(text), Word(self._types(value, text))
                continue
            self._known(value, ("is", *_WORD_FIELDS), "key")
            own = {key: self._paths(column, key) for key, column in value.items() if key != "is"}
            yield str(text), Word(self._types(value.get("is"), text), MappingProxyType(own))

    def _types(self, value: Any, word: Any) -> tuple[str, ...]:
        texts = self._texts(value, str(word))
        if not texts:
            raise self._error(f"maps {word!r} to nothing", f"Give an event type of stormctl, or {OWN!r}.")
        if texts == [OWN]:
            return ()
        for text in texts:
            if text not in kinds.ALL_TYPES:
                raise self._error(
                    f"maps {word!r} to {text!r}, which is no event type", suggest(text, {*kinds.ALL_TYPES, OWN})
                )
        return tuple(texts)

    def _skip(self, content: Any) -> dict[str, frozenset[str]]:
        return {key: frozenset(self._texts(value, key)) for key, value in self._mapping(content or {}, "skip").items()}

    def _defaults(self, content: Any) -> dict[str, Any]:
        given = self._mapping(content or {}, "defaults")
        for key, value in given.items():
            if not isinstance(value, (str, int)) or isinstance(value, bool):
                raise self._error(f"has no text or number as the default of {key!r}", "Give one.")
        return dict(given)

    def _base(self, value: Any) -> int | None:
        if value == "auto":
            return None
        if isinstance(value, bool) or value not in (0, 1):
            raise self._error(
                f"counts positions from {value!r}", "Give base: 0, 1, or auto for what a run begins with."
            )
        return int(value)

    # -- small things ---------------------------------------------------------------------------------------------

    def _error(self, what: str, remedy: str) -> MapError:
        return MapError(f"{self._where} {what}", remedy=remedy)

    def _known(self, given: Mapping[Any, Any], known: Sequence[str], noun: str) -> None:
        for key in given:
            if key not in known:
                raise self._error(f"has no use for the {noun} {key!r}", suggest(str(key), known))

    def _mapping(self, value: Any, what: str) -> Mapping[Any, Any]:
        if not isinstance(value, Mapping):
            raise self._error(f"holds no keys in {what}", "See docs/maps.md for how a map is written.")
        return value

    def _text(self, given: Mapping[Any, Any], key: str, default: str | None = None) -> str:
        value = given.get(key, default)
        if not isinstance(value, str) or (default is None and not value):
            raise self._error(f"has no text in {key!r}", "Give it.")
        return value

    def _texts(self, value: Any, key: str) -> list[str]:
        if value is None:
            return []
        values = value if isinstance(value, (list, tuple)) else [value]
        if not all(isinstance(one, (str, int)) and not isinstance(one, bool) for one in values):
            raise self._error(f"has something else than names in {key!r}", "Quote words such as 'yes' and 'no'.")
        return [str(one) for one in values]

    def _listed(self, value: Any, known: Sequence[str], key: str) -> list[str]:
        texts = self._texts(value, key)
        for text in texts:
            if text not in known:
                raise self._error(f"has {text!r} in {key!r}", suggest(text, known))
        return texts

    def _choice(self, given: Mapping[Any, Any], key: str, known: Sequence[str], default: str) -> str:
        value = given.get(key, default)
        if value not in known:
            raise self._error(f"has {ascii(value)[:40]} in {key!r}", suggest(str(value), known))
        return str(value)

    def _flag(self, given: Mapping[Any, Any], key: str, *, default: bool) -> bool:
        value = given.get(key, default)
        if not isinstance(value, bool):
            raise self._error(f"has {ascii(value)[:40]} in {key!r}", "Give yes or no.")
        return value
