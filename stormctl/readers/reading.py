"""How files are to be read, where a person says so; else it is told from what they hold."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """What a person asked for: ``reader`` is the name of the reader that must read everything, None the one that
    recognises each file."""

    reader: str | None = None


BY_CONTENT = Reading()
