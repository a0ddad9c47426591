"""The storage conditions for a terminal, and as JSON."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from stormctl.worlds.condition import Condition
from stormctl.worlds.conditions import KNOBS

MOST_COLUMNS = 100


def condition_text(conditions: Sequence[Condition], *, width: int = 80, knobs: bool = False) -> str:
    """Each condition with what it closes and leaves; with ``knobs`` those that differ from a condition that does
    nothing. The text fits the width and loses nothing without colour."""
    sink = io.StringIO()
    console = Console(file=sink, width=min(width, MOST_COLUMNS), highlight=False)
    console.print(Group(*(_block(condition, knobs=knobs) for condition in conditions)))
    return "\n".join(line.rstrip() for line in sink.getvalue().splitlines())


def condition_json(conditions: Sequence[Condition], world: str) -> str:
    """All knobs of the conditions as the world follows them. Schema ``stormctl.conditions/1``."""
    body = {
        "schema": "stormctl.conditions/1",
        "world": world,
        "conditions": [
            {"name": one.name, "closes": one.closes, "leaves": one.leaves, **{knob: _json(one, knob) for knob in KNOBS}}
            for one in conditions
        ],
    }
    return json.dumps(body, indent=2)


def changed(condition: Condition) -> dict[str, str]:
    """The knobs whose value is not the default, in the words that a plan may write."""
    found = {}
    for field in fields(Condition):
        if field.name in KNOBS and (value := getattr(condition, field.name)) != field.default:
            found[field.name] = _word(value)
    return found


def _block(condition: Condition, *, knobs: bool) -> RenderableType:
    lines: list[RenderableType] = [Text(condition.name, style="bold")]
    for what, text in (("closes", condition.closes), ("leaves", condition.leaves)):
        line = Text.assemble((f"{what}  ", "dim"), text)
        lines.append(Padding(_hanging(line), (0, 0, 0, 2)))
    if knobs:
        turned = ", ".join(f"{knob}={value}" for knob, value in changed(condition).items()) or "none"
        lines.append(Padding(_hanging(Text.assemble(("knobs   ", "dim"), turned)), (0, 0, 0, 2)))
    return Padding(Group(*lines), (0, 0, 1, 0))


def _hanging(line: Text) -> RenderableType:
    """The text with its label in a column of its own, so that what wraps stays beside it."""
    table = Table.grid(padding=0)
    table.add_column(width=8, no_wrap=True)
    table.add_column(ratio=1)
    table.add_row(line[:8], line[8:])
    return table


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float | int):
        return f"{value:g}"
    if isinstance(value, frozenset):
        return "+".join(sorted(map(str, value)))
    return str(value)


def _json(condition: Condition, knob: str) -> Any:
    value = getattr(condition, knob)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, bool | int | float):
        return value
    return sorted(map(str, value)) if isinstance(value, frozenset) else str(value)
