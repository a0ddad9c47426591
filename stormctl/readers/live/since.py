"""Since when: a time, or how long ago."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from stormctl.errors import UsageError
from stormctl.times import LAST_ISO_MS

_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_AGO = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*(ms|s|m|h|d|w)\Z")


def parse_since(text: str, now_ms: int) -> int:
    """Epoch milliseconds of ``90m``, ``7d``, ``2026-11-30`` or ``2026-11-30T15:00:00Z``. A time without an offset is
    UTC. UsageError for anything else."""
    found = _AGO.match(text.strip())
    if found is not None:
        return max(0, now_ms - round(float(found[1]) * _UNITS[found[2]]))
    try:
        moment = datetime.fromisoformat(text.strip())
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        at = round(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        at = -1
    if not 0 <= at <= LAST_ISO_MS:
        raise UsageError(
            f"{ascii(text)[:60]} is no time", remedy="Give how long ago (90m, 24h, 7d) or when (2026-11-30T15:00:00Z)."
        )
    return at
