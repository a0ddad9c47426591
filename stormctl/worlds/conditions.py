"""Finding a condition by its name, as a world follows it.

A name may change knobs of a preset: ``seq-final[stale_ms=2000]``, ``seq-tail[gate=decisions,reads=strong]``. The whole
text is then the condition's name, in plans, tables and logs alike.
"""

from __future__ import annotations

import re
from dataclasses import fields, replace
from enum import StrEnum
from typing import Any, get_type_hints

from stormctl.errors import UsageError, suggest
from stormctl.worlds.condition import Condition, Rollback, Semantics, Tells
from stormctl.worlds.presets import CONDITIONS, MAIN, MAIN_PG

POSTGRES = "postgres"

_NAME = re.compile(r"(?P<preset>[^\[\]]+)(?:\[(?P<knobs>[^\[\]]*)\])?\Z")
_WORDS = frozenset({"name", "closes", "leaves"})
KNOBS = tuple(field.name for field in fields(Condition) if field.name not in _WORDS)


def condition_named(name: str, world: str = "local") -> Condition:
    """The condition of that name on that kind of world; UsageError with the likeliest name, knob or value.

    ``main`` means what the world's own 4.x release did. A database rolls back, and where a preset follows the table of
    world-local 4.x it follows that of world-postgres 4.x there.
    """
    parts = _NAME.match(name)
    preset = name if parts is None else parts["preset"]
    if parts is None or preset not in CONDITIONS:
        raise UsageError(f"there is no condition {name!r}", remedy=suggest(preset, CONDITIONS))
    found = CONDITIONS[preset]
    if world == POSTGRES:
        if preset == MAIN.name:
            found = replace(MAIN_PG, name=MAIN.name)
        semantics = Semantics.PG4 if found.semantics is Semantics.LOCAL4 else found.semantics
        found = replace(found, rollback=Rollback.FULL, semantics=semantics)
    if parts["knobs"] is None:
        return found
    return replace(found, name=name, **dict(_knob(text, name) for text in parts["knobs"].split(",")))


def _knob(text: str, name: str) -> tuple[str, Any]:
    knob, equals, value = (part.strip() for part in text.partition("="))
    if not equals:
        raise UsageError(f"{text!r} in {name!r} sets no knob", remedy="Write it as seq-final[stale_ms=2000].")
    if knob not in KNOBS:
        raise UsageError(f"a condition has no knob {knob!r}", remedy=suggest(knob, KNOBS))
    return knob, _value(knob, value)


def _value(knob: str, text: str) -> Any:
    kind = get_type_hints(Condition)[knob]
    if kind is bool:
        if text not in ("true", "false"):
            raise UsageError(f"{knob} is {text!r}", remedy="Write true or false.")
        return text == "true"
    if kind is float:
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if not number >= 0:
            raise UsageError(f"{knob} is {text!r}, not milliseconds", remedy=f"Write {knob}=2000, or {knob}=inf.")
        return number
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return _word(knob, text, kind)
    words = [word for word in text.split("+") if word]
    if knob == "tells":
        return frozenset(_word(knob, word, Tells) for word in words)
    return frozenset(words)


def _word(knob: str, text: str, kind: type[StrEnum]) -> StrEnum:
    try:
        return kind(text)
    except ValueError:
        raise UsageError(f"{knob} is {text!r}", remedy=suggest(text, [str(one) for one in kind])) from None
