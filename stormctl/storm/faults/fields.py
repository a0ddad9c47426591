"""Reading one fault of a plan: its fields, checked, with errors that name the fault."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from stormctl.errors import PlanError, suggest
from stormctl.history import kinds
from stormctl.storm.planfile import parse_count, parse_duration, parse_number

MOST = 1_000_000


class Fields:
    """The fields of one fault. ``where`` is how errors call it: ``faults[2]``."""

    def __init__(self, given: Mapping[str, Any], where: str) -> None:
        self._given = given
        self.where = where

    def has(self, key: str) -> bool:
        """Whether the plan gives the field."""
        return key in self._given

    def name(self, key: str, known: Collection[str], default: str | None = None) -> str:
        """One of the known names; PlanError without a default when it is absent."""
        value = self._given.get(key, default)
        if value is None:
            raise PlanError(f"{self.where} lacks {key!r}", remedy=f"Known are {', '.join(known)}.")
        if not isinstance(value, str) or value not in known:
            raise PlanError(f"{self.where}.{key} is {value!r}", remedy=suggest(str(value), known))
        return value

    def event_type(self, key: str) -> str | None:
        """An event type, or None when it is absent."""
        return self.name(key, kinds.ALL_TYPES) if self.has(key) else None

    def duration(self, key: str, default: float | None = None, most: float | None = None) -> float:
        """Milliseconds, at most ``most``."""
        if not self.has(key):
            if default is None:
                raise PlanError(f"{self.where} lacks {key!r}", remedy=f"Write `{key}: 2500ms`.")
            return default
        ms = parse_duration(self._given[key], f"{self.where}.{key}")
        if most is not None and ms > most:
            raise PlanError(f"{self.where}.{key} is {self._given[key]!r}", remedy=f"Give it at most {most / 1000:g}s.")
        return ms

    def count(self, key: str) -> int | None:
        """A whole number from 1, or None when it is absent."""
        return parse_count(self._given[key], f"{self.where}.{key}", 1, MOST) if self.has(key) else None

    def share(self, key: str) -> float | None:
        """A probability above 0, or None when it is absent."""
        if not self.has(key):
            return None
        value = parse_number(self._given[key], f"{self.where}.{key}", 0, 1)
        if value == 0:
            raise PlanError(f"{self.where}.{key} is 0: it would never happen", remedy="Leave the fault out.")
        return value

    def mapping(self, key: str, known: Collection[str]) -> Fields:
        """The fields of a nested mapping; none when it is absent."""
        value = self._given.get(key, {})
        where = f"{self.where}.{key}"
        if not isinstance(value, Mapping):
            raise PlanError(f"{where} is {value!r}, not a mapping", remedy=f"Its keys are {', '.join(known)}.")
        for name in value:
            if name not in known:
                raise PlanError(f"{where} has an unknown key {name!r}", remedy=suggest(str(name), known))
        return Fields(value, where)
