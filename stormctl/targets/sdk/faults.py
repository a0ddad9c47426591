"""What a host does to its SDK on purpose."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stormctl.errors import UsageError

#: the longest that one call may be held back for
MOST_MS = 600_000


@dataclass(frozen=True, slots=True)
class Faults:
    """What the host does to its SDK on purpose, all through public doors.

    ``duplicate`` is the share of deliveries (0 to 1) that are made twice, the second one up to ``duplicate_ms`` later.
    Every storage read is held back up to ``read_delay_ms`` after, every write up to ``write_delay_ms`` before it is
    made: uniform, from ``seed``. ``trace`` writes every call to ``trace.ndjson``.
    """

    duplicate: float = 0.0
    duplicate_ms: float = 150.0
    read_delay_ms: float = 0.0
    write_delay_ms: float = 0.0
    seed: int = 0
    trace: bool = False

    def environment(self, trace: Path) -> dict[str, str]:
        """How a host is told. UsageError for a number that cannot be meant."""
        for name in ("duplicate_ms", "read_delay_ms", "write_delay_ms"):
            if not 0 <= getattr(self, name) <= MOST_MS:
                raise UsageError(f"{name} is {getattr(self, name)}", remedy=f"Give it 0 to {MOST_MS} milliseconds.")
        if not 0 <= self.duplicate <= 1:
            raise UsageError(f"duplicate is {self.duplicate}", remedy="It is a share: give it 0 to 1.")
        told = {
            "STORMCTL_DUPLICATE": f"{self.duplicate}",
            "STORMCTL_DUPLICATE_MS": f"{self.duplicate_ms}",
            "STORMCTL_READ_DELAY_MS": f"{self.read_delay_ms}",
            "STORMCTL_WRITE_DELAY_MS": f"{self.write_delay_ms}",
            "STORMCTL_SEED": str(self.seed % 2**32),
        }
        return {**told, "STORMCTL_TRACE": str(trace)} if self.trace else told
