"""Numbers for choices: a stream per purpose and seed, so that a new consumer of one shifts no other.

SplitMix64 (Steele, Lea, Flood 2014): a stream costs no more than a number, where seeding ``random.Random`` costs more
than a whole small schedule.
"""

from __future__ import annotations

from hashlib import blake2b

_MASK = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15


class Stream:
    """An endless stream of numbers, equal on every machine for equal purpose and numbers."""

    __slots__ = ("_state",)

    def __init__(self, purpose: str, *numbers: int) -> None:
        text = " ".join((purpose, *map(str, numbers)))
        self._state = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")

    def bits(self) -> int:
        """The next 64 bits."""
        self._state = state = (self._state + _STEP) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        return state ^ (state >> 31)

    def below(self, width: int) -> int:
        """A number under ``width``, all as likely (up to 2**-40 for the widths that there are)."""
        self._state = state = (self._state + _STEP) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        return (state ^ (state >> 27)) * width >> 64 if width > 1 else 0

    def weighted(self, weights: list[float]) -> int:
        """An index, as likely as its weight says. Weights are not negative, and one is positive."""
        left = self.bits() / (_MASK + 1) * sum(weights)
        for index, weight in enumerate(weights):
            left -= weight
            if left < 0:
                return index
        return max(index for index, weight in enumerate(weights) if weight)

    def shuffled(self, count: int) -> list[int]:
        """The numbers under ``count`` in some order."""
        numbers = list(range(count))
        for at in range(count - 1, 0, -1):
            other = self.below(at + 1)
            numbers[at], numbers[other] = numbers[other], numbers[at]
        return numbers
