"""Sets of prefix lengths, kept as ranges: what explains a create is mostly a run of neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ranges:
    """A set of whole numbers as rising, disjoint ranges; both ends of a range belong to it."""

    ranges: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, values: Iterable[int]) -> Ranges:
        """The set of these values."""
        builder = RangesBuilder()
        for value in sorted(set(values)):
            builder.add(value)
        return builder.done()

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.ranges)

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int) and any(first <= value <= last for first, last in self.ranges)

    def __iter__(self) -> Iterator[int]:
        """The members, smallest first."""
        for first, last in self.ranges:
            yield from range(first, last + 1)

    @property
    def first(self) -> int | None:
        """The smallest member."""
        return self.ranges[0][0] if self.ranges else None

    @property
    def last(self) -> int | None:
        """The largest member."""
        return self.ranges[-1][1] if self.ranges else None

    def newest(self, count: int) -> list[int]:
        """The ``count`` largest members, largest first."""
        found: list[int] = []
        for first, last in reversed(self.ranges):
            found.extend(range(last, max(first, last - (count - len(found)) + 1) - 1, -1))
            if len(found) >= count:
                break
        return found

    def __and__(self, other: Ranges) -> Ranges:
        """The members of both."""
        builder: list[tuple[int, int]] = []
        mine, theirs = iter(self.ranges), iter(other.ranges)
        one, two = next(mine, None), next(theirs, None)
        while one is not None and two is not None:
            first, last = max(one[0], two[0]), min(one[1], two[1])
            if first <= last:
                builder.append((first, last))
            if one[1] < two[1]:
                one = next(mine, None)
            else:
                two = next(theirs, None)
        return Ranges(tuple(builder))


#: the empty set
NOTHING = Ranges()


class RangesBuilder:
    """Collects rising values."""

    __slots__ = ("_ranges",)

    def __init__(self) -> None:
        self._ranges: list[list[int]] = []

    def add(self, value: int) -> None:
        """Add a value no smaller than the ones before."""
        if self._ranges and value <= self._ranges[-1][1] + 1:
            self._ranges[-1][1] = max(value, self._ranges[-1][1])
        else:
            self._ranges.append([value, value])

    def done(self) -> Ranges:
        """The set."""
        return Ranges(tuple((first, last) for first, last in self._ranges))
