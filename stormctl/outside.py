"""What comes from outside of the program and is never twice the same: times, random ids, threads.

Whatever runs in a storm asks for them here, so that a storm in virtual time can give its own and be the same storm
again. What belongs to the machine and not to the storm (file names, process ids) does not.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any


class Outside:
    """The real ones. A substitute overrides all of them."""

    def wall_ns(self) -> int:
        """The time of day in epoch nanoseconds."""
        return time.time_ns()

    def running_ns(self) -> int:
        """Nanoseconds of a clock that never runs backwards."""
        return time.monotonic_ns()

    def token(self, size: int) -> str:
        """Hexadecimal digits of so many random bytes."""
        return secrets.token_hex(size)

    def random(self) -> Random:
        """Numbers that nobody can foretell."""
        return Random()

    def ulid(self) -> str:
        """A new ULID, as 26 characters."""
        from ulid import ULID

        return str(ULID())

    async def in_thread(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Do something that blocks, while others go on."""
        return await asyncio.to_thread(call, *arguments)


_given: Outside = Outside()


def outside() -> Outside:
    """What is in force: the real ones, unless somebody gave others."""
    return _given


@contextmanager
def given(other: Outside) -> Iterator[None]:
    """Put others in force, for this process, until the block ends. One storm at a time can do that."""
    global _given
    before, _given = _given, other
    try:
        yield
    finally:
        _given = before
