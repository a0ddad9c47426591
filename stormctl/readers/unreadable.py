"""What could not be read, reported beside what could."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stormctl.errors import StormctlError

#: What an error says of a file over which a reader stumbled. It is a fault of the reader's, too; tests look for it.
UNFORESEEN = "in its values"


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

    @classmethod
    def unforeseen(cls, source: Path | str, error: Exception) -> Unreadable:
        """The report of what a reader did not foresee at a path, so that it does not hide the others."""
        reason = f"{Path(str(source)).name} cannot be read: {type(error).__name__} {UNFORESEEN}"
        return cls(str(source), reason, "Capture or copy the file again, and report it if it is whole.")

    @property
    def text(self) -> str:
        """Both sentences as one line."""
        return f"{self.error}. {self.remedy}".strip()
