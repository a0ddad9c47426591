"""What a store holds while a trace is read: the entries of each sidecar, from admissions, marks and compactions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stormctl.sweeps.drain.records import (
    Admit,
    Compact,
    Consequence,
    DrainTrace,
    Ident,
    Record,
    Snapshot,
    Wave,
    position,
)

#: an entry of a snapshot: event id, seq, consequenced
Stored = tuple[str | None, int | None, bool]


class Fold:
    """The store, record by record. A wave's snapshot is what it is from then on."""

    def __init__(self) -> None:
        self.docs: dict[str, list[Stored]] = {}
        self.frontier: dict[str, int] = {}
        self.removed: set[tuple[str, Ident]] = set()
        self.admitted: set[tuple[str, Ident]] = set()

    def take(self, record: Record) -> None:
        """Take in a record."""
        what = record.what
        if isinstance(what, Admit):
            if not what.deduped:
                self.docs.setdefault(what.doc, []).append((what.event_id, what.seq, False))
                self.admitted.add((what.doc, (what.event_id, what.seq)))
        elif isinstance(what, Compact):
            self.removed.update((what.doc, ident) for ident in what.removed)
            gone = set(what.removed)
            self.docs[what.doc] = [one for one in self.docs.get(what.doc, ()) if (one[0], one[1]) not in gone]
        elif isinstance(what, Consequence):
            self.mark(what.doc, (what.event_id, what.seq))
        elif isinstance(what, Wave):
            if what.seq:
                self.admitted.update((doc, (event_id, what.seq)) for doc, event_id in what.emitted)
            for doc, frontier, entries in what.sidecars:
                self.docs[doc] = list(entries)
                self.frontier[doc] = frontier

    def mark(self, doc: str, ident: Ident) -> None:
        """An entry was consequenced."""
        self.docs[doc] = [
            (one[0], one[1], True) if (one[0], one[1]) == ident else one for one in self.docs.get(doc, ())
        ]

    def at(self, doc: str, index: int) -> Ident | None:
        """Who stands at an index."""
        entries = self.docs.get(doc, ())
        return (entries[index][0], entries[index][1]) if 0 <= index < len(entries) else None

    def pending(self) -> Iterator[tuple[str, Ident]]:
        """Every entry without a consequence, ghosts aside."""
        for doc, entries in self.docs.items():
            for event_id, seq, done in entries:
                if not done and event_id:
                    yield doc, (event_id, seq)


def pending_in(sidecars: Sequence[Snapshot]) -> Iterator[tuple[str, Ident]]:
    """Every entry of a snapshot without a consequence, ghosts aside."""
    for doc, _, entries in sidecars:
        for event_id, seq, done in entries:
            if not done and event_id:
                yield doc, (event_id, seq)


def folded(trace: DrainTrace) -> Iterator[tuple[int, Record, Fold]]:
    """Each record with its index and the store as it was immediately before."""
    fold = Fold()
    for index, record in enumerate(trace.records):
        yield index, record, fold
        fold.take(record)


def before(one: tuple[str, Ident], other: tuple[str, Ident]) -> bool:
    """Whether an entry (sidecar, identity) stands before another in arrival order."""
    return position(one[1], one[0]) < position(other[1], other[0])
