"""``-P key=a,b`` as the mapping that a plan takes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stormctl.errors import UsageError

#: a comma between values, not one between the knobs of a condition: seq-final[stale_ms=2000,reads=strong]
_COMMA = re.compile(r",(?![^\[]*\])")


def parse_overrides(given: Sequence[str]) -> dict[str, list[str]]:
    """``["attempts=4", "scenario=a,b"]`` -> ``{"attempts": ["4"], "scenario": ["a", "b"]}``; UsageError otherwise."""
    found: dict[str, list[str]] = {}
    for text in given:
        key, equals, values = text.partition("=")
        if not equals or not key.strip() or not values.strip():
            raise UsageError(f"-P {text!r} is no key=value", remedy="Write it as -P attempts=4 or -P scenario=a,b.")
        if key.strip() in found:
            raise UsageError(f"-P names {key.strip()!r} twice", remedy="Give all its values at once: -P key=a,b.")
        found[key.strip()] = [value.strip() for value in _COMMA.split(values)]
    return found
