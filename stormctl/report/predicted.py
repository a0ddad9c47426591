"""What a storm on the SDK could predict: the share of each version, and which logs it could not, with why.

Read from ``predictions.json``, which the target writes after its storm; a storm without that file has no such table.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stormctl.stats import Rate

FILE = "predictions.json"
MOST_MISSED = 10
HEAD = ("version", "generation", "corrupted", "predicted (95 %)")


@dataclass(frozen=True, slots=True)
class PredictedRow:
    """One version. ``corrupted`` of its ``attempts`` were, and of ``judged`` of their logs ``predicted`` are."""

    version: str
    generations: tuple[str, ...]
    attempts: int
    corrupted: int
    judged: int
    predicted: int

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """As a table shows it, under :data:`HEAD`."""
        share = str(Rate(self.predicted, self.judged)) if self.judged else "nothing to predict"
        if not self.judged and self.corrupted:
            share = "none could be judged"
        return self.version, ", ".join(self.generations) or "-", f"{self.corrupted}/{self.attempts}", share


@dataclass(frozen=True, slots=True)
class Predicted:
    """The whole account. ``missed`` are the first logs that were not predicted, ``more`` the number of the others."""

    rows: tuple[PredictedRow, ...] = ()
    missed: tuple[str, ...] = ()
    more: int = 0

    @property
    def texts(self) -> Sequence[str]:
        """The logs that were not predicted, in sentences."""
        rest = (f"not predicted: {self.more} more, in {FILE}",) if self.more else ()
        return (*self.missed, *rest)


def predicted(folder: Path) -> Predicted:
    """The account in an artefact's folder; an empty one where there is none that can be read."""
    try:
        found: Any = json.loads((folder / FILE).read_bytes())
        rows = tuple(
            PredictedRow(
                str(one["version"]),
                tuple(map(str, one["generations"])),
                *(int(one[key]) for key in ("attempts", "corrupted", "judged", "predicted")),
            )
            for one in found["versions"]
        )
        missed = [
            f"not predicted: {one['run_id']} ({one['scenario']}, {one['condition']}): {one['why']}"
            for one in found["logs"]
            if not one["predicted"]
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return Predicted()
    return Predicted(rows, tuple(missed[:MOST_MISSED]), max(0, len(missed) - MOST_MISSED))
