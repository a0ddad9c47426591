"""Writing down what a run did, as it does it."""

from __future__ import annotations

from stormctl.sweeps.drain.records import DrainTrace, Record, What


class Recorder:
    """The records of one run, in the order in which things happened."""

    __slots__ = ("now", "records")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.now = 0

    def note(self, tenure: int, what: What) -> None:
        """Something happened, now."""
        self.records.append(Record(len(self.records) + 1, self.now, tenure, what))

    def trace(self, name: str) -> DrainTrace:
        """What was written, as a subject of sweeps."""
        return DrainTrace(name, tuple(self.records))
