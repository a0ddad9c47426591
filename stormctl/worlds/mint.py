"""Minting event ids, times and nonces.

One :class:`Minter` per process and store: its monotonic ids ascend within the process, as those of one ULID factory do,
and say nothing about the ids of another process.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from threading import Lock

from stormctl.history import ids
from stormctl.outside import outside


def now_ms() -> int:
    """The wall clock in epoch milliseconds."""
    return outside().wall_ns() // 1_000_000


class Minter:
    """Ids of the form ``evnt_<ULID>``. Safe to use from several threads."""

    def __init__(self, clock: Callable[[], int] = now_ms, random: Random | None = None) -> None:
        self.clock = clock
        self.random = random if random is not None else outside().random()
        self._lock = Lock()
        self._last = -1

    def mint(self, ms: int, *, monotonic: bool) -> str:
        """An event id for that time.

        Monotonic: when the time is not later than that of the last id, the last id plus one. Else its random part is
        drawn anew each time.
        """
        with self._lock:
            value = (ms << ids.RANDOM_BITS) | self.random.getrandbits(ids.RANDOM_BITS)
            if monotonic:
                if self._last >> ids.RANDOM_BITS >= ms:
                    value = self._last + 1
                self._last = value
        return f"evnt_{ids.body_of(value)}"

    def nonce(self) -> str:
        """A ULID body that nobody else will draw: for temporary names and lock owners."""
        with self._lock:
            bits = self.random.getrandbits(ids.RANDOM_BITS)
        return ids.compose(self.clock(), bits)
