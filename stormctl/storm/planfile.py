"""Reading one YAML file of a person's making: bounded, strict about repeated keys, and helpful about typing errors."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from stormctl.errors import PlanError

MAX_BYTES = 64 * 1024
MAX_DEPTH = 8
_UNITS = {"ms": 1.0, "s": 1000.0, "m": 60_000.0, "h": 3_600_000.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)\Z")


class _Loader(yaml.SafeLoader):
    """A safe loader that also refuses aliases (they can unfold without bound) and repeated keys (one would be lost)."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not read")
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise yaml.YAMLError(f"it is nested more than {MAX_DEPTH} deep")
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001 - the base class has it so
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.YAMLError(f"line {key.start_mark.line + 1} gives {key.value!r} a second time")
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def parse_yaml(text: str, source: str) -> Any:
    """The value of a YAML text; PlanError names the line where it is not one."""
    try:
        return yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as bad:
        mark = getattr(bad, "problem_mark", None)
        where = f"line {mark.line + 1}: {getattr(bad, 'problem', 'it cannot be parsed')}" if mark else str(bad)
        raise PlanError(f"{source} is not readable as YAML: {where}", remedy="Mend the line.") from None


def read_yaml(path: Path) -> Any:
    """The value of a YAML file of at most 64 KB."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except IsADirectoryError:
        raise PlanError(f"{path} is a folder", remedy="Name the plan file in it.") from None
    except OSError as bad:
        reason = bad.strerror or type(bad).__name__
        raise PlanError(
            f"{path} cannot be read: {reason}", remedy="Name a plan file, such as configs/storm.yaml."
        ) from None
    if len(raw) > MAX_BYTES:
        raise PlanError(f"{path} is larger than {MAX_BYTES // 1024} KB", remedy="A plan is a few lines of YAML.")
    try:
        return parse_yaml(raw.decode("utf-8"), str(path))
    except UnicodeDecodeError:
        raise PlanError(f"{path} is not UTF-8 text", remedy="A plan is a few lines of YAML.") from None


def parse_duration(value: Any, key: str) -> float:
    """Milliseconds of ``500ms``, ``240s``, ``10m`` or ``1h``. A bare number is refused: its unit would be a guess."""
    match = _DURATION.match(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise PlanError(f"{key} is {value!r}, not a duration", remedy="Write a number with ms, s, m or h: 240s.")
    ms = float(match[1]) * _UNITS[match[2]]
    if not 0 < ms <= 7 * 24 * _UNITS["h"]:
        raise PlanError(f"{key} is {value!r}", remedy="It must be more than nothing and at most 168h.")
    return ms


def format_duration(ms: float) -> str:
    """The shortest exact way to write a duration: the inverse of :func:`parse_duration`."""
    for unit in ("h", "m", "s"):
        if ms >= _UNITS[unit] and ms % _UNITS[unit] == 0:
            return f"{int(ms // _UNITS[unit])}{unit}"
    return f"{ms:.15g}ms"


def parse_number(value: Any, key: str, low: float, high: float) -> float:
    """A number in a closed range."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise PlanError(f"{key} is {value!r}, not a number", remedy=f"Give a number from {low:g} to {high:g}.")
    if not low <= value <= high:
        raise PlanError(f"{key} is {value!r}", remedy=f"Give a number from {low:g} to {high:g}.")
    return float(value)


def parse_count(value: Any, key: str, low: int, high: int) -> int:
    """A whole number in a closed range."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise PlanError(f"{key} is {value!r}, not a whole number", remedy=f"Give one from {low} to {high}.")
    if not low <= value <= high:
        raise PlanError(f"{key} is {value!r}", remedy=f"Give a whole number from {low} to {high}.")
    return value
