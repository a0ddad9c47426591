"""Finding a condition by its name."""

from __future__ import annotations

from stormctl.errors import UsageError
from stormctl.worlds.condition import CONDITIONS, Condition


def condition_named(name: str) -> Condition:
    """The condition of that name; UsageError listing the known ones."""
    try:
        return CONDITIONS[name]
    except KeyError:
        raise UsageError(
            f"there is no condition {name!r}", remedy=f"Use one of: {', '.join(sorted(CONDITIONS))}."
        ) from None
