"""Times as text: epoch milliseconds as ISO 8601 in UTC, and back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

#: The last millisecond that ISO 8601 can write with a four-digit year. Ids with later times exist.
LAST_ISO_MS = 253_402_300_799_999

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def iso(ms: int) -> str:
    """Epoch milliseconds as ``2026-11-30T15:14:47.309Z``; OverflowError after :data:`LAST_ISO_MS`."""
    return (_EPOCH + ms * _MILLISECOND).isoformat(timespec="milliseconds")[:-6] + "Z"


def ms_of(text: str) -> int:
    """The inverse of :func:`iso`, for any ISO 8601 time with an offset; ValueError or TypeError for anything else."""
    return (datetime.fromisoformat(text) - _EPOCH) // _MILLISECOND


def us_of(text: str) -> int:
    """Epoch microseconds of an ISO 8601 time with an offset; errors as :func:`ms_of`."""
    return (datetime.fromisoformat(text) - _EPOCH) // timedelta(microseconds=1)
