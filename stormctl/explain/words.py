"""Prefixes, writers and creates in words, the same in every report."""

from __future__ import annotations

from collections.abc import Sequence

from stormctl.engine.door import Create
from stormctl.explain.creates import Created
from stormctl.explain.ranges import Ranges
from stormctl.history import EventLog

WRITTEN_AS = {
    Create.LAZY: "with its start",
    Create.EAGER: "alone",
    Create.WAIT: "as a wait",
    Create.HOOK: "as a hook",
    Create.ATTRIBUTE: "as attributes",
}


def named_ranges(log: EventLog, prefixes: Ranges) -> tuple[tuple[int, int], ...]:
    """Ranges of prefix lengths as ranges of prefix names."""
    return tuple((log.name_of_prefix(first), log.name_of_prefix(last)) for first, last in prefixes.ranges)


def ranges(ends: Sequence[tuple[int, int]]) -> str:
    """``610 or 611``, ``623 to 629``, ``12``; many ranges are shortened to the newest three."""
    shown = [_range(first, last) for first, last in ends[-3:]]
    more = "earlier ones, " if len(ends) > 3 else ""
    return more + ", ".join(shown)


def _range(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first} or {last}" if last == first + 1 else f"{first} to {last}"


def count(number: int, noun: str) -> str:
    """``1 event``, ``3 events``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def call(create: Created) -> str:
    """``finalizeStep as rank 199``, ``a wait as rank 9``."""
    what = create.name or f"a {create.kind}"
    return what if create.rank is None else f"{what} as rank {create.rank}"


def pulls(numbers: Sequence[int]) -> str:
    """``#3145, #3269``."""
    return ", ".join(f"#{number}" for number in numbers)
