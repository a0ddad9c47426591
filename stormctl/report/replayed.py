"""What the real engine made of a storm's logs, cell by cell, beside what the SDK said of its runs.

Read from ``replays.json``, which a target writes after a storm whose plan asked for a real engine; a storm without that
file has no such table.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stormctl.storm.attempt import Cell

FILE = "replays.json"
HEAD = ("replayed by", "flips", "log-order", "same text", "same output")


@dataclass(frozen=True, slots=True)
class ReplayedRow:
    """One cell by one real engine; the counts are those of ``stormctl.replays/1``.

    ``flips`` of ``replayed`` completed runs have an ordinal that went to another call, ``log_order`` of ``judged`` a
    race that their own log contradicts; ``apart`` have the one and not the other. ``text`` of ``texts`` corrupted runs
    get the very divergence that the SDK printed, ``output`` of ``outputs`` completed ones the recorded output.
    """

    cell: Cell
    engine: str
    completed: int
    replayed: int
    flips: int
    judged: int
    log_order: int
    apart: int
    outputs: int
    output: int
    corrupted: int
    texts: int
    text: int

    @property
    def cells(self) -> tuple[str, str, str, str, str]:
        """As a table shows it, under :data:`HEAD`."""
        flips = _share(self.flips, self.replayed, self.completed)
        return (
            self.engine,
            flips + (f", {self.apart} apart" if self.apart else ""),
            _share(self.log_order, self.judged, self.completed),
            _share(self.text, self.texts, self.corrupted),
            _share(self.output, self.outputs, self.completed),
        )


def replayed(folder: Path) -> tuple[ReplayedRow, ...]:
    """The rows in an artefact's folder; none where there is no such file that can be read."""
    counts = [name for name in ReplayedRow.__dataclass_fields__ if name not in ("cell", "engine")]
    try:
        found: Any = json.loads((folder / FILE).read_bytes())
        return tuple(
            ReplayedRow(
                Cell(*(str(one[key]) for key in ("scenario", "world", "condition", "generation"))),
                str(one["engine"]),
                *(int(one[key]) for key in counts),
            )
            for one in found["cells"]
        )
    except (OSError, ValueError, KeyError, TypeError):
        return ()


def _share(count: int, of: int, there: int) -> str:
    """``2/12``; with how many there were beside those that could be judged, and a dash where there was none."""
    if not there:
        return "-"
    return f"{count}/{of}" + (f" of {there}" if of < there else "")
