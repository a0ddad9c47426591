"""The durable store of one space: commits with a dense seq, and a sidecar document of entries for each stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from stormctl.sweeps.drain.records import Ident, Snapshot


class Entry(NamedTuple):
    """An event in a sidecar. A ghost has no event id: a mark made it. A legacy entry has no seq."""

    event_id: str | None
    seq: int | None
    consequenced: bool = False

    @property
    def ident(self) -> Ident:
        """What an entry is known by: an event id alone is not unique for ever."""
        return self.event_id, self.seq


GHOST = Entry(None, None, consequenced=True)
Entries = tuple[Entry, ...]


class Mark(NamedTuple):
    """A write of ``true`` at an index. ``add`` says that the view had no element there, ``elided`` that it needed no
    write; ``basis`` is the store's head when the index was found."""

    doc: str
    at: int
    ident: Ident
    basis: int
    add: bool = False
    elided: bool = False


class Engine:
    """See the module. ``log`` is the one shared document that all effects are appended to."""

    def __init__(self) -> None:
        self.head = 0
        self.watermark = 0
        self.log: list[str] = []
        self.frontier: dict[str, int] = {}
        self.version: dict[str, int] = {}
        self._entries: dict[str, Entries] = {}
        self._compacted: dict[str, int] = {}
        self._marked: dict[tuple[str, Ident], int] = {}
        self.own: set[int] = set()  # seqs of derived commits

    @property
    def docs(self) -> list[str]:
        """The sidecars that there are, by name."""
        return sorted(self._entries)

    def entries(self, doc: str) -> Entries:
        """A sidecar as it is stored."""
        return self._entries.get(doc, ())

    def commit(self) -> int:
        """The next seq: every commit has one more than the last."""
        self.head += 1
        return self.head

    def admit(self, doc: str, event_id: str) -> int | None:
        """Append an event; its seq, or None where it is a duplicate of one that still matters."""
        if self.duplicate(doc, event_id):
            return None
        seq = self.commit()
        self._put(doc, (*self.entries(doc), Entry(event_id, seq)), seq)
        return seq

    def duplicate(self, doc: str, event_id: str) -> bool:
        """Whether an append would be taken for one that still matters: above the frontier, or legacy and pending."""
        edge = self.frontier.get(doc, 0)
        return any(
            one.event_id == event_id and (one.seq > edge if one.seq is not None else not one.consequenced)
            for one in self.entries(doc)
        )

    def strip(self, doc: str) -> None:
        """Make a sidecar's consumed entries legacy ones: they lose their seq."""
        stripped = (one._replace(seq=None) if one.consequenced else one for one in self.entries(doc))
        self._put(doc, tuple(stripped), self.commit())

    def pending(self) -> list[tuple[str, Entry]]:
        """Every entry that waits for its consequence, by sidecar."""
        return [(doc, one) for doc, stored in sorted(self._entries.items()) for one in self._waiting(doc, stored)]

    def _waiting(self, doc: str, stored: Entries) -> Iterator[Entry]:
        edge = self.frontier.get(doc, 0)
        for one in stored:
            if one.event_id is not None and not one.consequenced and (one.seq is None or one.seq > edge):
                yield one

    def compact(self, doc: str) -> tuple[Ident, ...]:
        """Take out the consumed entries at or below the stream's frontier; who they were."""
        edge = self.frontier.get(doc, 0)
        gone = [one for one in self.entries(doc) if one.consequenced and one.seq is not None and one.seq <= edge]
        if gone:
            seq = self._compacted[doc] = self.commit()
            self._put(doc, tuple(one for one in self.entries(doc) if one not in gone), seq)
        return tuple(one.ident for one in gone)

    def consequence(self, doc: str, ident: Ident) -> int:
        """Another writer consequences an entry, with its effect; the seq of that commit."""
        seq = self.commit()
        self._set(doc, find(self.entries(doc), ident) or 0, seq)
        self.log.append(ident[0] or "")
        return seq

    def effects(self, event_id: str) -> int:
        """Effects alone, outside any wave; the seq of that commit."""
        self.log.append(event_id)
        seq = self.commit()
        self.own.add(seq)
        return seq

    def conflicts(self, mark: Mark) -> bool:
        """Whether the mark's index may be another entry's by now, or its path was written: tail appends do no harm."""
        if self._compacted.get(mark.doc, 0) > mark.basis:
            return True
        return self._marked.get((mark.doc, mark.ident), 0) > mark.basis

    def apply(self, marks: Sequence[Mark], emitted: Sequence[tuple[str, str]], seq: int) -> None:
        """The marks and carried entries of a derived commit, and the frontiers of the sidecars that it touched."""
        self.own.add(seq)
        for mark in marks:
            stored = self.entries(mark.doc)
            if mark.add or mark.at >= len(stored):
                at = min(mark.at, len(stored))
                self._put(mark.doc, (*stored[:at], GHOST, *stored[at:]), seq)
            elif not mark.elided:
                self._set(mark.doc, mark.at, seq)
        for doc, event_id in emitted:
            self._put(doc, (*self.entries(doc), Entry(event_id, seq)), seq)
        for doc in sorted({mark.doc for mark in marks if not mark.elided} | {doc for doc, _ in emitted}):
            self.frontier[doc] = frontier(self.entries(doc), self.frontier.get(doc, 0))

    def snapshot(self) -> tuple[Snapshot, ...]:
        """Every sidecar, as a trace has it."""
        return tuple((doc, self.frontier.get(doc, 0), stored) for doc, stored in sorted(self._entries.items()))

    def _set(self, doc: str, index: int, seq: int) -> None:
        stored = self.entries(doc)
        self._marked[doc, stored[index].ident] = seq
        self._put(doc, (*stored[:index], stored[index]._replace(consequenced=True), *stored[index + 1 :]), seq)

    def _put(self, doc: str, entries: Entries, seq: int) -> None:
        self._entries[doc] = entries
        self.version[doc] = seq


def find(entries: Sequence[Entry], ident: Ident) -> int | None:
    """The index of an entry; an absent seq equals only an absent seq."""
    for index, one in enumerate(entries):
        if one.event_id == ident[0] and one.seq == ident[1]:
            return index
    return None


def frontier(entries: Sequence[Entry], stored: int) -> int:
    """The stream's frontier: over each seq all of whose entries are consequenced, up to the first that is not so. It is
    never lowered, and what has no seq holds no position."""
    done: dict[int, bool] = {}
    for one in entries:
        if one.seq is not None and one.seq > stored:
            done[one.seq] = done.get(one.seq, True) and one.consequenced
    for seq in sorted(done):
        if not done[seq]:
            break
        stored = seq
    return stored
