"""What is broken inside a file that is otherwise read: told of beside the captures, and never without end."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from stormctl.errors import StormctlError
from stormctl.readers.unreadable import Unreadable

#: How many broken rows of a file are told of one by one, and how many of one run become notes of its capture.
MOST_TOLD, MOST_NOTES = 20, 5


class Broken:
    """The broken rows of a file, by run; of those that name no run, under the empty one."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._told: list[Unreadable] = []
        self._notes: defaultdict[str, list[str]] = defaultdict(list)
        self._counts: Counter[str] = Counter()

    def add(self, error: StormctlError, run_id: str = "") -> None:
        """One more broken row."""
        self._counts[run_id] += 1
        if len(self._told) < MOST_TOLD:
            self._told.append(Unreadable.of(self._source, error))
        if len(self._notes) < 10_000 and len(self._notes[run_id]) < MOST_NOTES:
            self._notes[run_id].append(str(error))

    def __bool__(self) -> bool:
        return bool(self._told)

    def of(self, run_id: str) -> int:
        """How many rows of a run are broken."""
        return self._counts[run_id]

    def notes(self, run_id: str) -> list[str]:
        """The first of them as notes of the run's capture."""
        found = list(self._notes.get(run_id, ()))
        rest = self._counts[run_id] - len(found)
        return [*found, f"{rest} more of its rows cannot be read"] if rest > 0 else found

    def told(self) -> Iterator[Unreadable]:
        """The first of all, and how many more there are."""
        yield from self._told
        rest = self._counts.total() - len(self._told)
        if rest > 0:
            text = f"{rest} more rows of {self._source} cannot be read"
            yield Unreadable(self._source, text, "Capture or copy the file again.")
