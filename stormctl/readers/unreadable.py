"""What could not be read, reported beside what could."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stormctl.errors import StormctlError


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A path that gave no capture, with the sentence that says why and the one that says what to do."""

    source: str
    error: str
    remedy: str = ""

    @classmethod
    def of(cls, source: Path | str, error: StormctlError) -> Unreadable:
        """The report of an error at a path."""
        return cls(str(source), str(error), error.remedy)

    @property
    def text(self) -> str:
        """Both sentences as one line."""
        return f"{self.error}. {self.remedy}".strip()
