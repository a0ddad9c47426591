"""The data of a report as JSON, schema ``stormctl.report/1``: what every table shows, with the numbers unrounded."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, is_dataclass
from typing import Any

from stormctl.report.facts import StormFacts
from stormctl.report.lane import Lane
from stormctl.stats import Difference, Rate
from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.until import conclusion_of

SCHEMA = "stormctl.report/1"


def report_json(lane: Lane, facts: StormFacts) -> dict[str, Any]:
    """One storm as values of JSON. Percentiles without a value are null; tokens of hooks are digests already."""
    found = lane.artefact
    assert found is not None
    counts = lane.counts
    return {
        "schema": SCHEMA,
        "name": found.name,
        "folder": str(found.folder),
        "verdict": counts.verdict,
        "counts": _value(counts),
        "until": conclusion_of(found.folder) or None,
        **{name: _value(getattr(facts, name)) for name in StormFacts.__dataclass_fields__ if name != "notes"},
        "notes": [*found.notes, *facts.notes],
    }


def report_text(document: Any) -> str:
    """JSON for a person and a program alike; control characters are escaped."""
    return json.dumps(document, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def _value(value: Any) -> Any:
    if isinstance(value, Attempt):
        return {"run_id": value.run_id, "number": value.number, "outcome": str(value.outcome), **asdict(value.cell)}
    if isinstance(value, Cell):
        return value.label
    if isinstance(value, Rate | Difference):
        return _plain_rate(value)
    if is_dataclass(value):
        return {name: _value(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, dict):
        return {_value(key) if isinstance(key, Cell) else str(key): _value(one) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return [_value(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _plain_rate(value: Rate | Difference) -> dict[str, Any]:
    if isinstance(value, Rate):
        return {"k": value.k, "n": value.n, "lo": value.lo, "hi": value.hi}
    return {"value": value.value, "lo": value.lo, "hi": value.hi}
