"""Column paths: where in a row a value lies.

``EventId`` is a column. ``entry_json.Command.Sleep.wake_up_time`` goes on into an object, or into the JSON text of a
column; ``*`` takes the only key of an object. ``attrs[scheduledId]`` takes one of a text's ``key=value`` pairs, which
semicolons part. ``(optional)`` at the end says that the table may be without the column.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stormctl.errors import UnreadableInput
from stormctl.readers.text import parse

_PATH = re.compile(r"([^\[\]]+?)(?:\[([^\[\]]+)\])?(\s*\(optional\))?\Z")
_MAX_STEPS = 12
#: The longest text that is taken apart for what lies inside it.
_MAX_INNER = 4 << 20


@dataclass(frozen=True, slots=True)
class Column:
    """One path. ``text`` is as written, without what makes it ``optional``."""

    text: str
    steps: tuple[str, ...]
    pair: str | None = None
    optional: bool = False
    #: whether it leads beyond a column's own value
    deep: bool = False

    @classmethod
    def parse(cls, text: str) -> Column:
        """The path of a text; ValueError when it is none."""
        found = _PATH.match(text.strip())
        if found is None:
            raise ValueError(f"{text!r} is no column")
        steps = tuple(found[1].split("."))
        if not all(steps) or len(steps) > _MAX_STEPS:
            raise ValueError(f"{text!r} is no column")
        plain = found[1] + (f"[{found[2]}]" if found[2] else "")
        deep = len(steps) > 1 or found[2] is not None
        return cls(plain, steps, found[2], optional=found[3] is not None, deep=deep)

    @property
    def head(self) -> str:
        """The table's own column that the path begins with."""
        return self.steps[0]

    def is_in(self, names: Mapping[str, Any] | frozenset[str]) -> bool:
        """Whether a table with these columns has it, as far as its columns tell."""
        return self.head in names or ".".join(self.steps) in names


class Row:
    """One row of a table, whose texts of JSON are read once."""

    __slots__ = ("_inner", "cells", "where")

    def __init__(self, cells: Mapping[str, Any], where: str) -> None:
        self.cells = cells
        self.where = where
        self._inner: dict[str, Any] = {}

    def get(self, column: Column) -> Any:
        """The value at a path, None where there is none."""
        whole = ".".join(column.steps) if len(column.steps) > 1 else column.head
        if whole in self.cells:  # a column whose own name has dots in it
            value = self.cells[whole]
        else:
            value = self.cells.get(column.head)
            for step in column.steps[1:]:
                value = self._step(value, step)
        return value if column.pair is None else _pair(value, column.pair)

    def _step(self, value: Any, step: str) -> Any:
        if isinstance(value, str):
            value = self._parsed(value)
        if not isinstance(value, Mapping):
            return None
        if step == "*":
            return next(iter(value.values())) if len(value) == 1 else None
        return value.get(step)

    def _parsed(self, text: str) -> Any:
        if text not in self._inner:
            try:
                inner = parse(text, self.where) if text[:1] in ("{", "[") and len(text) <= _MAX_INNER else None
            except UnreadableInput:
                inner = None
            self._inner[text] = inner
        return self._inner[text]


def _pair(value: Any, key: str) -> str | None:
    if not isinstance(value, str):
        return None
    for pair in value[:_MAX_INNER].split(";"):
        name, sign, rest = pair.partition("=")
        if sign and name.strip() == key:
            return rest
    return None
