"""The report of sweeps as JSON while it is made: one document, or a line for each log."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator

from stormctl.readers import Unreadable
from stormctl.sweeps import SCHEMA, LogReport
from stormctl.sweeps.report import LINE_SCHEMA, unreadable_rows

_INDENT = 2


class JsonDocument:
    """The document of :func:`stormctl.sweeps.sweep_report`, byte for byte, of which one log at a time is held.

    What :meth:`take` and :meth:`end` give are whole lines, without the last one's end.
    """

    def __init__(self) -> None:
        self._waiting: str | None = None
        self._begun = False
        self._unreadable: list[Unreadable] = []

    def take(self, item: LogReport | Unreadable) -> Iterator[str]:
        """The part that is ready when a report comes."""
        if isinstance(item, Unreadable):
            self._unreadable.append(item)
            return
        if self._waiting is not None:
            yield f"{self._waiting},"
        elif not self._begun:
            self._begun = True
            yield f'{{\n  "schema": "{SCHEMA}",\n  "logs": ['
        self._waiting = _indented(item.to_json(), 2)

    def end(self) -> Iterator[str]:
        """The rest."""
        if self._waiting is not None:
            yield f"{self._waiting}\n  ],"
        else:
            yield f'{{\n  "schema": "{SCHEMA}",\n  "logs": [],'
        yield f'  "unreadable": {_indented(unreadable_rows(self._unreadable), 1).lstrip()}\n}}'


def line_of(item: LogReport | Unreadable) -> str:
    """One report as a line of JSON."""
    if isinstance(item, Unreadable):
        (row,) = unreadable_rows([item])
        return json.dumps({"schema": LINE_SCHEMA, "line": "unreadable", **row}, allow_nan=False)
    return json.dumps({"schema": LINE_SCHEMA, "line": "log", **item.to_json()}, allow_nan=False)


def _indented(value: object, levels: int) -> str:
    # a text in JSON holds no line break of its own
    return textwrap.indent(json.dumps(value, indent=_INDENT, allow_nan=False), " " * (_INDENT * levels))
