"""The exit code when several things hold at once."""

from __future__ import annotations

from collections.abc import Iterable

from stormctl.errors import EXIT_CLEAN, EXIT_INTERNAL, EXIT_UNKNOWN, EXIT_USAGE, EXIT_VIOLATIONS

#: The first of these that holds is the exit code.
PRECEDENCE = (EXIT_USAGE, EXIT_INTERNAL, EXIT_VIOLATIONS, EXIT_UNKNOWN)
#: What ``--report-only`` lets pass. A wrong command or an unreadable file still fails.
_REPORTED = frozenset({EXIT_VIOLATIONS, EXIT_UNKNOWN})


def combine(codes: Iterable[int], *, report_only: bool = False) -> int:
    """The exit code of a command from those of its parts."""
    seen = set(codes)
    if report_only:
        seen -= _REPORTED
    return next((code for code in PRECEDENCE if code in seen), EXIT_CLEAN)
